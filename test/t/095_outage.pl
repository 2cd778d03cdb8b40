# What users and operators see of an outage of ZooKeeper: locks whose lease has
# ended are shown as unconfirmed; the server's log says once that the lease
# ended under held locks, and once when there is one again, and how many
# messages it left out; who waits for ZooKeeper, and not for another holder, is
# told so, at the latest by the error of lock_timeout.  A request that the end
# of an idle server's lease meets on its way makes nobody reconnect.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test =
  ZklockTest->new(net => $net, servers => 2, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $line = 'server1-zk';

sub log_count
{
	my ($pattern) = @_;

	return scalar(() = slurp_file($one->logfile) =~ /$pattern/g);
}

# ---- a request in the last moments of an idle server's lease

my $first = $test->session($one);
my $second = $test->session($one);
$first->query("SELECT zk_lock('/o/a'), zk_unlock('/o/a')");
my $before = $test->status($one, 'connects, last_error');
$test->look_until($one,
	"SELECT lease_remaining BETWEEN '1ms' AND '1s' FROM zk_status",
	't', 'the lease of the idle server is about to end');
$net->hold($line);
$first->send("SELECT zk_lock('/o/a')");
$test->wait_waiting($one, '/o/a', 1);
$test->look_until($one, "SELECT lease_remaining = '0' FROM zk_status",
	't', 'and ends while a request is on its way');
is($second->query("SELECT zk_unlock('/o/a')"),
	'f', 'nobody holds the lock yet');
$second->send("SELECT zk_lock('/o/b')");
$test->wait_waiting($one, '/o/b', 1);
$net->pass($line);
cmp_ok($first->value, '>', 0, 'the request is granted');
cmp_ok($second->value, '>', 0, 'and the one after it');
is($test->status($one, 'connects, last_error'),
	$before, 'on the same connection, without an error');
is(log_count('lease of this server'), 0, 'nor is that an outage');

# ---- an outage under held locks

my $elsewhere = $test->session($two);
my $blocked = $test->session($one);
$elsewhere->query("SELECT zk_lock('/o/c')");
$test->enqueue($blocked, "SELECT zk_lock('/o/c')", '/o/c');
my $impatient = $test->session($one);
$impatient->query("SET lock_timeout = '100ms'");

$test->times_out($impatient, "zk_lock('/o/c')", qr{Distributed lock "/o/c" is held by process \d+ of server "server2"});
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/o/c'",
	1, 'its request is gone before the outage');

my $told = $test->session($one);
$told->query("SET zklock.answer_timeout = '300ms'");
$net->refuse($line);
$told->send("SELECT zk_lock('/o/d')");

# Long enough for the worker to take the request: then the wait is for ZooKeeper.
$impatient->query("SET lock_timeout = '500ms'");
is($impatient->error("SELECT zk_lock('/o/e')"),
	'08006', 'lock_timeout of one that waits for ZooKeeper');
like($impatient->messages, qr{was for ZooKeeper, not for another holder},
	'and its detail says so');
like($impatient->send("SELECT zk_lock('/o/e')")->result->{error}{hint},
	qr/^Check "zklock.connect_string"/, 'with a hint');
is($test->look($one, "SELECT state FROM zk_locks WHERE path = '/o/a'"),
	'granted', 'what is held is granted for as long as the lease is good');
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/o/a'",
	'unconfirmed', 'and unconfirmed afterwards');
$impatient->query("SET zklock.answer_timeout = '200ms'");
foreach my $call ("zk_break_lock('/o/e')", "zk_barrier('/o/f', 2)")
{
	is($impatient->error("SELECT $call"), '08006', "$call waits, too");
	like($impatient->messages, qr{still waiting for ZooKeeper.*"/o/},
		"$call: a NOTICE told what for");
}
$impatient->query('RESET zklock.answer_timeout');
is($test->look($one, "SELECT state FROM zk_locks WHERE path = '/o/a'"),
	'unconfirmed', 'but still a hold');
is($test->look($one, "SELECT state FROM zk_locks WHERE path = '/o/c'"),
	'waiting', 'who waits, waits');
ok(wait_for(
		sub { log_count("WARNING:.*lease of this server's .* has ended") },
		'the log says so'),
	'the log says that the lease has ended');
ok(wait_for(sub { log_count('2 locks are held') }, 'how many'),
	'and how many locks are held');
is($test->status($one, 'locks_held'), 2, 'which zk_status still shows');
is($test->status($one, 'lapses, connected_since IS NULL, connection_errors > 0'),
	'1|t|t', 'with what has happened');

# The next wait that began while ZooKeeper was there is one for ZooKeeper now.
$blocked->cancel;
is($blocked->sqlstate, '57014', 'a cancel works meanwhile');

$net->pass($line);
cmp_ok($told->value, '>', 0, 'who waited for ZooKeeper gets the lock');
my $notices = () = $told->messages =~ /still waiting for ZooKeeper/g;
is($notices, 1, 'and was told once why that took so long')
  or diag $told->messages;
$test->wait_connected($one);
ok(wait_for(
		sub {
			log_count('has a lease for distributed locks again');
		},
		'the log says so'),
	'the log says that there is a lease again');
like(
	slurp_file($one->logfile),
	qr/DETAIL:  The previous lease ended \d+\.\d{3} s ago/,
	'and for how long there was none');
like(
	slurp_file($one->logfile),
	qr/connected to ZooKeeper server .*\n.*DETAIL:  \d+ messages? about the connection w\w+ not logged/,
	'and how many messages were left out');
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/o/a'",
	'granted', 'what is held is confirmed again');
is(log_count("lease of this server's .* has ended"), 1, 'it said so once');
is(log_count('has a lease for distributed locks again'), 1, 'each time');
is($test->status($one, 'sessions_lost, locks_lost'), '0|0', 'and nothing was lost');
is($test->status($one, "connected_since > now() - interval '1 h'"),
	't', 'zk_status says since when it is connected');

# ---- one that waits for others when ZooKeeper goes away

# If the session expires meanwhile, a statement of one that holds a lock ends.
$told->query("SET zklock.answer_timeout = '300ms'; SELECT zk_unlock('/o/d')");
$test->enqueue($told, "SELECT zk_lock('/o/c')", '/o/c');
$net->hold($line);
$test->look_until($one, "SELECT lease_remaining = '0' FROM zk_status",
	't', 'ZooKeeper is away again');
ok(wait_for(
		sub { log_count("lease of this server's .* has ended") == 2 },
		'said once more'),
	'said once more');
my $worker = $test->status($one, 'worker_pid');
is($test->status($one, 'worker_starts'), 1, 'the first worker');
my ($batches, $operations) =
  split /\|/, $test->status($one, 'batches, operations');
kill 'TERM', $worker;
$test->look_until($one,
	"SELECT worker_pid <> $worker AND session_pid IS NOT NULL FROM zk_status",
	't', 'another worker takes over');
$impatient->query("SET lock_timeout = '2s'");
is($impatient->error("SELECT zk_lock('/o/f')"), '08006', 'some time passes');
is(log_count("lease of this server's .* has ended"),
	2, 'and does not say it once more');
is($test->status($one, 'worker_starts, lapses'), '2|2', 'the second worker');
$net->pass($line);
$elsewhere->query("SELECT zk_unlock('/o/c')");
cmp_ok($told->value, '>', 0, 'one that waits for another holder is granted');
$notices = () = $told->messages =~ /still waiting for ZooKeeper/g;
is($notices, 1, 'and was told that it waited for ZooKeeper meanwhile');
is($test->status($one, "batches > $batches, operations > $operations"),
	't|t', 'the second worker counts on');

$_->close foreach $first, $second, $elsewhere, $blocked, $impatient, $told;
$test->finish;
