# A lock that is held for a bounded time.  From above: it is lost at the end,
# whatever its holder and the worker do, and goes to the next; but not from under
# a transaction that is past its commit check.  From below: after the release it
# is kept for the rest of the time, also from who had it.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

# While the worker is stopped or starts again, the session must not end.
my $test = ZklockTest->new(
	session_timeout => '10s', init => { allows_streaming => 1 }, conf => <<'EOC');
zklock.dialects = '/jobs=curator_mutex'
synchronous_commit = local
synchronous_standby_names = nobody
EOC
my ($one, $two) = $test->nodes;
my ($s, $t) = ($test->session($one), $test->session($two));
$s->query('CREATE TABLE work (what text)');

sub state_of { return "SELECT string_agg(state, ',') FROM zk_locks WHERE path = '$_[0]'"; }

sub state_ok
{
	my ($path, $state, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($test->look_until($one, state_of($path), $state, $case), $case);
}

# The lock comes to a session of the other server, which gives it up.
sub goes_on_ok
{
	my ($path, $case) = @_;
	my $got = $t->query("SELECT zk_try_lock('$path', '1min')");

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$t->query("SELECT zk_unlock('$path')") if $got eq 't';
	return is($got, 't', $case);
}

# Waits until a lock was granted so long ago.
sub let_pass
{
	my ($path, $time) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($one,
		"SELECT granted_at + '$time' < clock_timestamp() FROM zk_locks"
		  . " WHERE path = '$path'", 't', "$time pass under $path");
}

sub work_done { return $test->look($one, "SELECT count(*) FROM work WHERE what = '$_[0]'"); }

# ---- at most: what becomes of the holder ----

my %actions = (cancel => '40001', terminate => '57P01', none => '');
foreach my $action (sort keys %actions)
{
	my $path = "/b/$action";
	my $holder = $test->session($one);

	$holder->query("SET zklock.lost_lock_action = '$action'");
	cmp_ok($holder->query("SELECT zk_lock('$path', at_most => '2s')"),
		'>', 0, "$action: granted");
	$holder->query("BEGIN; INSERT INTO work VALUES ('$action')");
	$holder->send('SELECT pg_sleep(1000)') if $action ne 'none';
	$test->enqueue($t, "SELECT zk_lock('$path')", $path);
	cmp_ok($t->value, '>', 0, "$action: it goes to who waits on the other server");
	$t->query("SELECT zk_unlock('$path')");
	if ($action eq 'none')
	{
		is($holder->error('SELECT 1'), '40001', 'none: the next statement fails');
		like($holder->messages, qr/held for longer than its at_most/, 'none: and says why');
		is($holder->error('COMMIT'), '', 'none: and the transaction is over');
	}
	else
	{
		is($holder->sqlstate, $actions{$action}, "$action: a statement is ended");
	}
	if ($action eq 'terminate')
	{
		ok(!$holder->is_open, 'terminate: with its session');
	}
	else
	{
		$holder->query('ROLLBACK');
		state_ok($path, 'lost', "$action: it is shown as lost");
		is($holder->error("INSERT INTO work VALUES ('$action')"),
			'40001', "$action: nothing commits before that is acknowledged");
		is($holder->query("SELECT zk_unlock('$path')"), 'f', "$action: it is");
		like($holder->messages, qr/held for longer than its at_most/,
			"$action: with a warning that says why");
		is($holder->query("SELECT zk_try_lock('$path', '1min')"),
			't', "$action: and can be had again");
		$holder->close;
	}
	is(work_done($action), 0, "$action: nothing was done");
}

# ---- at most: in all modes, lifetimes and dialects ----

$s->query("SET zklock.lost_lock_action = 'none'");
foreach my $call ("zk_lock('/b/m1', at_most => '500ms')",
	"zk_lock_shared('/b/m2', at_most => '500ms')",
	"zk_xact_lock('/b/m3', at_most => '500ms')",
	"zk_xact_lock_shared('/b/m4', at_most => '500ms', at_least => '1ms')",
	"zk_try_lock('/b/m5', '1min', '500ms')",
	"zk_try_lock_shared('/b/m6', '1min', '500ms', '500ms')",
	"zk_try_xact_lock('/b/m7', '1min', '500ms')",
	"zk_try_xact_lock_shared('/b/m8', '1min', '500ms')",
	"zk_xact_lock('/jobs/b', at_most => '500ms')")
{
	my ($path) = $call =~ /'(.*?)'/;

	$s->query("BEGIN; SELECT $call");
	state_ok($path, 'lost', "$call: lost in the end");
	is($s->error('COMMIT'), '40001', "$call: no commit");
	$s->query('SELECT zk_unlock_all()');
	goes_on_ok($path, "$call: and it goes on");
}

# ---- at most: the worker is stopped ----

my $worker = $test->status($one, 'worker_pid');
$s->query("BEGIN; INSERT INTO work VALUES ('stopped');"
	  . " SELECT zk_xact_lock('/b/stopped', at_most => '1h')");
$test->enqueue($t, "SELECT zk_lock('/b/stopped')", '/b/stopped');
kill 'STOP', $worker;
is($s->query("SELECT zk_extend('/b/stopped', '1ms'), pg_sleep(0.01)"), 't|',
	'worker stopped: the time passes');
is($test->look($one, state_of('/b/stopped')), 'granted',
	'worker stopped: nobody has said that it is lost');
ok($test->still_waits($t), 'worker stopped: nobody else gets it');
is($s->error('COMMIT'), '40001', 'worker stopped: the holder sees it');
like($s->messages, qr/held for longer than its at_most/, 'worker stopped: and says why');
is(work_done('stopped'), 0, 'worker stopped: nothing was done');
kill 'CONT', $worker;
cmp_ok($t->value, '>', 0, 'worker stopped: the next one comes after that');
$t->query("SELECT zk_unlock('/b/stopped')");

# The holder's backend is stopped, before and behind its commit check.
$s->query("BEGIN; SELECT zk_xact_lock('/b/halted', at_most => '500ms')");
kill 'STOP', $s->pid;
goes_on_ok('/b/halted', 'backend stopped: the lock goes on');
kill 'CONT', $s->pid;
is($s->error('COMMIT'), '40001', 'backend stopped: it does not commit');

# ---- at most: in the middle of a commit, which waits for a standby ----

foreach my $lifetime ('transaction', 'session')
{
	my $path = "/b/commit-$lifetime";
	my $lock = $lifetime eq 'session' ? 'zk_lock' : 'zk_xact_lock';

	$s->query("BEGIN; SET LOCAL synchronous_commit = on;"
		  . " INSERT INTO work VALUES ('$lifetime'); SELECT $lock('$path', at_most => '4s')");
	$s->send('COMMIT');
	$test->look_until($one,
		'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $s->pid,
		'SyncRep', "$lifetime: it is past its commit check");
	$test->enqueue($t, "SELECT zk_lock('$path')", $path);
	state_ok($path, 'lost', "$lifetime: its time is over");
	ok($test->still_waits($t), "$lifetime: but the lock does not go on");
	is(scalar($test->queue($path)), 2, "$lifetime: its znode is there");
	ok($s->busy, "$lifetime: and the commit is not disturbed");

	$s->cancel;
	is($s->sqlstate, '', "$lifetime: it commits");
	cmp_ok($t->value, '>', 0, "$lifetime: then the next one gets the lock");
	is(work_done($lifetime), 1, "$lifetime: the work is done");
	is($t->query("SELECT zk_unlock('$path')"), 't', "$lifetime: released");
	is($s->query('SELECT zk_unlock_all()'), '', "$lifetime: acknowledged");
}

# ---- at most: the worker was away when the time was over ----

$s->query("BEGIN; SELECT zk_xact_lock('/b/away', at_most => '500ms')");
$test->restart_worker($one);
goes_on_ok('/b/away', 'worker restarted: the lock goes on');
is($s->error('COMMIT'), '40001', 'worker restarted: not for who had it');

# ---- extending ----

is($s->query("SELECT zk_extend('/b/x', '1s')"), 'f', 'what is not held is not extended');
like($s->messages, qr{^WARNING.*you do not hold distributed lock "/b/x"}s,
	'with a warning');
foreach my $call ("zk_lock('/b/x1', at_most => '1h')", "zk_lock('/b/x2')",
	"zk_lock_shared('/b/x3', at_most => '1h')", "zk_xact_lock('/b/x4', at_most => '1h')",
	"zk_xact_lock_shared('/b/x5')")
{
	my ($path) = $call =~ /'(.*?)'/;

	$s->query("BEGIN; SELECT $call");
	is($s->query("SELECT zk_extend('$path', '200ms')"), 't', "$call: a new time");
	state_ok($path, 'lost', "$call: counts from now");
	is($s->error("SELECT zk_extend('$path', '1h')"), '40001',
		"$call: too late to be extended");
	$s->query('ROLLBACK');
	$s->query('SELECT zk_unlock_all()');
}
$s->query("SELECT zk_lock('/b/longer', at_most => '4s'),"
	  . " zk_lock('/b/lifted', at_most => '4s')");
is($s->query("SELECT zk_extend('/b/longer', '1h')"), 't', 'extended in time');
is($s->query("SELECT zk_extend('/b/lifted', NULL)"), 't', 'or for ever');
$s->query("SELECT zk_lock('/b/two', at_most => '1h')");
$s->query("BEGIN; SELECT zk_xact_lock_shared('/b/two', at_most => '1h')");
is($s->query("SELECT zk_extend('/b/two', '200ms')"), 't', 'two holds at once');
state_ok('/b/two', 'lost,lost', 'both');
goes_on_ok('/b/two', 'and the lock goes on');
$s->query('ROLLBACK');
is($s->query("SELECT zk_unlock('/b/two')"), 'f', 'the loss is acknowledged');
let_pass($_, '4.2s') foreach '/b/longer', '/b/lifted';
is($s->query("SELECT zk_unlock('/b/longer') AND zk_unlock('/b/lifted')"), 't',
	'both were held beyond their time')
  or diag $s->messages;
$s->query('SELECT zk_unlock_all()');

# ---- several holds: each has its own time, and the znode serves the rest ----

$s->query("SELECT zk_lock('/b/several', at_most => '2s')");
$s->query("BEGIN; SELECT zk_xact_lock('/b/several')");
$test->look_until($one,
	"SELECT string_agg(lifetime || ' ' || state, ',' ORDER BY lifetime)"
	  . " FROM zk_locks WHERE path = '/b/several'",
	'session lost,transaction granted', 'one is lost, the other not');
is($t->query("SELECT zk_try_lock('/b/several')"), 'f', 'the lock is taken');
$s->query('ROLLBACK');
goes_on_ok('/b/several', 'until the other ends');
$s->query('SELECT zk_unlock_all()');

# ---- taken again: the later time counts ----

$s->query("SELECT zk_lock('/b/r1', at_most => '1h'), zk_lock('/b/r1', at_most => '200ms')");
$s->query("SELECT zk_lock('/b/r2', at_most => '3s'), zk_lock('/b/r2', at_most => '1h')");
$s->query("SELECT zk_lock('/b/r3'), zk_lock('/b/r3', at_most => '200ms')");
$s->query("SELECT zk_lock('/b/r5', at_least => '1h'), zk_lock('/b/r5', at_least => '1ms')");
$s->query("SELECT zk_lock('/b/r6'), zk_lock('/b/r6', at_least => '1h')");
$s->query("SELECT zk_lock('/b/r4', at_most => '3s'), zk_lock('/b/r4')");
state_ok('/b/r4', 'lost', 'taken again without a bound: the old one stays');
let_pass("/b/r$_", '3100ms') foreach 1 .. 3;
is($test->look($one, state_of("/b/r$_->[0]")), 'granted', "taken again $_->[1]")
  foreach [ 1, 'for less' ], [ 2, 'for more' ], [ 3, 'with a bound for the first time' ];
$s->query('SELECT zk_unlock_all()');
state_ok("/b/r$_", 'kept', 'taken again: it is kept as long as it ever was to be')
  foreach 5, 6;
is($t->query("SELECT zk_break_lock('/b/r$_')"), 't', 'a kept lock can be broken')
  foreach 5, 6;
goes_on_ok("/b/r$_", 'taken again: free in the end') foreach 1 .. 6;

# ---- at least: how a hold can end ----

sub kept_ok
{
	my ($path, $case, $who) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	state_ok($path, 'kept', "$case: kept");
	is($t->query("SELECT zk_try_lock('$path')"), 'f', "$case: others do not get it");
	is($who->query("SELECT zk_try_lock('$path')"), 'f', "$case: nor who had it")
	  if $who;
	return;
}

sub broken_ok
{
	my ($path, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$t->query("SELECT zk_break_lock('$path')");
	goes_on_ok($path, "$case: until it is broken");
	return;
}

my %ends = (
	unlock => [ 'zk_lock', "SELECT zk_unlock('/k/unlock')" ],
	all => [ 'zk_lock', 'SELECT zk_unlock_all()' ],
	discard => [ 'zk_lock', 'DISCARD ALL' ],
	commit => [ 'zk_xact_lock', 'COMMIT' ],
	rollback => [ 'zk_xact_lock', 'ROLLBACK' ],
	savepoint => [ 'zk_xact_lock', 'ROLLBACK TO s; ROLLBACK' ]);
foreach my $end (sort keys %ends)
{
	my ($lock, $sql) = @{ $ends{$end} };

	$s->query('BEGIN; SAVEPOINT s') if $lock eq 'zk_xact_lock';
	$s->query("SELECT $lock('/k/$end', at_most => '2h', at_least => '1h')");
	$s->send($sql);
	$s->result;
	kept_ok("/k/$end", $end, $s);
}
my $gone = $test->session($one);
$gone->query("SELECT zk_lock('/k/close', at_least => '1h')");
$gone->close;
kept_ok('/k/close', 'session closed', $s);
is($test->look($one, 'SELECT pid, datname, usename, application_name FROM zk_locks'
		  . " WHERE path = '/k/close' AND state = 'kept'"),
	'|||', 'its session is not shown any more');
is($test->look($one, 'SELECT pid, datname, usename, application_name'
		  . " FROM zk_queue('/k/close') WHERE granted"),
	'|||', 'nor in the queue, where the lock is held');
$gone = $test->session($one);
$gone->query("SELECT zk_lock_shared('/k/terminate', at_least => '1h')");
$test->look($one, 'SELECT pg_terminate_backend(' . $gone->pid . ')');
kept_ok('/k/terminate', 'session terminated', $s);
is($s->query("SELECT zk_try_lock_shared('/k/terminate')"), 't',
	'what is kept shared can be shared');
$s->query("SELECT zk_lock('/jobs/k', at_least => '1h')");
$s->query("SELECT zk_unlock('/jobs/k')");
kept_ok('/jobs/k', 'another dialect', $s);
$s->query("SELECT zk_lock('/k/both', at_least => '1h')");
$s->query("BEGIN; SELECT zk_xact_lock('/k/both')");
$s->query("SELECT zk_unlock('/k/both')");
is($s->query("SELECT zk_try_lock('/k/both')"), 't', 'who holds it otherwise has it');
$s->query("SELECT zk_unlock('/k/both'); COMMIT");
kept_ok('/k/both', 'two holds', $s);

# ---- at least: one has its znode from another hold, which ends after that ----

my $under = $test->session($one);
$under->query("BEGIN; SELECT zk_xact_lock('/k/under')");
$under->query("SELECT zk_lock('/k/under', at_least => '1h')");
$under->query("SELECT zk_unlock('/k/under')");
$under->query('COMMIT');
$under->close;
kept_ok('/k/under', 'its other hold ended', $s);
$s->query("SELECT zk_unlock_shared('/k/terminate')");
broken_ok($_, $_) foreach map({ "/k/$_" } keys %ends, qw(close terminate both under)), '/jobs/k';

# ---- at least: it ends by itself ----

{
	my $path = '/k/time';

	$s->query("SELECT zk_lock('$path', at_least => '3s')");
	my $granted = $test->look($one, "SELECT granted_at FROM zk_locks WHERE path = '$path'");
	$test->enqueue($t, "SELECT zk_lock('$path')", $path);
	$s->query("SELECT zk_unlock('$path')");
	state_ok($path, 'kept', 'kept while another waits');
	cmp_ok($t->value, '>', 0, 'who waits gets it in the end');
	is($test->look($two, "SELECT granted_at - '$granted' >= '2.9s'"
			  . " FROM zk_locks WHERE path = '$path'"),
		't', 'but not before');
	$t->query("SELECT zk_unlock('$path')");
	$s->query("SELECT zk_lock('$path', at_least => '1ms'), pg_sleep(0.01)");
	$s->query("SELECT zk_unlock('$path')");
	goes_on_ok($path, 'what was held long enough is not kept');
}

# ---- at least: what keeps nothing ----

$t->query("SELECT zk_lock('/k/cancelled')");
$test->enqueue($s, "SELECT zk_lock('/k/cancelled', at_least => '1h')", '/k/cancelled');
$s->cancel;
is($s->sqlstate, '57014', 'a wait is cancelled');
is($s->query("SELECT zk_try_lock('/k/cancelled', '0', NULL, '1h')"), 'f', 'and a try fails');
$t->query("SELECT zk_unlock('/k/cancelled')");
goes_on_ok('/k/cancelled', 'nothing is kept of that');

$s->query("SELECT zk_lock('/k/lost', at_most => '1h', at_least => '1h')");
$s->query("SELECT zk_extend('/k/lost', '1s')");
state_ok('/k/lost', 'lost', 'a lock is lost before it was held for as long as it should');
$s->query("SELECT zk_unlock('/k/lost')");
goes_on_ok('/k/lost', 'and is not kept');

# Nor if it is released before the worker says that it is lost.
$s->query("SELECT zk_lock('/k/unseen', at_most => '1h', at_least => '1h')");
$worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
is($s->error("SELECT zk_extend('/k/unseen', '1ms'), pg_sleep(0.01)"), '40001',
	'not even that statement commits');
is($s->query("SELECT zk_unlock('/k/unseen')"), 'f', 'the session sees by itself that it is lost');
kill 'CONT', $worker;
goes_on_ok('/k/unseen', 'which is not kept either');

# The ZooKeeper session ends.
$s->query("SELECT zk_lock('/k/session', at_least => '1h')");
$s->query("SELECT zk_unlock('/k/session')");
state_ok('/k/session', 'kept', 'a lock is kept');
ok($test->lose_session($one, '/k/session'), 'its session is lost');
goes_on_ok('/k/session', 'and the lock with it');
$test->look_until($one, state_of('/k/session'), '', 'whose slot is free again');

# The server stops: it waits for holders, not for what they have left.
$s->query("SELECT zk_lock('/k/stop', at_least => '1h')");
$s->close;
$test->stop_looking($one);
$one->stop('fast');
goes_on_ok('/k/stop', 'a server that stops gives up what it kept');
$one->start;
$test->wait_connected($one);

$t->close;
$test->finish;
