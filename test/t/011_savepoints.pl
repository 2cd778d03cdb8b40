# A transaction lock taken inside a savepoint or an exception block ends with
# its rollback, and lives on with its release.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $s = $test->session($one);
my $other = $test->session($two);

# The transaction locks that the session holds, and so does ZooKeeper.
sub holds_ok
{
	my ($expected, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $held = $s->query('SELECT string_agg(DISTINCT path, \' \' ORDER BY path)'
		  . ' FROM zk_locks WHERE pid = pg_backend_pid() AND state = \'granted\'');
	is($held, $expected, $case);
	foreach my $path ('/a', '/b', '/c')
	{
		my $taken = grep { $_ eq $path } split / /, $expected;
		is($other->query("SELECT zk_try_lock('$path', "
				  . ($taken ? "'0')" : "'1min')")),
			$taken ? 'f' : 't',
			"$case: $path is " . ($taken ? 'taken' : 'free'));
		$other->query("SELECT zk_unlock('$path')") unless $taken;
	}
	return;
}

$s->query("BEGIN; SELECT zk_xact_lock('/a'); SAVEPOINT one");
$s->query("SELECT zk_xact_lock('/b'); SAVEPOINT two");
$s->query("SELECT zk_xact_lock('/c')");
holds_ok('/a /b /c', 'three nested');
$s->query('ROLLBACK TO two');
holds_ok('/a /b', 'inner rolled back');
$s->query("SELECT zk_xact_lock('/c'); RELEASE two");
holds_ok('/a /b /c', 'inner released');
$s->query('ROLLBACK TO one');
holds_ok('/a', 'outer rolled back, with what was released into it');
$s->query('COMMIT');
holds_ok('', 'committed');

# Counts follow: once outside, twice inside.
$s->query("BEGIN; SELECT zk_xact_lock('/a'); SAVEPOINT one");
$s->query("SELECT zk_xact_lock('/a'), zk_xact_lock('/a')");
$s->query('ROLLBACK TO one');
holds_ok('/a', 'counted inside and rolled back');
is($s->query("SELECT holds FROM zk_locks WHERE path = '/a'"),
	1, 'the count is back to one');
$s->query('ROLLBACK TO one');
$s->query('ROLLBACK');
holds_ok('', 'rolled back');

# A weaker hold outside survives a stronger one inside.
$s->query("BEGIN; SELECT zk_xact_lock_shared('/a'); SAVEPOINT one");
$s->query("SELECT zk_xact_lock('/a')");
is($other->query("SELECT zk_try_lock_shared('/a')"),
	'f', 'exclusive inside shared keeps readers out');
$s->query('ROLLBACK TO one');
is($other->query("SELECT zk_try_lock_shared('/a', '1min')"),
	't', 'rolled back, readers get in');
$other->query("SELECT zk_unlock_shared('/a')");
is($other->query("SELECT zk_try_lock('/a')"), 'f', 'but no writer');
$s->query('COMMIT');
holds_ok('', 'committed after that');

# Session locks do not care.
$s->query("BEGIN; SAVEPOINT one; SELECT zk_lock('/a'); ROLLBACK TO one; COMMIT");
holds_ok('/a', 'session lock taken in a savepoint');
$s->query("SELECT zk_unlock('/a')");
holds_ok('', 'and unlocked');

# Exception blocks
$s->query('BEGIN');
$s->query(<<'EOQ');
DO $$
BEGIN
	PERFORM zk_xact_lock('/a');
	BEGIN
		PERFORM zk_xact_lock('/b');
		RAISE EXCEPTION 'undone';
	EXCEPTION WHEN raise_exception THEN NULL;
	END;
	BEGIN
		PERFORM zk_xact_lock('/c');
	EXCEPTION WHEN OTHERS THEN NULL;
	END;
END $$
EOQ
holds_ok('/a /c', 'exception blocks, one of them failed');
$s->query('COMMIT');
holds_ok('', 'after the exception blocks');

# A wait that times out inside an exception block leaves nothing behind, and
# no timer running.
$other->query("SELECT zk_lock('/b')");
$s->query("BEGIN; SELECT zk_xact_lock('/a'); SET LOCAL lock_timeout = '100ms'");
$s->query(<<'EOQ');
DO $$
BEGIN
	PERFORM zk_xact_lock('/b');
EXCEPTION WHEN lock_not_available THEN
	PERFORM pg_sleep(0.3);
END $$
EOQ
$test->wait_queue('/b', 1);
$s->query('COMMIT');
$other->query("SELECT zk_unlock('/b')");
holds_ok('', 'after a timeout in an exception block');

# Loops of savepoints leave no slot behind.
$s->query(<<'EOQ');
DO $$
BEGIN
	FOR i IN 1 .. 1000 LOOP
		BEGIN
			PERFORM zk_xact_lock('/a');
			IF i % 2 = 0 THEN RAISE EXCEPTION 'undone'; END IF;
		EXCEPTION WHEN raise_exception THEN NULL;
		END;
	END LOOP;
END $$
EOQ
holds_ok('', 'after a thousand exception blocks');

# Transactions that follow one another without a BEGIN
$s->query("BEGIN; SELECT zk_xact_lock('/a'); COMMIT AND CHAIN");
holds_ok('', 'COMMIT AND CHAIN');
$s->query("SELECT zk_xact_lock('/b'); SAVEPOINT one; SELECT zk_xact_lock('/c')");
$s->query('ROLLBACK TO one');
holds_ok('/b', 'a savepoint in the next one');
$s->query('ROLLBACK AND CHAIN');
holds_ok('', 'ROLLBACK AND CHAIN');
$s->query('COMMIT');

# A procedure commits with a query open, and rolls blocks back.
my $held = "(SELECT coalesce(string_agg(path, ' ' ORDER BY path), '')"
  . ' FROM zk_locks WHERE pid = pg_backend_pid() AND state = \'granted\')';
$s->query("CREATE PROCEDURE steps() LANGUAGE plpgsql AS \$\$ DECLARE n integer; BEGIN
	FOR n IN SELECT generate_series(1, 3) LOOP
		PERFORM zk_xact_lock('/a'), zk_xact_lock('/b');
		ASSERT $held = '/a /b', 'before the commit';
		COMMIT;
		ASSERT $held = '', 'after the commit';
		PERFORM zk_xact_lock('/a');
		BEGIN
			PERFORM zk_xact_lock('/c');
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero THEN
			ASSERT $held = '/a', 'after the exception';
		END;
	END LOOP;
END \$\$");
is($s->error('CALL steps()'), '', 'a procedure holds each lock until its end');
holds_ok('', 'and none afterwards');

$_->close foreach $s, $other;
$test->finish;
