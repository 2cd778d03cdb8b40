# A procedure waits without a snapshot: VACUUM removes rows meanwhile, and CREATE INDEX
# CONCURRENTLY ends.  Where the session has to keep its snapshot, the wait goes on with
# it, and a warning says why.  Whatever the wait was like, the transaction goes on.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(conf => "deadlock_timeout = 50ms\nautovacuum = off\n");
my ($one, $two) = $test->nodes;

$one->safe_psql('postgres', <<'SQL');
CREATE TABLE rows (n int);
INSERT INTO rows SELECT 1 FROM generate_series(1, 100);
CREATE PROCEDURE plain(lock text) LANGUAGE plpgsql AS $$
BEGIN
	CALL zk_await_lock(lock);
	INSERT INTO rows SELECT count(*) + 1000 FROM rows;
END $$;
CREATE PROCEDURE nested(lock text) LANGUAGE plpgsql AS $$
BEGIN
	COMMIT;
	CALL plain(lock);
	ROLLBACK;
	PERFORM count(*) FROM rows;
	CALL zk_await_lock(lock);
END $$;
CREATE PROCEDURE definer(lock text) LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN CALL zk_await_lock(lock); END $$;
CREATE PROCEDURE with_setting(lock text) LANGUAGE plpgsql SET work_mem = '1MB' AS $$
BEGIN CALL zk_await_lock(lock); END $$;
CREATE FUNCTION in_function(lock text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN CALL zk_await_lock(lock); END $$;
CREATE TABLE triggers (n int);
CREATE FUNCTION in_trigger() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN CALL zk_await_lock('/w'); RETURN NEW; END $$;
CREATE TRIGGER t BEFORE INSERT ON triggers FOR EACH ROW EXECUTE FUNCTION in_trigger();
SQL

# Before the call, the call, and what is to work after it
my @without = (
	[ 'a CALL', '', "CALL zk_await_lock('/w')", '' ],
	[ 'a CALL by the extended protocol', '', "CALL zk_await_lock('/w')", '', 'extended' ],
	[ 'a shared one', '', "CALL zk_await_lock_shared('/w')", '' ],
	[ 'in a transaction block', 'BEGIN', "CALL zk_await_xact_lock('/w')", 'COMMIT' ],
	[ 'behind a statement', 'BEGIN; SELECT count(*) FROM triggers',
		"CALL zk_await_xact_lock_shared('/w')", 'COMMIT' ],
	[ 'behind a savepoint', 'BEGIN; SAVEPOINT s', "CALL zk_await_xact_lock('/w')",
		'ROLLBACK TO s; COMMIT' ],
	[ 'in a DO', '', "DO \$\$ BEGIN CALL zk_await_lock('/w'); PERFORM 1; END \$\$", '' ],
	[ 'in a procedure', '', "CALL plain('/w')", '' ],
	[ 'in a procedure of a procedure that commits', '', "CALL nested('/w')", '' ],
	[ 'with a cursor that is closed', 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM triggers; CLOSE c',
		"CALL zk_await_lock('/w')", 'COMMIT' ]);

my $part = qr/within a query, a function/;
my $cursor = qr/open cursor, a loop/;
my @with = (
	[ 'at REPEATABLE READ', 'BEGIN ISOLATION LEVEL REPEATABLE READ',
		"CALL zk_await_xact_lock('/w')", 'COMMIT', qr/isolation level .* keeps/ ],
	[ 'in a function', '', "SELECT in_function('/w')", '', $part ],
	[ 'in a trigger', '', 'INSERT INTO triggers VALUES (1)', '', $part ],
	[ 'in an exception block', '',
		"DO \$\$ BEGIN CALL zk_await_lock('/w'); EXCEPTION WHEN division_by_zero THEN END \$\$",
		'', $part ],
	[ 'in a SECURITY DEFINER procedure', '', "CALL definer('/w')", '', $part ],
	[ 'in a procedure with a SET clause', '', "CALL with_setting('/w')", '', $part ],
	[ 'by EXECUTE', '',
		"DO \$\$ BEGIN EXECUTE 'CALL zk_await_lock(''/w'')'; END \$\$", '', $part ],
	[ 'in a DO in a transaction block', 'BEGIN',
		"DO \$\$ BEGIN CALL zk_await_lock('/w'); END \$\$", 'COMMIT', $part ],
	[ 'in a loop over a query', '',
		"DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT 1 LOOP CALL zk_await_lock('/w'); END LOOP; END \$\$",
		'', $cursor ],
	[ 'with an open cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT * FROM rows; FETCH c',
		"CALL zk_await_lock('/w')", 'FETCH c; COMMIT', $cursor ],
	[ 'with an exported snapshot', 'BEGIN; SELECT pg_export_snapshot()',
		"CALL zk_await_lock('/w')", 'COMMIT', $cursor ]);

sub xmin
{
	my ($session) = @_;

	return $test->look($one,
		'SELECT backend_xmin FROM pg_stat_activity WHERE pid = ' . $session->pid);
}

sub waits
{
	return $test->look($one, "SELECT detail FROM zk_healthcheck() WHERE check_name = 'waits'");
}

# Removes rows, and says how many VACUUM could not remove.
sub vacuum
{
	my $session = $test->session($one);

	$session->query('DELETE FROM rows WHERE ctid IN (SELECT ctid FROM rows LIMIT 1)');
	$session->send('VACUUM (VERBOSE) rows')->result;
	my ($left) = $session->messages =~ /(\d+) are dead but not yet removable/;
	$session->close;
	return $left;
}

sub start
{
	my ($case, $holder) = @_;
	my (undef, $before, $call, undef, $how) = @$case;
	my $waiter = $test->session($one);

	$holder->query("SELECT zk_lock('/w')");
	$waiter->query($before) if $before;
	($how // '') eq 'extended' ? $waiter->send_extended($call) : $waiter->send($call);
	$test->wait_waiting($one, '/w', 1);
	return $waiter;
}

sub finish
{
	my ($case, $holder, $waiter) = @_;
	my ($name, undef, undef, $after) = @$case;

	$holder->query("SELECT zk_unlock('/w')");
	is($waiter->sqlstate, '', "$name: it gets the lock");
	my $messages = $waiter->messages;
	cmp_ok($waiter->query("SELECT zk_fencing_token('/w')"), '>', 0, "$name: it holds it");
	$waiter->query('INSERT INTO rows SELECT count(*) FROM rows');
	$waiter->query($after) if $after;
	$waiter->query('SELECT zk_unlock_all()');
	$waiter->close;
	return $messages;
}

# Until 15.7 and 16.3, PL/pgSQL's CALL took a snapshot only where a transaction block or a
# function around it did ("Fix behavior of stable functions called from a CALL's argument
# list").
my $version = $test->look($one, 'SHOW server_version_num');
if ($version < 150008 || ($version >= 160000 && $version < 160004))
{
	my $newer = qr/exception block|procedure|DO in a transaction/;

	push @without, map { [ @$_[ 0 .. 3 ] ] } grep { $_->[0] =~ $newer } @with;
	@with = grep { $_->[0] !~ $newer } @with;
}

my $holder = $test->session($one);
foreach my $case (@without)
{
	my $name = $case->[0];
	my $waiter = start($case, $holder);

	# A look at a catalog on the way may have had one for a moment.
	ok(wait_for(sub { xmin($waiter) eq '' }, 'no snapshot'), "$name: the wait has no snapshot");
	like(waits(), qr/VACUUM: 0,/, "$name: zk_healthcheck() counts none");
	is(vacuum(), 0, "$name: VACUUM removes rows");
	is($holder->error('CREATE INDEX CONCURRENTLY i ON rows (n)'),
		'', "$name: CREATE INDEX CONCURRENTLY ends");
	$holder->query('DROP INDEX CONCURRENTLY i');
	unlike(finish($case, $holder, $waiter), qr/holds back VACUUM/, "$name: no warning");
}
foreach my $case (@with)
{
	my $name = $case->[0];
	my $waiter = start($case, $holder);

	like(xmin($waiter), qr/^\d+$/, "$name: the wait has a snapshot");
	like(waits(), qr/VACUUM: 1,/, "$name: zk_healthcheck() counts it");
	cmp_ok(vacuum(), '>', 0, "$name: VACUUM cannot remove a row");
	wait_for(sub { $waiter->busy && @{ $waiter->{answer}{notices} } }, "$name: it warns");
	my $messages = finish($case, $holder, $waiter);
	like($messages, qr/the wait for distributed lock "\/w" holds back VACUUM/,
		"$name: a warning");
	like($messages, $case->[4], "$name: which says why");
}

# A lock that is free needs no warning.
my $session = $test->session($one);
$session->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$session->query("CALL zk_await_xact_lock('/w')");
is($session->messages, '', 'a lock that is free: no warning');
$session->query('COMMIT');

# What was committed during the wait is seen under the lock.
$holder->query("SELECT zk_lock('/w')");
$session->query('CREATE TABLE seen AS SELECT 0::bigint AS n');
$session->send("DO \$\$ BEGIN CALL zk_await_lock('/w'); UPDATE seen SET n ="
	  . ' (SELECT count(*) FROM rows WHERE n = -1); END $$');
$test->wait_waiting($one, '/w', 1);
$holder->query('INSERT INTO rows VALUES (-1)');
$holder->query("SELECT zk_unlock('/w')");
$session->result;
is($session->query('SELECT n FROM seen'), 1, 'it sees what was committed during the wait');
$session->query('SELECT zk_unlock_all()');

# An error ends the wait, and the session goes on.
my %errors = (
	'cancel' => [ sub { $_[0]->cancel }, '57014' ],
	'lock_timeout' => [ sub { }, '55P03' ],
	'the timeout of the call' => [ sub { }, '55P03' ]);
foreach my $error (sort keys %errors)
{
	my ($end, $sqlstate) = @{ $errors{$error} };
	my $timeout = $error =~ /call/ ? ", '300ms'" : '';

	$holder->query("SELECT zk_lock('/w')");
	$session->query("SET lock_timeout = '300ms'") if $error eq 'lock_timeout';
	foreach my $call ("CALL zk_await_lock('/w'$timeout)",
		"DO \$\$ BEGIN COMMIT; CALL zk_await_lock('/w'$timeout); END \$\$")
	{
		$session->send($call);
		$test->wait_waiting($one, '/w', 1) if $error eq 'cancel';
		$end->($session);
		is($session->sqlstate, $sqlstate, "$error: $call");
		is($session->query('SELECT count(*) > 0 FROM rows'), 't', "$error: the session goes on");
	}
	$session->query('BEGIN; INSERT INTO rows VALUES (7); SAVEPOINT s');
	$session->send("CALL zk_await_xact_lock('/w'$timeout)");
	$test->wait_waiting($one, '/w', 1) if $error eq 'cancel';
	$end->($session);
	is($session->sqlstate, $sqlstate, "$error: behind a savepoint");
	$session->query('ROLLBACK TO s');
	is($session->query('SELECT count(*) > 0 FROM rows'), 't', "$error: the transaction goes on");
	$session->query('COMMIT; RESET lock_timeout');
	$holder->query("SELECT zk_unlock('/w')");
}
$_->close foreach $holder, $session;

$test->finish;
