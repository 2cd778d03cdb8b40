# A full slot table, a server that does not preload the library, and an
# extension that is dropped while its locks are held.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ServerTemplates;
use ZklockTest;

my $test = ZklockTest->new(max_requests => 8);
my ($one, $two) = $test->nodes;
my $s = $test->session($one);
my $t = $test->session($one);
my $other = $test->session($two);

# All slots are released, but the worker has no time to free them: that is no limit.
$s->query("SELECT zk_lock('/slow/' || n) FROM generate_series(1, 8) n");
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$s->query('SELECT zk_unlock_all()');
$t->query("SET zklock.answer_timeout = '200ms'");
is($t->error("SELECT zk_try_lock('/slow/9')"), '08006', 'a try for which no slot is freed in time');
like($t->messages, qr/could not reach the zklock worker/, 'says who does not answer');
$t->query('RESET zklock.answer_timeout');
kill 'CONT', $worker;
is($t->query("SELECT zk_try_lock('/slow/9')"), 't', 'then it is');
$t->query("SELECT zk_unlock('/slow/9')");

# All slots taken: an error for the next one, nothing for all others.
$s->query("SELECT zk_lock('/l/' || n) FROM generate_series(1, 7) n");
$other->query("SELECT zk_lock('/l/other')");
$t->send("SELECT zk_lock('/l/other')");
$test->wait_queue('/l/other', 2);
my $u = $test->session($one);
foreach my $call ("zk_lock('/l/8')", "zk_try_lock('/l/8')",
	"zk_xact_lock('/l/8')", "zk_lock('/l/1')", "zk_lock_shared('/l/8')")
{
	is($u->error("SELECT $call"), '53400', "$call: no slot left");
	like($u->messages, qr/zklock\.max_requests/, "$call: names the setting");
}
$s->query("SELECT zk_lock('/l/1')");
is($s->query("SELECT zk_unlock('/l/1')"), 't', 're-entry still works');
$other->query("SELECT zk_unlock('/l/other')");
cmp_ok($t->value, '>', 0, 'who waited is granted');
is($s->query("SELECT zk_unlock('/l/1')"), 't', 'who held releases');
ok(wait_for(
		sub { $u->error("SELECT zk_lock('/l/8')") eq '' },
		'a slot is free again'),
	'and a slot is free again');
is($other->query("SELECT zk_try_lock('/l/8')"), 'f', 'for a real lock');
$u->query('SELECT zk_unlock_all()');
$t->query('SELECT zk_unlock_all()');
$s->query('SELECT zk_unlock_all()');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0);

# Dropped while held and waited for
$s->query("SELECT zk_lock('/l/drop')");
$t->send("SELECT zk_lock('/l/drop')");
$test->wait_queue('/l/drop', 2);
$u->query('DROP EXTENSION zklock');
like($u->messages, qr/^NOTICE.*sessions of this database still hold 1 distributed lock\n.*DISCARD ALL/ms,
	'who drops it is told of locks that are held');
is($u->error("SELECT zk_lock('/l/x')"), '42883', 'the functions are gone');
is($other->query("SELECT zk_try_lock('/l/drop')"),
	'f', 'a lock outlives the extension');
ok($t->busy, 'and so does a wait');
$s->close;
cmp_ok($t->value, '>', 0, 'the session\'s end releases it');
$t->close;
is($other->query("SELECT zk_try_lock('/l/drop', '1min')"),
	't', 'and the other server gets it');
$other->query("SELECT zk_unlock('/l/drop')");
$u->query('CREATE EXTENSION zklock');
cmp_ok($u->query("SELECT zk_lock('/l/drop')"), '>', 0, 'created again, it works');
$u->query("SELECT zk_unlock('/l/drop')");

# Other databases of a server share its worker.
$u->query('CREATE DATABASE elsewhere');
my $elsewhere = $test->session($one, dbname => 'elsewhere');
$elsewhere->query('CREATE EXTENSION zklock');
$u->query('DROP EXTENSION zklock; CREATE EXTENSION zklock');
is($u->messages, '', 'nothing is held, nothing is told');
$elsewhere->query("SELECT zk_lock('/l/db')");
$u->query('DROP EXTENSION zklock; CREATE EXTENSION zklock');
is($u->messages, '', 'nor of other databases');
is($u->query("SELECT zk_try_lock('/l/db')"),
	'f', 'databases of one server exclude each other');
is($u->query("SELECT datname FROM zk_queue('/l/db')"),
	'elsewhere', 'and zk_queue says which one holds');
$elsewhere->close;

# Not preloaded
my $plain = PostgreSQL::Test::Cluster->new('plain');
ServerTemplates::init($plain);
$plain->start;
$plain->safe_psql('postgres', 'CREATE EXTENSION zklock');
my $p = PgSession->new($plain);
is($p->error("LOAD 'zklock'"), '', 'loading the library does not fail');
my @calls = split /\n/, $p->query(q{
	SELECT CASE prokind WHEN 'p' THEN 'CALL ' ELSE 'SELECT ' END || p.oid::regproc || '(' || coalesce((
		SELECT string_agg(CASE type
			WHEN 'text'::regtype THEN
				CASE proargnames[n] WHEN 'guarantee' THEN '''at_most_once'''
					WHEN 'zone' THEN '''UTC''' WHEN 'key' THEN 'NULL' ELSE '''/x''' END || '::text'
			WHEN 'text[]'::regtype THEN '''{/x}''::text[]'
			WHEN 'timestamptz'::regtype THEN 'now()'
			WHEN 'boolean'::regtype THEN 'true'
			WHEN 'interval'::regtype THEN '''1 min''::interval'
			ELSE '1' END, ', ' ORDER BY n)
		FROM unnest(proargtypes::oid[]) WITH ORDINALITY AS t (type, n)), '') || ')'
	FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid
		JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND d.refobjid = e.oid
	WHERE extname = 'zklock' AND prorettype <> 'trigger'::regtype
		AND proname NOT IN ('zk_grant', 'zk_revoke', 'zk_fence', 'zk_fence_reset', 'zk_fence_table')
	ORDER BY 1});
cmp_ok(scalar @calls, '>', 50, 'all functions but those that need only a table');
foreach my $call (@calls)
{
	is($p->error($call), '55000', "not preloaded: $call");
	like($p->messages, qr/shared_preload_libraries/, 'with the hint');
}
is($p->query('BEGIN; CREATE TABLE x (); COMMIT'), '', 'transactions work');
is($p->query('DISCARD ALL'), '', 'and so does DISCARD ALL');
$p->close;
$plain->stop;

$_->close foreach $u, $other;
$test->finish;
