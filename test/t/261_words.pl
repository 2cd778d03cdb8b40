# A lock passes to another server by a word, and by ZooKeeper if there is none: when
# datagrams are dropped, doubled or delayed, and when a server does not take
# part.

use strict;
use warnings;

use Test::More;

use PeerForger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use UdpRelay;
use ZklockTest;

my $test = ZklockTest->new(conf => "zklock.cache_time = 0\n");
my ($one, $two) = $test->nodes;
my $relay = UdpRelay->new;
my (%port, %session);

foreach my $node ($one, $two)
{
	my $way = PostgreSQL::Test::Cluster::get_free_port();

	$port{ $node->name } = PostgreSQL::Test::Cluster::get_free_port();
	$relay->route($node->name, $way, $port{ $node->name });
	$test->set($node, peer_address => "127.0.0.1:$way", peer_port => $port{ $node->name });
	$session{ $node->name } = $test->session($node);
}

sub taken { return map { $test->status($_, 'words_taken') } $one, $two; }

# The lock goes from the first server to the second one and back.
sub hand_over
{
	my ($name) = @_;

	foreach my $pair ([ $one, $two ], [ $two, $one ])
	{
		my ($from, $to) = map { $session{ $_->name } } @$pair;

		$from->query("SELECT zk_lock('$name')");
		$test->enqueue($to, "SELECT zk_lock('$name')", $name);
		$from->query("SELECT zk_unlock('$name')");
		cmp_ok($to->value, '>', 0, "$name: granted to " . $pair->[1]->name);
		$to->query("SELECT zk_unlock('$name')");
	}
	return;
}

# The lock goes on until words have been taken by both, which they need not be each time.
sub hands_over_by_words
{
	my ($name) = @_;
	my @before = taken();
	my $done;

	for (my $round = 0; $round < 100 && !$done; $round++)
	{
		hand_over("$name$round");
		my @now = taken();
		$done = $now[0] > $before[0] && $now[1] > $before[1];
	}
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($done, "$name: words are taken");
}

# What is sent before that is not sent.
$test->look_until($one, 'SELECT count(peer_address) FROM zk_servers', 2,
	'both publish their addresses');

hands_over_by_words('/passed');
is($test->status($_, 'messages_unsent'), 0, $_->name . ' sends all') foreach $one, $two;
cmp_ok($test->status($_, 'asks_sent'), '>', 0, $_->name . ' asks') foreach $one, $two;
cmp_ok($test->status($_, 'words_sent'), '>', 0, $_->name . ' says words') foreach $one, $two;
is($test->status($_, 'messages_refused'), 0, $_->name . ' refuses nothing') foreach $one, $two;

my @words = taken();
$relay->drop('*');
hand_over('/dropped');
is_deeply([ taken() ], \@words, 'no words through a firewall');
$relay->pass('*');
$relay->double('*');
hands_over_by_words('/doubled');
$relay->pass('*');
$relay->delay('*', 0.02);
hand_over("/delayed$_") foreach 1 .. 5;
$relay->pass('*');
hands_over_by_words('/again');

# ---- locks under which zklock reads ZooKeeper: nobody asks, whoever is ahead

sub asked { return map { $test->status($_, 'asks_sent') } $one, $two; }

my @asked = asked();
my ($first, $second) = map { $session{$_} } qw(server1 server2);
foreach my $job (map { "/job$_" } 1 .. 5)
{
	$first->query('BEGIN');
	is($first->query("SELECT zk_once('$job', '1 day')"), 't', "$job runs");
	$test->enqueue($second, "SELECT zk_once('$job', '1 day')", "/.once$job");
	$first->query('COMMIT');
	is($second->value, 'f', 'and not once more');
}
my $third = $test->session($one);
$first->query("SELECT zk_acquire_permits('/permits', max_permits => 1)");
$test->enqueue($second, "SELECT zk_acquire_permits('/permits', max_permits => 1)", '/permits/leases');
$test->enqueue($third, "SELECT zk_acquire_permits('/permits', max_permits => 1)", '/permits/locks');
$first->query("SELECT zk_release_permits('/permits')");
cmp_ok($second->value, '>', 0, 'a permit passes on');
$second->query("SELECT zk_release_permits('/permits')");
cmp_ok($third->value, '>', 0, 'and once more');
$third->close;
is_deeply([ asked() ], \@asked, 'without an ask');

# ---- a datagram that was really sent

my ($ask) = grep { length == 92 && ord(substr $_, 3) == 1 } $relay->seen('server2');
ok($ask, 'an ask was seen');
my $forger = PeerForger->new($test->zk->client);
my ($znode, $waiter) = map { unpack 'H*', substr $ask, $_, 16 } 28, 44;
is(unpack('H*', $ask),
	unpack('H*', $forger->datagram(
			kind => 'ask', from => $test->status($one, 'session_id'),
			to => $test->status($two, 'session_id'), znode => $znode, waiter => $waiter)),
	'it is as wire/peer.h says, and signed with the key');

# ---- another session, and a server that is off

my $old = $test->status($two, 'session_id');
$session{server2}->query("SELECT zk_lock('/lost')");
$test->lose_session($two, '/lost');
$session{server2}->query('SELECT zk_unlock_all()');
isnt($test->status($two, 'session_id'), $old, 'another session');
hands_over_by_words('/renewed');
is(scalar(() = slurp_file($two->logfile) =~ /LOG:  messages between servers are received at /g),
	1, 'which the log of messages does not show');

# A worker that is started again does not know where the other one was heard.
my $worker = $test->status($two, 'worker_pid');
$test->set($one, peer_port => 0);
hand_over('/off');
kill 'TERM', $worker;
$test->look_until($two, "SELECT worker_pid <> $worker AND state = 'connected' FROM zk_status",
	't', 'restarted');
ok(wait_for(
		sub { hand_over('/unsent'); return $test->status($two, 'messages_unsent') > 0 },
		'it learns that the other one does not listen'),
	'messages for a server without them are not sent');
$test->set($one, peer_port => $port{server1});
hands_over_by_words('/on');

$_->close foreach values %session;
$test->finish;
