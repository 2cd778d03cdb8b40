# Messages between servers: what the settings must be and what the log says if they
# are not; where each server publishes its address; that only datagrams which the key
# has signed count.  262_peer_key.pl is about that key.

use strict;
use warnings;

use IO::Socket::IP;
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::HiRes qw(time);

use PeerForger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $zk = ZooKeeper->new('zk', config => 'clientPortAddress=0.0.0.0');
my $net = TcpProxy->new;
my $test = ZklockTest->new(zk => $zk, net => $net);
my ($one, $two) = $test->nodes;
my %port = map { $_->name => PostgreSQL::Test::Cluster::get_free_port() } $one, $two;
my $forger;
my @ids = map { "aaaaaaaa-bbbb-8ccc-8ddd-eeeeeeeeee0$_" } 1, 2;

sub entry
{
	my ($node) = @_;
	my $znode = $test->fleet_znode($node);
	my $data = $znode && $zk->client->try_get($znode);
	return ($data // '') =~ /"peer":"([^"]*)"/ ? $1 : '';
}

# What zk_healthcheck() says of messages
sub finds
{
	my ($node, $ok, $detail) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($node,
		"SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'messages'",
		"$ok|$detail", "check: $detail");
}

sub publishes
{
	my ($node, $address) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(sub { entry($node) eq $address }, "entry: $address"),
		$node->name . " publishes '$address'");

	# What is wrong with others is for 263_silence.pl.
	return $address eq ''
	  || $test->look_until($node,
		"SELECT detail ~ '^(Messages between servers are possible|Servers )' FROM"
		  . " zk_healthcheck() WHERE check_name = 'messages'",
		't', 'messages are possible');
}

# How often the log says since then that messages are received there, and, if that is
# not the same, where others send them
sub times_logged
{
	my ($node, $address, $from, $published) = @_;
	my $detail =
	  $published ? qr/.*DETAIL:  Other servers send them to \Q$published\E\.\n/ : qr/(?!.*DETAIL)/;

	return scalar(() = slurp_file($node->logfile, $from // 0) =~
		  /LOG:  messages between servers are received at \Q$address\E\n$detail/g);
}

sub logs
{
	my ($node, $address, $from, $published) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		wait_for(sub { times_logged($node, $address, $from, $published) == 1 },
			"log: $address"),
		$node->name . " logs '$address'");
}

# Changes settings, and looks for the warning that follows.
sub warns
{
	my ($node, $what, $pattern, %settings) = @_;
	my $hint = delete $settings{hint} // '\S.*';
	my $from = -s $node->logfile;

	$test->set($node, %settings);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		wait_for(
			sub {
				slurp_file($node->logfile, $from) =~
				  /WARNING:  no messages between servers although "zklock.peer_port" is set\n.*DETAIL:  $pattern\n.*HINT:  $hint\n/;
			},
			$what),
		$what);
}

sub refused { return $test->status($_[0], 'messages_refused'); }

# Sends datagrams to a server, which refuses all of them.
sub refuses
{
	my ($node, $what, @datagrams) = @_;
	my $before = refused($node);

	$forger->send($_, $port{ $node->name }) foreach @datagrams;
	my $after = $before + @datagrams;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($test->look_until($node, 'SELECT messages_refused FROM zk_stat_server', $after, $what),
		$what);
}

# A datagram of the first server's, for the second one
sub datagram
{
	my ($maker, %params) = @_;

	return $maker->datagram(
		kind => 'ask',
		from => $test->status($one, 'session_id'),
		to => $test->status($two, 'session_id'),
		znode => $ids[0],
		waiter => $ids[1],
		%params);
}

# ---- the settings

is(entry($one), '', 'without a port, no address');
is($test->look($one, 'SELECT count(*), count(peer_address) FROM zk_servers'), '2|0',
	'nor in zk_servers');
ok(!$zk->client->stat(PeerForger->znode), 'nor a key');
foreach ('localhost', '10.0.0.1:', '10.0.0.1:0', '10.0.0.1:65536', '10.0.0', '0.0.0.0', '::',
	'[fd00::1', '[10.0.0.1]x', 'fd00::1:65536:x', '10.0.0.1:1x', ' 10.0.0.1', '224.0.0.1',
	'239.255.255.255:4711', '240.0.0.1', '255.255.255.255', 'ff00::1', '[ff02::1]:4711')
{
	my ($status, undef, $error) =
	  $one->psql('postgres', "ALTER SYSTEM SET zklock.peer_address = '$_'");

	is($status, 3, "'$_' is refused");
	like($error,
		qr/DETAIL:  It must be an IPv4 or IPv6 address of one host, in digits, with or without a port from 1 to 65535\.$/m,
		'and the error says why');
}
warns($one, 'loopback by itself is of no use',
	'The connection to ZooKeeper has the local address "127\.0\.0\.1", to which other servers cannot send\.',
	peer_port => $port{server1});
is(entry($one), '', 'and is not published');
ok(finds($one, 'f',
		'The connection to ZooKeeper has the local address "127.0.0.1", to which other servers cannot send.'),
	'zk_healthcheck says that, too');
$test->set($one, peer_address => '127.0.0.1');
publishes($one, "127.0.0.1:$port{server1}");
$test->set($one, peer_address => "192.0.2.1:4711");
publishes($one, '192.0.2.1:4711');
logs($one, "0.0.0.0:$port{server1}", 0, '192.0.2.1:4711');
ok(!IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $port{server1}, Type => SOCK_DGRAM),
	'behind a router the socket is open for all addresses');
$test->set($one, peer_address => '::1');
publishes($one, "[::1]:$port{server1}");
logs($one, "[::1]:$port{server1}");
$test->set($one, peer_address => '[::1]:4712');
publishes($one, '[::1]:4712');
my $from = -s $one->logfile;
$test->set($one, peer_port => $port{server2});
logs($one, "[::1]:$port{server2}", $from, '[::1]:4712');
$test->set($one, peer_port => 0);
publishes($one, '');
ok(finds($one, 't', '"zklock.peer_port" is 0: there are no messages between servers.'),
	'switched off, all is well');
ok(IO::Socket::IP->new(LocalHost => '::1', LocalPort => $port{server1}, Type => SOCK_DGRAM),
	'switched off, it has no socket');

SKIP:
{
	skip 'each user may open each port', 1
	  if slurp_file('/proc/sys/net/ipv4/ip_unprivileged_port_start') <= 1023;
	warns($one, 'a port for root',
		'Could not open a UDP socket at 0\.0\.0\.0:1023: Permission denied\.',
		hint => 'Choose a port above 1023\.',
		peer_address => '192.0.2.1', peer_port => 1023);
}
my $taker = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $port{server1},
	Type => SOCK_DGRAM);
warns($one, 'the port is in use',
	"Could not open a UDP socket at 127\\.0\\.0\\.1:$port{server1}: Address already in use\\.",
	hint => 'Stop the program that uses the port, or choose another "zklock\.peer_port"\.  zklock tries it again every 30 seconds\.',
	peer_address => '127.0.0.1', peer_port => $port{server1});
is(entry($one), '', 'and there is no address');
close $taker;
$from = -s $one->logfile;
$one->reload;
publishes($one, "127.0.0.1:$port{server1}");
logs($one, "127.0.0.1:$port{server1}", $from);
$from = -s $two->logfile;
$test->set($two, peer_address => '127.0.0.1', peer_port => $port{server2});
publishes($two, "127.0.0.1:$port{server2}");
logs($two, "127.0.0.1:$port{server2}", $from);

my $addresses = 'SELECT server, peer_address FROM zk_servers ORDER BY 1';
is($test->look($one, $addresses),
	"server1|127.0.0.1:$port{server1}\nserver2|127.0.0.1:$port{server2}", 'zk_servers shows both');
$two->safe_psql('postgres',
	'CREATE ROLE plain LOGIN; GRANT SELECT ON zk_servers TO plain');
my $plain = $test->session($two, user => 'plain');
is($plain->query($addresses), "server1|\nserver2|", 'but not to everybody');
$plain->close;

# ---- the session process does not get the socket

sub sockets
{
	my ($pid) = @_;

	my %open = map { (readlink($_) // '') =~ /^socket:\[(\d+)\]$/ ? ($1 => 1) : () }
	  glob "/proc/$pid/fd/*";
	my $port = sprintf ':%04X', $port{server2};
	return
	  scalar grep { (split)[1] =~ /$port$/ && $open{ (split)[9] } } split /\n/,
	  slurp_file('/proc/net/udp');
}

my $session = $test->status($two, 'session_pid');
kill 'KILL', $session;
$test->look_until($two, "SELECT session_pid <> $session AND state = 'connected' FROM zk_status",
	't', 'another session process');
is(sockets($test->status($two, 'worker_pid')), 1, 'the worker has the socket');
is(sockets($test->status($two, 'session_pid')), 0, 'the session process does not');
publishes($two, "127.0.0.1:$port{server2}");
is(times_logged($two, "127.0.0.1:$port{server2}", $from), 1, 'and the log does not repeat itself');

# ---- what is taken, and what is refused

sub of_other_key { return $test->status($_[0], 'messages_other_key'); }

$forger = PeerForger->new($zk->client);
my $stranger = PeerForger->new($zk->client, key => 'x' x 32);
my $good = datagram($forger);
$forger->send($good, $port{server2});
refuses($two, 'the key of a stranger', datagram($stranger));
is(refused($two), 1, 'a good one, sent before, was not refused');

# Those of another version, or another key, are counted by themselves.
my %other = map { $_ => 1 } 2, 4 .. 11;
sub changed { my $bad = $good; substr($bad, $_[0], 1) ^= "\x01"; return $bad; }
$forger->send(changed($_), $port{server2}) foreach keys %other;
refuses($two, 'each byte counts',
	map { changed($_) } grep { !$other{$_} } 0 .. length($good) - 1);
is(of_other_key($two), keys %other, 'those of the version and the key are no attack');
refuses($two, 'no other size', '', "\0", substr($good, 0, -1), "$good\0", $good x 100);
refuses($two, 'no other kind', map { datagram($forger, kind => $_) } 0, 5, 255);
refuses($two, 'no other session',
	datagram($forger, to => $test->status($one, 'session_id')),
	datagram($forger, to => '0x1'),
	datagram($forger, from => $test->status($two, 'session_id')));

my $before = refused($two);
my $lock = $test->session($two);
$lock->query("SELECT zk_lock('/replayed')");
$forger->send($_, $port{server2})
  foreach map { (datagram($forger, kind => $_)) x 20 } qw(ask word ask_echo echo);
refuses($two, 'the end of the replay', 'x');
is(refused($two), $before + 1, 'replayed ones are not refused');
is($lock->query("SELECT zk_unlock('/replayed')"), 't', 'and do no harm');

$before = refused($two);
foreach my $round (1 .. 30)
{
	$forger->send(join('', map { chr int rand 256 } 1 .. 92), $port{server2}) for 1 .. 10;
	$lock->query("SELECT zk_lock('/flooded'), zk_unlock('/flooded')");
}
cmp_ok(refused($two), '>', $before, 'random bytes are refused, and locks go on');

# So many that the socket rests: it goes on by itself.
sub is_read_again
{
	my ($what) = @_;
	my $last = refused($two);

	ok(wait_for(
			sub {
				$forger->send('bad', $port{server2});
				return refused($two) > $last;
			},
			'one is read'),
		$what);
	return;
}

$forger->send("bad $_", $port{server2}) for 1 .. 600;
is_read_again('but the socket is read again') for 1 .. 3;

# So does it after 4096 recorded ones within 100 ms.
my $flood = IO::Socket::IP->new(
	PeerHost => '127.0.0.1',
	PeerPort => $port{server2},
	Type => SOCK_DGRAM);
my $word = datagram($forger, kind => 'word');
my $since = time;
my $late = $test->status($two, 'words_late');
$flood->send($word) for 1 .. 100_000;
is_read_again('and after recorded ones');
$late = $test->status($two, 'words_late') - $late;
cmp_ok($late, '<=', 4096 * (2 + 10 * (time - $since)), 'which are limited');

# ---- the address by itself

SKIP:
{
	my $outward = IO::Socket::IP->new(PeerHost => '192.0.2.1', PeerPort => 9, Type => SOCK_DGRAM);

	skip 'no interface but loopback', 4
	  if !$outward || $outward->sockhost =~ /^127\./ || $ENV{ZKLOCK_TEST_TLS};
	$test->connects_with($one, 'through an interface', peer_address => '',
		connect_string => $outward->sockhost . ':' . $zk->port);
	publishes($one, $outward->sockhost . ":$port{server1}");
	$test->connects_with($one, 'through loopback', peer_address => '127.0.0.1',
		connect_string => $test->connect_string('server1'));
	publishes($one, "127.0.0.1:$port{server1}");
}

$lock->close;

# ---- locks are disabled

my $worker = $test->status($two, 'worker_pid');
$test->set($two, enabled => 'off');
ok(wait_for(sub { sockets($worker) == 0 }, 'no socket'), 'disabled, a server has no socket');
$from = -s $two->logfile;
$test->set($two, peer_address => '127.0.0.2');
$test->look_until($two, 'SHOW zklock.peer_address', '127.0.0.2', 'a reload');
is(sockets($worker), 0, 'nor after a reload');
$test->set($two, enabled => 'on');
publishes($two, "127.0.0.2:$port{server2}");
logs($two, "127.0.0.2:$port{server2}", $from);

$test->finish;
