# One answer means one thing.  Each call that waits, by its own timeout, lock_timeout or
# statement_timeout: 55P03 if others have the lock, 08006 if the wait was for ZooKeeper,
# 57014 if it was statement_timeout, whatever the reason; and zklock-run, by its exit
# status.  Then short times on a sound server, whose answers only need their time; and a
# wait for both: its end decides.

use strict;
use warnings;

use Test::More;

use LockedProgram;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, session_timeout => '6s');
my ($one, $two) = $test->nodes;
my $line = 'server1-zk';
my $s = $test->session($one);
my $holder = $test->session($two);
$_->safe_psql('postgres', 'CREATE EXTENSION zklock_advisory') foreach $one, $two;

# Each call, with what it says of others in its own time; of all the same by lock_timeout.
my $wait = '150ms';
my %calls = (
	"SELECT zk_lock('/b', TIMEOUT)" => '55P03',
	"SELECT zk_lock_shared('/b', TIMEOUT)" => '55P03',
	"SELECT zk_xact_lock('/b', TIMEOUT)" => '55P03',
	"SELECT zk_xact_lock_shared('/b', TIMEOUT)" => '55P03',
	"CALL zk_await_lock('/b', TIMEOUT)" => '55P03',
	"CALL zk_await_lock_shared('/b', TIMEOUT)" => '55P03',
	"CALL zk_await_xact_lock('/b', TIMEOUT)" => '55P03',
	"CALL zk_await_xact_lock_shared('/b', TIMEOUT)" => '55P03',
	"SELECT zk_multilock(ARRAY['/a', '/b'], TIMEOUT)" => '55P03',
	"SELECT zk_xact_multilock(ARRAY['/b', '/c'], TIMEOUT)" => '55P03',
	"SELECT zk_reserve('/b', '1 min', TIMEOUT)" => '55P03',
	"SELECT zk_try_reserve('/b', '1 min', TIMEOUT)" => '',
	"CALL zk_await_reservation('/b', '1 min', TIMEOUT)" => '55P03',
	"SELECT zk_acquire_permits('/p', max_permits => 1, timeout => TIMEOUT)" => '55P03',
	"SELECT zk_xact_acquire_permits('/p', max_permits => 1, timeout => TIMEOUT)" => '55P03',
	"SELECT zk_lead('/l', timeout => TIMEOUT)" => '55P03',
	"SELECT ticket FROM zk_claim_next(TIMEOUT)" => '',
	"CALL zk_await_ticket(TIMEOUT)" => '',
	"SELECT zk_try_lock('/b', TIMEOUT)" => '',
	"SELECT zk_try_lock_shared('/b', TIMEOUT)" => '',
	"SELECT zk_try_xact_lock('/b', TIMEOUT)" => '',
	"SELECT zk_try_xact_lock_shared('/b', TIMEOUT)" => '',
	"SELECT zk_try_multilock(ARRAY['/a', '/b'], TIMEOUT)" => '',
	"SELECT zk_try_xact_multilock(ARRAY['/a', '/b'], TIMEOUT)" => '',
	"SELECT zk_try_acquire_permits('/p', max_permits => 1, timeout => TIMEOUT)" => '',
	"SELECT zk_try_xact_acquire_permits('/p', max_permits => 1, timeout => TIMEOUT)" => '',
	"SELECT zk_barrier('/m', 2, TIMEOUT)" => '',
	"SELECT zk_barrier_enter('/m', 2, TIMEOUT)" => '',
	"CALL zk_run_exclusive('/b', 'SELECT 1', TIMEOUT)" => '',
	"CALL zk_run_once('/o', '1 day', 'SELECT 1', timeout => TIMEOUT)" => '');

# Those that have no time of their own
my @others = (
	"SELECT zk_once('/o', '1 day')", "SELECT zk_once_reset('/o')",
	'SELECT zk_advisory.pg_advisory_lock(7)', 'SELECT zk_advisory.pg_advisory_xact_lock_shared(7)');

# Those that ask ZooKeeper, and wait for nobody
my @questions = (
	"SELECT zk_time()", "SELECT count(*) FROM zk_queue('/b')", "SELECT count(*) FROM zk_fleet_locks('/')",
	"SELECT count(*) FROM zk_leader('/l')", 'SELECT count(*) FROM zk_jobs', 'SELECT count(*) FROM zk_servers',
	"SELECT zk_once_purge('1 year')", "SELECT zk_request_release('/free')",
	'SELECT zk_advisory.pg_try_advisory_lock(7)');

# Those that wait for neither, or for ZooKeeper alone, as 208 has it
my @neither = qw(zk_accept_lower_tokens zk_assert_lock zk_barrier_leave zk_break_lock zk_cancel_reservation
  zk_claim_ticket zk_drain zk_dump zk_enqueue zk_enqueue_all zk_extend zk_fence zk_fence_reset zk_fence_table
  zk_fence_trigger zk_fencing_token zk_get_jobs zk_get_lock_waits zk_get_locks zk_get_servers
  zk_get_stat_locks zk_get_stat_server zk_get_status zk_get_tickets zk_grant zk_healthcheck
  zk_multiunlock zk_reconnect zk_release_permits zk_renew_reservation zk_resign zk_revoke zk_rights_changed
  zk_set_dialects zk_stat_reset zk_undrain zk_unlock zk_unlock_all zk_unlock_shared zk_version zk_withdraw);
my %named = map { $_ => 1 } @neither, map { /\b(zk_\w+)\b(?!\.)/ } keys %calls, @others, @questions;
is_deeply([ sort keys %named ],
	[
		sort 'zk_jobs', 'zk_servers', split /\n/,
		$s->query("SELECT proname FROM pg_proc WHERE proname ~ '^zk_' ORDER BY 1")
	],
	'all functions are here, once each: there are no overloads');

sub sqlstates_ok
{
	my ($state, $others_too, $expected, %settings) = @_;
	my ($by) = %settings ? keys %settings : 'its own';

	$s->query("SET $_ = '$settings{$_}'") foreach keys %settings;
	foreach my $call (sort keys %calls, $others_too ? @others : ())
	{
		my $timeout = %settings ? 'NULL' : "'$wait'";
		my $sql = $call =~ s/TIMEOUT/$timeout/r;
		my $sqlstate = ref $expected ? $calls{$call} : $expected;

		is($s->error($sql), $sqlstate, "$state, $by time: $sql: " . ($sqlstate || 'no error'))
		  or diag $s->messages;
	}
	$s->query("RESET $_") foreach keys %settings;
	return;
}

# ---- and zklock-run

my $jobs = LockedProgram->new(PostgreSQL::Test::Utils::tempdir() . '/log');
$one->safe_psql('postgres', 'CREATE ROLE batch LOGIN;'
	  . ' GRANT EXECUTE ON ROUTINE zk_try_reserve, zk_await_reservation, zk_once, zk_time TO batch');

# Both with and without a wait.  Nothing is worth a word but what is wrong.
sub statuses_ok
{
	my ($state, $expected, $says) = @_;

	local $ENV{PGOPTIONS} = '-c zklock.answer_timeout=500ms';
	foreach my $way ('--try', '--timeout=150ms')
	{
		my ($status, $out, $err) = $jobs->run_it($one, '-U', 'batch', '--quiet', $way, '/b', '--', 'echo', 'runs');

		is("$status $out", "$expected ", "$state: zklock-run $way: $expected");
		like($err, $says, "$state: zklock-run $way: says why, if it is no skip");
	}
	return;
}

# ---- others are in the way

$holder->query("SELECT zk_lock('/b'), zk_acquire_permits('/p', max_permits => 1), zk_lead('/l')");
$holder->query('SELECT zk_advisory.pg_advisory_lock(7)');
$holder->query("BEGIN; SELECT zk_once('/o', '1 day')");
sqlstates_ok('busy', 0, \%calls);
sqlstates_ok('busy', 1, '55P03', lock_timeout => $wait);
sqlstates_ok('busy', 1, '57014', statement_timeout => $wait);
is($s->error($_), '', "busy: $_: no error") foreach @questions;
statuses_ok('busy', 75, qr/^$/);

# ---- short times: whatever they are, the answer of a sound server comes

$net->delay($line, 0.1);
$holder->query("SELECT zk_lock('/others')");
foreach my $way ('its own', 'lock_timeout')
{
	my $time = $way eq 'its own' ? ", '3ms'" : '';

	$s->query("SET lock_timeout = '3ms'") if !$time;
	like($s->query("SELECT zk_lock('/free'$time)"), qr/^\d+$/, "$way time of 3 ms: a free lock is acquired");
	is($s->error("SELECT zk_lock('/others'$time)"), '55P03', "$way time of 3 ms: another one is busy");
	like($s->messages, qr/"\/others" is held by/, 'and who has it is told');
	$s->query('RESET lock_timeout; SELECT zk_unlock_all()');
}
is($s->error("SET statement_timeout = '3ms'; SELECT zk_lock('/others')"), '57014', 'a statement ends at once');
like($s->messages, qr/The answer had yet to come, so it is not known whether the wait was for another holder of distributed lock "\/others"/, 'before the answer');
unlike($s->messages, qr/connect_string/, 'and blames no setting');
$s->query('RESET statement_timeout');
$net->pass($line);

# ---- a wait for both: others first, then ZooKeeper; and the other way round

$test->enqueue($s, "SELECT zk_lock('/others', '5s')", '/others');
$net->refuse($line);
is($s->sqlstate, '08006', 'it was for others at first, and for ZooKeeper in the end');
like($s->messages, qr/could not acquire distributed lock "\/others" within 5000 ms\nThe wait was for ZooKeeper/, 'which is told');
$s->send("SELECT zk_lock('/others', '5s')");
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/others' AND state = 'waiting'", 1, 'it waits');
$net->pass($line);
$test->wait_connected($one);
is($s->sqlstate, '55P03', 'the other way round');
like($s->messages, qr/is held by process/, 'which is told, too');

# ---- ZooKeeper is away; and it does not answer

$s->query("SET zklock.answer_timeout = '500ms'");
$net->refuse($line);
$test->look_until($one, "SELECT state <> 'connected' AND lease_remaining = '0' FROM zk_status", 't', 'away');
sqlstates_ok('away', 0, '08006');
sqlstates_ok('away', 1, '08006', lock_timeout => $wait);
sqlstates_ok('away', 1, '57014', statement_timeout => $wait);
foreach my $question (@questions)
{
	is($s->error($question), '08006', "away: $question: 08006");
	next if $question =~ /pg_try/; # an absent server is known by now, so a try fails at once
	is($s->error("SET statement_timeout = '$wait'; $question"), '57014',
		"away, statement_timeout: $question: 57014");
	$s->query('RESET statement_timeout');
}
statuses_ok('away', 69, qr/could not reach ZooKeeper/);
$net->pass($line);
$test->wait_connected($one);
$s->query("SET zklock.answer_timeout = '500ms'");
foreach my $call ("SELECT zk_lock('/free', '100ms')", "SELECT zk_try_lock('/free', '100ms')",
	"SET lock_timeout = '100ms'; SELECT zk_reserve('/free', '1 min')",
	"SET lock_timeout = '100ms'; SELECT zk_acquire_permits('/p', max_permits => 1)")
{
	$test->zk->pause;
	is($s->error($call), '08006', "no answer: $call");
	$test->zk->resume;
	$test->wait_connected($one);
	$s->query('RESET lock_timeout');
}

# ---- a wrong setting: nobody is there, and nobody knows it

$holder->query('ROLLBACK; SELECT zk_unlock_all()');
$s->close;
$test->stop_looking($one);
$one->append_conf('postgresql.conf', "zklock.connect_string = '127.0.0.1:1'");
$one->restart;
$s = $test->session($one);
$test->look_until($one, 'SELECT last_error IS NOT NULL FROM zk_status', 't', 'it cannot connect');
$s->query("SET zklock.answer_timeout = '500ms'");
sqlstates_ok('wrong', 0, '08006');
sqlstates_ok('wrong', 1, '08006', lock_timeout => $wait);
is($s->error($_), '08006', "wrong: $_: 08006") foreach @questions;
statuses_ok('wrong', 69, qr/could not reach ZooKeeper/);
is($s->error("SELECT zk_lock('/b', '$wait')"), '08006', 'a wrong setting');
like($s->messages, qr/Check "zklock.connect_string"/, 'is hinted at');

$_->close foreach $s, $holder;

# ---- no library, and no server: what zklock-run says

$test->stop_looking($one);
$one->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$one->restart;
statuses_ok('not loaded', 78, qr/^zklock-run: zklock is not loaded by that server: see "shared_preload_libraries"$/);
$one->stop;
statuses_ok('no server', 69, qr/^zklock-run: .*connection to server/);
$test->stop_looking($two);
$two->stop;
$test->zk->stop;
done_testing();
