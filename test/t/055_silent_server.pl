# A server that has a lock cached, held by no session, dies.  A try of another server
# waits until ZooKeeper has ended its session, and then has the lock: it never says
# that somebody else has it.  And if a session is stopped while it waits for an answer,
# that time does not count: those who are to answer may have been stopped as well.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(conf => "zklock.cache_time = '60s'\n");
my ($one, $two) = $test->nodes;
my $first = $test->session($one);
my ($other, $another) = map { $test->session($two) } 1 .. 2;

# Takes and releases a lock until it is cached.
sub warm
{
	my ($path) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until(
		$one, "SELECT state FROM zk_locks WHERE path = '$path'",
		'cached', "$path is cached",
		before => sub { $first->query("SELECT zk_lock('$path'), zk_unlock('$path')") });
}

# ---- stopped sessions

sub state_of
{
	my ($pid) = @_;

	return (split ' ', slurp_file("/proc/$pid/stat") =~ s/^.*\) //r)[0];
}

# Stops the worker and a session that waits for it for longer than it may, and lets the
# session go on before the worker.
sub stop_both
{
	my ($session, $call) = @_;
	my $worker = $test->status($two, 'worker_pid');
	my $pid = $session->pid;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	kill 'STOP', $worker;
	$session->send("SELECT $call");
	$test->look_until($two, "SELECT wait_event_type FROM pg_stat_activity WHERE pid = $pid",
		'Extension', 'the session waits');
	kill 'STOP', $pid;
	wait_for(sub { state_of($pid) eq 'T' }, 'the session is stopped');
	my $began = time;
	wait_for(sub { time > $began + 4 }, 'its time is over');
	kill 'CONT', $pid;
	wait_for(sub { state_of($pid) eq 'S' }, 'the session goes on');
	ok($session->busy, "$call: a session that was stopped goes on waiting");
	kill 'CONT', $worker;
	return $session->value;
}

$other->query("SET zklock.answer_timeout = '3s'");
is(stop_both($other, "zk_try_lock('/s/stopped')"), 't', 'a try that was stopped gets the lock');
is(stop_both($other, "count(*) FROM zk_queue('/s/stopped')"), 1, 'a view has its answer');
$other->query('SELECT zk_unlock_all(); RESET zklock.answer_timeout');

# ---- how long a try waits

ok(warm($_), "cached: $_") foreach '/s/v', '/s/w';
my $silent = $test->status($one, 'worker_pid');
kill 'STOP', $silent;
$other->send("SELECT zk_try_lock('/s/v')");
$test->look_until($two, 'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $other->pid,
	'Extension', 'by default');

# ZooKeeper ends the session of a dead server after 4 s and a tick of 500 ms.
$another->query("SET zklock.answer_timeout = '4500ms'");
is($another->error("SELECT zk_try_lock('/s/w')"), '08006', 'a try waits for no longer than it may');
ok($other->busy, 'by default it waits for longer than the session of a dead server lasts');
$another->query('RESET zklock.answer_timeout');
$another->send("SELECT zk_try_lock('/s/w')");
$another->cancel;
is($another->sqlstate, '57014', 'which can be cancelled');
$other->cancel;
$other->result;
kill 'CONT', $silent;

# ---- a dead server

ok(warm($_), "cached: $_") foreach '/s/x', '/s/y', '/s/z';
$test->stop_looking($one);
$first->abandon;
$one->stop('immediate');
$other->send("SELECT zk_try_lock('/s/x')");
$another->send("SELECT zk_try_lock('/s/y', '100ms')");
is($other->value, 't', 'a try gets what a dead server had cached');
is($another->value, 't', 'a try with a short timeout too');
is($other->query("SELECT zk_try_lock('/s/y')"), 'f', 'from then on it is held');
$_->query('SELECT zk_unlock_all()') foreach $other, $another;
$one->start;
$test->wait_connected($one);

# ---- no ZooKeeper, for longer than a session lasts

is($other->query('SHOW zklock.answer_timeout'), '-1', 'by default a try waits for a session');
$test->zk->stop;
$other->send("SELECT zk_try_lock('/s/x')");
is($other->result->{error}{sqlstate}, '08006', 'a try fails');
$test->look_until($two, "SELECT state <> 'connected' FROM zk_status", 't', 'disconnected');
my $down = time;
wait_for(sub { time > $down + 5 }, 'the session is over');
$other->query("SET zklock.answer_timeout = '1h'");
is($other->error("SELECT zk_try_lock('/s/x')"), '08006', 'then it fails at once');
like($other->messages, qr/This server has had no connection since \d{4}-/, 'and says since when');
is($other->error("SELECT zk_try_lock('/s/x', '100ms')"), '08006', 'after its own time');
is($other->error("SET lock_timeout = '300ms'; SELECT zk_lock('/s/x')"), '08006', 'a wait has its own time');
$other->query('RESET zklock.answer_timeout; RESET lock_timeout');
$test->zk->start;
$test->wait_connected($_) foreach $one, $two;
is($other->query("SELECT zk_try_lock('/s/x'), zk_unlock('/s/x')"), 't|t', 'all is well again');

$_->close foreach $other, $another;
$test->finish;
