# Hosts that need long for their first answer, as a JVM does that has just started
# on a busy machine, and hosts that do not even accept a connection.  With three
# hosts and a session timeout of 10 s, answers after 2 s save the session.  With
# five hosts and 4 s, answers after 1.5 s are waited for once it is lost.

use strict;
use warnings;

use IO::Socket::INET;
use Test::More;

use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $zk = ZooKeeper->new('zk');
$zk->start;

# Hosts of one ZooKeeper server, as a server of that name has them
sub hosts
{
	my ($name, $count) = @_;

	return join ',', map { '127.0.0.1:' . $net->route("$name-$_", $zk->port) } 1 .. $count;
}

# A port whose queue of connections is full: what comes is not even refused.
my @sockets;

sub dead_host
{
	my $socket = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1');
	my $address = '127.0.0.1:' . $socket->sockport;

	push @sockets, $socket;
	foreach (1 .. 5)
	{
		push @sockets, IO::Socket::INET->new(PeerAddr => $address, Blocking => 0);
	}
	return $address;
}

my $test = ZklockTest->new(servers => 0, zk => $zk, start_zookeeper => 0);

# A server with these hosts
sub start_server
{
	my ($name, $timeout, $hosts) = @_;
	my $node = $test->new_node($name, session_timeout => $timeout,
		conf => "zklock.connect_string = '$hosts'\n");

	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION zklock');
	return $node;
}

# ---- the session is saved
my $three = hosts('three', 3);
my $mixed = join ',', hosts('mixed', 1), dead_host(), dead_host();
foreach my $case ([ three => $three ], [ mixed => $mixed ])
{
	my ($name, $hosts) = @$case;

	$net->greet("$name-*", 2);
	my $node = start_server($name, '10s', $hosts);
	ok($test->wait_connected($node), "$name: connects to hosts that are slow");
	my $id = $test->status($node, 'session_id');
	my $holder = $test->session($node);
	$holder->query("SELECT zk_lock('/slow')");
	foreach my $round (1 .. 3)
	{
		my $connects = $test->status($node, 'connects');
		$net->reset("$name-*");
		ok($test->look_until($node,
				"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
				't', "$name: round $round"),
			"$name: again, round $round");
	}
	is($test->status($node, 'session_id, sessions_lost'),
		"$id|0", "$name: in the same session");

	# Connected is not yet confirmed: zk_unlock does not wait outside of a block.
	$test->look_until($node, "SELECT lease_remaining > '0' FROM zk_status", 't', 'the lease');
	is($holder->query("SELECT zk_unlock('/slow')"), 't', "$name: and the lock was kept");
	$holder->close;
}

# ---- it is lost
my $node = start_server('five', '4s', hosts('five', 5));
$test->wait_connected($node);
$net->hold('five-*');
my $id = $test->session_hex($node);
wait_for(sub { !grep { $_ eq $id } $zk->sessions }, 'the session ends');
$net->pass('five-*');
$net->greet('five-*', 1.5);
ok($test->look_until($node,
		"SELECT sessions_lost = 1 AND state = 'connected' FROM zk_status, zk_stat_server", 't', 'five'),
	'five hosts and 4 s: connected again');
my $session = $test->session($node);
cmp_ok($session->query("SELECT zk_lock('/slow')"), '>', 0, 'five hosts and 4 s: a lock');
$session->query("SELECT zk_unlock('/slow')");
$session->close;
$test->finish;
