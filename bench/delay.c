/*
 * delay.c
 *	  Runs a command where each packet to a loopback address takes some time.
 *
 *	  delay MICROSECONDS COMMAND...
 *
 * The command has namespaces of its own.  In its network, packets to 127.0.0.0/8
 * leave through a tun device instead of "lo"; a second process reads them there,
 * holds each for that time, and writes it back, as one that has just arrived.
 * Sockets of the Unix domain are as fast as ever.
 *
 * The command is the first process of its namespace, so none that it starts is
 * left when it ends.  It is killed if this program ends, and so is the second
 * process.  It needs root, a kernel with tun devices and policy routing, and
 * iproute2.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PACKET_SIZE		65536

typedef struct Packet
{
	struct Packet *next;
	int64_t		due;			/* ns */
	size_t		length;
	char		data[];
} Packet;

/*
 * "lookup local" comes after the rule for packets that are sent here.  For
 * packets that arrive from the device, it is the first one that matches.
 * ZooKeeper's C client finds no address on a host that has only "lo".
 */
static const char *const setup =
"ip link set lo up && ip link set delay up mtu 65000 txqueuelen 10000 && "
"ip address add 192.0.2.1/32 dev delay && "
"cd /proc/sys/net/ipv4/conf/delay && "
"echo 1 >route_localnet && echo 1 >accept_local && "
"ip rule add pref 1 to 127.0.0.0/8 iif lo lookup 100 && "
"ip rule add pref 2 lookup local && ip rule del pref 0 && "
"ip route add default dev delay src 127.0.0.1 table 100";

static void
check(int result, const char *what)
{
	if (result >= 0)
		return;
	fprintf(stderr, "delay: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static int
open_device(void)
{
	struct ifreq request = {.ifr_name = "delay",.ifr_flags = IFF_TUN | IFF_NO_PI};
	int			device = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	check(device, "/dev/net/tun");
	check(ioctl(device, TUNSETIFF, &request), "TUNSETIFF");
	if (system(setup) != 0)
		exit(1);
	return device;
}

/* Waits for a packet, or until the first one that is held is due. */
static void
wait_for(int device, const Packet *first)
{
	struct pollfd readable = {.fd = device,.events = POLLIN};
	int64_t		left = first ? first->due - now_ns() : 0;
	struct timespec timeout = {.tv_sec = left / 1000000000,.tv_nsec = left % 1000000000};

	if (left >= 0)
		ppoll(&readable, 1, first ? &timeout : NULL, NULL);
}

/* All packets are held for the same time, so they are due in their order. */
static void
forward(int device, int64_t hold)
{
	static char data[PACKET_SIZE];
	Packet	   *first = NULL;
	Packet	  **last = &first;
	ssize_t		length;

	for (;;)
	{
		wait_for(device, first);
		while ((length = read(device, data, sizeof(data))) > 0)
		{
			Packet	   *packet = malloc(sizeof(Packet) + length);

			check(packet ? 0 : -1, "malloc");
			packet->next = NULL;
			packet->due = now_ns() + hold;
			packet->length = length;
			memcpy(packet->data, data, length);
			*last = packet;
			last = &packet->next;
		}
		while (first && first->due <= now_ns())
		{
			Packet	   *packet = first;

			check(write(device, packet->data, packet->length), "write");
			first = packet->next;
			if (!first)
				last = &first;
			free(packet);
		}
	}
}

static pid_t
fork_child(void)
{
	pid_t		pid;
	int			alive[2];
	struct pollfd parent;

	/* If the parent has ended before prctl, the pipe is closed there. */
	check(pipe2(alive, O_CLOEXEC), "pipe");
	pid = fork();
	check(pid, "fork");
	if (pid != 0)
	{
		close(alive[0]);
		return pid;
	}
	close(alive[1]);
	check(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
	parent.fd = alive[0];
	parent.events = 0;
	if (poll(&parent, 1, 0) != 0)
		exit(1);
	return 0;
}

int
main(int argc, char **argv)
{
	int			device;
	int			status;
	pid_t		command;

	if (argc < 3)
	{
		fprintf(stderr, "usage: delay MICROSECONDS COMMAND...\n");
		return 2;
	}
	check(unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC), "namespaces");
	device = open_device();
	if (fork_child() == 0)
	{
		/* It is on time also when all processors are busy. */
		setpriority(PRIO_PROCESS, 0, -20);
		prctl(PR_SET_TIMERSLACK, 1);
		forward(device, atoll(argv[1]) * 1000);
	}
	close(device);
	check(unshare(CLONE_NEWPID), "namespace of processes");
	command = fork_child();
	if (command == 0)
	{
		check(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount");
		check(mount("proc", "/proc", "proc", 0, NULL), "/proc");
		execvp(argv[2], argv + 2);
		check(-1, argv[2]);
	}
	check(waitpid(command, &status, 0), "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
