# A machine that starves new processes, or holds the worker up.
#
# How long the session process takes to start says nothing about a host, so it does
# not count as a host's time: with three hosts and a session timeout of 10 s, starts
# of 2.5 s save the session, and so does one of 4 s, by the second attempt.
#
# A worker that was held up for longer than ZooKeeper may be silent first takes what
# has come meanwhile, and keeps the connection.

use strict;
use warnings;

use Test::More;

use FakeSession;
use TcpProxy;
use ZklockTest;

my $fake = FakeSession->new;
my $net = TcpProxy->new;
my $test = ZklockTest->new(servers => 1, net => $net, session_timeout => '3s');
my ($two) = $test->nodes;
my $hosts = join ',', ($test->zk->connect_string) x 3;
my $one = $test->new_node('starved', session_timeout => '10s',
	conf => $fake->conf . "zklock.connect_string = '$hosts'\n");
$one->start;
$fake->create_extension($one);
$test->wait_connected($one);

# ---- starts are slow
my $id = $test->status($one, 'session_id');
my $holder = $test->session($one);
$holder->query("SELECT zk_lock('/slow')");
foreach my $seconds (2.5, 4)
{
	my ($session, $connects) = split /\|/, $test->status($one, 'session_pid, connects');

	$fake->delay($seconds);
	kill 'KILL', $session;
	ok($test->look_until($one,
			"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
			't', "$seconds s: again"),
		"$seconds s: connected again");
	$fake->delay(0);
	is($test->status($one, 'session_id, sessions_lost'), "$id|0", "$seconds s: in the same session");
}
$test->look_until($one, "SELECT lease_remaining > '0' FROM zk_status", 't', 'the lease');
is($holder->query("SELECT zk_unlock('/slow')"), 't', 'the lock was kept');
$holder->close;

# ---- the worker is stopped while an answer comes
my $session = $test->session($two);
my ($worker, $connects) = split /\|/, $test->status($two, 'worker_pid, connects');
my $sent = $net->stats('server1-zk')->{bytes}{up};
$net->hold('server1-zk', 'down');
$session->send("SELECT count(*) FROM zk_queue('/none')");
wait_for(sub { $net->stats('server1-zk')->{bytes}{up} > $sent }, 'it is asked');
kill 'STOP', $worker;
$net->pass('server1-zk');
my $now = $test->look($two, 'SELECT clock_timestamp()');
$test->look_until($two, "SELECT clock_timestamp() > timestamptz '$now' + '1.5 s'", 't', 'half a session timeout');
kill 'CONT', $worker;
is($session->value, 0, 'held up: the answer that came meanwhile is used');
is($test->status($two, 'connects'), $connects, 'held up: on the same connection');
$session->close;
$test->finish;
