# An operator breaks the lock of a holder that does not give it up, or whose
# server hears of nothing: the znode goes after a session timeout at the latest,
# and then the holder cannot commit.  A request that waits on such a server, and is
# removed, does not take the lock that somebody else has by then.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $operator = $test->session($one);

# A session lock, with the default action: cancelled, and to be acknowledged.
my $session = $test->session($two);
$session->query("SELECT zk_lock('/o/session')");
$session->send('SELECT pg_sleep(1000)');
is($operator->query("SELECT zk_break_lock('/o/session')"),
	't', 'a session lock goes after a session timeout at the latest');
is($session->sqlstate, '40001', 'its holder was cancelled');
is($session->query("SELECT zk_unlock('/o/session')"), 'f', 'and acknowledges');

# A server whose worker is stopped: its lease ends, and the znode goes.
my $stuck = $test->session($two);
$stuck->query("SET zklock.commit_wait = 0");
$stuck->query("BEGIN; SELECT zk_xact_lock('/o/stuck')");
my $after = $test->session($one);
$test->enqueue($after, "SELECT zk_lock('/o/stuck')", '/o/stuck');
my $worker = $test->status($two, 'worker_pid');
kill 'STOP', $worker;
is($operator->query("SELECT zk_break_lock('/o/stuck')"),
	't', 'the lock of a stopped server is broken');
cmp_ok($after->value, '>', 0, 'the next has it');
is($stuck->error('COMMIT'), '40001', 'the stuck holder cannot commit');

# The same, but its commit waits, and the worker goes on: the lease must not be
# renewed before the znode was looked at.
kill 'CONT', $worker;
$stuck->query('ROLLBACK; SET zklock.commit_wait = \'10min\'');
$stuck->query("BEGIN; SELECT zk_xact_lock('/o/waits')");
my $rival = $test->session($one);
$test->enqueue($rival, "SELECT zk_lock('/o/waits')", '/o/waits');
$test->look_until($two,
	"SELECT clock_timestamp() - granted_at > '400ms' FROM zk_locks"
	  . " WHERE path = '/o/waits'",
	't', 'it is held for a while');
kill 'STOP', $worker;
$operator->send("SELECT zk_break_lock('/o/waits')");
my $other_operator = $test->session($one);
$other_operator->send("SELECT zk_break_lock('/o/none')");
is($other_operator->value, 'f', 'another call is answered meanwhile');
is($operator->value, 't', 'broken again');
cmp_ok($rival->value, '>', 0, 'the next has it');
$stuck->send('COMMIT');
$test->look_until($two,
	"SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
	  . " AND wait_event_type = 'Extension' AND pid = " . $stuck->pid,
	1, 'the stuck holder waits for its lease');
kill 'CONT', $worker;
is($stuck->sqlstate, '40001', 'and learns that the lock is lost');
kill 'STOP', $worker;

# One who waits there, at the head of its queue, while its worker is stopped:
# it must not take the lock that somebody else has by then.
kill 'CONT', $worker;
$test->look_until($two,
	"SELECT lease_remaining > '0' FROM zk_status",
	't', 'the worker goes on');
my $first = $test->session($one);
my $sleeper = $test->session($two);
my $third = $test->session($one);
$first->query("SELECT zk_lock('/o/head')");
$test->enqueue($sleeper, "SELECT zk_lock('/o/head')", '/o/head');
$test->enqueue($third, "SELECT zk_lock('/o/head')", '/o/head');
kill 'STOP', $worker;
$first->query("SELECT zk_unlock('/o/head')");
ok($test->wait_queue('/o/head', 2), 'a request of the stopped server is first');
is($operator->query("SELECT zk_break_lock('/o/head')"), 't', 'it is removed');
cmp_ok($third->value, '>', 0, 'the next has it');
kill 'CONT', $worker;
ok($test->wait_queue('/o/head', 2), 'it queues anew, behind');
ok($test->still_waits($sleeper), 'and waits');
$third->query("SELECT zk_unlock('/o/head')");
cmp_ok($sleeper->value, '>', 0, 'until it is its turn');

$_->close foreach $operator, $other_operator, $rival, $session, $stuck, $after, $first, $sleeper,
  $third;
$test->finish;
