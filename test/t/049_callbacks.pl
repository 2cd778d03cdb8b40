# Another extension that runs SQL in its callbacks before a commit and before a
# PREPARE TRANSACTION, behind the commit check: a lock that is lost there is
# found in the last callback.  Neither that SQL nor an exception that it catches
# takes anything from the check.

use strict;
use warnings;

use Cwd qw(abs_path);
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('callbacks'));

chomp(my $include = qx{$pg_config --includedir-server});
chomp(my $compiler = qx{$pg_config --cc});
append_to_file("$dir/callbacks.c", <<'EOS');
#include "postgres.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(register_before);

void		_PG_init(void);

static void
before(XactEvent event, void *arg)
{
	if (event != XACT_EVENT_PRE_COMMIT && event != XACT_EVENT_PRE_PREPARE)
		return;
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	SPI_execute("SELECT before()", false, 0);
	if (arg != NULL)
		SPI_execute("TRUNCATE emptied", false, 0);
	SPI_finish();
	PopActiveSnapshot();
}

Datum
register_before(PG_FUNCTION_ARGS)
{
	RegisterXactCallback(before, &MyProcPid);
	PG_RETURN_INT32(0);
}

void
_PG_init(void)
{
	RegisterXactCallback(before, NULL);
}
EOS
plan skip_all => 'this test needs a C compiler'
  if system("$compiler -shared -fPIC -I'$include' -o '$dir/callbacks.so'"
	  . " '$dir/callbacks.c'") != 0;
chmod 0755, $dir, "$dir/callbacks.so";

my $test = ZklockTest->new(session_timeout => '2s', conf => <<'EOC');
max_prepared_transactions = 5
EOC
my ($one) = $test->nodes;

$one->safe_psql('postgres', <<'EOS');
CREATE TABLE done (what text);
CREATE TABLE emptied ();
CREATE FUNCTION emptied() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM FROM pg_am;
	RETURN NULL;
END $$;
CREATE TRIGGER emptied AFTER TRUNCATE ON emptied EXECUTE FUNCTION emptied();
CREATE FUNCTION before() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		PERFORM 1 / 0;
	EXCEPTION WHEN division_by_zero THEN
	END;
	PERFORM pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1);
END $$;
EOS

my $blocker = $test->session($one);
my %ends = (
	'COMMIT' => 'COMMIT',
	'PREPARE TRANSACTION' => "PREPARE TRANSACTION 'p'",
	'COMMIT PREPARED' => "COMMIT PREPARED 'before'",
	'ROLLBACK PREPARED' => "ROLLBACK PREPARED 'before'");

foreach my $end (sort keys %ends)
{
	my $path = "/callbacks/$end";
	my $s = $test->session($one);
	my $is_late = $end =~ /PREPARED/;

	$blocker->query("BEGIN; INSERT INTO done VALUES ('$end');"
		  . " PREPARE TRANSACTION 'before'")
	  if $is_late;
	$s->query('SET zklock.lost_lock_action = none');
	$s->query("LOAD '$dir/callbacks.so'");
	$s->query("SELECT zk_lock('$path')");
	$s->query("BEGIN; INSERT INTO done VALUES ('$end')") unless $is_late;
	$blocker->query('SELECT pg_advisory_lock(1)');
	$s->send($ends{$end});
	$test->look_until($one,
		'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $s->pid,
		'advisory', "$end: a callback waits");
	ok($test->lose_session($one, $path), "$end: the lock is lost meanwhile");
	$blocker->query('SELECT pg_advisory_unlock(1)');
	is($s->sqlstate, $is_late ? '' : '40001',
		$is_late ? "$end is done by then" : "$end is refused");
	is($blocker->query(
			"SELECT count(*) FROM done WHERE what = '$end'"),
		$end eq 'COMMIT PREPARED' ? 1 : 0,
		"$end: as the table shows");
	is($blocker->query('SELECT count(*) FROM pg_prepared_xacts'),
		0, "$end: nothing is left prepared");
	$s->query('ROLLBACK') unless $is_late;
	$s->query('DISCARD ALL');
	is($s->error("INSERT INTO done VALUES ('next')"), '', "$end: all is well");
	$s->close;
}

# A callback may acquire the first lock of a transaction.
my $s = $test->session($one);
$s->query("SELECT zk_lock('/callbacks/first'), zk_unlock('/callbacks/first')");
$s->query("LOAD '$dir/callbacks.so'");
$blocker->query('CREATE OR REPLACE FUNCTION before() RETURNS void LANGUAGE sql'
	  . " AS \$\$ SELECT zk_xact_lock('/callbacks/first') \$\$");
foreach my $round (1 .. 3)
{
	is($s->error("INSERT INTO done VALUES ('first')"), '', "round $round: a commit works");
	is($blocker->query("SELECT zk_try_lock('/callbacks/first'), zk_unlock('/callbacks/first')"),
		't|t', 'and ends the hold');
}
is($s->query("BEGIN; INSERT INTO done VALUES ('first')"), '', 'and another one');
is($s->error("PREPARE TRANSACTION 'p'"), '0A000', 'but no PREPARE TRANSACTION');
$s->close;

# And it may take a turn after the check, which is recorded like any other.
$s = $test->session($one);
$s->query("LOAD '$dir/callbacks.so'");
$s->query("SELECT zk_lock('/callbacks/held')");
$blocker->query('CREATE OR REPLACE FUNCTION before() RETURNS void LANGUAGE sql'
	  . " AS \$\$ SELECT zk_once('/callbacks/turn', interval '1 day') \$\$");
is($s->error("INSERT INTO done VALUES ('turn')"), '', 'a turn in a callback');
is($blocker->query("SELECT zk_once('/callbacks/turn', interval '1 day')"), 'f', 'is used up');
$s->close;

# A callback that comes before the check, as the procedure registers it after its last
# statement: its SQL moves the check, and still each callback is called once.
$one->safe_psql('postgres', <<"EOS");
CREATE OR REPLACE FUNCTION before() RETURNS void LANGUAGE plpgsql AS \$\$
DECLARE
	row record;
	n int;
BEGIN
	INSERT INTO done VALUES ('called');
	n := inner_one();
	FOR row IN SELECT inner_one() LOOP
	END LOOP;
END \$\$;
CREATE FUNCTION inner_one() RETURNS int LANGUAGE plpgsql AS \$\$
BEGIN
	PERFORM FROM pg_am;
	RETURN 1;
END \$\$;
CREATE FUNCTION register_before() RETURNS int AS '$dir/callbacks' LANGUAGE C;
CREATE PROCEDURE commits() LANGUAGE plpgsql AS \$\$
DECLARE
	x int;
BEGIN
	PERFORM zk_xact_lock('/callbacks/procedure');
	x := inner_one();
	x := inner_one();
	x := register_before();
	COMMIT;
	PERFORM zk_xact_lock('/callbacks/procedure');
END \$\$;
EOS
$s = $test->session($one);
$s->query("LOAD '$dir/callbacks.so'");
$blocker->query('DELETE FROM done');
is($s->error('CALL commits()'), '', 'a procedure that commits');
is($blocker->query("SELECT count(*) FROM done WHERE what = 'called'"),
	4, 'each callback is called once at each commit');
$s->close;

# The same in one statement: the check has been registered before the callback, and is
# registered again after it.
$s = $test->session($one);
$s->query("LOAD '$dir/callbacks.so'");
$blocker->query('DELETE FROM done');
is($s->error("SELECT zk_xact_lock('/callbacks/statement'), register_before()"),
	'', 'one statement');
is($blocker->query("SELECT count(*) FROM done WHERE what = 'called'"), 2, 'the same there');
$s->close;

$blocker->close;
$test->finish;
