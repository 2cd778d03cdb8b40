# Each session has a copy of the rights by prefix.  Whatever changes the table, and
# wherever, all sessions know it at their next call: in an open transaction, on a
# standby, and on a subscriber of a logical replication.  A dump carries the rights,
# whether the roles are there or not.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(init => { allows_streaming => 'logical' });
my ($node, $other) = $test->nodes;
my $root = $test->session($node);
my $roles = 'CREATE ROLE alice LOGIN; CREATE ROLE bob LOGIN;'
  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO alice, bob';
$root->query($roles);
$other->safe_psql('postgres', $roles);
my $alice = $test->session($node, user => 'alice');
my $row = "('/c', 'bob', 'lock')";
my $call = "SELECT zk_try_lock('/c/x') AND zk_unlock('/c/x')";

# Whether a session may take the lock, which it then gives back
sub may_ok
{
	my ($session, $may, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($session->error($call), $may ? '' : '42501', $case);
}

# ---- statements ----

# The first makes a row and the second ends it; for bob or alice.
my %changes = (
	'zk_grant, zk_revoke' => [
		"SELECT zk_grant('/c', 'bob')", "SELECT zk_revoke('/c', 'bob')" ],
	'INSERT, DELETE' => [ "INSERT INTO zk_rights VALUES $row", 'DELETE FROM zk_rights' ],
	'INSERT, UPDATE' => [
		"INSERT INTO zk_rights VALUES $row",
		"UPDATE zk_rights SET role = 'alice'" ],
	'COPY, TRUNCATE' => [ undef, 'TRUNCATE zk_rights' ],
	'MERGE' => [
		"MERGE INTO zk_rights USING (VALUES $row) v (p, r, w) ON prefix = p"
		  . ' WHEN NOT MATCHED THEN INSERT VALUES (p, r, w)',
		"MERGE INTO zk_rights USING (VALUES $row) v (p, r, w) ON prefix = p"
		  . ' WHEN MATCHED THEN DELETE' ]);

sub copy_in
{
	my ($settings) = @_;

	$node->safe_psql('postgres', "$settings COPY zk_rights FROM STDIN;\n/c\tbob\tlock\n\\.\n");
	return;
}

foreach my $role ('origin', 'replica', 'local')
{
	my $settings = "SET session_replication_role = $role;";

	$root->query($settings);
	foreach my $change (sort keys %changes)
	{
		my ($make, $end) = @{ $changes{$change} };

		may_ok($alice, 1, "$role, $change: before");
		defined $make ? $root->query($make) : copy_in($settings);
		may_ok($alice, 0, "$role, $change: a grant to another role");
		$root->query($end);
		may_ok($alice, 1, "$role, $change: its end");
		$root->query('TRUNCATE zk_rights');
	}
}
$root->query('RESET session_replication_role');

# ---- transactions ----

$root->query('BEGIN');
$root->query("SELECT zk_grant('/c', 'alice')");
$root->query('SET LOCAL ROLE bob');
may_ok($root, 0, 'a transaction knows its own grants');
$root->query('ROLLBACK');
$root->query("BEGIN; SAVEPOINT s; SELECT zk_grant('/c', 'alice')");
$root->query('SET LOCAL ROLE bob');
may_ok($root, 0, 'also in a subtransaction');
$root->query('ROLLBACK TO s; SET LOCAL ROLE bob');
may_ok($root, 1, 'until that is rolled back');
$root->query('ROLLBACK');
$root->query("BEGIN; SELECT zk_grant('/c', 'bob')");
may_ok($alice, 1, 'others do not know them before the commit');
$root->query('ROLLBACK');
may_ok($alice, 1, 'nor after a rollback');
foreach my $level ('READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE')
{
	$alice->query("BEGIN ISOLATION LEVEL $level");
	is($alice->query("SELECT zk_try_xact_lock('/c/x')"), 't', "$level: no grants yet");
	$root->query("SELECT zk_grant('/c', 'bob')");
	is($alice->error("SELECT zk_try_xact_lock('/c/x')"), '42501', "$level: but in mid-transaction");
	$alice->query('ROLLBACK');
	$root->query('TRUNCATE zk_rights');
}

# Sessions that come when there are grants already, and what has no grants
$root->query("SELECT zk_grant('/c', 'bob')");
my $late = $test->session($node, user => 'alice');
may_ok($late, 0, 'a new session');
my $bob = $test->session($node, user => 'bob');
may_ok($bob, 1, 'of another role');
is($late->error("SELECT zk_try_lock('/d/x') AND zk_unlock('/d/x')"), '', 'another name');
$root->query('VACUUM FULL zk_rights');
may_ok($late, 0, 'after the table was rewritten');
$root->query('REINDEX TABLE zk_rights; ANALYZE zk_rights; CLUSTER zk_rights USING zk_rights_pkey');
may_ok($alice, 0, 'and its index');
$_->close foreach $late, $bob;

# Many changes at once, more than the queue of invalidations has room for
$root->query('BEGIN; DO $$ BEGIN FOR i IN 1 .. 3000 LOOP'
	  . " EXECUTE format('CREATE TEMP TABLE t%s (); DROP TABLE t%s', i, i); END LOOP; END \$\$;"
	  . ' TRUNCATE zk_rights; COMMIT');
may_ok($alice, 1, 'after many invalidations');

# ---- another database has rights of its own ----

$root->query("SELECT zk_grant('/c', 'bob')");
$root->query('CREATE DATABASE second');
$node->safe_psql('second', 'CREATE EXTENSION zklock;'
	  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO alice');
my $second = $test->session($node, user => 'alice', dbname => 'second');
may_ok($second, 1, 'another database');
may_ok($alice, 0, 'this one');
$second->close;

# ---- a standby ----

my $standby = $test->add_standby($node, "zklock.server_name = 'standby'");
my $reader = $test->session($standby, user => 'alice');
sub standby_ok
{
	my ($may, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node->wait_for_catchup($standby, 'replay');
	return may_ok($reader, $may, "standby: $case");
}

standby_ok(0, 'rights from before');
$root->query("SELECT zk_revoke('/c', 'bob')");
standby_ok(1, 'taken back');
$root->query("SET session_replication_role = replica; INSERT INTO zk_rights VALUES $row");
standby_ok(0, 'inserted');
$reader->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
may_ok($reader, 0, 'standby: in a transaction');
$reader->query('ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$root->query('DELETE FROM zk_rights');
standby_ok(1, 'deleted, in an open transaction');
$reader->query('COMMIT');
$root->query("SELECT zk_grant('/c', 'bob')");
standby_ok(0, 'granted again');
$root->query('TRUNCATE zk_rights; RESET session_replication_role');
standby_ok(1, 'truncated');
is($test->look($standby, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'rights'"),
	't', 'standby: its health');
my $writer = $test->session($standby);
is($writer->error("SELECT zk_grant('/c', 'bob')"), '25006', 'standby: nothing is granted there');
$_->close foreach $reader, $writer;

# ---- logical replication ----

my $far = $test->session($other, user => 'alice');
my $far_root = $test->session($other);
$root->query('CREATE PUBLICATION rights FOR TABLE zk_rights');
$root->query("SELECT zk_grant('/c', 'bob')");
may_ok($far, 1, 'subscriber: before');
my $connstr = $node->connstr('postgres') =~ s{'}{''}gr;
$far_root->query("CREATE SUBSCRIPTION rights CONNECTION '$connstr' PUBLICATION rights");
$other->wait_for_subscription_sync($node, 'rights');
may_ok($far, 0, 'subscriber: the first copy');
sub subscriber_ok
{
	my ($change, $may) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$root->query($change);
	$node->wait_for_catchup('rights');
	return may_ok($far, $may, "subscriber: $change");
}

subscriber_ok("UPDATE zk_rights SET role = 'alice'", 1);
subscriber_ok("UPDATE zk_rights SET role = 'bob'", 0);
subscriber_ok('DELETE FROM zk_rights', 1);
subscriber_ok("INSERT INTO zk_rights VALUES $row", 0);
subscriber_ok('TRUNCATE zk_rights', 1);
$far_root->query('DROP SUBSCRIPTION rights');
$_->close foreach $far, $far_root;

# ---- dumps ----

$root->query('CREATE ROLE carl');
$root->query("SELECT zk_grant('/c', 'carl', 'lock, look'), zk_grant('/d', 'bob')");
my $rows = 'SELECT string_agg(grants::text, $$ $$ ORDER BY prefix) FROM zk_grants AS grants';
my $expected = $root->query($rows);
my $dump = PostgreSQL::Test::Utils::tempdir() . '/dump';
my @where = ('-h', $node->host, '-p', $node->port);
command_ok([ 'pg_dump', @where, '-Fc', '-f', $dump, 'postgres' ], 'dumped');
command_ok([ 'pg_dump', @where, '-Fc', '-a', '-f', "$dump.data", 'postgres' ], 'the data alone');
$root->query('DROP ROLE carl');
$root->query('CREATE DATABASE restored');
command_ok([ 'pg_restore', @where, '--exit-on-error', '-d', 'restored', $dump ],
	'restored without a role that it names');
my $restored = $test->session($node, dbname => 'restored');
is($restored->query($rows), $expected, 'all grants are there');
is($restored->query("SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'rights'"),
	'f|Names in zk_grants that are no roles: "carl".', 'the missing role is told');
my $user = $test->session($node, user => 'alice', dbname => 'restored');
may_ok($user, 0, 'and nobody has its grants');
$restored->query('CREATE ROLE carl; GRANT carl TO alice');
may_ok($user, 1, 'until the role is there');
$restored->query('TRUNCATE zk_rights');
may_ok($user, 1, 'no grants');
$restored->query('REVOKE carl FROM alice');
command_ok([ 'pg_restore', @where, '--exit-on-error', '--disable-triggers', '-d', 'restored', "$dump.data" ],
	'the data alone, without triggers');
may_ok($user, 0, 'which sessions know as well');
$_->close foreach $restored, $user;

# ---- roles that dump ----

$root->query('CREATE ROLE reader LOGIN IN ROLE pg_read_all_data');
command_ok([ 'pg_dump', @where, '-U', 'reader', '-f', "$dump.sql", 'postgres' ],
	'pg_read_all_data may dump');
like(slurp_file("$dump.sql"), qr/^COPY public.zk_rights/m, 'with the rights');
$root->query('CREATE ROLE owns LOGIN');
$root->query('ALTER DATABASE restored OWNER TO owns');
command_ok([ 'pg_dump', @where, '-U', 'owns', '-f', "$dump.owner.sql", 'restored' ],
	'the owner of a database may dump it');
like(slurp_file("$dump.owner.sql"), qr/^COPY public.zk_rights/m, 'with the rights');

# ---- a parallel worker ----

$root->query("CREATE FUNCTION looks() RETURNS bigint LANGUAGE sql PARALLEL SAFE"
	  . " AS \$\$ SELECT count(*) FROM zk_queue('/d/x') \$\$");
my $force = (grep { $root->error("SET $_ = on") eq '' } qw(debug_parallel_query force_parallel_mode))[0];
my $parallel = $test->session($node, user => 'alice', options => "-c $force=on");
is($parallel->error('SELECT looks()'), '42501', 'rights are known in a parallel worker');
like($parallel->messages, qr/needs the privilege "look"/, 'by the same rules');
$root->query('CREATE FUNCTION takes() RETURNS bigint LANGUAGE sql PARALLEL SAFE'
	  . " AS \$\$ SELECT zk_lock('/free/x') \$\$");
is($parallel->error('SELECT takes()'), '25000', 'which can take no lock');
$parallel->close;

$_->close foreach $root, $alice;
$test->finish;
