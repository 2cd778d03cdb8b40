# zklock.enabled = off goes the way of a shutdown: nothing new is granted, sessions
# that wait get an error at once, holders go on and commit, and the session is closed
# when nothing needs it any more; never under a transaction that is past its commit
# check.  A server that starts so makes no connection.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	init => { allows_streaming => 1 },
	conf => "synchronous_commit = local\nsynchronous_standby_names = nobody\n");
my ($one, $two) = $test->nodes;
my $state = 'SELECT state FROM zk_status';

sub change
{
	my ($node, $name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET $name = '$value'");
	$node->reload;
	return;
}

sub heartbeats
{
	my ($hex) = @_;

	return grep { /^0*$hex\./ } $test->zk->client->ls('/zklock/.servers');
}

sub beats
{
	my ($hex) = @_;
	my ($node) = heartbeats($hex);

	return $node ? $test->zk->client->stat("/zklock/.servers/$node")->{version} : -1;
}

sub expired
{
	my ($hex) = @_;

	return slurp_file($test->zk->logfile) =~ /Expiring session 0x$hex/;
}

sub refused
{
	my ($session, $sql, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->error($sql), '55000', $what);
	like($session->messages, qr/distributed locks are disabled/, "$what: why");
	return;
}

sub dump_waits
{
	my ($session) = @_;

	$session->send('SELECT count(*) > 0 FROM zk_dump()');
	return $test->look_until($one,
		'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $session->pid,
		'Extension', 'zk_dump waits');
}

# ---- off, with everything that a server can have

my $holder = $test->session($one);
my $waiter = $test->session($one);
my $committer = $test->session($one);
my $member = $test->session($one);
my $rival = $test->session($two);
$holder->query('CREATE TABLE done (token bigint)');
$holder->query("SELECT zk_lock('/e/held')");
$holder->query("SELECT zk_lead('/e/leader')");
$holder->query("SELECT zk_acquire_permits('/e/leases', max_permits => 2)");
$member->send("SELECT zk_barrier_enter('/e/barrier', 2)");
$test->wait_queue('/e/leases/leases', 1);
wait_for(sub { grep { !/ready/ } $test->zk->client->ls('/zklock/e/barrier') }, 'a member');
is($rival->query("SELECT zk_try_lock('/e/other')"), 't', 'another server holds a lock');
$test->enqueue($waiter, "SELECT zk_lock('/e/other')", '/e/other');
$committer->query('BEGIN; SET LOCAL synchronous_commit = on');
my $token = $committer->query("SELECT zk_xact_lock('/e/commit')");
$committer->query("INSERT INTO done VALUES ($token)");
$committer->send('COMMIT');
$test->look_until($one,
	'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $committer->pid,
	'SyncRep', 'a commit waits for its standby');
kill 'STOP', $committer->pid;

# One that has held its lock for longer than its at_most, and commits all the same
my $late = $test->session($one);
my $next = $test->session($two);
$late->query("BEGIN; SET LOCAL synchronous_commit = on; INSERT INTO done VALUES (0);"
	  . " SELECT zk_xact_lock('/e/late', at_most => '4s')");
$late->send('COMMIT');
$test->look_until($one,
	'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $late->pid,
	'SyncRep', 'another commit waits');
kill 'STOP', $late->pid;
$test->enqueue($next, "SELECT zk_lock('/e/late')", '/e/late');
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/e/late'",
	'lost', 'its time is over');
my $hex = $test->session_hex($one);
my $id = $test->status($one, 'session_id');

change($one, 'zklock.enabled', 'off');
is($waiter->sqlstate, '55000', 'off: who waits gets an error');
is($member->sqlstate, '55000', 'also in a barrier');
ok($test->wait_queue('/e/other', 1), 'and leaves the queue');
$test->look_until($one, $state, 'closing', 'the session is to be closed');
refused($waiter, "SELECT zk_try_lock('/e/new')", 'nothing new');
refused($waiter, "SELECT zk_acquire_permits('/e/leases', max_permits => 2)", 'no lease');
refused($waiter, "SELECT zk_once('/e/job', key => 'a')", 'no job');

# ---- what is held goes on

is($holder->query("SELECT zk_lock('/e/held') > 0"), 't', 'a hold is counted again');
is($holder->query('BEGIN; CREATE TABLE t (); COMMIT; SELECT 1'), 1, 'its holder commits');
is($holder->query("SELECT count(*) FROM zk_queue('/e/held')"), 1, 'and looks');
is($holder->query('SELECT count(*) >= 2 FROM zk_servers'), 't', 'at all servers');
is($holder->query("SELECT zk_unlock('/e/held'), zk_unlock('/e/held')"), 't|t', 'unlocks');
is($holder->query("SELECT zk_release_permits('/e/leases')"), 't', 'releases');
is($holder->query("SELECT zk_resign('/e/leader')"), 't', 'resigns');
$holder->query('DISCARD ALL');
$rival->query("SELECT zk_unlock('/e/other')");
$test->enqueue($rival, "SELECT zk_lock('/e/commit')", '/e/commit');

# ---- a transaction that is past its commit check

change($one, 'synchronous_standby_names', '');
my $beats = beats($hex);
ok(wait_for(sub { beats($hex) >= $beats + 2 }, 'beats'),
	'beats go on for a transaction that is past its commit check');
is($test->look($one, $state), 'closing', 'the session is not closed under it');
ok($rival->busy, 'and its lock is not free');
kill 'CONT', $committer->pid;
is($committer->sqlstate, '', 'it commits');
cmp_ok($rival->value, '>', $token, 'then the next one has the lock');
ok($test->still_waits($next), 'a lock that was lost is not free before its transaction ends');
is($test->look($one, $state), 'closing', 'and the session is not closed under it');
kill 'CONT', $late->pid;
is($late->sqlstate, '', 'it commits, too');
cmp_ok($next->value, '>', 0, 'then the next one has that lock');
ok($test->look_until($one, "$state WHERE session_id IS NULL AND session_pid IS NULL",
		'disabled', 'closed'),
	'nothing is held: the session is closed');
is(scalar(heartbeats($hex)), 0, 'for ZooKeeper, too');
ok(!expired($hex), 'it was closed, not left to expire');
is($test->look($one, "SELECT count(*) FROM done WHERE token = $token"), 1, 'the commit was done');

# ---- off

refused($waiter, "SELECT zk_lock('/e/held')", 'disabled: no lock');
refused($waiter, "SELECT * FROM zk_queue('/e/held')", 'disabled: no question to ZooKeeper');
is($waiter->query('SELECT count(*) FROM zk_locks'), 0, 'disabled: zk_locks');
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
foreach (1 .. 2)
{
	dump_waits($waiter);
	$waiter->cancel;
	is($waiter->sqlstate, '57014', 'zk_dump is given up');
}
$waiter->query("SET zklock.answer_timeout = '50ms'");
is($waiter->error('SELECT FROM zk_dump()'), '08006', 'without a slot: zk_dump fails');
like($waiter->messages, qr/could not reach the zklock worker/, 'because of the worker');
$waiter->query('RESET zklock.answer_timeout');
dump_waits($waiter);
kill 'CONT', $worker;
is($waiter->value, 't', 'disabled: zk_dump');
is($waiter->query("SELECT zk_unlock('/e/held')"), 'f', 'disabled: nothing to unlock');
$waiter->query('DISCARD ALL');
kill 'TERM', $worker;
$test->look_until($one, "SELECT worker_pid <> $worker FROM zk_status", 't', 'restarted');
is($test->look($one, $state), 'disabled', 'also after a restart of the worker');

# ---- on again

change($one, 'zklock.enabled', 'on');
$test->wait_connected($one);
isnt($test->status($one, 'session_id'), $id, 'on: a new session');
is($test->status($one, 'sessions_lost'), 0, 'none was lost');
is($waiter->query("SELECT zk_try_lock('/e/held', '1min', at_least => '10 min')"), 't', 'and locks');

# ---- a lock that is kept, and a change of mind

change($one, 'zklock.enabled', 'off');
$id = $test->status($one, 'session_id');
is($waiter->query("SELECT zk_unlock('/e/held')"), 't', 'a lock with at_least is released');
$test->look_until($one, "$state WHERE EXISTS (SELECT FROM zk_locks WHERE state = 'kept')",
	'closing', 'while it is kept, the session is not closed');
change($one, 'zklock.enabled', 'on');
$test->look_until($one, $state, 'connected', 'on before the end');
is($test->status($one, 'session_id'), $id, 'on before the end: the same session');
change($one, 'zklock.enabled', 'off');
$test->look_until($one, $state, 'closing', 'off once more');
is($waiter->query("SELECT zk_break_lock('/e/held')"), 't', 'the kept lock can be broken');
ok($test->look_until($one, $state, 'disabled', 'closed'), 'then nothing keeps the session');

# ---- off at the start

change($one, 'zklock.enabled', 'off');
$_->close foreach $holder, $waiter, $committer, $late, $member;
$test->stop_looking($one);
$one->stop;
my $offset = -s $one->logfile;
$one->start;
$test->look_until($one, "$state WHERE worker_pid > 0", 'disabled', 'off at the start');
$waiter = $test->session($one);
refused($waiter, "SELECT zk_lock('/e/held')", 'off at the start');
is($test->status($one, 'connects, session_pid IS NULL, session_id IS NULL'),
	'0|t|t', 'no session process, no connection');
unlike(slurp_file($one->logfile, $offset), qr/ZooKeeper server/,
	'the log tells of none');
change($one, 'zklock.enabled', 'on');
$test->wait_connected($one);
is($waiter->query("SELECT zk_try_lock('/e/held', '1min'), zk_unlock('/e/held')"), 't|t', 'on');

$_->close foreach $waiter, $rival, $next;
$test->finish;
