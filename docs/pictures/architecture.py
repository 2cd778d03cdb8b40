"""The processes of zklock, and how they talk to each other."""

from drawing import Drawing

d = Drawing(860, 400, "Clients, backends, worker, session process, ZooKeeper")


def server(top, name):
    d.box(110, top, 590, 165, style="frame")
    d.text(120, top + 20, name, "bold", "start")
    for i in range(3):
        d.box(130, top + 36 + 40 * i, 110, 30, ["backend"])
        d.arrow(60, top + 51 + 40 * i, 128, top + 51 + 40 * i, "SQL")
        d.text(35, top + 56 + 40 * i, "client", "small")
        d.arrow(242, top + 51 + 40 * i, 288, top + 51 + 40 * i, both=True)
    d.box(290, top + 36, 130, 110,
          ["shared memory", "a slot for each", "request; the lease"])
    d.box(442, top + 36, 96, 110, ["worker", "queues,", "decisions"])
    d.arrow(422, top + 91, 440, top + 91, both=True)
    d.box(560, top + 36, 130, 110,
          ["zklock_session", "the connection", "to ZooKeeper"])
    d.arrow(540, top + 91, 558, top + 91, both=True)
    d.arrow(692, top + 91, 748, 150 if top < 100 else 250, both=True)


server(15, "PostgreSQL server 1")
server(220, "PostgreSQL server 2")
d.box(750, 90, 95, 220, style="other")
d.text(797, 112, "ZooKeeper", "bold")
for i in range(3):
    d.box(762, 126 + 60 * i, 71, 46, ["member"], "other")
d.show()
