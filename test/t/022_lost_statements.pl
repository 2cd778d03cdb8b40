# A session loses its lock while it runs a statement: whatever the statement waits
# for, its client gets error 40001, which names the lock; handlers within the
# statement see a cancel, as they do of anybody's.  What others cancel stays
# cancelled: a user's cancel at the same moment, a timeout, an error of a
# function's own.

use strict;
use warnings;

use Cwd qw(abs_path);
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

# A background worker that runs two statements, as those of other extensions do
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('runner'));

chomp(my $include = qx{$pg_config --includedir-server});
chomp(my $compiler = qx{$pg_config --cc});
append_to_file("$dir/runner.c", <<'EOS');
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "postmaster/bgworker.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(run_in_background);
PG_FUNCTION_INFO_V1(ignore_interrupts);

extern PGDLLEXPORT void runner_main(Datum arg);

static void
run(const char *sql)
{
	StartTransactionCommand();
	SPI_connect();
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_execute(sql, false, 0);
	PopActiveSnapshot();
	SPI_finish();
	CommitTransactionCommand();
}

void
runner_main(Datum arg)
{
	char	   *rest = MyBgworkerEntry->bgw_extra;
	char	   *sql;

	BackgroundWorkerUnblockSignals();
	BackgroundWorkerInitializeConnection("postgres", NULL, 0);
	while ((sql = strsep(&rest, ";")) != NULL)
		run(sql);
}

Datum
run_in_background(PG_FUNCTION_ARGS)
{
	BackgroundWorker worker = {0};

	worker.bgw_flags = BGWORKER_SHMEM_ACCESS | BGWORKER_BACKEND_DATABASE_CONNECTION;
	worker.bgw_start_time = BgWorkerStart_RecoveryFinished;
	worker.bgw_restart_time = BGW_NEVER_RESTART;
	strlcpy(worker.bgw_name, "runner", sizeof(worker.bgw_name));
	strlcpy(worker.bgw_library_name, "DIR/runner", sizeof(worker.bgw_library_name));
	strlcpy(worker.bgw_function_name, "runner_main", sizeof(worker.bgw_function_name));
	strlcpy(worker.bgw_extra, text_to_cstring(PG_GETARG_TEXT_PP(0)), sizeof(worker.bgw_extra));
	PG_RETURN_BOOL(RegisterDynamicBackgroundWorker(&worker, NULL));
}

/* While a file is there */
Datum
ignore_interrupts(PG_FUNCTION_ARGS)
{
	while (access(text_to_cstring(PG_GETARG_TEXT_PP(0)), F_OK) == 0)
		pg_usleep(10000);
	CHECK_FOR_INTERRUPTS();
	PG_RETURN_BOOL(true);
}
EOS
plan skip_all => 'this test needs a C compiler'
  if system("sed -i 's,DIR,$dir,' '$dir/runner.c' &&"
	  . " $compiler -shared -fPIC -I'$include' -o '$dir/runner.so' '$dir/runner.c'") != 0;
chmod 0755, $dir, "$dir/runner.so";

my $test = ZklockTest->new(session_timeout => '2s', max_requests => 100, conf => <<'EOC');
max_worker_processes = 20
EOC
my ($one, $two) = $test->nodes;

$one->safe_psql('postgres', <<'EOS');
CREATE TABLE barred (what int);
CREATE TABLE kept (what int);
INSERT INTO kept VALUES (1);
CREATE TABLE late (what int);
CREATE TABLE early (what int);
CREATE FUNCTION nap() RETURNS int LANGUAGE plpgsql AS
	'BEGIN PERFORM pg_sleep(1000); RETURN 1; END';
CREATE FUNCTION fold() RETURNS int LANGUAGE plpgsql IMMUTABLE AS
	'BEGIN PERFORM pg_sleep(1000); RETURN 1; EXCEPTION WHEN OTHERS THEN RETURN 2; END';
CREATE FUNCTION careless() RETURNS int LANGUAGE plpgsql AS
	'BEGIN RETURN nap(); EXCEPTION WHEN OTHERS THEN RETURN 2; END';
CREATE FUNCTION trigger_nap() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN PERFORM pg_sleep(1000); RETURN NULL; END';
CREATE FUNCTION careless_trigger() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN PERFORM pg_sleep(1000); RETURN NULL; EXCEPTION WHEN OTHERS THEN RETURN NULL; END';
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION trigger_nap();
CREATE CONSTRAINT TRIGGER t AFTER INSERT ON early DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION careless_trigger();
CREATE PROCEDURE steps() LANGUAGE plpgsql AS
	'BEGIN INSERT INTO kept VALUES (2); COMMIT; PERFORM nap(); END';
EOS

my $barrier = $test->session($one);
$barrier->query('BEGIN; LOCK TABLE barred; UPDATE kept SET what = 3');
my $rival = $test->session($two);
$rival->query("SELECT zk_lock('/s/other')");

# Each case: what prepares the session, and the statement, or those of the extended
# protocol.  "handled": what a handler of its own notes of the error.
my $parallel = "SELECT set_config(name, 'on', false) FROM pg_settings"
  . " WHERE name IN ('force_parallel_mode', 'debug_parallel_query')";
my %cases = (
	sleep => [ '', 'SELECT pg_sleep(1000)' ],
	block => [ 'BEGIN', 'SELECT pg_sleep(1000)' ],
	savepoint => [ 'BEGIN; SAVEPOINT s', 'SELECT careless()' ],
	nested => [ '', 'SELECT careless()' ],
	others => [
		'', "DO 'BEGIN PERFORM careless(); EXCEPTION WHEN OTHERS THEN RAISE NOTICE \$\$swallowed\$\$; END'" ],
	raised => [
		'', "DO 'BEGIN PERFORM nap(); EXCEPTION WHEN query_canceled THEN"
		  . " RAISE NOTICE \$\$seen %\$\$, SQLSTATE; RAISE; END'" ],
	swallowed => [
		'BEGIN', "DO 'BEGIN PERFORM nap(); EXCEPTION WHEN query_canceled THEN"
		  . " RAISE NOTICE \$\$seen %\$\$, SQLSTATE; END'; SELECT 1" ],
	loop => [ '', "DO 'DECLARE n int; BEGIN LOOP n := 1; END LOOP; END'" ],
	call => [ '', 'CALL steps()' ],
	cursor => [ 'BEGIN; DECLARE c CURSOR FOR SELECT nap()', 'FETCH c' ],
	copy => [ '', "COPY (SELECT nap()) TO '/dev/null'" ],
	execute => [ 'PREPARE p AS SELECT nap()', 'EXECUTE p' ],
	explain => [ '', 'EXPLAIN ANALYZE SELECT nap()' ],
	parallel => [ $parallel, 'SELECT pg_sleep(1000)' ],
	extended => [ '', [ 'SELECT 1', 'SELECT nap()' ] ],
	row => [ '', 'UPDATE kept SET what = 4' ],
	lock => [ 'BEGIN', 'LOCK TABLE barred' ],
	parse => [ '', 'SELECT * FROM barred' ],
	'parse-extended' => [ 'BEGIN', ['SELECT * FROM barred'] ],
	plan => [ '', 'SELECT fold()' ],
	commit => [ 'BEGIN; INSERT INTO late VALUES (1)', 'COMMIT' ],
	'commit-careless' => [ 'BEGIN; INSERT INTO early VALUES (1)', 'COMMIT' ],
	zklock => [ '', "SELECT zk_lock('/s/other')" ]);

# An error ends what a session has set up in PostgreSQL's main loop.
$cases{'parse-after-error'} = $cases{parse};

my (%session, %statement);
foreach my $case (sort keys %cases)
{
	my ($before, $statement) = @{ $cases{$case} };
	my $s = $session{$case} = $test->session($one, application_name => $case);
	$s->query("SELECT zk_lock('/s/$case')");
	$s->error('no statement') if $case =~ /error/;
	$s->query($before) if $before;
	ref $statement ? $s->send_extended(@$statement) : $s->send($statement);
}
my $busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active'"
  . " AND application_name IN ('" . join("', '", keys %cases) . "')"
  . " AND backend_type = 'client backend'"
  . " AND (wait_event IS NOT NULL OR application_name = 'loop')";
$test->look_until($one, $busy, scalar keys %cases, 'all statements run');

# What a background worker waits for
my %background = (
	'background-sleep' => 'SELECT pg_sleep(1000)',
	'background-parse' => 'SELECT * FROM barred',
	'background-zklock' => "SELECT zk_lock('/s/other')");
$one->safe_psql('postgres', 'CREATE FUNCTION run_in_background(text) RETURNS boolean'
	  . " AS '$dir/runner' LANGUAGE C;"
	  . " CREATE FUNCTION ignore_interrupts(text) RETURNS boolean AS '$dir/runner' LANGUAGE C");
foreach my $case (sort keys %background)
{
	$one->safe_psql('postgres',
		"SELECT run_in_background(\$\$SELECT zk_lock('/s/$case');$background{$case}\$\$)");
}
$test->look_until($one,
	"SELECT count(DISTINCT wait_event) FROM pg_stat_activity JOIN zk_locks USING (pid)"
	  . " WHERE path LIKE '/s/background%' AND zk_locks.state IN ('granted', 'unconfirmed')",
	scalar keys %background, 'so do background workers');

# A user cancels a statement before its lock is lost, or after that, and the statement
# looks at neither until both have happened; or the kernel has yet to deliver the
# user's signal when the loss comes.
my ($user, $before, $after) = map { $test->session($one) } 1 .. 3;
$user->query("SELECT zk_lock('/s/user')");
$user->send('SELECT pg_sleep(1000)');
$before->query("SELECT zk_lock('/s/before')");
$after->query("SELECT zk_lock('/s/after')");
append_to_file("$dir/file", '');
$_->send("SELECT ignore_interrupts('$dir/file')") foreach $before, $after;
$_->wait_running foreach $user, $before, $after;
kill 'STOP', $user->pid;
$_->cancel(running => 1) foreach $user, $before;

# An index that is being built
my ($writer, $builder) = map { $test->session($one) } 1 .. 2;
$one->safe_psql('postgres', 'CREATE TABLE built (i int)');
$writer->query('BEGIN; INSERT INTO built VALUES (1)');
$builder->query("SELECT zk_lock('/s/index')");
$builder->send('CREATE INDEX CONCURRENTLY built_i ON built (i)');
$test->look_until($one, 'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $builder->pid,
	'Lock', 'it waits for a writer');

my $log = -s $one->logfile;
$test->lose_session($one, '/s/user');
kill 'CONT', $user->pid;
$after->cancel(running => 1);
unlink "$dir/file";
is($before->sqlstate, '57014', 'a cancel together with a loss stays one');
is($after->sqlstate, '57014', 'also if the loss came first');
is($user->sqlstate, '57014', 'a cancel that came before the loss stays one');
like($user->messages, qr{"/s/user" was lost}, 'and a warning tells of the loss');
is($user->error("DO 'BEGIN RAISE SQLSTATE \$\$57014\$\$; END'"),
	'57014', 'so does an error that is raised with the same code');
is($user->error("SET statement_timeout = '10ms'; SELECT pg_sleep(1000)"),
	'57014', 'and a timeout');

is($builder->sqlstate, '40001', 'an index that is being built: the code');
is($test->look($one, "SELECT indisvalid FROM pg_index WHERE indexrelid = 'built_i'::regclass"),
	'f', 'and it stays invalid');
is($builder->query('SELECT zk_unlock_all()'), '', 'acknowledged');
$writer->query('COMMIT');

# The subtransaction that has the lock is over before the error leaves the statement.
my $inner = $test->session($one);
$inner->send("DO 'BEGIN PERFORM zk_xact_lock(\$\$/s/inner\$\$, at_most => \$\$500ms\$\$);"
	  . " PERFORM nap(); EXCEPTION WHEN division_by_zero THEN NULL; END'");
my $lost = $inner->result->{error};
is($lost->{sqlstate}, '40001', 'a lock of a subtransaction: the code');
is($lost->{message}, 'distributed lock "/s/inner" was lost', 'which lock');
is($lost->{detail}, 'It was held for longer than its at_most.', 'and why');
is($lost->{hint}, 'Another client may hold it now.  Retry the transaction.', 'and what to do');

foreach my $case (sort keys %cases)
{
	my $error = $session{$case}->result->{error};
	my $is = "$case: " . ($error ? $error->{sqlstate} : '');

	is($error->{sqlstate}, '40001', "$case: its code");
	is($error->{message}, "distributed lock \"/s/$case\" was lost", "$case: which lock");
	like($error->{detail}, qr/ZooKeeper session/, "$case: and why");
	like($error->{hint}, qr/zk_unlock/, "$case: and what to do");
}
unlike($session{others}->messages, qr/swallowed/, 'WHEN OTHERS does not catch it');
like($session{$_}->messages, qr/seen 57014/, "$_: a handler sees a cancel")
  foreach 'raised', 'swallowed';
like($session{nested}->result->{error}{context}, qr/careless\(\)/, 'the context stays');
unlike($session{sleep}->messages, qr/WARNING/, 'the error says all, without a warning');

$test->look_until($one, "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'runner'",
	0, 'the background workers end');
my $lines = slurp_file($one->logfile, $log);
like($lines, qr/ERROR:  distributed lock "\/s\/$_" was lost/, "$_: its error")
  foreach sort keys %background;
is(scalar(() = $lines =~ /canceling statement due to user request/g),
	3, 'the log has the users\' cancels');

$barrier->query('ROLLBACK');
is($_->query('SELECT zk_unlock_all()'), '', 'acknowledged') foreach $user, $before, $after;
$session{$_}->query('ROLLBACK') foreach grep { $cases{$_}[0] =~ /BEGIN/ } keys %cases;
foreach my $case (sort keys %cases)
{
	is($session{$case}->query('SELECT zk_unlock_all()'), '', "$case: acknowledged");
}
$rival->query("SELECT zk_unlock('/s/other')");
$test->finish;
