# Messages between servers that do not arrive are seen: datagrams that are dropped on the
# way to a server or back, other credentials, a wrong address or one that two servers
# have, IPv4 and IPv6, no address, and one that others cannot reach.  zk_healthcheck()
# names the servers, and zk_servers counts asks that nobody has answered.  Locks pass on
# all the time.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use IO::Socket::IP;
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use UdpRelay;
use ZklockTest;

my $test = ZklockTest->new(
	servers => 3,
	session_timeout => '2s',
	zk => { config => 'clientPortAddress=0.0.0.0' },
	conf => "zklock.cache_time = 0\n");
my ($one, $two, $three) = $test->nodes;
my $relay = UdpRelay->new;
my (%port, %way, %session);
my $possible = 'Messages between servers are possible.';

foreach my $node ($test->nodes)
{
	my $name = $node->name;

	$way{$name} = PostgreSQL::Test::Cluster::get_free_port();
	$port{$name} = PostgreSQL::Test::Cluster::get_free_port();
	$relay->route($name, $way{$name}, $port{$name});
	$test->set($node, peer_address => "127.0.0.1:$way{$name}", peer_port => $port{$name});
	$session{$name} = $test->session($node);
}

my $begun = time;

# What zk_healthcheck() says of messages
sub finds
{
	my ($node, $ok, $detail, $what, %params) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($node,
			"SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'messages'",
			"$ok|$detail", $what, %params),
		$node->name . ": $what");
}

# The lock goes from the first server to the second one, which asks for it, and back.
my $rounds = 0;

sub hand_over
{
	my ($first, $second) = @_;

	foreach my $pair ([ $first, $second ], [ $second, $first ])
	{
		my ($from, $to) = map { $session{ $_->name } } @$pair;
		my $name = '/s/' . $rounds++;

		$from->query("SELECT zk_lock('$name')");
		$test->enqueue($to, "SELECT zk_lock('$name')", $name);
		$from->query("SELECT zk_unlock('$name')");
		$to->value > 0 or fail("$name is granted");
		$to->query("SELECT zk_unlock('$name')");
	}
	return;
}

sub unanswered
{
	my ($node, $other) = @_;

	return $test->look($node,
		"SELECT asks_unanswered FROM zk_servers WHERE server = '" . $other->name . "'");
}

# Each of the two finds that the other one does not answer, while locks pass on between
# them.
sub both_are_silent
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $pair ([ $one, $two ], [ $two, $one ])
	{
		finds(
			$pair->[0], 'f',
			'Servers that do not answer messages: "' . $pair->[1]->name . '".',
			$what, before => sub { hand_over($one, $two) });
		cmp_ok(unanswered(@$pair), '>=', 5, "$what: zk_servers counts them");
	}
	return;
}

sub all_is_well
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	finds($_, 't', $possible, $what, before => sub { hand_over($one, $two) }) foreach $one, $two;
	finds($three, 't', $possible, $what);
	return;
}

# Others notice a new address at once if the session is new, too.
sub restart_at
{
	my ($node, $address) = @_;
	my $name = $node->name;

	$session{$name}->close;
	$test->stop_looking($node);
	$test->set($node, peer_address => $address);
	$node->restart;
	$test->wait_connected($node);
	$session{$name} = $test->session($node);
	return;
}

# ---- all is well

all_is_well('at first');
is($test->look($one, "SELECT count(asks_unanswered) FROM zk_servers WHERE server = 'server1'"),
	0, 'nobody asks itself');
is(unanswered($three, $one), '', 'nothing is known of a server that was not asked');
wait_for(sub { hand_over($one, $two); return unanswered($one, $two) eq '0' }, 'answered');
is(unanswered($one, $two), 0, 'each ask that is to be echoed has its answer');

# So many datagrams of that kind have come to a server
sub seen
{
	my ($node, $kind) = @_;

	return scalar grep { ord(substr $_, 3) == $kind } $relay->seen($node->name);
}
my ($asks_to_echo, $echoes) = (seen($two, 3), seen($one, 4));
my $elapsed = time - $begun;
cmp_ok($asks_to_echo, '>', 0, 'some are to be echoed');
cmp_ok($asks_to_echo, '<=', $elapsed + 1, 'at most one a second');
cmp_ok($echoes, '<=', $asks_to_echo, 'and each once');
cmp_ok(seen($two, 1), '>', 0, 'others are not');

# A lock is held for long, and others try again and again: no word, but answers.
my $words = $test->status($two, 'words_taken');
$session{server1}->query("SELECT zk_lock('/s/long')");
my $asks = $test->status($two, 'asks_sent');
wait_for(
	sub {
		$session{server2}->error("SELECT zk_lock('/s/long', '200ms')");
		return $test->status($two, 'asks_sent') > $asks + 25;
	},
	'25 asks');
is($test->status($two, 'words_taken'), $words, 'no word for a lock that is held');
cmp_ok(unanswered($two, $one), '<', 2, 'is no silence');
$session{server1}->query("SELECT zk_unlock('/s/long')");

# ---- datagrams are dropped

$relay->drop('server2');
both_are_silent('dropped on the way to a server');
$relay->pass('*');
all_is_well('not any more');
$relay->drop('server1');
both_are_silent('dropped on the way back');
$relay->pass('*');
all_is_well('not any more, either');

# ---- an address is wrong: that of nobody, as behind a router that is not told of, or
# that of another server

restart_at($two, '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port());
finds(
	$one, 'f', 'Servers that do not answer messages: "server2".',
	'a wrong address', before => sub { hand_over($one, $two) });
$test->set($two, peer_address => "127.0.0.1:$way{server3}");
my $doubles = 'Servers that share an address for messages: "server2", "server3".';
foreach my $node ($test->nodes)
{
	ok($test->look_until($node,
			"SELECT NOT ok AND detail LIKE '$doubles%' FROM zk_healthcheck()"
			  . " WHERE check_name = 'messages'", 't', 'doubled'),
		$node->name . ': that of another server');
}
restart_at($two, "127.0.0.1:$way{server2}");
all_is_well('the right one');

# ---- two families, as after a connection to ZooKeeper by the other one

$test->set($two, peer_address => '::1');
my $family =
  'Servers whose address is IPv4 where this one\'s is IPv6, or the other way round';
my $nearly = 'SELECT NOT ok AND detail LIKE $$%s: %s.%%$$ FROM zk_healthcheck()'
  . q( WHERE check_name = 'messages');
foreach my $pair ([ $one, '"server2"' ], [ $two, '"server1", "server3"' ], [ $three, '"server2"' ])
{
	my ($node, $names) = @$pair;
	ok($test->look_until($node, sprintf($nearly, $family, $names), 't', 'families'),
		$node->name . ': another family');
}
$test->set($two, peer_address => "127.0.0.1:$way{server2}");
all_is_well('one family');

# ---- no address, because of other credentials, or because nobody has set the port

my $dir = rel2abs(PostgreSQL::Test::Utils::tempdir());
write_secret("$dir/$_", "digest:zklock:$_\n") foreach 'ours', 'other';
$test->connects_with($one, 'credentials', auth_file => "$dir/ours");
$test->connects_with($three, 'credentials', auth_file => "$dir/ours");
$test->connects_with($two, 'other credentials', auth_file => "$dir/other");
finds(
	$two, 'f',
	'ZooKeeper does not allow this server to read the key in znode "/zklock/.peer_key".',
	'other credentials');
like($test->look($one,
		q(SELECT detail FROM zk_healthcheck() WHERE NOT ok AND check_name <> 'zookeeper version')),
	qr/^This server has credentials\.  Servers whose znodes it cannot read: 1, with the sessions "0x\w+"\./,
	'which others see as they can read nothing of it');
$test->connects_with($two, 'the same credentials', auth_file => "$dir/ours");
all_is_well('the same credentials');
$test->set($two, peer_port => 0);
finds($_, 'f', 'Servers without an address for messages: "server2".', 'no port')
  foreach $one, $three;
$test->set($two, peer_port => $port{server2});
all_is_well('a port');

# ---- addresses that others cannot reach

SKIP:
{
	my $outward = IO::Socket::IP->new(PeerHost => '192.0.2.1', PeerPort => 9, Type => SOCK_DGRAM);

	skip 'no interface but loopback', 4 if !$outward || $outward->sockhost =~ /^127\./;
	$test->set($two, peer_address => $outward->sockhost);
	$test->set($three, peer_address => '169.254.1.1');
	foreach my $node ($test->nodes)
	{
		ok($test->look_until(
				$node,
				sprintf($nearly,
					'Servers whose address cannot be reached from other machines or networks',
					'"server1", "server3"'),
				't',
				'near'),
			$node->name . ': loopback and link-local');
	}
	$test->set($_, peer_address => '127.0.0.1:' . $way{ $_->name }) foreach $two, $three;
	all_is_well('all are near');
}

$_->close foreach values %session;
$test->finish;
