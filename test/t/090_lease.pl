# Who holds a lock may rely on it until the lease ends, whatever the worker
# does: a commit waits for the renewal, and fails without; a grant that is
# picked up late counts only when the lease is good; and a transaction that was
# running when a loss became known does nothing more.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $worker = $test->status($one, 'worker_pid');

# While the worker is stopped, the session process keeps the ZooKeeper session
# alive: nothing is lost, but nothing is known either.
sub let_lease_lapse
{
	kill 'STOP', $worker;
	$test->look_until($one,
		"SELECT lease_remaining <= '0' FROM zk_status",
		't', 'the lease passes');
	return;
}

sub resume
{
	kill 'CONT', $worker;
	$test->look_until($one,
		"SELECT lease_remaining > '0' FROM zk_status",
		't', 'the lease is renewed');
	return;
}

sub holder
{
	my ($sql, %settings) = @_;
	my $session = $test->session($one);

	$session->query("SET zklock.$_ = '$settings{$_}'") foreach keys %settings;
	$session->query($sql);
	return $session;
}

# ---- the commit waits for the lease

my $patient = holder("BEGIN; CREATE TABLE kept (); SELECT zk_xact_lock('/l/1')");
my $by_session = holder("SELECT zk_lock('/l/2')");
my $hasty = holder("BEGIN; CREATE TABLE lost (); SELECT zk_xact_lock('/l/3')",
	commit_wait => '50ms');
my $no_wait = holder("BEGIN; SELECT zk_xact_lock('/l/4')",
	commit_wait => 0);
my $cancelled = holder("BEGIN; SELECT zk_xact_lock('/l/5')");
my $frees = holder("SELECT zk_lock('/l/12')", commit_wait => '50ms');
my $again = holder("SELECT zk_lock('/l/13')");
my $again_try = holder("SELECT zk_lock('/l/14')",
	answer_timeout => '50ms');
my $innocent = $test->session($one);

# Its grant waits to be picked up while the lease passes.
my $rival = $test->session($two);
$rival->query("SELECT zk_lock('/l/6')");
my $late = $test->session($one);
$test->enqueue($late, "SELECT zk_lock('/l/6')", '/l/6');
kill 'STOP', $late->pid;
$rival->query("SELECT zk_unlock('/l/6')");
$test->look_until($one,
	"SELECT state FROM zk_locks WHERE path = '/l/6'",
	'granted', 'a grant for a stopped backend');

let_lease_lapse();
is($innocent->query('BEGIN; SELECT 1; COMMIT'),
	1, 'who holds nothing commits');
is($hasty->error('COMMIT'), '40001', 'no commit on a lease that has passed');
like(
	$hasty->messages,
	qr{could not renew the lease of distributed lock "/l/3"},
	'which says so');
is($hasty->query("SELECT to_regclass('lost') IS NULL"),
	't', 'its work is undone');
is($no_wait->error('COMMIT'), '40001', 'commit_wait = 0 fails at once');
$cancelled->send('COMMIT');
$patient->send('COMMIT');
$by_session->send('CREATE TABLE by_session ()');
kill 'CONT', $late->pid;
my $waiting = "SELECT count(*) FROM pg_stat_activity"
  . " WHERE wait_event_type = 'Extension' AND state = 'active' AND pid = ";
foreach my $session ($cancelled, $patient, $by_session, $late)
{
	$test->look_until($one, $waiting . $session->pid, 1, 'a session waits');
}
$cancelled->cancel;
is($cancelled->sqlstate, '57014', 'the wait can be cancelled');
like($cancelled->messages, qr{/l/5}, 'and the message names the lock');
ok($patient->busy, 'the other commit waits');
ok($late->busy, 'a grant is not picked up without a lease');

# A lock of which nothing is known does not let a transaction go by an unlock,
# nor is it taken once more.
is($frees->error("CREATE TABLE freed (); SELECT zk_unlock('/l/12')"),
	'40001', 'no unlock in a transaction that has written');
is($frees->query("SELECT zk_unlock('/l/12')"),
	'f', 'but in one that has not, with a warning');
like($frees->messages, qr{"/l/12" may have been lost}, 'that says why');
$again->send("SELECT zk_lock('/l/13')");
is($again_try->error("SELECT zk_try_lock('/l/14')"),
	'08006', 'a lock is not entered again without a lease');
is($again_try->error("SELECT zk_try_lock('/l/13')"),
	'08006', 'nor is a try denied');
$test->look_until($one, $waiting . $again->pid, 1, 'who can waits for it');

resume();
cmp_ok($again->value, '>', 0, 'until it is renewed');
is($patient->sqlstate, '', 'and goes on once the lease is renewed');
is($by_session->sqlstate, '', 'so does one under a session lock');
is($patient->query(
		"SELECT to_regclass('kept') IS NOT NULL"
		  . " AND to_regclass('by_session') IS NOT NULL"),
	't',
	'and both have committed');
cmp_ok($late->value, '>', 0, 'and the grant is picked up');
is($test->status($one, 'sessions_lost'), 0, 'no session was lost');

# ---- the lock turns out to be lost

my $unlucky = holder("BEGIN; SELECT zk_xact_lock('/l/7')",
	commit_wait => '10min');
kill 'STOP', $worker;
kill 'KILL', $test->status($one, 'session_pid');
ok($test->wait_queue('/l/7', 0), 'the session ends');
$unlucky->send('COMMIT');
$test->look_until($one, $waiting . $unlucky->pid, 1, 'the commit waits');
kill 'CONT', $worker;
is($unlucky->sqlstate, '40001', 'a commit that waits learns of the loss');
like($unlucky->messages, qr{"/l/7" was lost}, 'in so many words');
$_->error("SELECT zk_unlock_all()") foreach $by_session, $late,
  $again, $again_try;

# ---- a running transaction stops at its next statement

$test->wait_connected($one);
my %quiet = (lost_lock_action => 'none');
my $job = holder("BEGIN; SELECT zk_xact_lock('/l/8');"
	  . " DECLARE c CURSOR FOR SELECT 1; DECLARE d CURSOR FOR SELECT 2;"
	  . " SAVEPOINT s",
	%quiet);
my $unlocks = holder("SELECT zk_lock('/l/9')", %quiet);
$unlocks->query('BEGIN; SELECT 1');
my $later = holder("SELECT zk_lock('/l/10')", %quiet);
my $block = holder("SELECT zk_lock('/l/11')", %quiet);
my $gone = "NOT EXISTS (SELECT FROM zk_locks WHERE path = '/l/11'"
  . " AND state = 'granted')";
$block->send(<<"EOS");
DO \$do\$ DECLARE
	done boolean;
BEGIN
	WHILE pg_sleep(0.01) IS NULL OR NOT ($gone) LOOP
	END LOOP;
EXCEPTION WHEN serialization_failure THEN
	RAISE NOTICE 'caught';
	done := zk_unlock('/l/11');
END \$do\$
EOS
ok($test->lose_session($one, '/l/8'), 'the session is lost');
is($job->query('SHOW zklock.lost_lock_action'), 'none', 'SHOW is allowed');
$job->query('SET LOCAL work_mem = 64; RESET work_mem; CLOSE d; RELEASE s');
is($job->error('FETCH c'), '40001', 'a FETCH is not');
$job->query('ROLLBACK');
is($job->query('SELECT 1'), 1, 'and after the rollback work goes on');

is($unlocks->error("SELECT zk_unlock('/l/9')"),
	'40001', 'no unlock can save a transaction that was running');
$unlocks->query('ROLLBACK');
is($unlocks->error("CREATE TABLE t (); SELECT zk_unlock('/l/9')"),
	'40001', 'nor can it save a later one that has written');
is($unlocks->query("SELECT zk_unlock('/l/9')"),
	'f', 'one that has not acknowledges the loss');
is($unlocks->query('BEGIN; SELECT 1; COMMIT'), 1, 'and commits');
is($later->query("BEGIN; SELECT zk_unlock('/l/10'); COMMIT"),
	'f', 'also in a block of its own');
is($block->sqlstate, '40001', 'nor can an exception block');
like($block->messages, qr{"/l/11" was lost}, 'that catches the error');
$block->error("SELECT zk_unlock('/l/11')");

# ---- a lock that no session holds is not taken without a lease

$one->append_conf('postgresql.conf', "zklock.cache_time = '60s'");
$one->reload;
my $taker = $test->session($one);
my $cached = "SELECT state FROM zk_locks WHERE path = '/l/cached'";
ok($test->look_until($one, $cached, 'cached', 'cached',
		before => sub { $taker->query("SELECT zk_lock('/l/cached'), zk_unlock('/l/cached')") }),
	'a lock is cached');
let_lease_lapse();
is($test->look($one, $cached), 'cached', 'and stays so without the worker');
is($taker->error("SET zklock.answer_timeout = '50ms'; SELECT zk_try_lock('/l/cached')"),
	'08006', 'but no session takes it');
resume();
is($taker->query("SELECT zk_try_lock('/l/cached'), zk_unlock('/l/cached')"), 't|t',
	'before there is a lease again');

$_->close foreach $taker, $patient, $by_session, $hasty, $no_wait, $cancelled,
  $innocent, $rival, $late, $unlucky, $frees, $again, $again_try, $job, $unlocks, $later, $block;
$test->finish;
