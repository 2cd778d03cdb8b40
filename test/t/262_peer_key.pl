# The key of messages between servers stands in ZooKeeper.  The first server that wants
# messages makes it; with credentials, nobody else can read it.  Whoever might know it
# beside them: it is replaced.  Deleted, there is another one, and words pass again; a
# server that may not read it has no messages, and says so.  No file or view shows it.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use PeerForger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $dir = rel2abs(PostgreSQL::Test::Utils::tempdir());
my $test = ZklockTest->new(conf => "zklock.cache_time = 0\nzklock.trace = on\n");
my ($one, $two) = $test->nodes;
my $zk = $test->zk;
my $outsider = $zk->client;
my $insider = $zk->new_client;
my $znode = PeerForger->znode;
my %port = map { $_->name => PostgreSQL::Test::Cluster::get_free_port() } $one, $two;
my %keys;    # all that there were, in hexadecimal digits
my $number = 0;

write_secret("$dir/$_", "digest:zklock:$_\n") foreach 'ours', 'other';
$insider->authenticate('zklock:ours');

# What zk_healthcheck() says of messages
sub finds
{
	my ($node, $ok, $detail) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($node,
			"SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'messages'",
			"$ok|$detail", "check: $detail"),
		$node->name . ": $detail");
}

sub possible { return finds($_[0], 't', 'Messages between servers are possible.'); }

# Waits for another key than before, which nobody has touched, and notes it.
sub another_key
{
	my ($what) = @_;
	my $stat;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(
			sub {
				$stat = $insider->stat($znode);
				return $stat && $stat->{czxid} != $number && "$stat->{version}$stat->{aversion}" eq '00';
			},
			$what),
		$what);
	is("$stat->{ephemeralOwner} $stat->{dataLength}", '0 32', "$what: it lasts");
	$number = $stat->{czxid};
	$keys{ $insider->get_hex($znode) } = 1;
	return;
}

# Both servers say words to each other, and refuse nothing.
sub hands_over_by_words
{
	my ($what) = @_;
	my @sessions = map { $test->session($_) } $one, $two;
	my @before = map { $test->status($_, 'words_taken') } $one, $two;
	my $refused = join ' ', map { $test->status($_, 'messages_refused') } $one, $two;
	my $done;

	for (my $round = 0; $round < 100 && !$done; $round++)
	{
		foreach my $pair ([ 0, 1 ], [ 1, 0 ])
		{
			my ($from, $to) = @sessions[@$pair];

			$from->query("SELECT zk_lock('/w/$round')");
			$test->enqueue($to, "SELECT zk_lock('/w/$round')", "/w/$round");
			$from->query("SELECT zk_unlock('/w/$round')");
			$to->value;
			$to->query("SELECT zk_unlock('/w/$round')");
		}
		my @now = map { $test->status($_, 'words_taken') } $one, $two;
		$done = $now[0] > $before[0] && $now[1] > $before[1];
	}
	$_->close foreach @sessions;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($done, "$what: words are taken");
	is(join(' ', map { $test->status($_, 'messages_refused') } $one, $two),
		$refused, "$what: nothing is refused");
	return;
}

# Makes a server read the key again.
sub reconnect
{
	my ($node) = @_;
	my $connects = $test->status($node, 'connects');

	kill 'KILL', $test->status($node, 'session_pid');
	return $test->look_until($node,
		"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
		't', 'another connection');
}

# ---- without credentials: one setting is enough

ok(!$outsider->stat($znode), 'nobody has wanted a key');
$test->set($_, peer_address => '127.0.0.1', peer_port => $port{ $_->name })
  foreach $one, $two;
possible($_) foreach $one, $two;
another_key('one setting');
is_deeply($outsider->acl($znode), ['31:world:anyone'], 'like everything, it is open');
hands_over_by_words('without credentials');
is(scalar @{ $zk->watches->{$znode} }, 2, 'each server watches it');
$test->set($two, peer_port => 0);
ok($test->look_until($one, 'SELECT count(peer_address) FROM zk_servers', 1, 'off'), 'off');
reconnect($two);
is(scalar @{ $zk->watches->{$znode} }, 1, 'without a port, a server does not look at it');
$test->set($two, peer_port => $port{server2});

# ---- credentials come

$test->connects_with($one, 'credentials', auth_file => "$dir/ours");
another_key('made before there were credentials');
my ($right, @others) = @{ $insider->acl($znode) };
like($right, qr/^31:digest:zklock:/, 'only they can read it');
is("@others", '', 'and nobody else');
ok(!defined $outsider->try_get($znode), 'as ZooKeeper says');
finds($one, 'f', 'Servers without an address for messages: "server2".');
my $refused = qq(ZooKeeper does not allow this server to read the key in znode "$znode".);
finds($two, 'f', $refused);
like(
	slurp_file($two->logfile),
	qr/WARNING:  no messages between servers although "zklock.peer_port" is set\n.*DETAIL:  \Q$refused\E\n.*HINT:  Give all servers of the fleet the same credentials\.  If they have been changed, delete that znode\.\n/,
	'and the log says so');
is($test->look($one, "SELECT count(peer_address) FROM zk_servers WHERE server = 'server2'"),
	0, 'so nobody asks that server');
$test->connects_with($two, 'other credentials', auth_file => "$dir/other");
finds($two, 'f', $refused);
is($insider->stat($znode)->{czxid}, $number, 'a server that may not read it lets it be');
$test->connects_with($two, 'the same credentials', auth_file => "$dir/ours");
possible($two);
is($insider->stat($znode)->{czxid}, $number, 'with the same ones both have it');
hands_over_by_words('with credentials');

# ---- who else may know it

$insider->set_acl($znode, $right, '1:world:anyone');
ok(defined $outsider->try_get($znode), 'the ACLs of all znodes are changed');
reconnect($one);
another_key('opened to all');
$insider->set_acl($znode, $right, '1:ip:127.0.0.1');
reconnect($one);
another_key('opened to a network');
$insider->set_acl($znode, '1:world:anyone');
reconnect($one);
another_key('taken from us');
$insider->set_acl($znode, $right);
reconnect($two);
another_key('opened, and closed again, for all we know');
$insider->set($znode, 'x' x 32);
another_key('written by somebody else');
$insider->set($znode, 'short');
another_key('no key at all');

# Who writes there all the time gets no race.
my $written = qq(The key in znode "$znode" does not keep its rights, or is changed.);
ok(wait_for(
		sub {
			$insider->try_set($znode, 'x') for 1 .. 50;
			return grep { slurp_file($_->logfile) =~ /DETAIL:  \Q$written\E\n/ } $one, $two;
		},
		'written all the time'),
	'written all the time');
$_->reload foreach $one, $two;
another_key('once that is over');
$test->set($_, peer_port => 0) foreach $one, $two;
ok($test->look_until($one, 'SELECT count(peer_address) FROM zk_servers', 0, 'off'), 'off');
$insider->delete($znode);
$outsider->create($znode, 'x' x 32);
$test->set($_, peer_port => $port{ $_->name }) foreach $one, $two;
ok(wait_for(sub { !defined $outsider->try_get($znode) }, 'planted'), 'planted');
another_key('planted');
$insider->set_acl($znode, '31:digest:other:x');
reconnect($_) foreach $one, $two;
finds($_, 'f', $refused) foreach $one, $two;
$outsider->delete($znode);
$_->reload foreach $one, $two;
another_key('made anew, once an operator has deleted one that we cannot read');
possible($_) foreach $one, $two;
hands_over_by_words('after all that');

# ---- rotation, and other versions

my $old = PeerForger->new($insider);
$insider->delete($znode);
another_key('deleted');
possible($_) foreach $one, $two;
hands_over_by_words('the next key');
my @sessions = map { $test->status($_, 'session_id') } $one, $two;
my ($asked, $waiter) = map { "aaaaaaaa-bbbb-8ccc-8ddd-eeeeeeeeee0$_" } 1, 2;
my @stale = map {
	$old->datagram(
		kind => $_,
		from => $sessions[0],
		to => $sessions[1],
		znode => $asked,
		waiter => $waiter)
} qw(ask word);
my @first = map { 'zk' . pack('CC', 1, $_) . 'x' x 80 } 1, 2;
my $others = $test->status($two, 'messages_other_key');
my $bad = $test->status($two, 'messages_refused');
$old->send($_, $port{server2}) foreach @stale, @first;
ok($test->look_until($two, 'SELECT messages_other_key FROM zk_stat_server', $others + 4, 'counted'),
	'of another key or version');
is($test->status($two, 'messages_refused'), $bad, 'which is no attack');

# While ZooKeeper is away, the key stays.
my $holder = $test->session($one);
my $other = $test->session($two);
my $words = $test->status($two, 'words_taken');
$holder->query("SELECT zk_lock('/w/away')");
$test->enqueue($other, "SELECT zk_lock('/w/away')", '/w/away');
$zk->restart;
$test->wait_connected($_) foreach $one, $two;
$holder->query("SELECT zk_unlock('/w/away')");
cmp_ok($other->value, '>', 0, 'ZooKeeper was restarted');
$other->query("SELECT zk_unlock('/w/away')");
$_->close foreach $holder, $other;
is($insider->stat($znode)->{czxid}, $number, 'with the same key');
possible($_) foreach $one, $two;
hands_over_by_words('and words');

# ---- nobody shows it

my @dumps = map { $test->look($_, 'SELECT * FROM zk_dump()') } $one, $two;
foreach my $node ($one, $two)
{
	push @dumps, slurp_file($node->logfile),
	  map { slurp_file($_) } glob $node->data_dir . '/zklock.trace*';
}
my $shown = 0;
foreach my $key (keys %keys)
{
	my $bytes = pack 'H*', $key;
	$shown += grep { index($_, $key) >= 0 || index($_, $bytes) >= 0 } @dumps;
}
cmp_ok(scalar keys %keys, '>', 8, 'many keys');
is($shown, 0, 'are in no log, trace or dump');
$test->finish;
