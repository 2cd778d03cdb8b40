# The connection between a server and ZooKeeper is disturbed for less than the
# session lives: silence, resets when idle and in the middle of a frame,
# replies that get lost after the request was carried out, a host that does not
# answer.  Each time the server attaches its session again: no lock is lost,
# no znode is left behind, none is there twice.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(usleep);

use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $line = 'server1-zk';
my $lock = "SELECT zk_lock('/n')";
my $unlock = "SELECT zk_unlock('/n')";

my $holder = $test->session($one);
my $behind = $test->session($one);
my $rival = $test->session($two);
my $id = $test->status($one, 'session_id');

sub connects { return $test->status($one, 'connects'); }

# Waits until the server has connected once more than before.
sub reconnected_ok
{
	my ($before, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$test->look_until($one,
		"SELECT connects > $before AND state = 'connected' FROM zk_status, zk_stat_server",
		't', "$case: connected again");
	is($test->status($one, 'session_id, sessions_lost'),
		"$id|0", "$case: the same session");
	return;
}

# A znode's transaction id is the upper part of its token, however that was
# learned.
sub token_ok
{
	my ($token, $path, $case) = @_;
	my ($first) = $test->queue($path);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($token >> 12, $test->zk->client->stat("/zklock$path/$first")->{czxid},
		"$case: the token is that of the znode");
	return;
}

# One holds, one waits behind it, one waits on the other server; something
# happens to the network; then each gets its turn.
sub survives
{
	my ($case, $disturb) = @_;
	my $token = $holder->query($lock);

	$holder->query("BEGIN; SELECT zk_xact_lock('/n2')");
	$test->enqueue($rival, $lock, '/n');
	$test->enqueue($behind, $lock, '/n');
	my @queue = $test->queue('/n');
	my $before = connects();
	$disturb->();
	reconnected_ok($before, $case);
	is_deeply([ $test->queue('/n') ], \@queue, "$case: the same queue");
	is(scalar(grep { $test->still_waits($_) } $rival, $behind),
		2, "$case: both wait");
	is($holder->query('COMMIT'), '', "$case: the holder commits");
	is($holder->query($unlock), 't', "$case: and unlocks");
	cmp_ok($rival->value, '>', $token, "$case: the next one is granted");
	$rival->query($unlock);
	cmp_ok($behind->value, '>', $token, "$case: and the last");
	$behind->query($unlock);
	$test->wait_queue($_, 0) foreach '/n', '/n2';
	return;
}

# Row 9: silence for less than T/3, in which requests just take longer
foreach my $direction ('both', 'up', 'down')
{
	my $case = "silence, $direction";
	my $before = connects();
	my $token = $holder->query($lock);

	$test->enqueue($rival, $lock, '/n');
	$net->hold($line, $direction);
	$behind->send($lock);
	is($holder->query($unlock), 't', "$case: a release does not wait");
	usleep(1_000_000);
	ok($behind->busy, "$case: nobody here is granted");
	is($rival->busy ? 'waits' : 'granted',
		$direction eq 'down' ? 'granted' : 'waits',
		"$case: elsewhere only if the release got through");
	$net->pass($line);
	cmp_ok($rival->value, '>', $token, "$case: then the next one");
	$rival->query($unlock);
	cmp_ok($behind->value, '>', 0, "$case: and the other");
	$behind->query($unlock);
	is(connects(), $before, "$case: the same connection");
	$test->wait_queue('/n', 0);
}

# Silence until the server gives the connection up, but not the session
survives(
	'longer silence',
	sub {
		$net->hold($line);
		$test->look_until($one, 'SELECT state FROM zk_status',
			'disconnected', 'the silence is noticed');
		is($test->status($one, "last_error LIKE '%does not answer'"),
			't', 'longer silence: zk_status says so');
		$net->pass($line);
	});

# Row 11: resets
survives('reset', sub { $net->reset($line) });
survives(
	'refused for a while',
	sub {
		$net->refuse($line);
		$test->look_until($one, 'SELECT state FROM zk_status',
			'disconnected', 'refusal is noticed');
		$net->pass($line);
	});
foreach my $direction ('up', 'down')
{
	foreach my $bytes (2, 4, 6, 19)
	{
		my $case = "cut after $bytes bytes, $direction";
		my $before = connects();
		my $token = $holder->query($lock);

		$net->cut($line, $bytes, $direction);
		$holder->query($unlock);
		reconnected_ok($before, $case);
		cmp_ok($rival->query($lock), '>', $token, "$case: released");
		$rival->query($unlock);
		$test->wait_queue('/n', 0);
	}
}
is($net->stats($line)->{cuts}, 8, 'all of them were cut');

# Row 12: the reply gets lost.  A create has no number yet in its path; a
# delete has.
my $create = '/zklock/n/[^/]*__WRIT__(?![0-9])';
my $delete = '/zklock/n/[^/]*__WRIT__[0-9]{10}';
foreach my $round (1 .. 3)
{
	my $case = "reply to a create lost, round $round";
	my $before = connects();

	$net->lose_reply($line, $create);
	my $token = $holder->query($lock);
	reconnected_ok($before, $case);
	is(scalar($test->queue('/n')), 1, "$case: one znode");
	token_ok($token, '/n', $case);
	is($rival->query("SELECT zk_try_lock('/n')"), 'f', "$case: a lock");

	$case = "reply to a delete lost, round $round";
	$before = connects();
	$net->lose_reply($line, $delete);
	$holder->query($unlock);
	reconnected_ok($before, $case);
	ok($test->wait_queue('/n', 0), "$case: the znode is gone");
	$test->look_until($one, 'SELECT count(*) FROM zk_locks',
		0, "$case: and its slot");
}

# Cancelled while nobody knows whether the znode exists
my $before = connects();
$rival->query($lock);
$net->lose_reply($line, $create, 1);
$holder->send($lock);
ok($test->wait_queue('/n', 2), 'a znode whose reply is lost');
$holder->cancel;
is($holder->sqlstate, '57014', 'its request is cancelled');
ok($net->pass_once_lost($line), 'the reply is lost');
reconnected_ok($before, 'cancelled after a lost reply');
ok($test->wait_queue('/n', 1), 'it is found, and deleted');
$rival->query($unlock);

# Row 37: the create is done, its reply is lost, and the heartbeat node that
# would tell is deleted before the server comes back.
$before = connects();
$net->lose_reply($line, $create, 1);
$holder->send($lock);
ok($test->wait_queue('/n', 1), 'the create is done');
my ($own) = grep { $_ =~ $test->session_hex($one) }
  $test->zk->client->ls('/zklock/.servers');
$test->zk->client->delete("/zklock/.servers/$own");
ok($net->pass_once_lost($line), 'the reply is lost');
my $token = $holder->value;
reconnected_ok($before, 'heartbeat node deleted');
is(scalar($test->queue('/n')), 1, 'heartbeat node deleted: one znode');
token_ok($token, '/n', 'heartbeat node deleted');
my ($next) = grep { $_ =~ $test->session_hex($one) }
  $test->zk->client->ls('/zklock/.servers');
isnt($next, $own, 'and the next heartbeat node has another name');
$holder->query($unlock);

# Replies that are lost one after the other, and many creates in one batch
foreach my $round (1 .. 5)
{
	$net->lose_reply($line, '/zklock/m/[^/]*__WRIT__(?![0-9])');
	is($holder->query(
			"SELECT count(zk_lock('/m')) FROM generate_series(1, 3)"),
		3, "round $round: taken");
	$holder->send('SELECT zk_unlock_all(); SELECT zk_lock(\'/m\')');
	$net->lose_reply($line, '/zklock/m/[^/]*__WRIT__');
	$holder->result;
	cmp_ok(scalar($test->queue('/m')),
		'<=', 2, "round $round: at most the old znode and the new one");
	$holder->query('SELECT zk_unlock_all()');
}
ok($test->wait_queue('/m', 0), 'nothing is left of them');

# Row 16: a host that does not answer comes first.  Each new connection goes
# to the next host, so one of two reconnects begins with it.
my $silent = $test->route('silent', $test->zk->port);
$net->hold('silent');
my $port = $net->stats($line)->{port};
$one->safe_psql('postgres',
	"ALTER SYSTEM SET zklock.connect_string = '127.0.0.1:$silent,127.0.0.1:$port'");
$holder->query($lock);
$before = connects();
$one->reload;
reconnected_ok($before, 'a host that does not answer');
foreach my $round (1, 2)
{
	$before = connects();
	kill 'KILL', $test->status($one, 'session_pid');
	reconnected_ok($before, "a host that does not answer, round $round");
}
cmp_ok($net->stats('silent')->{accepted}, '>', 0, 'it was tried');
is($rival->query("SELECT zk_try_lock('/n')"), 'f', 'and the lock is kept');
is($holder->query($unlock), 't', 'and released');

$_->close foreach $holder, $behind, $rival;
$test->finish;
