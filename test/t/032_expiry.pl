# A server is cut off for longer than the session timeout: its session process
# is dead and its worker stopped, so nothing keeps the session alive.  Its
# locks pass on to the other server; its own holders are told, at the latest
# when they commit; its waiting clients queue again by themselves.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;

my $idle = $test->session($one);
my $running = $test->session($one);
my $session_lock = $test->session($one);
my $waiter = $test->session($one);
my $innocent = $test->session($one);
my $rival = $test->session($two);
my $other_holder = $test->session($two);

$idle->query("BEGIN; CREATE TABLE lost (); SELECT zk_xact_lock('/e/idle')");
$running->query("BEGIN; SELECT zk_xact_lock('/e/running')");
$session_lock->query("SELECT zk_lock('/e/session')");
my $token = $other_holder->query("SELECT zk_lock('/e/other')");
$test->enqueue($waiter, "SELECT zk_lock('/e/other')", '/e/other');
$test->enqueue($rival, "SELECT zk_lock('/e/idle')", '/e/idle');
$running->send('SELECT pg_sleep(1000)');

my $worker = $test->status($one, 'worker_pid');
my $session_id = $test->status($one, 'session_id');
kill 'STOP', $worker;
kill 'KILL', $test->status($one, 'session_pid');
cmp_ok($rival->value, '>', 0, 'the other server gets the lock by expiry');
ok($test->wait_queue('/e/session', 0), 'all znodes of the cut-off one vanish');

kill 'CONT', $worker;
$test->look_until($one,
	'SELECT sessions_lost = 1 AND state = \'connected\' FROM zk_status, zk_stat_server',
	't', 'the cut-off server has a new session');
isnt($test->status($one, 'session_id'), $session_id, 'another one');

is($running->sqlstate, '40001', 'the statement of a running holder ends');
like($running->messages, qr{/e/running}, 'and told which lock it lost');
$running->query('ROLLBACK');

my $answer = $idle->send('COMMIT')->result;
is($answer->{error}{sqlstate}, '40001', 'an idle holder cannot commit');
like($idle->messages, qr{/e/idle}, 'and is told why');
is($idle->query("SELECT to_regclass('lost') IS NULL"),
	't', 'its work is undone');
is($idle->query("SELECT zk_try_lock('/e/idle')"),
	'f', 'it can go on, and sees the new holder');

# A lost session lock stays lost until it is acknowledged.
is($session_lock->error('BEGIN; SELECT 1; COMMIT'),
	'40001', 'nor can the holder of a session lock');
$session_lock->query('ROLLBACK');
is($session_lock->query("SELECT zk_fencing_token('/e/session') IS NULL"),
	't', 'whose token is gone')
  if !$session_lock->error("SELECT zk_fencing_token('/e/session')");
$session_lock->error("SELECT zk_unlock('/e/session')");
cmp_ok($session_lock->query("SELECT zk_lock('/e/session')"),
	'>', 0, 'acknowledged, it can be taken again');
is($session_lock->query('BEGIN; SELECT 1; COMMIT'), 1, 'and work goes on');

ok($test->wait_queue('/e/other', 2), 'the waiting client queues again');
ok($test->still_waits($waiter), 'and waits');
$other_holder->query("SELECT zk_unlock('/e/other')");
cmp_ok($waiter->value, '>', $token, 'and is granted in the new session');
is($innocent->query("BEGIN; SELECT zk_xact_lock('/e/new'); COMMIT"),
	$innocent->{answer}{rows}[0][0], 'sessions without lost locks go on');

# With "terminate" the holder's session ends; with "none" only the commit
# fails.
my $terminate = $test->session($one);
$terminate->query("SET zklock.lost_lock_action = 'terminate'");
$terminate->query("SELECT zk_lock('/e/terminate')");
my $none = $test->session($one);
$none->query("SET zklock.lost_lock_action = 'none'");
$none->query("BEGIN; SELECT zk_xact_lock('/e/none')");
$none->send('SELECT count(*) FROM generate_series(1, 3)');
my $lost = $test->status($one, 'sessions_lost');
kill 'STOP', $worker;
kill 'KILL', $test->status($one, 'session_pid');
$test->wait_queue('/e/terminate', 0);
$test->wait_queue('/e/none', 0);
kill 'CONT', $worker;
$test->look_until($one,
	"SELECT sessions_lost > $lost AND state = 'connected' FROM zk_status, zk_stat_server",
	't', 'a new session again');
ok(wait_for(
		sub {
			$test->look($one, 'SELECT count(*) FROM pg_stat_activity'
				  . ' WHERE pid = ' . $terminate->pid) eq '0';
		},
		'terminated'),
	'lost_lock_action = terminate ends the session');
is($none->value, 3, 'lost_lock_action = none does not cancel');
is($none->error('COMMIT'), '40001', 'but the commit fails');

# An operator deletes the znode of a holder: noticed, and said.
my $deleted = $test->session($two);
$deleted->query("BEGIN; SELECT zk_xact_lock('/e/deleted')");
my ($znode) = $test->queue('/e/deleted');
$test->look_until($two,
	"SELECT granted_at < now() - interval '1 s' FROM zk_locks"
	  . " WHERE path = '/e/deleted'",
	't', 'held for a while');
$test->zk->client->delete("/zklock/e/deleted/$znode");
ok(wait_for(
		sub {
			$test->look($two, "SELECT count(*) FROM zk_locks"
				  . " WHERE path = '/e/deleted' AND state = 'granted'") eq '0';
		},
		'the deleted znode is noticed'),
	'a hold whose znode was deleted is no longer shown as granted');
is($deleted->error('COMMIT'), '40001', 'its transaction cannot commit');

# The log tells of the end of the session, whatever it tells of hosts that are down.
my @down = map { '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port() } 1 .. 5;
my $hosts = join ',', $test->zk->connect_string, @down;
$two->safe_psql('postgres', "ALTER SYSTEM SET zklock.connect_string = '$hosts'");
$two->reload;
$test->look_until($two, "SELECT current_setting('zklock.connect_string')", $hosts, 'six hosts');
$test->wait_connected($two);
$other_holder->query("SELECT zk_lock('/e/told')");
my $offset = -s $two->logfile;
$test->lose_session($two, '/e/told');
my $log = slurp_file($two->logfile, $offset);
my %missed = map { $_ => 1 } @down;
delete @missed{ $log =~ /(127\.0\.0\.1:\d+)/g };
cmp_ok(scalar(keys %missed), '>', 0, 'not every host that is down is logged');
like($log, qr/LOG:  zklock: session has expired/, 'but that the session has expired is');

$_->close foreach $idle, $running, $session_lock, $waiter, $innocent, $rival,
  $other_holder, $none, $deleted;
$terminate->abandon;
$test->finish;
