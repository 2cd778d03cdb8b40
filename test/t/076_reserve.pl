# One role fills the table of locks, but for an eighth, which superusers have to
# themselves.  When they have filled that, operators still look at queues, ask for
# locks and break them, barriers end, and transactions with a turn of zk_once()
# commit: what is no lock has slots of its own.  Those run out for nobody but the
# session itself, and only while the worker is stopped.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $slots = 16;
my $test = ZklockTest->new(max_requests => $slots);
my ($one, $two) = $test->nodes;
my ($operator, $other) = map { $test->session($_) } $one, $two;

$operator->query('CREATE ROLE greedy LOGIN; CREATE ROLE watcher LOGIN;'
	  . ' GRANT pg_monitor TO watcher;'
	  . ' GRANT EXECUTE ON FUNCTION zk_lock(text, interval, interval, interval),'
	  . ' zk_unlock_all() TO greedy');

# What is begun before the table is full, and to be ended while it is
my %turns;
foreach my $guarantee ('at_most_once', 'at_least_once')
{
	my $turn = $turns{$guarantee} = $test->session($one);

	$turn->query('BEGIN');
	is($turn->query("SELECT zk_once('/$guarantee', key => 'x', guarantee => '$guarantee')"),
		't', "$guarantee: a turn is taken");
}
my @members = map { $test->session($_) } $one, $two;
$members[0]->send("SELECT zk_barrier_enter('/barrier', 2)");
is($members[1]->query("SELECT zk_barrier_enter('/barrier', 2)"), 't', 'both are in');
is($members[0]->value, 't', 'both are in');

# Some wait for a change of something, which takes a slot for all that time.
my @waiting = map { $test->session($one) } 1 .. 6;
$_->send("SELECT zk_barrier_enter('/crowd', 99)") foreach @waiting;
$test->look_until($one,
	"SELECT count(*) FROM zk_locks WHERE path = '/crowd' AND state = 'granted'",
	6, 'six wait in a barrier');

my $greedy = $test->session($one, user => 'greedy');
my $n = 0;
$n++ while $greedy->error("SELECT zk_lock('/full/$n')") eq '';
cmp_ok($n, '>', 0, 'one role takes the rest');
is($greedy->sqlstate, '53400', 'until only the reserve is left');
like($greedy->messages, qr/Of the $slots slots set by "zklock\.max_requests", only the 2 that are reserved for superusers are left/,
	'which it is told');
my $last = $test->session($one);
is($last->error("SELECT zk_lock('/last/$_')"), '', "a superuser takes one of the reserve, $_") foreach 1, 2;
is($greedy->error("SELECT zk_lock('/full/0')"), '', 'a lock that it holds takes no other slot');
is($operator->error("SELECT zk_lock('/x')"), '53400', 'for locks, for everybody');
like($operator->messages, qr/All $slots slots set by "zklock\.max_requests"/,
	'which names the setting');

# ---- looking, asking, breaking ----

my $filler = $test->session($one);
my $watcher = $test->session($one, user => 'watcher');
foreach my $session ($operator, $watcher)
{
	is($session->query("SELECT usename FROM zk_queue('/full/0')"),
		'greedy', 'zk_queue() tells who holds');
	is($session->query("SELECT count(*) FROM zk_queue('/crowd')"),
		6, 'also of a barrier');
	is($session->query("SELECT count(*) FROM zk_leader('/leader')"),
		0, 'zk_leader()');
}
is($operator->query("SELECT zk_request_release('/full/0')"), 1, 'zk_request_release() asks');
$test->look_until($one, 'SELECT count(*) FROM zk_locks WHERE release_requested', 1,
	'and is heard');
$operator->send("SELECT zk_break_lock('/full/1')");
$test->look_until($one,
	"SELECT state FROM zk_locks WHERE path = '/full/1'",
	'lost', 'zk_break_lock() breaks');
is($operator->value, 't', 'and is through');

# ---- what was begun ends ----

foreach my $guarantee (sort keys %turns)
{
	my $turn = $turns{$guarantee};

	is($turn->error('COMMIT'), '', "$guarantee: commits");
	is($other->query("SELECT zk_once('/$guarantee', key => 'x', guarantee => '$guarantee')"),
		'f', "$guarantee: and the turn is used up");
	wait_for(sub { $filler->error("SELECT zk_lock('/again/$guarantee')") eq '' },
		'the table is full again');
	$turn->close;
}
$_->send("SELECT zk_barrier_leave('/barrier')") foreach @members;
is($_->value, 't', 'a barrier ends') foreach @members;

# Hundreds of sessions can come, one after the other and all at once.
is(join(' ', map { $watcher->error("SELECT * FROM zk_queue('/full/0')") } 1 .. 100),
	' ' x 99, 'a hundred times in a row');
my @all = map { $test->session($one) } 1 .. 30;
$_->send("SELECT count(*) FROM zk_queue('/full/0')") foreach @all;
is(join('', map { $_->value } @all), '1' x 30, 'thirty at the same time');
$_->close foreach @all;

# ---- given up while the worker is stopped ----

my $worker = $test->status($one, 'worker_pid');
my $impatient = $test->session($one);
$n = 0;
$n++ while $filler->error("SELECT zk_lock('/filled/$n')") eq '';
is($filler->sqlstate, '53400', 'no slot is left, for nobody');

sub gives_up
{
	my ($session, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->send("SELECT * FROM zk_queue('/full/0')");
	$test->look_until($one,
		"SELECT wait_event_type FROM pg_stat_activity WHERE pid = " . $session->pid,
		'Extension', "$case waits");
	$session->cancel;
	return is($session->sqlstate, '57014', "$case is given up");
}

# The error does not put the blame on ZooKeeper.
sub blames_worker
{
	my ($session, $sql, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $error = $session->send($sql)->result->{error};
	is($error->{sqlstate}, '08006', "$case: ends by itself");
	is($error->{message}, 'could not reach the zklock worker',
		"$case: names the worker");
	return is($error->{detail}, "The worker (process $worker) does not answer.",
		"$case: and its process");
}

kill 'STOP', $worker;
gives_up($impatient, "worker stopped: try $_") foreach 1 .. 5;
$impatient->query("SET zklock.answer_timeout = '50ms'");
blames_worker($impatient, "SELECT * FROM zk_queue('/full/0')",
	'worker stopped: zk_queue() without a slot');
$impatient->query("SET lock_timeout = '50ms';"
	  . " SET zklock.answer_timeout = '5s'");
is($impatient->error("SELECT zk_barrier_enter('/crowd', 2)"),
	'08006', 'worker stopped: lock_timeout ends a wait for a slot');
like($impatient->messages, qr/The wait was for the zklock worker/,
	'worker stopped: which the detail tells');
$impatient->query('RESET lock_timeout; RESET zklock.answer_timeout');
is($greedy->query("SELECT zk_unlock('/full/2')"), 't',
	'worker stopped: a lock is released, but its slot is not free');
$filler->query("SET lock_timeout = '50ms'");
is($filler->error("SELECT zk_lock('/late')"),
	'53400', 'worker stopped: lock_timeout ends a wait for a free slot');
like($filler->messages, qr/The wait was for one of the $slots slots set by "zklock\.max_requests", not for another holder/,
	'worker stopped: which its detail tells');
is($filler->error("SELECT zk_lock('/late', '30 ms')"),
	'53400', 'worker stopped: and so does the timeout of the call');
like($filler->messages, qr/could not acquire distributed lock "\/late" within 30 ms/,
	'worker stopped: in the words of a timeout');
$filler->query('RESET lock_timeout');

my $late = $test->session($one);
$late->query("SET zklock.answer_timeout = '50ms'");
blames_worker($late, 'SELECT count(*) FROM zk_dump()',
	'worker stopped: zk_dump()');
blames_worker($late, "SELECT zk_once('/late', key => 'k')",
	'worker stopped: zk_once()');
$late->close;
$watcher->send("SELECT usename FROM zk_queue('/full/0')");
$test->look_until($one,
	"SELECT wait_event_type FROM pg_stat_activity WHERE pid = " . $watcher->pid,
	'Extension', 'worker stopped: others wait');
ok($watcher->busy, 'worker stopped: others wait for the answer only');
kill 'CONT', $worker;
is($watcher->value, 'greedy', 'worker goes on: they get it');
is($impatient->query("SELECT usename FROM zk_queue('/full/0')"),
	'greedy', 'worker goes on: and so does who gave up');

# One that waits for a lock, on a server that has room for it
my $stopped = $test->status($two, 'worker_pid');
kill 'STOP', $stopped;
$other->query("SET zklock.answer_timeout = '50ms'; SET lock_timeout = '300ms'");
is($other->error("SELECT zk_lock('/late')"),
	'08006', 'worker stopped: lock_timeout ends a wait for a lock');
like($other->messages, qr/still waiting for the zklock worker/,
	'worker stopped: a NOTICE came first');
like($other->messages, qr/The wait was for the zklock worker.*\(process $stopped\)/,
	'worker stopped: and the detail tells why');
kill 'CONT', $stopped;
$other->query('RESET zklock.answer_timeout; RESET lock_timeout');

# A session that takes the place of one that ended behind such a request
kill 'STOP', $worker;
foreach (1 .. 3)
{
	my $gone = $test->session($one);

	gives_up($gone, 'worker stopped: a session');
	$gone->close;
}
kill 'CONT', $worker;
is($test->session($one)->query("SELECT usename FROM zk_queue('/full/0')"),
	'greedy', 'worker goes on: also for a new session');

# ---- and after all that, a restarted worker finds its way ----

$test->restart_worker($one);
is($watcher->query("SELECT count(*) FROM zk_queue('/full/0')"), 0,
	'another worker: zk_queue()');
is($_->sqlstate, '40001', 'what they held is lost') foreach @waiting;
$_->close foreach @waiting, @members, $greedy, $last, $filler, $watcher, $impatient, $other;
$operator->query('DROP OWNED BY greedy, watcher; DROP ROLE greedy, watcher');

$test->finish;
