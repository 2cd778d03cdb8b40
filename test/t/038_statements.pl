# Statements that act outside of their transaction make the commit check before
# they do anything: after a loss that is known, they are refused and leave
# nothing behind, and without a lease they wait first.  A table tells of every
# statement of the server what it does after a loss.
#
# What the table sees: a kind of statement that a new version adds (a tag of the
# server's list of command tags that is not in the table), and one of the forms
# below that a version newly refuses in a transaction block, or no longer does.
# What it cannot see: a new form of a known statement.  Those make the check first
# all the same, unless they are of a kind that the table calls "later" or "never".

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s', conf => <<'EOC');
wal_level = logical
max_wal_senders = 4
max_replication_slots = 4
EOC
my ($one) = $test->nodes;

# ---- the table: a statement, what it does outside of a block after a loss, and
# whether PostgreSQL refuses it in a block.
#
#	first	is refused before it begins
#	later	is refused, but not before it or a statement in it has begun, or at
#			its commit
#	never	works
#
# Where "first" is to be seen as such, what is named does not exist: without the
# check the error would be another one.

my $alone = 1;
my @table = (
	[ first => 'ALTER DATABASE', 'ALTER DATABASE nothing SET TABLESPACE pg_default', $alone ],
	[ first => 'ALTER DATABASE', 'ALTER DATABASE nothing CONNECTION LIMIT 1' ],
	[ first => 'ALTER SUBSCRIPTION', 'ALTER SUBSCRIPTION nothing REFRESH PUBLICATION' ],
	[ first => 'ALTER SUBSCRIPTION', 'ALTER SUBSCRIPTION nothing DISABLE' ],
	[ first => 'ALTER SYSTEM', 'ALTER SYSTEM SET work_mem = 99', $alone ],
	[ first => 'ALTER TABLE', 'ALTER TABLE parts DETACH PARTITION part CONCURRENTLY', $alone ],
	[ first => 'ALTER TABLE', 'ALTER TABLE parts DETACH PARTITION part' ],
	[ first => 'ANALYZE', 'ANALYZE nothing' ],
	[ first => 'CLUSTER', 'CLUSTER', $alone ],
	[ first => 'CLUSTER', 'CLUSTER nothing USING nothing' ],
	[ first => 'COPY FROM', "COPY parts FROM PROGRAM 'false'" ],
	[ first => 'COPY', "COPY parts TO PROGRAM 'false'" ],
	[ first => 'CREATE DATABASE', 'CREATE DATABASE nothing', $alone ],
	[ first => 'CREATE INDEX', 'CREATE INDEX CONCURRENTLY ON nothing (x)', $alone ],
	[ first => 'CREATE SUBSCRIPTION', "CREATE SUBSCRIPTION nothing CONNECTION 'port=1' PUBLICATION p", $alone ],
	[ first => 'CREATE SUBSCRIPTION', "CREATE SUBSCRIPTION nothing CONNECTION 'port=1' PUBLICATION p WITH (connect = off)" ],
	[ first => 'CREATE TABLESPACE', "CREATE TABLESPACE nothing LOCATION '/nothing'", $alone ],
	[ first => 'DROP DATABASE', 'DROP DATABASE nothing', $alone ],
	[ first => 'DROP INDEX', 'DROP INDEX CONCURRENTLY nothing', $alone ],
	[ first => 'DROP SUBSCRIPTION', 'DROP SUBSCRIPTION nothing' ],
	[ first => 'DROP TABLESPACE', 'DROP TABLESPACE nothing', $alone ],
	[ first => 'REINDEX', 'REINDEX SCHEMA public', $alone ],
	[ first => 'REINDEX', 'REINDEX DATABASE postgres', $alone ],
	[ first => 'REINDEX', 'REINDEX SYSTEM postgres', $alone ],
	[ first => 'REINDEX', 'REINDEX TABLE CONCURRENTLY nothing', $alone ],
	[ first => 'REINDEX', 'REINDEX TABLE parts', $alone ],
	[ first => 'VACUUM', 'VACUUM parts', $alone ],
	[ first => 'TRUNCATE TABLE', 'TRUNCATE nothing' ],
	[ first => 'REFRESH MATERIALIZED VIEW', 'REFRESH MATERIALIZED VIEW nothing' ],
	[ first => 'COMMIT PREPARED', "COMMIT PREPARED 'nothing'", $alone ],
	[ never => 'ROLLBACK PREPARED', "ROLLBACK PREPARED 'nothing'", $alone ],
	[ never => 'DISCARD', 'DISCARD PLANS' ],
	[ never => 'DISCARD PLANS', 'DISCARD PLANS' ],
	[ never => 'DISCARD SEQUENCES', 'DISCARD SEQUENCES' ],
	[ never => 'DISCARD TEMP', 'DISCARD TEMP' ],
	[ never => 'BEGIN', 'BEGIN' ],
	[ never => 'START TRANSACTION', 'START TRANSACTION' ],
	[ never => 'ROLLBACK', 'ROLLBACK' ],
	[ never => 'SET', 'SET work_mem = 100' ],
	[ never => 'RESET', 'RESET work_mem' ],
	[ never => 'SHOW', 'SHOW work_mem' ],
	[ never => 'PREPARE', 'PREPARE p AS SELECT state FROM zk_status' ],
	[ never => 'EXECUTE', 'EXECUTE p' ],
	[ never => 'DEALLOCATE', 'DEALLOCATE p' ],
	[ never => 'DEALLOCATE ALL', 'DEALLOCATE ALL' ],
	[ never => 'CLOSE CURSOR ALL', 'CLOSE ALL' ],
	[ never => 'CLOSE', 'CLOSE nothing' ],
	[ never => 'CLOSE CURSOR', 'CLOSE nothing' ],
	[ never => 'SELECT', 'SELECT * FROM zk_status' ],
	[ first => 'INSERT', "INSERT INTO parts VALUES (1 / (random() * 0)::int)" ],
	[ first => 'UPDATE', 'UPDATE parts SET x = 1 / (random() * 0)::int' ],
	[ first => 'DELETE', 'DELETE FROM parts' ],
	[ first => 'MERGE', 'MERGE INTO parts p USING parts q ON p.x = q.x WHEN MATCHED THEN DELETE' ],
	[ first => 'SELECT INTO', 'SELECT * INTO nothing FROM parts' ],
	[ later => 'SELECT FOR UPDATE', 'SELECT * FROM plain FOR UPDATE' ],
	[ later => 'SELECT FOR SHARE', 'SELECT * FROM plain FOR SHARE' ],
	[ later => 'SELECT FOR KEY SHARE', 'SELECT * FROM plain FOR KEY SHARE' ],
	[ later => 'SELECT FOR NO KEY UPDATE', 'SELECT * FROM plain FOR NO KEY UPDATE' ],
	[ later => 'CALL', 'CALL nop()' ],
	[ later => 'DO', "DO 'BEGIN END'" ],
	[ later => 'EXPLAIN', 'EXPLAIN SELECT 1' ],
	[ later => 'CHECKPOINT', 'CHECKPOINT' ],
	[ later => 'LISTEN', 'LISTEN x' ],
	[ later => 'NOTIFY', 'NOTIFY x' ],
	[ later => 'UNLISTEN', 'UNLISTEN x' ],
	[ later => 'LOAD', "LOAD 'plpgsql'" ],
	[ later => 'SET CONSTRAINTS', 'SET CONSTRAINTS ALL DEFERRED' ]);
push @table,
  [ first => 'REPACK', 'REPACK', $alone ],
  [ first => 'REPACK', 'REPACK (CONCURRENTLY) nothing', $alone ],
  [ first => 'REPACK', 'REPACK nothing' ],
  [ first => 'WAIT', "WAIT FOR LSN '0/0' WITH (timeout '1ms')" ]
  if $one->pg_version->major >= 19;

# These need a block, so that the question does not arise (a cursor WITH HOLD,
# too, is materialized at the commit, ahead of its check), or end the test.
my %elsewhere = map { $_ => 1 } 'COMMIT', 'DISCARD ALL', 'SAVEPOINT', 'RELEASE',
  'PREPARE TRANSACTION', 'LOCK TABLE', 'DECLARE CURSOR', 'FETCH', 'MOVE';

# All that is left changes the catalog in its transaction: "first".  Names of
# triggers' events, and of what is no statement, are left out.
my %no_statement = map { $_ => 1 } '???', 'LOGIN', 'ALTER CAST',
  'ALTER CONSTRAINT', 'CREATE CONSTRAINT', 'DROP CONSTRAINT', 'ALTER TRANSFORM',
  'CREATE ROUTINE', 'ALTER ACCESS METHOD';
my %catalog = map { $_ => 1 } 'COMMENT', 'GRANT', 'GRANT ROLE', 'REVOKE',
  'REVOKE ROLE', 'SECURITY LABEL', 'REASSIGN OWNED', 'DROP OWNED',
  'IMPORT FOREIGN SCHEMA', 'CREATE TABLE AS', 'ALTER DEFAULT PRIVILEGES',
  'ALTER LARGE OBJECT', 'ALTER TABLESPACE';
foreach my $kind (
	'ACCESS METHOD', 'AGGREGATE', 'CAST', 'COLLATION', 'CONVERSION', 'DOMAIN',
	'EVENT TRIGGER', 'EXTENSION', 'FOREIGN DATA WRAPPER', 'FOREIGN TABLE',
	'FUNCTION', 'INDEX', 'LANGUAGE', 'MATERIALIZED VIEW', 'OPERATOR',
	'OPERATOR CLASS', 'OPERATOR FAMILY', 'POLICY', 'PROCEDURE', 'PUBLICATION',
	'ROLE', 'ROUTINE', 'RULE', 'SCHEMA', 'SEQUENCE', 'SERVER', 'STATISTICS',
	'TABLE', 'TEXT SEARCH CONFIGURATION', 'TEXT SEARCH DICTIONARY',
	'TEXT SEARCH PARSER', 'TEXT SEARCH TEMPLATE', 'TRANSFORM', 'TRIGGER', 'TYPE',
	'USER MAPPING', 'VIEW')
{
	$catalog{"$_ $kind"} = 1 foreach 'ALTER', 'CREATE', 'DROP';
}
my @catalog_samples = (
	'ALTER ROLE nothing NOLOGIN', 'COMMENT ON TABLE nothing IS NULL',
	'CREATE FUNCTION f() RETURNS int LANGUAGE nothing AS $$$$',
	'CREATE TABLE nothing.nothing ()', 'CREATE TABLE copy AS TABLE parts',
	'DROP TABLE nothing', 'GRANT nothing TO nothing', 'DROP EXTENSION nothing',
	'IMPORT FOREIGN SCHEMA s FROM SERVER nothing INTO public',
	'DROP OWNED BY nothing', 'CREATE EXTENSION nothing');

# ---- is it whole?

my $header = $one->config_data('--includedir-server') . '/tcop/cmdtaglist.h';
chomp $header;
my %known = (%elsewhere, %catalog, %no_statement,
	map { $_->[1] => 1 } @table);
my @tags = slurp_file($header) =~ /^PG_CMDTAG\(\w+, "([^"]+)"/mg;
cmp_ok(scalar(@tags), '>', 150, 'the server has a list of its statements');
is(join(', ', grep { !$known{$_} } @tags), '', 'the table has all of them');

# ---- what the server refuses in a block

$one->safe_psql('postgres', <<'EOS');
CREATE TABLE parts (x int) PARTITION BY LIST (x);
CREATE TABLE part PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE plain (x int);
INSERT INTO parts VALUES (1);
CREATE PROCEDURE nop() LANGUAGE sql AS '';
CREATE PUBLICATION p;
CREATE DATABASE kept;
EOS
my $s = $test->session($one);
foreach my $row (@table)
{
	my ($verdict, $tag, $sql, $is_alone) = @$row;

	next if $tag =~ /^(BEGIN|START TRANSACTION|ROLLBACK)$/;
	$s->query('BEGIN');
	my $error = $s->error($sql);
	is($error eq '25001' ? 1 : 0,
		$is_alone // 0,
		"$sql is " . ($is_alone ? '' : 'not ') . 'refused in a block');
	$s->query('ROLLBACK');
}

# ---- after a loss

my $space = $one->basedir . '/space';
mkdir $space;
$space = (PostgreSQL::Test::Utils->can('perl2host') // sub { $_[0] })->($space);
$space = `cd '$space' && pwd` =~ s/\n//r;
my $connection = 'host=' . $one->host . ' port=' . $one->port . ' dbname=kept';
my @acts = (
	"CREATE TABLESPACE space LOCATION '$space'",
	'DROP DATABASE kept',
	'ALTER SYSTEM SET work_mem = 99',
	"CREATE SUBSCRIPTION sub CONNECTION '$connection' PUBLICATION p",
	'CREATE DATABASE copy');

$one->safe_psql('kept', 'CREATE PUBLICATION p');
my %before = map { $_ => 1 } glob($one->data_dir . '/base/*');
$s->query("SELECT zk_lock('/s/lost')");
my $waits = $test->session($one);
$waits->query("SELECT zk_lock('/s/waits')");
ok($test->lose_session($one, '/s/lost'), 'the session is lost');

foreach my $row (@table, map { [ 'first', '', $_ ] } @catalog_samples, @acts)
{
	my ($verdict, $tag, $sql) = @$row;
	my $error = $s->error($sql);

	if ($verdict eq 'never')
	{
		isnt($error, '40001', "$sql works after a loss");
	}
	else
	{
		is($error, '40001', "$sql does not work after a loss");
		like($s->messages, qr{"/s/lost" was lost}, "$sql: it says why");
	}
	$s->query('ROLLBACK');
}
is(join(' ', grep { !$before{$_} } glob($one->data_dir . '/base/*')),
	'', 'no files of a database are left');
is(join(' ', glob("$space/*")), '', 'none of a tablespace');
unlike(slurp_file($one->data_dir . '/postgresql.auto.conf'),
	qr{work_mem}, 'no setting');
is($test->look($one, 'SELECT count(*) FROM pg_replication_slots'),
	0, 'no slot on the publisher');
is($one->safe_psql('kept', 'SELECT 1'), 1, 'and the database is still there');
is($s->error('DISCARD ALL'), '', 'DISCARD ALL acknowledges the loss');
is($s->error($_), '', "then this works: $_") foreach 'DROP DATABASE kept', $acts[0];
$s->query('DROP TABLESPACE space');

# ---- without a lease

$waits->query('SELECT zk_unlock_all()');
$waits->query("SELECT zk_lock('/s/waits')");
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$test->look_until($one, "SELECT lease_remaining <= '0' FROM zk_status",
	't', 'the lease passes');
$waits->query("SET zklock.commit_wait = '10min'");
$waits->send('CREATE DATABASE waited');
$test->look_until($one,
	"SELECT wait_event_type FROM pg_stat_activity WHERE pid = " . $waits->pid,
	'Extension', 'CREATE DATABASE waits for the lease');
is($test->look($one, "SELECT count(*) FROM pg_database WHERE datname = 'waited'"),
	0, 'it is not there yet');
is(join(' ', grep { !$before{$_} } glob($one->data_dir . '/base/*')),
	'', 'nor are its files');
kill 'CONT', $worker;
is($waits->sqlstate, '', 'and goes on when it is renewed');

$_->close foreach $s, $waits;
$test->finish;
