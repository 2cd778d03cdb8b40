# zk_unlock acts at once, also inside a transaction.  If that has written
# anything, its changes are not visible yet, of which a warning tells, once.  In
# a block the unlock makes the check of the lease that the commit cannot make any
# more: also where nothing was written here, as with foreign servers and NOTIFY.
# And of a lock that is held several times it does not say "true" without it.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $other = $test->session($two);
my $worker = $test->status($one, 'worker_pid');
my $early = qr{^WARNING\n01000\ndistributed lock "/u/\w+" is released before the changes of this transaction are visible.*zk_xact_lock}ms;

$one->safe_psql('postgres', <<'EOS');
CREATE TABLE t (what text);
CREATE PROCEDURE unlock_later() LANGUAGE plpgsql AS $$
	DECLARE x text;
	BEGIN
		COMMIT;
		x := pg_advisory_xact_lock(1)::text || pg_notify('x', 'y')::text;
		PERFORM zk_unlock('/u/procedure');
	END $$;
EOS

sub holder
{
	my ($sql, %settings) = @_;
	my $session = $test->session($one);

	$session->query("SET zklock.$_ = '$settings{$_}'") foreach keys %settings;
	$session->query($sql);
	return $session;
}

# ---- at once, with a warning

my $s = holder("SELECT zk_lock('/u/a'), zk_lock('/u/b'), zk_lock('/u/c'),"
	  . " zk_lock('/u/c')");
$s->query("BEGIN; INSERT INTO t VALUES ('not yet visible')");
is($s->query("SELECT zk_unlock('/u/c')"), 't', 'one of two');
is($s->messages, '', 'which releases nothing');
is($s->query("SELECT zk_unlock('/u/a')"), 't', 'unlocked after a write');
like($s->messages, $early, 'a warning says that this is early');
is($other->query("SELECT zk_try_lock('/u/a', '1min')"),
	't', 'another server has the lock');
is($other->query("SELECT zk_unlock('/u/a')"), 't', 'before the commit');
is($s->query("SELECT zk_unlock('/u/b')"), 't', 'one more');
is($s->messages, '', 'but one warning is enough');
is($s->error('COMMIT'), '', 'it commits');
$s->query("SELECT zk_lock('/u/d'), zk_lock_shared('/u/d'), zk_lock('/u/e')");
$s->query("BEGIN; INSERT INTO t VALUES ('kept');"
	  . " SELECT zk_xact_lock('/u/d'), zk_xact_lock_shared('/u/e')");
$s->query("SELECT zk_unlock('/u/d'), zk_unlock_shared('/u/d')");
is($s->messages, '', 'no warning of a lock that the transaction keeps');
is($other->query("SELECT zk_try_lock('/u/d')"), 'f', 'as it does');
$s->query("SELECT zk_unlock('/u/e')");
like($s->messages, $early, 'but of one that it keeps only shared');
$s->query('COMMIT');
$s->query("BEGIN; INSERT INTO t VALUES ('more'); SELECT zk_unlock('/u/c')");
like($s->messages, $early, 'each transaction has its own');
$s->query('COMMIT');
$s->query("BEGIN; SELECT zk_lock('/u/a')");
is($s->query("SELECT zk_unlock('/u/a')"), 't', 'unlocked without a write');
is($s->messages, '', 'there is nothing to warn of');
$s->query('COMMIT');
$s->query("SELECT zk_lock('/u/a'), zk_acquire_permits('/u/s', max_permits => 1)");
$s->query("BEGIN; INSERT INTO t VALUES ('all'); SELECT zk_unlock_all()");
like($s->messages, $early, 'the same of zk_unlock_all');
$s->query('COMMIT');

# ---- without a lease

my %hasty = (commit_wait => '50ms');
my %patient = (commit_wait => '10min');
my $alone = holder("SELECT zk_lock('/u/alone')", %hasty);
my $twice = holder("SELECT zk_lock('/u/twice'), zk_lock('/u/twice')", %hasty);
my $twice_in_block =
  holder("SELECT zk_lock('/u/block'), zk_lock('/u/block'); BEGIN; SELECT 1", %hasty);
my $notifies = holder("SELECT zk_lock('/u/notify')", %hasty);
my $in_function = holder("SELECT zk_lock('/u/function')", %hasty);
my $waits = holder("SELECT zk_lock('/u/waits')", %patient);
my $procedure = holder("SELECT zk_lock('/u/procedure')", %hasty);
my $blocker = holder('SELECT pg_advisory_lock(1)');
my %beside = (
	'beside another function' =>
	  "SELECT pg_notify('x', 'y'), zk_unlock('/u/beside')",
	'in a write' => "INSERT INTO t SELECT zk_unlock('/u/beside')::text",
	'in an expression' => "DO 'DECLARE x text; BEGIN"
	  . " x := pg_notify(\$\$x\$\$, \$\$y\$\$)::text;"
	  . " x := zk_unlock(\$\$/u/beside\$\$)::text; END'");
my $beside = holder("SELECT zk_lock('/u/beside')", %hasty);
$notifies->query('BEGIN; NOTIFY x');
$waits->query('BEGIN; NOTIFY x');
$procedure->send('CALL unlock_later()');
$test->look_until($one,
	'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $procedure->pid,
	'advisory', 'a procedure is behind its first commit');

kill 'STOP', $worker;
$test->look_until($one, "SELECT lease_remaining <= '0' FROM zk_status",
	't', 'the lease passes');
is($notifies->error("SELECT zk_unlock('/u/notify')"),
	'40001', 'in a block the lease is checked');
like($notifies->messages, qr{lease of distributed lock "/u/notify"},
	'as the error says');
is($in_function->error("DO 'DECLARE done bool; BEGIN NOTIFY x;"
		  . " done := zk_unlock(\$\$/u/function\$\$); END'"),
	'40001', 'so it is in a function that did something else before');
is($beside->error($beside{$_}), '40001', "so it is $_")
  foreach sort keys %beside;
$blocker->query('SELECT pg_advisory_unlock(1)');
is($procedure->sqlstate, '40001',
	'and in a procedure that did something behind its commit');
is($twice_in_block->error("SELECT zk_unlock('/u/block')"),
	'40001', 'and of a lock that is held twice');
$waits->send("SELECT zk_unlock('/u/waits')");
$test->look_until($one,
	"SELECT wait_event_type FROM pg_stat_activity WHERE pid = " . $waits->pid,
	'Extension', 'an unlock waits for the lease');
is($alone->query("SELECT zk_unlock('/u/alone')"),
	'f', 'by itself it does not wait');
like($alone->messages, qr{"/u/alone" may have been lost}, 'but says so');
is($twice->query("SELECT zk_unlock('/u/twice')"),
	'f', 'nor does it say "true" because the lock is held twice');
like($twice->messages, qr{"/u/twice" may have been lost}, 'but why');

kill 'CONT', $worker;
is($waits->value, 't', 'the unlock goes on once the lease is renewed');
is($waits->error('COMMIT'), '', 'and the commit with it');
$test->look_until($one, "SELECT lease_remaining > '0' FROM zk_status",
	't', 'the lease is renewed');
is($twice->query("SELECT zk_unlock('/u/twice')"), 't', 'the second time is good');
is($twice->query("SELECT zk_unlock('/u/twice')"), 'f', 'and was the last');
$twice_in_block->query('ROLLBACK');
is($twice_in_block->query("SELECT holds FROM zk_locks WHERE path = '/u/block'"),
	2, 'what was refused is still held');

# ---- after a loss that is known

my $lost = holder("SELECT zk_lock('/u/lost'), zk_lock('/u/lost'),"
	  . " zk_lock('/u/lost2')", lost_lock_action => 'none');
ok($test->lose_session($one, '/u/lost'), 'the session is lost');
$lost->query("BEGIN; SELECT zk_lock('/u/good')");
is($lost->query("SELECT zk_unlock('/u/good')"),
	't', 'beside lost locks a good one can be given back');
is($lost->query("SELECT zk_unlock('/u/lost')"), 'f', 'a lost one is acknowledged');
like($lost->messages, qr{"/u/lost" was already lost}, 'with a warning');
is($lost->query("SELECT zk_unlock('/u/lost2')"), 'f', 'and so is the other');
is($lost->error('COMMIT'), '', 'which the transaction survives');

$_->error('ROLLBACK'), $_->close
  foreach $s, $other, $alone, $twice, $twice_in_block, $notifies, $in_function,
  $waits, $procedure, $blocker, $beside, $lost;
$test->finish;
