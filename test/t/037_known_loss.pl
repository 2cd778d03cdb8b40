# A lock whose loss is known before a statement of its own begins: what would
# change something is refused before it starts, also on foreign servers that the
# session uses for the first time; what only looks, or cleans up, works, so that
# there is always a way to acknowledge the loss.  And a loss that comes while such
# a statement runs is found before the foreign server commits.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s', max_requests => 100);
my ($one) = $test->nodes;
my ($host, $port) = ($one->host, $one->port);
my $user = $one->safe_psql('postgres', 'SELECT current_user');

$one->safe_psql('postgres', 'CREATE DATABASE remote');
$one->safe_psql('remote', 'CREATE TABLE far (what text)');
$one->safe_psql('postgres', <<"EOS");
CREATE EXTENSION postgres_fdw;
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'remote');
CREATE USER MAPPING FOR CURRENT_USER SERVER remote
	OPTIONS (user '$user', password_required 'false');
CREATE FOREIGN TABLE far (what text) SERVER remote;
CREATE TABLE near (what text);
CREATE TABLE parts (what text) PARTITION BY LIST (what);
CREATE FOREIGN TABLE far_part PARTITION OF parts FOR VALUES IN ('routed')
	SERVER remote OPTIONS (table_name 'far');
CREATE FUNCTION write_far() RETURNS void LANGUAGE plpgsql AS
	'BEGIN INSERT INTO far VALUES (\$\$function\$\$); END';
CREATE PROCEDURE commit_far() LANGUAGE plpgsql AS
	'BEGIN INSERT INTO far VALUES (\$\$procedure\$\$); COMMIT; END';
CREATE SEQUENCE counter;
CREATE FUNCTION touch() RETURNS text LANGUAGE plpgsql AS
	'BEGIN PERFORM nextval(\$\$counter\$\$); RETURN \$\$routed\$\$; END';
EOS

my @sessions;
my $holder = sub {
	my ($path, %params) = @_;
	my $session = $test->session($one);

	$session->query('SET zklock.lost_lock_action = none');
	$session->query("SELECT zk_lock('$path')");
	push @sessions, $session;
	return $session;
};

sub far_ok
{
	my ($case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$one->safe_psql('remote', "SELECT string_agg(what, ' ') FROM far"),
		'', $case);
}

# Each with a session that has not used the foreign server yet.
my %refused = (
	'INSERT' => "INSERT INTO near VALUES ('x')",
	'INSERT, foreign' => "INSERT INTO far VALUES ('insert')",
	'UPDATE, foreign' => "UPDATE far SET what = 'update'",
	'SELECT, foreign' => 'SELECT count(*) FROM far',
	'WITH' => "WITH w AS (INSERT INTO near VALUES ('x') RETURNING 1)"
	  . ' SELECT * FROM w',
	'EXPLAIN ANALYZE' => "EXPLAIN ANALYZE INSERT INTO far VALUES ('explain')",
	'partition' => "INSERT INTO parts VALUES ('routed')",
	'COPY' => "COPY far FROM PROGRAM 'echo copied'",
	'TRUNCATE' => 'TRUNCATE far',
	'CREATE TABLE AS' => 'CREATE TABLE copy AS SELECT * FROM far',
	'function' => 'SELECT write_far()',
	'procedure' => 'CALL commit_far()',
	'DO' => "DO 'BEGIN INSERT INTO far VALUES (\$\$do\$\$); END'",
	'EXECUTE' => "EXECUTE prepared('execute')",
	'several' => "SELECT 1; INSERT INTO far VALUES ('several')");

# What a refusal before the start leaves untouched, as no rollback would.
my %untouched = (
	'sequence' => "INSERT INTO near VALUES (nextval('counter'))",
	'sequence, COPY' => "COPY (SELECT nextval('counter') FROM near) TO STDOUT",
	'sequence, partition' => 'INSERT INTO parts VALUES (touch())');

my %acknowledges = (
	'zk_unlock' => ["SELECT zk_unlock('/a/zk_unlock')"],
	'zk_unlock_all' => ['SELECT zk_unlock_all()'],
	'psycopg2' => [ 'BEGIN', "SELECT zk_unlock('/a/psycopg2')", 'COMMIT' ],
	'several' => ["BEGIN; SELECT zk_unlock('/a/several'); COMMIT"],
	'function' => ["DO 'BEGIN PERFORM zk_unlock(\$\$/a/function\$\$); END'"],
	'EXECUTE' => [ "PREPARE u AS SELECT zk_unlock('/a/EXECUTE')", 'EXECUTE u' ],
	'DISCARD ALL' => ['DISCARD ALL'],
	'JDBC' => [
		[ 'BEGIN', "SELECT zk_unlock('/a/JDBC')" ], ['COMMIT'] ],
	'JDBC, autocommit' => [ ["SELECT zk_unlock('/a/JDBC, autocommit')"] ],
	'zk_release_permits' => [
		"SELECT zk_release_permits('/a/leases')",
		"SELECT zk_release_permits('/a/leases', 3)",
		"SELECT zk_release_permits('/a/leases', 2)",
		"SELECT zk_unlock('/a/zk_release_permits')" ]);

my %looks = (
	'SHOW' => 'SHOW work_mem',
	'SET' => "SET application_name = 'after the loss'",
	'RESET' => 'RESET application_name',
	'zk_status' => 'SELECT * FROM zk_status',
	'zk_status, some' => "SELECT state, now() FROM zk_status s"
	  . " WHERE state <> 'away' ORDER BY 1 LIMIT 1",
	'zk_locks' => "SELECT count(*) FROM zk_locks WHERE state = 'lost'",
	'zk_queue' => "SELECT count(*) FROM zk_queue('/k/looks')",
	'zk_fencing_token' => "SELECT zk_fencing_token('/k/looks')");

# What may have acted, or rests on what it read, does not get through.
my %checked = (
	'nothing' => 'SELECT 1',
	'a table' => 'SELECT count(*) FROM near',
	'a table beside' => 'SELECT count(*) FROM zk_status, near',
	'a volatile function' => "SELECT pg_notify('x', 'y')",
	'among others' => "SELECT state, pg_notify('x', 'y') FROM zk_status",
	'NOTIFY' => 'NOTIFY x',
	'one more lock' => "SELECT zk_xact_lock('/k/more')",
	'one more session lock' => "SELECT zk_lock('/k/more2')",
	'a block' => 'BEGIN; SELECT * FROM zk_status; COMMIT');

my %session;
$session{r}{$_} = $holder->("/r/$_") foreach sort keys %refused;
$session{u}{$_} = $holder->("/u/$_") foreach sort keys %untouched;
$session{a}{$_} = $holder->("/a/$_") foreach sort keys %acknowledges;
$session{a}{'zk_release_permits'}->query("SELECT zk_acquire_permits('/a/leases', 3, max_permits => 3)");
my $prepared = $session{r}{'EXECUTE'};
$prepared->query('PREPARE prepared(text) AS INSERT INTO far VALUES ($1)');
my $looker = $holder->('/k/looks');

# While a statement runs, that uses the foreign server for the first time: it
# waits for the advisory lock, until its distributed lock is lost.
my $blocker = $test->session($one);
$blocker->query('SELECT pg_advisory_lock(1)');
my %running = (
	'INSERT' => "INSERT INTO far SELECT 'running' FROM pg_advisory_xact_lock(1)",
	'partition' => "INSERT INTO parts SELECT 'routed' FROM pg_advisory_xact_lock(1)",
	'COPY' => "COPY far FROM PROGRAM"
	  . " 'echo copied; for i in `seq 20000`;"
	  . " do test -e go && break; sleep 0.01; done'",
	'procedure' => "DO 'BEGIN PERFORM pg_advisory_xact_lock(1);"
	  . " INSERT INTO parts VALUES (\$\$routed\$\$); COMMIT; END'");

# Behind a COMMIT of its own a procedure may do more than the one statement that
# only looks: simple expressions are not statements.
foreach my $looks ('PERFORM state FROM zk_status', 'SET work_mem = 64')
{
	$running{"$looks, in a procedure"} =
	  'DO $$DECLARE x text; BEGIN COMMIT;'
	  . " x := pg_advisory_xact_lock(1)::text; $looks;"
	  . " x := pg_notify('x', 'y')::text; END\$\$";
}
foreach my $case (sort keys %running)
{
	$session{running}{$case} = $holder->("/k/running $case");
	$session{running}{$case}->send($running{$case});
}
$test->look_until($one,
	"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
	5, 'they wait');
$test->look_until($one, 'SELECT count(*) FROM pg_stat_progress_copy', 1,
	'all of them');

ok($test->lose_session($one, '/k/looks'), 'all is lost');

$blocker->query('SELECT pg_advisory_unlock(1)');
append_to_file($one->data_dir . '/go', '');
foreach my $case (sort keys %running)
{
	is($session{running}{$case}->sqlstate, '40001',
		"$case is refused at its end");
}
far_ok('before the foreign server had committed');

foreach my $case (sort keys %refused)
{
	my $s = $session{r}{$case};

	is($s->error($refused{$case}), '40001', "$case is refused");
	like($s->messages, qr{"/r/$case" was lost}, "$case: it says why");
	is($s->query("SELECT zk_unlock('/r/$case')"),
		'f', "$case: the loss can be acknowledged");
	is($s->error("INSERT INTO near VALUES ('good')"), '', "$case: then all is well");
}
far_ok('nothing was committed on the foreign server');
$one->safe_psql('postgres', 'DELETE FROM near');

foreach my $case (sort keys %untouched)
{
	is($session{u}{$case}->error($untouched{$case}),
		'40001', "$case is refused");
}
is($one->safe_psql('postgres', 'SELECT is_called FROM counter'),
	'f', 'before anything was done');

foreach my $case (sort keys %acknowledges)
{
	my $s = $session{a}{$case};

	foreach my $sql (@{ $acknowledges{$case} })
	{
		is(ref $sql
			? $s->send_extended(@$sql)->sqlstate
			: $s->error($sql),
			'',
			"$case acknowledges a loss: " . (ref $sql ? "@$sql" : $sql));
	}
	is($s->error("INSERT INTO near VALUES ('good')"), '', "$case: then all is well");
}

my $told = 0;
foreach my $case (sort keys %looks)
{
	is($looker->error($looks{$case}), '', "$case works after a loss");
	is(scalar(() = $looker->messages =~ m{"/k/looks" was lost}g),
		$told++ ? 0 : 1, "$case: the loss is told once");
}
foreach my $case (sort keys %checked)
{
	is($looker->error($checked{$case}), '40001', "$case does not");
	$looker->query('ROLLBACK');
}

$_->close foreach @sessions, $blocker;
$test->finish;
