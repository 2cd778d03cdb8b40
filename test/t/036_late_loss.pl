# What comes behind the commit check can take long: commits on foreign servers,
# the lock of NOTIFY, the wait for a synchronous standby.  If a lock is lost, or
# its lease ends, in that time, the transaction still fails where it can; where
# it cannot, the client and the log are told that it committed without its lock.
# And a cancel that came before the check ends the transaction there, not the
# wait for the standby behind its commit.  What else is told of a lock never fails
# what it is told with, even if the client's encoding lacks characters of the name.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

# Only who asks for it waits for a standby, which never comes.
my $test = ZklockTest->new(session_timeout => '2s', conf => <<'EOC');
wal_level = replica
max_wal_senders = 2
synchronous_standby_names = 'nobody'
synchronous_commit = local
EOC
my ($one, $two) = $test->nodes;
my ($host, $port) = ($one->host, $one->port);
my $user = $one->safe_psql('postgres', 'SELECT current_user');

$one->safe_psql('postgres',
	"CREATE DATABASE utf8 ENCODING 'UTF8' TEMPLATE template0"
	  . " LC_COLLATE 'C' LC_CTYPE 'C'");
$one->safe_psql('utf8', <<"EOS");
CREATE EXTENSION zklock;
CREATE EXTENSION postgres_fdw;
CREATE TABLE done (what text);
CREATE TABLE far (what text);
CREATE FUNCTION wait_for_1() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
CREATE CONSTRAINT TRIGGER late AFTER INSERT ON far
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_1();
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'utf8');
CREATE USER MAPPING FOR CURRENT_USER SERVER remote
	OPTIONS (user '$user', password_required 'false');
CREATE FOREIGN TABLE far_away (what text) SERVER remote
	OPTIONS (table_name 'far');
CREATE TABLE cancels (what text);
CREATE FUNCTION cancel_at_last() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN
		RETURN CASE WHEN pg_cancel_backend(pg_backend_pid()) THEN NULL END;
	END';
CREATE CONSTRAINT TRIGGER last AFTER INSERT ON cancels
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cancel_at_last();
EOS

sub session
{
	my (%settings) = @_;
	my $session = $test->session($one, dbname => 'utf8');

	$session->query("SET $_ = '$settings{$_}'") foreach keys %settings;
	return $session;
}

my $looker = session();

sub done_ok
{
	my ($what, $expected, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$looker->query("SELECT count(*) FROM done WHERE what = '$what'"),
		$expected, $case);
}

sub wait_event
{
	my ($session, $event, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($one,
		"SELECT '$event' IN (wait_event, wait_event_type)"
		  . ' FROM pg_stat_activity WHERE pid = ' . $session->pid,
		't', $what);
}

# One signal: the postmaster sends two for a client's request, and the second
# may meet whatever comes next.
sub cancel
{
	my ($session) = @_;

	$looker->query('SELECT pg_cancel_backend(' . $session->pid . ')');
	return;
}

my $log = -s $one->logfile;

sub log_ok
{
	my ($pattern, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(
			sub { slurp_file($one->logfile, $log) =~ $pattern },
			"the log says $pattern"),
		$case);
	return;
}

# ---- commits on foreign servers: the local one is refused behind them

my $remote = session();
$looker->query('SELECT pg_advisory_lock(1)');
$remote->query("BEGIN; SELECT zk_xact_lock('/late/remote');"
	  . " INSERT INTO done VALUES ('remote');"
	  . " INSERT INTO far_away VALUES ('remote')");
$remote->send('COMMIT');
wait_event($remote, 'Extension', 'the remote commit takes long');
ok($test->lose_session($one, '/late/remote'), 'a lock is lost meanwhile');
$looker->query('SELECT pg_advisory_unlock(1)');
is($remote->sqlstate, '40001', 'no commit behind a remote one');
like($remote->messages, qr{"/late/remote" was lost}, 'which says why');
done_ok('remote', 0, 'nothing was committed here');

# ---- NOTIFY, behind somebody who waits for a standby

my $name = "U&'/late/\\65E5'";
my $ascii = quotemeta '/late/\xE6\x97\xA5';
my $blocker = session(synchronous_commit => 'on');
my $notifier = session(client_encoding => 'LATIN1');
my $by_session = session();
$notifier->query("BEGIN; SELECT zk_xact_lock($name);"
	  . " SELECT zk_xact_lock('/late/1'), zk_xact_lock('/late/2');"
	  . " INSERT INTO done VALUES ('notify'); NOTIFY done");
$by_session->query("SELECT zk_lock('/late/session')");
$by_session->query('BEGIN; CREATE TABLE late (); NOTIFY done');
$blocker->query("BEGIN; INSERT INTO done VALUES ('first'); NOTIFY done");
$blocker->send('COMMIT');
wait_event($blocker, 'SyncRep', 'one waits for the standby');
$_->send('COMMIT') foreach $notifier, $by_session;
wait_event($_, 'object', 'another for the lock of NOTIFY')
  foreach $notifier, $by_session;
my @pids = map { $_->pid } $notifier, $by_session;
ok($test->lose_session($one, '/late/1'), 'the locks are lost');
cancel($blocker);
is($blocker->sqlstate, '', 'the first is through');
is($notifier->sqlstate, '', 'and so is the other');
like(
	$notifier->messages,
	qr{WARNING.*committed although distributed lock "(/late/1|/late/2|$ascii)" was lost}s,
	'which says at once that it was without its lock');
like($notifier->messages, qr{2 other}, 'and that there were more');
unlike($notifier->messages, qr{WARNING.*WARNING}s, 'once');
done_ok('notify', 1, 'it has committed');
is($by_session->sqlstate, '', 'a session lock does not keep it from that');
like(
	$by_session->messages,
	qr{committed although distributed lock "/late/session" was lost},
	'but says it too');
log_ok(
	qr{process $pids[0] committed although distributed lock "/late/\S+" was lost},
	'the log tells of a transaction lock');
log_ok(
	qr{process $pids[1] committed although distributed lock "/late/session" was lost},
	'and of a session lock');
is($by_session->error('CREATE TABLE later ()'),
	'40001', 'the next commit is refused');
is($by_session->query("SELECT zk_unlock('/late/session')"),
	'f', 'until the loss is acknowledged');
is($by_session->query('SELECT 1'), 1, 'after which');
is($by_session->messages, '', 'nothing is told any more');

# ---- the wait for a standby itself, of which the procedure's end tells

my $waiter = session(
	synchronous_commit => 'on',
	'zklock.lost_lock_action' => 'none');
$looker->query("CREATE PROCEDURE work() LANGUAGE plpgsql AS"
	  . " 'BEGIN INSERT INTO done VALUES (\$\$wait\$\$); COMMIT;"
	  . " INSERT INTO done VALUES (\$\$after\$\$); END'");
$waiter->query("SELECT zk_lock('/late/wait')");
$waiter->send('CALL work()');
wait_event($waiter, 'SyncRep', 'a procedure waits for the standby');
ok($test->lose_session($one, '/late/wait'), 'its lock is lost');
cancel($waiter);
is($waiter->sqlstate, '40001', 'it does not commit once more');
like($waiter->messages,
	qr{committed although distributed lock "/late/wait" was lost},
	'and tells of the first time');
done_ok('wait', 1, 'which was committed');
done_ok('after', 0, 'unlike what came after');
$waiter->query("SELECT zk_unlock('/late/wait')");

# ---- COMMIT PREPARED

$looker->query("BEGIN; INSERT INTO done VALUES ('two'); PREPARE TRANSACTION 'two'");
$waiter->query("SELECT zk_acquire_permits('/late/two', max_permits => 1)");
$waiter->send("COMMIT PREPARED 'two'");
wait_event($waiter, 'SyncRep', 'COMMIT PREPARED waits for the standby');
ok($test->lose_session($one, '/late/two/leases'), 'its lease of a semaphore is lost');
cancel($waiter);
is($waiter->sqlstate, '', 'it has committed');
like($waiter->messages,
	qr{committed although distributed lock "/late/two" was lost}, 'and says it');
log_ok(
	qr{process @{[ $waiter->pid ]} committed although distributed lock "/late/two" was lost},
	'and so does the log');
$waiter->query("SELECT zk_release_permits('/late/two')");

# ---- PREPARE TRANSACTION

$waiter->query("SELECT zk_acquire_permits('/late/leases', max_permits => 3)");
$waiter->query("BEGIN; INSERT INTO done VALUES ('prepared')");
$waiter->send("PREPARE TRANSACTION 'three'");
wait_event($waiter, 'SyncRep', 'PREPARE TRANSACTION waits for the standby');
$log = -s $one->logfile;
my $owner = $test->session($one, dbname => 'utf8');
$owner->query("SET zklock.lost_lock_action = 'none'");
$owner->query("SELECT zk_lock('/late/owner')");
ok($test->lose_session($one, '/late/owner'), 'its lease is lost');
$owner->query('SELECT zk_unlock_all()');
cancel($waiter);
is($waiter->sqlstate, '', 'it has prepared');
like(
	$waiter->messages,
	qr{transaction was prepared although distributed lock "/late/leases\S*" was lost.*ROLLBACK PREPARED}s,
	'and says it');
log_ok(
	qr{prepared a transaction although distributed lock "/late/leases\S*" was lost},
	'and so does the log');
$looker->query("ROLLBACK PREPARED 'three'");
is($waiter->query("SELECT zk_release_permits('/late/leases')"),
	'f', 'the loss is acknowledged');

# ---- a lease that ends, whatever becomes of the lock

# Whose end the worker sees when it goes on, or the next one that is started.
foreach my $next ('goes on', 'is another')
{
	my $worker = $test->status($one, 'worker_pid');
	my $postmaster = $one->{_pid};
	my $pid = $waiter->pid;
	my $path = "/late/lease/$next";
	my $late = qr{committed although the lease of distributed lock "$path" had ended};

	$waiter->query("BEGIN; SELECT zk_xact_lock('$path');"
		  . " INSERT INTO done VALUES ('lease')");
	$waiter->send('COMMIT');
	wait_event($waiter, 'SyncRep', 'a commit waits for the standby');
	if ($next eq 'goes on')
	{
		kill 'STOP', $worker;
	}
	else
	{
		kill 'STOP', $postmaster;
		kill 'TERM', $worker;
	}
	$test->look_until($one, "SELECT lease_remaining <= '0' FROM zk_status",
		't', 'the lease passes');
	kill 'INT', $pid;
	is($waiter->sqlstate, '', 'it has committed');
	like($waiter->messages, $late, 'and says that the lease had ended');
	kill 'CONT', $next eq 'goes on' ? $worker : $postmaster;
	log_ok(qr{process $pid $late}, "and so does the log, once the worker $next");
	$test->wait_connected($one);
}

# ---- a client that does not read can be terminated

# The first session finds out how many messages fit on their way to a client.
# The second one sends as many, and then tells of the late loss.
$looker->query('CREATE SEQUENCE notices');
$looker->query(<<'EOS');
CREATE PROCEDURE fill(n int) LANGUAGE plpgsql AS $$
	DECLARE x bigint;
	BEGIN
		INSERT INTO done VALUES ('fill');
		COMMIT;
		FOR i IN 1 .. n LOOP
			x := nextval('notices');
			RAISE NOTICE '%', repeat('x', 900);
		END LOOP;
		PERFORM 1;
	END $$
EOS
my $fitting = 1000000;
foreach my $path ('/late/full', '/late/tell')
{
	my $full = session(
		synchronous_commit => 'on',
		'zklock.lost_lock_action' => 'none');
	my $pid = $full->pid;

	$full->query("SELECT zk_lock('$path')");
	$full->send("CALL fill($fitting)");
	wait_event($full, 'SyncRep', 'a commit waits for the standby');
	ok($test->lose_session($one, $path), 'its lock is lost')
	  if $path eq '/late/tell';
	cancel($full);
	wait_event($full, 'ClientWrite', 'its client does not read');
	if ($path eq '/late/full')
	{
		$fitting = $looker->query('SELECT last_value FROM notices') - 1;
		$looker->query("SELECT setval('notices', 1, false)");
	}
	else
	{
		is($looker->query('SELECT last_value FROM notices'),
			$fitting, 'it is past its own messages');
	}
	$looker->query("SELECT pg_terminate_backend($pid)");
	$test->look_until($one,
		"SELECT count(*) FROM pg_stat_activity WHERE pid = $pid",
		0, 'the session can be terminated');
	$full->close;
}

# ---- what a client is told whose encoding lacks characters of the name

my $latin = session(
	client_encoding => 'LATIN1',
	'zklock.lost_lock_action' => 'none',
	'zklock.answer_timeout' => '200ms');
my $asker = $test->session($two);

$latin->query("SELECT zk_unlock(U&'/late/\\00E9')");
like($latin->messages, qr{lock "/late/\xE9" in}, 'what it has is shown as it is');

sub ask_for_lock
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$asker->query("SELECT zk_request_release(E'/late/\\xE6\\x97\\xA5')");
	return $test->look_until($one,
		'SELECT count(*) FROM zk_locks WHERE release_requested',
		1, 'somebody asks for the lock');
}

$looker->query('SELECT pg_advisory_lock(1)');
$latin->query("BEGIN; SELECT zk_xact_lock($name);"
	  . " INSERT INTO done VALUES ('asked');"
	  . " INSERT INTO far_away VALUES ('asked')");
$latin->send('COMMIT');
wait_event($latin, 'Extension', 'the remote commit takes long');
ask_for_lock();
$looker->query('SELECT pg_advisory_unlock(1)');
is($latin->sqlstate, '', 'the demand does not fail the commit');
done_ok('asked', 1, 'which is made here');
is($looker->query("SELECT count(*) FROM far WHERE what = 'asked'"),
	1, 'and there');

$looker->query("BEGIN; INSERT INTO done VALUES ('2pc'); PREPARE TRANSACTION '2pc'");
$latin->query("SELECT zk_lock($name); SET synchronous_commit = 'on'");
$latin->send("COMMIT PREPARED '2pc'");
wait_event($latin, 'SyncRep', 'COMMIT PREPARED waits for the standby');
ask_for_lock();
cancel($latin);
is($latin->sqlstate, '', 'the demand does not fail COMMIT PREPARED');
done_ok('2pc', 1, 'which has committed');
$latin->query('SET synchronous_commit = local');
like($latin->messages, qr{release of .*"$ascii" was requested}, 'the next statement tells');

is($latin->query("SELECT zk_unlock($name)"), 't', 'the lock is released');
$latin->query("BEGIN; SELECT zk_lock($name); INSERT INTO done VALUES ('block')");
ask_for_lock();
is($latin->error('SELECT 1'), '', 'the demand does not fail a statement');
like($latin->messages, qr{release of .*"$ascii" was requested}, 'which tells');
is($latin->query("SELECT zk_unlock($name)"),
	't', 'the lock is released in the transaction');
like($latin->messages, qr{WARNING.*"$ascii" is released before}s,
	'with a warning');
is($latin->error('COMMIT'), '', 'which commits');
done_ok('block', 1, 'what it has written');

$test->zk->pause;
$latin->send("SELECT zk_lock($name)");
ok(wait_for(
		sub { $latin->busy && @{ $latin->{answer}{notices} } },
		'a wait for ZooKeeper is told of'),
	'a wait for ZooKeeper is told of, and goes on');
$test->zk->resume;
cmp_ok($latin->value, '>', 0, 'until the lock is granted');
like($latin->messages, qr{NOTICE.*still waiting.*"$ascii"}s, 'the notice names it');
$test->wait_connected($one);

$latin->query("SELECT zk_lock_shared($name)");
my $semaphore = session('zklock.lost_lock_action' => 'none');
$semaphore->query("BEGIN; SELECT zk_xact_acquire_permits('/late/leased', max_permits => 1)");
ok($test->lose_session($one, '/late/leased/leases'), 'all locks are lost');
is($semaphore->error('ROLLBACK'), '', 'a transaction is rolled back');
like($semaphore->messages, qr{"/late/leased" was lost},
	'and the semaphore is called by its name');
is($latin->error('CREATE TABLE refused ()'), '40001', 'another is refused');
like($latin->messages, qr{"$ascii" was lost}, 'which names the lock');
is($latin->query("SELECT zk_unlock($name)"), 'f', 'a loss is acknowledged');
like($latin->messages, qr{WARNING.*"$ascii" was already lost}s, 'with a warning');
is($latin->error('SELECT zk_unlock_all()'), '', 'and so are the others');
is($latin->query("SELECT zk_unlock_shared($name)"),
	'f', 'which are not held any more');
like($latin->messages, qr{do not hold distributed lock "$ascii"}, 'as it says');
is($latin->error('CREATE TABLE good ()'), '', 'then all is well');
$_->close foreach $latin, $asker, $semaphore;

# ---- a cancel that is pending when the commit begins

$waiter->query("BEGIN; SELECT zk_xact_lock('/late/cancel');"
	  . " INSERT INTO done VALUES ('cancel');"
	  . " INSERT INTO cancels VALUES ('now')");
is($waiter->error('COMMIT'),
	'57014', 'a cancel that came before the check is heeded there');
unlike($waiter->messages, qr{synchronous},
	'and does not cut the wait for the standby short');
done_ok('cancel', 0, 'nothing was committed');

$_->close
  foreach $looker, $remote, $blocker, $notifier, $by_session, $waiter, $owner;
$test->finish;
