# What PostgreSQL's own views say of zklock.  From 17 on, a session shows by its wait
# event for what it waits: for others, for ZooKeeper, for a server that may have the
# lock cached, or for the lease of a commit.  From 18 on, the library has a version.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(conf => "zklock.cache_time = '60s'\n"
	  . "zklock.answer_timeout = '60s'\nzklock.commit_wait = '60s'\ndeadlock_timeout = '100ms'\n");
my ($one, $two) = $test->nodes;
my $postgres = $test->look($one, "SELECT current_setting('server_version_num')");
my ($s, $commits, $asks) = map { $test->session($one) } 1 .. 3;
my $other = $test->session($two);

sub shows
{
	my ($session, $event, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($one,
			'SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = '
			  . $session->pid,
			'Extension|' . ($postgres >= 170000 ? $event : 'Extension'),
			$event), $what);
}

$commits->query("BEGIN; CREATE TABLE done (); SELECT zk_xact_lock('/e/commit')");
$other->query("SELECT zk_lock('/e/lock')");
$test->enqueue($s, "SELECT zk_lock('/e/lock')", '/e/lock');
shows($s, 'ZklockLock', 'a session waits for another one');

# While the worker is stopped, nothing is granted, whoever is ahead.
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$test->look_until($one, "SELECT lease_remaining <= '0' FROM zk_status", 't',
	'the lease passes');
shows($s, 'ZklockZooKeeper', 'the same session waits for ZooKeeper');
$asks->send("SELECT count(*) FROM zk_queue('/e/lock')");
shows($asks, 'ZklockZooKeeper', 'so does a question');
$commits->send('COMMIT');
shows($commits, 'ZklockCommitCheck', 'a commit waits for the lease');
kill 'CONT', $worker;
$_->value foreach $asks, $commits;
shows($s, 'ZklockLock', 'the session waits for the other one again');
$other->query("SELECT zk_unlock('/e/lock')");
$s->value;
$s->query("SELECT zk_unlock('/e/lock')");

$test->look_until(
	$two,
	"SELECT state FROM zk_locks WHERE path = '/e/cached'",
	'cached',
	'a lock is cached',
	before =>
	  sub { $other->query("SELECT zk_lock('/e/cached'), zk_unlock('/e/cached')") });
$worker = $test->status($two, 'worker_pid');
kill 'STOP', $worker;
$s->send("SELECT zk_try_lock('/e/cached', '10ms')");
shows($s, 'ZklockCachedAnswer', 'a session waits for a server that has the lock cached');
kill 'CONT', $worker;
is($s->value, 't', 'and gets it');

SKIP:
{
	skip 'there is no pg_wait_events', 1 if $postgres < 170000;
	is($test->look(
			$one, "SELECT string_agg(name, ' ' ORDER BY name) FROM pg_wait_events"
			  . " WHERE name LIKE 'Zklock%'"),
		'ZklockCachedAnswer ZklockCommitCheck ZklockLock ZklockWorker ZklockZooKeeper',
		'pg_wait_events has all of them');
}
SKIP:
{
	skip 'libraries have no version', 1 if $postgres < 180000;
	is($test->look(
			$one, 'SELECT version FROM pg_get_loaded_modules()'
			  . " WHERE module_name = 'zklock'"),
		$test->look($one, 'SELECT library FROM zk_version()'),
		'the library has a version');
}

$_->close foreach $s, $commits, $asks, $other;
$test->finish;
