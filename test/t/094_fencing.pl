# zk_fence().  The worked example of docs/guarantees.md: the statements that it shows are
# the ones that run here, on a server without zklock's library, and a holder that was
# stopped too long is refused.  Then what else a fence does, and for whom; and each way
# to write to a table that is fenced, its partitions and the tables that inherit from it.
# All of it three times: with the functions of zklock; with those of zklock_fence, which
# load no library; and with the script of zklock_fence, pasted into a database.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Procedure;
use ServerTemplates;
use ZklockTest;

my $page =
  slurp_file(dirname(abs_path(__FILE__)) . '/../../docs/guarantees.md');
my ($example) = $page =~ /^## Fencing tokens(.*)/ms;
my ($resource, $take, $change, $trigger) = $example =~ /^```sql\n(.*?)^```$/msg;
my ($token) = $change =~ /zk_fence\('\S+', (\d+)\)/;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $plain = PostgreSQL::Test::Cluster->new('plain');
ServerTemplates::init($plain);
$plain->start;
$plain->safe_psql('postgres', 'CREATE ROLE worker LOGIN; CREATE ROLE owner LOGIN');

my $folder = PostgreSQL::Test::Utils::tempdir();
my $script = abs_path(dirname(__FILE__) . '/../../sql/zklock_fence--1.0.sql');
my %create = (
	zklock => 'CREATE EXTENSION zklock',
	zklock_fence => 'CREATE EXTENSION zklock_fence',
	pasted => slurp_file($script));

# What each way to write is tried on
my $tables = <<'EOS';
CREATE TABLE plain (n int, k int);
CREATE TABLE keyed (n int PRIMARY KEY, k int);
CREATE VIEW plain_view AS SELECT * FROM plain;
CREATE TABLE referenced (n int PRIMARY KEY);
CREATE TABLE referring (n int REFERENCES referenced ON DELETE CASCADE, k int);
CREATE TABLE parts (n int, k int) PARTITION BY RANGE (n);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (10);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (10) TO (20) PARTITION BY RANGE (n);
CREATE TABLE parts_21 PARTITION OF parts_2 FOR VALUES FROM (10) TO (20);
CREATE TABLE parent (n int, k int);
CREATE TABLE child () INHERITS (parent);
CREATE TABLE grandchild () INHERITS (child);
EOS

# Of the database under test: its name, and sessions
my ($kind, $keeper, $late, $role);

# Makes the change of the example under a token.
sub error_of_change
{
	my ($mine) = @_;
	my $session = $test->session($plain, dbname => $kind);
	my $error = $session->error($change =~ s/$token/$mine/gr);

	$session->close;
	return $error;
}

# The files that a process has mapped
sub read_maps
{
	my ($pid) = @_;

	return split /\n/, slurp_file("/proc/$pid/maps");
}

sub later
{
	$keeper->query('CREATE TABLE parts_3 PARTITION OF parts FOR VALUES FROM (20) TO (30)');
	$keeper->query('CREATE TABLE loose (n int, k int); ALTER TABLE parts ATTACH PARTITION loose FOR VALUES FROM (30) TO (40)');
	return $keeper->query('CREATE TABLE stepchild () INHERITS (parent)');
}

my %number = (parts_2 => 10, parts_21 => 10, parts_3 => 20, loose => 30);

# What a role sends to write to a table, and puts into it by COPY
sub writes
{
	my ($table) = @_;
	my $n = $number{$table} // 0;

	return (
		"INSERT INTO $table VALUES ($n, 1)",
		"UPDATE $table SET k = 2",
		"MERGE INTO $table t USING (VALUES ($n)) v (n) ON t.n = v.n WHEN MATCHED THEN UPDATE SET k = 3",
		"MERGE INTO $table t USING (VALUES ($n)) v (n) ON false WHEN NOT MATCHED THEN INSERT VALUES ($n + 1, 4)",
		"DELETE FROM $table",
		"COPY $table FROM STDIN;\n" . ($n + 2) . "\t5\n\\.\n",
		"TRUNCATE $table");
}

# The error of a write by that role, with that token
sub error_of_write
{
	my ($write, $mine) = @_;
	my $error = '';

	$role->query("SET zklock.fencing_token = '$mine'");
	return $role->error($write) if $write !~ /^COPY/;
	$plain->psql($kind, "\\set VERBOSITY verbose\nSET zklock.fencing_token = '$mine';\n$write",
		stderr => \$error, extra_params => [ '-U', 'worker' ]);
	return $error =~ /ERROR:  (\w+):/ ? $1 : $error;
}

# All ways to write to a table are let through with one token, and refused with another one.
sub writes_ok
{
	my ($table, %seen) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$keeper->query("GRANT ALL ON $table TO worker");
	foreach my $write (writes($table))
	{
		my ($what) = $write =~ /^(\w+)/;
		my $expected = $seen{$what} // 1 ? 'ZK001' : '';

		$keeper->query("INSERT INTO $table VALUES (" . ($number{$table} // 0) . ', 0)');
		is(error_of_write($write, 19), $expected, "$table: a stale token, $what: " . ($expected ? 'refused' : 'not seen'));
		$keeper->query("INSERT INTO $table VALUES (" . ($number{$table} // 0) . ', 0)');
		is(error_of_write($write, 20), '', "$table: a good token, $what: it writes");
	}
	return;
}

my $stopped = $test->session($one);
my $next = $test->session($two);
my $stale = $stopped->query($take);
$test->enqueue($next, $take, '/billing/run');

# Its server is cut off until the session is gone.
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
kill 'KILL', $test->status($one, 'session_pid');
my $fresh = $next->value;
cmp_ok($fresh, '>', $stale, 'the next holder has a higher token');

foreach my $with (qw(zklock zklock_fence pasted))
{
	note "with $with";
	$kind = $with;
	my $is_c = $kind eq 'zklock';
	$plain->safe_psql('postgres', "CREATE DATABASE $kind");
	$plain->safe_psql($kind, $create{$kind});
	$keeper = $test->session($plain, dbname => $kind);
	$keeper->query($_) foreach grep { !/^CREATE EXTENSION/m } split /;.*\n/, $resource;

	is(error_of_change($fresh), '', 'the next holder passes the fence');
	is(error_of_change($fresh), '', 'as often as it likes');
	is(error_of_change($stale), 'ZK001', 'the one that was stopped does not');
	is($keeper->query('SELECT balance FROM account'),
		80, 'what it would have changed is not changed');

	# ---- two at a time, and what is undone

	$late = $test->session($plain, dbname => $kind);
	$keeper->query("BEGIN; SELECT zk_fence('/f', 10)");
	$late->send("SELECT zk_fence('/f', 9)");
	$late->wait_running;
	ok($late->busy, 'the second one waits for the first');
	$keeper->query('COMMIT');
	is($late->sqlstate, 'ZK001', 'and is refused');
	like($late->messages, qr/Token 9 for "\/f" is lower than token 10, which passed at \d/,
		'and told by which');
	$keeper->query("BEGIN; SELECT zk_fence('/f', 20)");
	$late->send("SELECT zk_fence('/f', 15)");
	$keeper->query('ROLLBACK');
	is($late->sqlstate, '', 'what is rolled back has not passed');
	$keeper->query("BEGIN; SELECT zk_fence('/f', 15); SAVEPOINT s");
	is($keeper->error("SELECT zk_fence('/f', 14)"), 'ZK001', 'an error in a savepoint');
	is($keeper->query("ROLLBACK TO s; SELECT current_user = session_user"),
		't', 'leaves the role as it was');
	$keeper->query('COMMIT');
	$late->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
	$keeper->query("SELECT zk_fence('/f', 16)");
	is($late->error("SELECT zk_fence('/f', 15)"), '40001', 'an old snapshot decides nothing');
	$late->query('ROLLBACK');
	is($keeper->query("SELECT zk_fence_reset('/f', 5)"), 't', 'it is reset');
	is($late->error("SELECT zk_fence('/f', 6)"), '', 'then lower ones pass');
	is($keeper->query("SELECT zk_fence_reset('/none', 5)"), 'f', 'one that is new is set');
	is($late->error("SELECT zk_fence('/none', 4)"), 'ZK001', 'and counts');
	my %bad = (
		"zk_fence(NULL, 1)" => '22004',
		"zk_fence('/f', NULL)" => '22004',
		"zk_fence('/f', 0)" => '22023',
		"zk_fence('f', 1)" => '22023',
		"zk_fence_reset('/f', NULL)" => '22004',
		"zk_fence_reset('/f', -1)" => '22023',
		"zk_fence_trigger()" => $is_c ? '39P01' : '0A000');
	is($late->error("SELECT $_"), $bad{$_}, "$_") foreach sort keys %bad;

	# ---- the trigger

	$keeper->query($trigger);
	is($late->error('UPDATE account SET balance = 0'), '55000', 'a change without a token');
	$late->query("SET zklock.fencing_token = '$stale'");
	is($late->error('UPDATE account SET balance = 0'), 'ZK001', 'with one that is stale');
	$late->query("SET zklock.fencing_token = '$fresh'");
	is($late->error('UPDATE account SET balance = 0'), '', 'with one that is not');
	$late->query("SET zklock.fencing_token = 'x'");
	is($late->error('DELETE FROM account'), '22P02', 'with none at all');
	$keeper->query(
		'CREATE TABLE rows (n int); CREATE TRIGGER fence BEFORE INSERT OR UPDATE OR DELETE ON rows'
		  . " FOR EACH ROW EXECUTE FUNCTION zk_fence_trigger('/rows')");
	$late->query("SET zklock.fencing_token = '7'");
	$late->query('INSERT INTO rows VALUES (1), (2)');
	$late->query('UPDATE rows SET n = n + 1; DELETE FROM rows WHERE n = 3');
	is($late->query('SELECT n FROM rows'), 2, 'a trigger of rows lets them through');
	$keeper->query('CREATE TRIGGER bad BEFORE INSERT ON rows FOR EACH ROW EXECUTE FUNCTION zk_fence_trigger()');
	is($late->error('INSERT INTO rows VALUES (1)'), '39P01', 'a trigger without a name');
	$keeper->query('DROP TRIGGER bad ON rows');

	# ---- rights

	$keeper->query('GRANT INSERT ON rows TO worker');
	$role = $test->session($plain, dbname => $kind, user => 'worker');
	is($role->error("SELECT zk_fence('/f', 100)"), '42501', 'not everybody may pass a token');
	is($role->error('UPDATE zk_fences SET token = 1'), '42501', 'nor write to the table');
	is($role->query("SELECT token FROM zk_fences WHERE name = '/f'"), 6, 'but read it');
	$keeper->query('GRANT EXECUTE ON FUNCTION zk_fence, zk_fence_reset TO worker');
	is($role->error("SELECT zk_fence('/f', 7)"), '', 'whoever may call it may');
	is($role->error("SELECT zk_fence_reset('/f', 7)"), $is_c ? '42501' : '', 'reset it only if that is a right');
	$keeper->query("SELECT zk_grant('/f', 'worker', 'lock')") if $is_c;
	is($role->error("SELECT zk_fence('/f', 8)"), $is_c ? '42501' : '', 'rights by prefix bound the names');
	$keeper->query("SELECT zk_grant('/f', 'worker', 'fence')") if $is_c;
	is($role->error("SELECT zk_fence('/f', 8)"), '', 'with the right one it may');
	$role->query("SET zklock.fencing_token = '8'");
	is($role->error('INSERT INTO rows VALUES (1)'), '', 'a trigger is the table owner\'s');

	# ---- each way to write

	$keeper->query($_) foreach split /;\n/, $tables;
	is($keeper->query("SELECT zk_fence_table('$_->[0]', '/writes')"), $_->[1], "$_->[0]: tables that are fenced")
	  foreach [ 'plain', 1 ], [ 'keyed', 1 ], [ 'referring', 1 ], [ 'parts', 4 ], [ 'parent', 3 ], [ 'parts', 4 ];

	$keeper->query("SET zklock.fencing_token = '20'");
	writes_ok($_) foreach qw(plain parts parts_1 parts_2 parts_21 parent child grandchild);
	$keeper->query('GRANT ALL ON plain_view, keyed, referenced, referring TO worker; INSERT INTO keyed VALUES (0, 0); INSERT INTO referenced VALUES (1); INSERT INTO referring VALUES (1, 1)');
	is(error_of_write($_, 19), 'ZK001', "$_: refused")
	  foreach 'INSERT INTO plain_view VALUES (5, 5)', 'DELETE FROM referenced',
	  'INSERT INTO keyed VALUES (0, 1) ON CONFLICT (n) DO UPDATE SET k = 9',
	  'WITH x AS (INSERT INTO plain VALUES (6, 6) RETURNING n) SELECT n FROM x',
	  'DO $$ BEGIN UPDATE plain SET k = 1; END $$', 'TRUNCATE referenced CASCADE';

	# What comes later, as the page says
	later();
	writes_ok($_, TRUNCATE => 0) foreach 'parts_3', 'loose';
	writes_ok('stepchild', map { $_ => 0 } qw(INSERT UPDATE MERGE DELETE COPY TRUNCATE));
	is(error_of_write('UPDATE parent SET k = 5', 19), 'ZK001', 'by the name of the parent: refused');
	is($keeper->query("SELECT zk_fence_table('parts', '/writes')"), 6, 'they are fenced');
	is($keeper->query("SELECT zk_fence_table('parent', '/writes')"), 4, 'as are these');
	writes_ok($_) foreach qw(parts_3 loose stepchild);

	# A token passes once for many rows, but only as long as nothing else may have.
	$keeper->query('CREATE TABLE parts_4 PARTITION OF parts FOR VALUES FROM (40) TO (50); GRANT ALL ON parts_4 TO worker');
	$keeper->query('GRANT EXECUTE ON FUNCTION zk_fence TO worker');
	$role->query("SET zklock.fencing_token = '30'");
	$role->query("BEGIN; INSERT INTO parts_4 VALUES (40, 1), (41, 1)");
	$role->query("SELECT zk_fence('/writes', 31); SAVEPOINT s");
	is($role->error('INSERT INTO parts_4 VALUES (42, 1)'), 'ZK001', 'a higher token of the same transaction');
	$role->query("ROLLBACK; BEGIN; SAVEPOINT s; INSERT INTO parts_4 VALUES (40, 1); ROLLBACK TO s");
	$keeper->query("SELECT zk_fence('/writes', 31)");
	is($role->error('INSERT INTO parts_4 VALUES (40, 1)'), 'ZK001', 'one of another transaction, behind a savepoint');
	$role->query('ROLLBACK');

	# What is refused, and what PostgreSQL can fence
	$keeper->query('CREATE FOREIGN DATA WRAPPER none; CREATE SERVER none FOREIGN DATA WRAPPER none');
	$keeper->query('CREATE FOREIGN TABLE remote (n int) SERVER none');
	is($keeper->query("SELECT zk_fence_table('remote', '/writes')"), 1, 'a foreign table');
	is($keeper->error("SELECT zk_fence_table('plain_view', '/writes')"), '42809', 'no view');
	is($keeper->error("SELECT zk_fence_table($_)"), '22004', $_) foreach "NULL, '/writes'", "'plain', NULL";
	is($keeper->error("SELECT zk_fence_table('plain', 'writes')"), '22023', 'no name of a lock');
	$keeper->query("SELECT zk_fence_table('plain', '/it''s \\ 1')");
	is($role->error('INSERT INTO plain VALUES (7, 7)'), '', 'a name of all kinds of characters');
	is($keeper->query("SELECT token FROM zk_fences WHERE name = '/it''s \\ 1'"), 30, 'has passed');
	is($role->error("SELECT zk_fence_table('plain', '/writes')"), '42501', 'not everybody may call it');
	$keeper->query('GRANT EXECUTE ON FUNCTION zk_fence_table, zk_fence_trigger TO worker; REVOKE TRIGGER ON plain FROM worker');
	is($role->error("SELECT zk_fence_table('plain', '/writes')"), '42501', 'nor on any table');
	$keeper->query('CREATE TABLE own (n int); ALTER TABLE own OWNER TO worker');
	is($role->query("SELECT zk_fence_table('own', '/f')"), 1, 'but on its own');
	is($role->error("SELECT zk_fence_table('own', '/f/g')") . $role->error("SELECT zk_fence_table('own', '/secret')"),
		'', 'with a name that it may fence');
	$keeper->query("SELECT zk_grant('/secret', 'pg_monitor', 'fence')") if $is_c;
	is($role->error("SELECT zk_fence_table('own', '/secret')"), $is_c ? '42501' : '', 'not with another one');

	# ---- what loads the library

	is((grep { m{/zklock\.so} } read_maps($role->pid)) > 0, $is_c, 'the library is loaded for zklock alone');

	# ---- a dump keeps them

	$plain->safe_psql('postgres', "CREATE DATABASE owned_$kind OWNER owner");
	$plain->safe_psql("owned_$kind", ($is_c ? '' : 'SET ROLE owner; ') . $create{$kind});
	$plain->safe_psql("owned_$kind", "SELECT zk_fence('/dumped', 5)");
	my ($dump, $err) = run_command([ 'pg_dump', '-U', 'owner', '-d', $plain->connstr("owned_$kind") ]);
	like($dump, qr{^/dumped\t5\t}m, 'the dump of the database\'s owner has them') or diag $err;
	$plain->safe_psql('postgres', "CREATE DATABASE restored_$kind OWNER owner");
	append_to_file("$folder/$kind.sql", $dump);
	$plain->command_ok([ 'psql', '-qX', '-v', 'ON_ERROR_STOP=1', '-d', $plain->connstr("restored_$kind"), '-f', "$folder/$kind.sql" ], 'it is restored');
	is($plain->safe_psql("restored_$kind", "SELECT token FROM zk_fences WHERE name = '/dumped'"), 5, 'with the token');
	is(($plain->psql("restored_$kind", "SELECT zk_fence('/dumped', 4)"))[0], 3, 'which counts');
	$_->close foreach $keeper, $late, $role;
}

# ---- they are the same

sub surface
{
	my ($db) = @_;

	return $plain->safe_psql($db, <<'EOS');
SELECT p.oid::regprocedure, pg_get_function_arguments(p.oid), pg_get_function_result(p.oid), provolatile,
       proparallel, proacl IS NULL, obj_description(p.oid)
  FROM pg_proc p WHERE proname IN ('zk_fence', 'zk_fence_reset', 'zk_fence_trigger', 'zk_fence_table') ORDER BY 1;
SELECT attname, format_type(atttypid, atttypmod), attnotnull, attcollation::regcollation, pg_get_expr(adbin, adrelid),
       col_description(a.attrelid, attnum), obj_description(a.attrelid), relacl::text ~ '[{,]=r/'
  FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
 WHERE relname = 'zk_fences' AND attnum > 0 ORDER BY 1;
EOS
}
is(surface($_), surface('zklock'), "$_: the same functions, and the same table") foreach 'zklock_fence', 'pasted';

# One of them in a database; and each in a schema of its own, which can be another one
foreach (
	[ 'zklock', 'zklock_fence' ], [ 'pasted', 'zklock_fence' ],
	[ 'zklock_fence', 'zklock' ], [ 'pasted', 'zklock' ])
{
	my ($db, $extension) = @$_;
	my $error = '';

	$plain->psql($db, "CREATE SCHEMA other; CREATE EXTENSION $extension SCHEMA other", stderr => \$error);
	like($error, qr/there are fences in this database: function public\.zk_fence\(text,bigint\)\nHINT:  Extension "zklock" has/,
		"$extension is refused where $db is");
	$plain->safe_psql($db, 'DROP SCHEMA IF EXISTS other');
}
my $moved = $test->session($plain, dbname => 'zklock_fence');
$moved->query('CREATE SCHEMA "An Other"; ALTER EXTENSION zklock_fence SET SCHEMA "An Other"');
$moved->query(q(SET zklock.fencing_token = '40'));
is($moved->error('INSERT INTO parts_4 VALUES (43, 1)'), '', 'in another schema: a trigger finds it');
is($moved->query('SELECT "An Other".zk_fence_table(\'parts\', \'/writes\')'), 7, 'and so does zk_fence_table');
is($moved->error('SELECT "An Other".zk_fence(\'/writes\', 39)'), 'ZK001', 'and zk_fence');

# Who calls them cannot lead them elsewhere.
$moved->query($_) foreach split /;\n/, <<'EOS';
CREATE SCHEMA evil AUTHORIZATION worker;
GRANT USAGE ON SCHEMA "An Other" TO worker;
SET ROLE worker;
CREATE FUNCTION evil.lower_than(bigint, bigint) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
CREATE FUNCTION evil.differs(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT false $$;
CREATE OPERATOR evil.< (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.lower_than);
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.differs);
CREATE FUNCTION evil.zk_fence_compare(text, bigint, bigint, timestamptz) RETURNS void LANGUAGE sql AS $$ SELECT $$;
SET search_path = evil, "An Other", pg_catalog, public
EOS
is($moved->error(q(SELECT zk_fence('/writes', 39))), 'ZK001', 'whatever the search_path is');
is($moved->error(q(SET zklock.fencing_token = '39'; INSERT INTO parts_4 VALUES (44, 1))), 'ZK001', 'also in a trigger');
$moved->close;

# ---- the page's commands for a managed database

my $procedure = Procedure->new('docs/guarantees.md', 'Locks for managed databases', 'zklock_fence--1.0.sql' => $script);
kill 'CONT', $worker;
$stopped->error('SELECT zk_unlock_all()');
$next->error('SELECT zk_unlock_all()');
$test->wait_connected($one);
$procedure->services(locks => $one, managed => $plain);
$procedure->run(0);
$plain->safe_psql('postgres', join ';', grep { !/^CREATE EXTENSION/m } split /;.*\n/, $resource);
$procedure->run(1);
is($plain->safe_psql('postgres', 'SELECT balance FROM account'), 90, 'a job of the page has changed it');
cmp_ok($plain->safe_psql('postgres', "SELECT token FROM zk_fences WHERE name = '/billing/run'"),
	'>=', $fresh, 'with its token');

$_->close foreach $stopped, $next;
$plain->stop;
$test->finish;
