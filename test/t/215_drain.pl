# zk_drain(): a primary with leaders, holders and waiters is drained while two
# other servers want the same locks, and then its standby takes over.  Who waits is
# refused at once; holders are asked, and may take more until they have finished;
# leaders resign, but not under a transaction.  The drain survives its call, and a
# restart of the worker.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(init => { allows_streaming => 1 });
my ($one, $two) = $test->nodes;
my $standby = $test->add_standby($one, "zklock.server_name = 'standby'");

my %s = map { $_ => $test->session($one) }
  qw(leader busy holder idle waiter candidate member shared operator kept job);
my %other = (
	candidate => $test->session($two),
	busy => $test->session($standby),
	holder => $test->session($two));

sub refused_ok
{
	my ($session, $case, $sql) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->send($sql) if $sql;
	is($session->sqlstate, '55000', "$case: refused");
	return like($session->messages, qr/this server is being drained.*Use another server/s,
		"$case: says why, and what to do");
}

sub left
{
	return $s{operator}->query(
		"SELECT path || ' ' || mode FROM zk_drain('$_[0]') ORDER BY path COLLATE \"C\"");
}

# ---- who may

$one->safe_psql('postgres', 'CREATE ROLE plain LOGIN;'
	  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO plain');
my $plain = $test->session($one, user => 'plain');
is($plain->error("SELECT $_"), '42501', "only superusers: $_")
  foreach 'zk_drain()', 'zk_undrain()';
$plain->close;
is($s{operator}->error("SELECT zk_drain('-1s')"), '22023', 'a timeout is not negative');
$s{operator}->query("SELECT zk_lock('/d/own')");
is($s{operator}->error('SELECT zk_drain()'), '55006', 'not in a session that holds something');
is($s{operator}->query("SELECT zk_unlock('/d/own')"), 't', 'it holds nothing any more');
is($test->status($one, 'draining'), 'f', 'nothing of that begins a drain');
is($s{operator}->query('SELECT zk_undrain()'), 'f', 'so there is none to end');

# ---- what a server can have

my $token = $s{leader}->query("SELECT zk_lead('/d/leader')");
$s{busy}->query("SELECT zk_lead('/d/busy')");
$s{busy}->query('CREATE TABLE work (done int)');
$s{busy}->query('BEGIN; INSERT INTO work VALUES (1)');
$s{holder}->query("SELECT zk_lock('/d/held', at_most => '1h')");
$s{holder}->query("BEGIN; SELECT zk_xact_lock('/d/held-too')");
$s{idle}->query("SELECT zk_acquire_permits('/d/permits', max_permits => 2)");
$s{shared}->query('SET zklock.on_release_request = cancel');
$s{shared}->query("SELECT zk_lock_shared('/d/shared')");
$s{kept}->query("SELECT zk_lock('/d/kept', at_least => '10 min'), zk_unlock('/d/kept')");
$s{job}->query("BEGIN; SELECT zk_once('/d/job', key => 'a')");

$test->enqueue($other{candidate}, "SELECT zk_lead('/d/leader')", '/d/leader');
$test->enqueue($other{busy}, "SELECT zk_lead('/d/busy')", '/d/busy');
$test->enqueue($s{candidate}, "SELECT zk_lead('/d/leader')", '/d/leader');
$test->enqueue($s{waiter}, "SELECT zk_xact_lock('/d/held')", '/d/held');
$test->enqueue($other{holder}, "SELECT zk_lock('/d/held')", '/d/held');
$s{member}->send("SELECT zk_barrier_enter('/d/barrier', 2)");
wait_for(sub { grep { !/ready/ } $test->zk->client->ls('/zklock/d/barrier') }, 'a member');
$s{shared}->send('SELECT pg_sleep(600)');
$s{shared}->wait_running;

# ---- a drain that is cancelled

$s{operator}->send('SELECT zk_drain()');
refused_ok($s{waiter}, 'a waiter');
refused_ok($s{candidate}, 'a candidate');
refused_ok($s{member}, 'a member that waits in a barrier');
is($s{shared}->sqlstate, '57014', 'a holder whose statement is to be cancelled then');
cmp_ok($other{candidate}->value, '>', $token, 'an idle leader resigns: another server leads');
ok($other{busy}->busy, 'a leader in a transaction does not');
$s{operator}->cancel;
is($s{operator}->sqlstate, '57014', 'the call is cancelled');
is($test->status($one, 'draining'), 't', 'the drain goes on');
is($test->status($two, 'draining'), 'f', 'on this server only');

# ---- while it goes on

refused_ok($s{waiter}, $_, "SELECT $_")
  foreach "zk_lock('/d/new')", "zk_try_lock('/d/new')", "zk_try_xact_lock_shared('/d/new', '1h')",
  "zk_multilock(ARRAY['/d/new', '/d/new2'])", "zk_acquire_permits('/d/permits', max_permits => 2)",
  "zk_try_acquire_permits('/d/permits', max_permits => 2)", "zk_once('/d/new', key => 'a')",
  "zk_lead('/d/new')", "zk_barrier_enter('/d/new', 1)", "zk_barrier('/d/new', 1)";
is($s{waiter}->query("SELECT count(*) > 0 FROM zk_queue('/d/held')"), 't', 'anybody may look');
is($s{busy}->error('INSERT INTO work VALUES (2)'), '', 'the transaction of a leader goes on');
is($s{busy}->error('COMMIT'), '', 'and commits');
cmp_ok($other{busy}->value, '>', 0, 'and then it has resigned, without another call');
is($test->look($one, 'SELECT count(*) FROM work'), 2, 'with all its work');
is($s{leader}->error('BEGIN; CREATE TABLE never (); COMMIT'), '40001',
	'who led can do no more by mistake');
like($s{leader}->messages, qr/being drained, so its leaders resigned/, 'and learns why');
like(slurp_file($one->logfile),
	qr{"/d/leader" of process \d+ was lost\n.*DETAIL:  This server is being drained, so its leaders resigned},
	'in the words of the server log');
$s{leader}->query('ROLLBACK');
is($s{leader}->query("SELECT zk_resign('/d/leader')"), 'f', 'it acknowledges that');
refused_ok($s{leader}, 'standing again', "SELECT zk_lead('/d/leader')");

# What was released counts until the worker has taken note of it.
wait_for(sub { left('0') !~ /leader/ }, 'the end of the leadership');
is(left('0'), "/.once/d/job exclusive\n/d/held exclusive\n/d/held-too exclusive\n"
	  . "/d/kept exclusive\n/d/permits permit\n/d/shared shared", 'what is left');
is($s{operator}->query("SELECT pid, usename, datname, lifetime, state, granted_at IS NOT NULL"
		  . " FROM zk_drain('0') WHERE path = '/d/held'"),
	join('|', $s{holder}->pid, $s{operator}->query('SELECT user'), 'postgres|session|granted|t'),
	'and whose it is');
is($test->look($one, "SELECT release_requested FROM zk_locks WHERE path = '/d/permits'"),
	't', 'zk_locks shows who is asked');
$s{idle}->query('SELECT 1');
like($s{idle}->messages, qr/release of distributed lock .* requested.*being drained/s,
	'a holder is asked, and hears why');
$s{idle}->query('SELECT 1');
is($s{idle}->messages, '', 'once');

# ---- a holder finishes

is($s{holder}->query("SELECT zk_try_lock('/d/held')"), 't', 're-entry');
is($s{holder}->query("SELECT zk_extend('/d/held', '2h')"), 't', 'a longer time');
cmp_ok($s{holder}->query("SELECT zk_xact_lock('/d/more')"), '>', 0, 'one more lock');
is($s{holder}->query("SELECT zk_unlock('/d/held'); COMMIT; SELECT zk_unlock('/d/held')"),
	"t\nt", 'all is done');
cmp_ok($other{holder}->value, '>', 0, 'another server has the lock');
refused_ok($s{holder}, 'who has finished', "SELECT zk_lock('/d/held')");
is($s{job}->query("COMMIT; SELECT 'done'"), 'done', 'the job commits');
is($other{holder}->query("SELECT zk_once('/d/job', key => 'a')"), 'f', 'and is written down');
is($s{shared}->query("SELECT zk_unlock_shared('/d/shared')"), 't', 'the shared lock is released');

# ---- it ends

is($s{operator}->query('SELECT zk_undrain(), zk_undrain()'), 't|f', 'undrained');
is($s{waiter}->query("SELECT zk_try_lock('/d/new'), zk_unlock('/d/new')"), 't|t', 'locks again');
is($test->look($one, "SELECT release_requested FROM zk_locks WHERE path = '/d/permits'"),
	'f', 'nobody is asked any more');
is($s{operator}->error("SET statement_timeout = '100ms'; SELECT zk_drain()"), '57014', 'once more');
$s{operator}->query('RESET statement_timeout');
$s{idle}->query('SELECT 1');
like($s{idle}->messages, qr/being drained/, 'a holder is asked again');
$s{operator}->send('SELECT zk_drain()');
$test->look_until($one, 'SELECT state FROM pg_stat_activity WHERE pid = ' . $s{operator}->pid,
	'active', 'another call');
is($s{waiter}->query('SELECT zk_undrain()'), 't', 'ended by another session');
is($s{operator}->sqlstate, '55000', 'the call says so');
is($s{waiter}->query("SELECT zk_break_lock('/d/kept')"), 't', 'the kept lock is broken');

# ---- a switchover

$s{leader}->query("SELECT zk_lead('/d/leader2')");
my $heir = $test->session($standby);
$test->enqueue($heir, "SELECT zk_lead('/d/leader2')", '/d/leader2');
$s{operator}->send('SELECT count(*) FROM zk_drain()');
cmp_ok($heir->value, '>', 0, 'the standby leads');
is($s{idle}->query("SELECT zk_release_permits('/d/permits')"), 't', 'the last one releases');
is($s{operator}->value, 0, 'the primary is drained');
$test->restart_worker($one);
is($test->status($one, 'draining'), 't', 'also after a restart of the worker');
refused_ok($s{waiter}, 'then', "SELECT zk_lock('/d/new')");
my $lost = $test->status($two, 'sessions_lost') + $test->status($standby, 'sessions_lost');
$_->close foreach values %s;
$test->stop_looking($one);
$one->stop('fast');
$standby->promote;
$heir->query('CREATE TABLE t (i int)');
is($heir->query("BEGIN; INSERT INTO t VALUES (1); COMMIT; SELECT zk_resign('/d/leader2')"),
	't', 'the new primary goes on as a leader');
is($test->status($two, 'sessions_lost') + $test->status($standby, 'sessions_lost'),
	$lost, 'no session was lost');
$one->append_conf('postgresql.conf', "zklock.root = '/elsewhere'");
$one->start;
$test->wait_connected($one);
is($test->status($one, 'draining'), 'f', 'a restart of PostgreSQL ends the drain');
$test->stop_looking($one);
$one->stop;

$other{$_}->query('SELECT zk_unlock_all()') foreach keys %other;
$_->close foreach values %other, $heir;
@{ $test->{nodes} } = ($two, $standby);
$test->finish;
