# A try that must not wait, for a lock that another session of the same server holds
# exclusively, is answered in shared memory: while the worker is stopped, and without
# a request to ZooKeeper.  In all other cases only the worker can tell, so while it is
# stopped there is no answer.  The errors that come before are the same, and each
# denial is counted.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(
	servers => 1,
	zk => { tick_time => 1500 },
	session_timeout => '30s',
	max_requests => 60,
	conf => "zklock.max_requests_per_session = 60\nzklock.max_at_least = '1h'\n");
my ($node) = $test->nodes;
my $worker = $test->status($node, 'worker_pid');
my ($holder, $s) = map { $test->session($node) } 1 .. 2;
$holder->query("SET zklock.lost_lock_action = 'none'");

sub denials
{
	my ($path) = @_;

	return "SELECT denials FROM zk_stat_locks WHERE path = '$path'";
}

# While the worker is stopped: a "no", or what a wait for it ends with
sub denied_ok
{
	my ($call, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($s->query("SELECT $call"), 'f', "$what: denied");
}

sub asks_ok
{
	my ($call, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$s->query("SET zklock.answer_timeout = '50ms'");
	is($s->error("SELECT $call"), '08006', "$what: only the worker can tell");
	return $s->query('RESET zklock.answer_timeout');
}

# ---- while the worker is stopped

$holder->query("SELECT zk_lock('/x/' || n) FROM generate_series(1, 3) n");
$holder->query("SELECT zk_lock('/released'), zk_lock_shared('/shared')");
$holder->query("SELECT zk_lock('/both'), zk_lock_shared('/both')");
$holder->query("SELECT zk_lock('/over', at_most => '1h')");
$holder->query("SELECT zk_lock('/kept', at_least => '2s')");
$holder->query("SELECT zk_lead('/leader'), zk_acquire_permits('/semaphore', max_permits => 1)");
$holder->query("BEGIN; SELECT zk_xact_lock('/xact'); SAVEPOINT a;"
	  . " SELECT zk_xact_lock('/savepoint')");
$s->query("SELECT zk_lock('/own'), zk_lock_shared('/own/shared')");
$s->query("SELECT zk_try_lock('/x/1')"); # what the first call of a session does
kill 'STOP', $worker;

denied_ok("zk_try_lock('/x/1')", 'exclusive');
denied_ok("zk_try_lock_shared('/x/1')", 'shared');
denied_ok("zk_try_xact_lock('/x/1')", 'for the transaction');
denied_ok("zk_try_xact_lock_shared('/x/1')", 'shared, for the transaction');
denied_ok("zk_try_lock('/xact')", 'a lock of a transaction');
denied_ok("zk_try_lock('/savepoint')", 'a lock of a savepoint');
denied_ok("zk_try_lock('/both')", 'a lock held in both modes');
denied_ok("zk_try_lock('/over')", 'a lock with a limit');
denied_ok("zk_try_multilock(ARRAY['/free', '/x/2', '/x/3'])", 'one of several');
is($s->error("SELECT zk_lock('/x/1', '0')"), '55P03', 'a lock call without time');
like($s->messages, qr{could not acquire distributed lock "/x/1" within 0 ms.*Other clients}s,
	'says the same as ever');
is($s->error("SELECT zk_multilock(ARRAY['/x/1', '/free'], '0')"), '55P03', 'of several');
is($s->error("SELECT zk_lead('/leader', timeout => '0')"), '55P03', 'a leadership');

asks_ok("zk_try_lock('/free')", 'a lock that is free');
asks_ok("zk_try_lock('/x/1', '1ms')", 'a try that may wait');
asks_ok("zk_try_lock('/shared')", 'a lock that is shared');
asks_ok("zk_try_lock('/leader')", 'the same name in another dialect');
asks_ok("zk_try_acquire_permits('/semaphore', max_permits => 1)", 'a semaphore');
asks_ok("zk_try_xact_lock('/own')", "one's own lock");
asks_ok("zk_try_lock('/own/shared')", 'an upgrade');
asks_ok("zk_try_multilock(ARRAY['/own/shared', '/free'])", 'none of several');
$holder->query("ROLLBACK TO a");
asks_ok("zk_try_lock('/savepoint')", 'a savepoint that is rolled back');
$holder->query('COMMIT');
asks_ok("zk_try_lock('/xact')", 'a transaction that has ended');
$holder->query("SELECT zk_unlock('/released'), zk_unlock('/kept'), zk_unlock('/both')");
asks_ok("zk_try_lock('/released')", 'a lock that was released');
asks_ok("zk_try_lock('/kept')", 'one that is kept');
asks_ok("zk_try_lock('/both')", 'one that is shared from now on');
is($holder->error("SELECT zk_extend('/over', '1ms'), pg_sleep(0.01)"), '40001', 'a time is over');
asks_ok("zk_try_lock('/over')", 'a hold that is over');

# What every request is checked for comes first.
is($s->error("SELECT zk_try_lock('x')"), '22023', 'an invalid name');
is($s->error("SELECT zk_try_lock('/x/1', at_least => '2h')"), '22023', 'an invalid limit');

kill 'CONT', $worker;
ok($test->look_until($node, denials('/x/1'), 7, 'denials'), 'each denial is counted');
is($test->look($node, denials("/x/$_")), 1, "of several locks each, $_") foreach 2, 3;
is($test->look($node, denials('/leader')), 1, 'that of a leader');
$test->look_until($node, "SELECT count(*) FROM zk_locks WHERE state = 'waiting'", 0,
	'what was given up is over');

# ---- while the worker runs

my $requests = $test->zk->packets_received;
$s->query("DO \$\$ BEGIN FOR n IN 1 .. 2000 LOOP"
	  . " ASSERT NOT zk_try_lock('/x/1'); END LOOP; END \$\$");
$requests = $test->zk->packets_received - $requests;
cmp_ok($requests, '<', 100, "2000 denials: $requests requests, as beats");
ok($test->look_until($node, denials('/x/1'), 2007, 'denials'), 'and all are counted');

# What every request is checked for comes first.
$s->query('SELECT zk_unlock_all()');
$node->safe_psql('postgres', "CREATE ROLE alice LOGIN; CREATE ROLE bob;"
	  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO alice;'
	  . " SELECT zk_grant('/x', 'bob')");
my $alice = $test->session($node, user => 'alice');
is($alice->error("SELECT zk_try_lock('/x/1')"), '42501', 'without a privilege');
$alice->close;
$s->query('SELECT zk_drain($$0$$)');
is($s->error("SELECT zk_try_lock('/x/1')"), '55000', 'during a drain');
$s->query('SELECT zk_undrain()');
is($s->query("SELECT zk_try_lock('/x/1')"), 'f', 'and after it');
$node->safe_psql('postgres', 'ALTER SYSTEM SET zklock.enabled = off');
$node->reload;
$test->look_until($node, 'SELECT state FROM zk_status', 'closing', 'it is disabled');
is($s->error("SELECT zk_try_lock('/x/1')"), '55000', 'while it is disabled');
$node->safe_psql('postgres', 'ALTER SYSTEM RESET zklock.enabled');
$node->reload;
$test->wait_connected($node);

# A lock that is lost is denied to no session.
my ($znode) = $test->queue('/x/1');
$test->zk->client->delete("/zklock/x/1/$znode");
$test->look_until($node, "SELECT state FROM zk_locks WHERE path = '/x/1'", 'lost', 'a loss');
is($s->query("SELECT zk_try_lock('/x/1')"), 't', 'the lock of a hold that is lost');
is($holder->error("SELECT zk_try_lock('/x/1')"), '40001', 'which its session is told first');

# Two locks may share a place in the table: then the worker is asked.
$s->query('SELECT zk_unlock_all()');
$holder->query('SELECT zk_unlock_all()');
$test->look_until($node, "SELECT count(*) FROM zk_locks WHERE path LIKE '/x/%'", 0, 'none is left');
$holder->query("SELECT zk_lock('/many/' || n) FROM generate_series(1, 40) n");
is($s->query("SELECT count(*) FROM generate_series(1, 40) n WHERE zk_try_lock('/many/' || n)"),
	0, 'of many locks none');
is($s->query("SELECT count(*) FROM generate_series(1, 100) n"
		  . " WHERE zk_try_lock('/free/' || n) AND zk_unlock('/free/' || n)"),
	100, 'and each that is free');

# A denial takes no slot.
my $last = 40;
$last++ while $holder->error("SELECT zk_lock('/many/' || $last + 1)") eq '';
is($s->error("SELECT zk_try_lock('/free')"), '53400', 'no slot is left');
is($s->query("SELECT zk_try_lock('/many/$last')"), 'f', 'but a try is denied');

$_->close foreach $s, $holder;
$test->finish;
