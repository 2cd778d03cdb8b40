# How much one session may take: so many requests, "at_least" for so long, and no
# session locks.
# What can never be had is refused before anything is taken.  A role for which a
# superuser has set such a limit cannot lift it, in whatever way.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	servers => 1,
	conf => "zklock.dialects = '/mutex=curator_mutex'\n");
my ($node) = $test->nodes;
my $s = $test->session($node);
my $setting = 'zklock.max_requests_per_session';
my $kept = "SELECT count(*) FROM zk_locks WHERE state = 'kept'";

sub names
{
	my ($from, $to) = @_;

	return "(SELECT array_agg('/n/' || i) FROM generate_series($from, $to) i)";
}

sub refused_ok
{
	my ($call, $detail, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($s->error("SELECT $call"), '53400', "$case: refused");
	return like($s->result->{error}{detail}, $detail, "$case: says why");
}

# ---- how many: a quarter of 200 ----

$s->query('CREATE TABLE rows (i int); CREATE FUNCTION take() RETURNS trigger'
	  . " LANGUAGE plpgsql AS \$\$ BEGIN PERFORM zk_xact_lock('/t/' || NEW.i);"
	  . ' RETURN NEW; END $$');
$s->query('CREATE TRIGGER take BEFORE INSERT ON rows FOR EACH ROW EXECUTE FUNCTION take()');
is($s->error('INSERT INTO rows SELECT generate_series(1, 1500)'),
	'53400', 'a trigger that takes a lock per row');
like($s->result->{error}{detail},
	qr/has 50 requests, 0 of them .* needs 1 more, but "\Q$setting\E" allows 50/,
	'is told how many there may be');
$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0, 'nothing is left');
$s->query('SELECT zk_multilock(' . names(1, 50) . ')');
refused_ok("zk_lock('/n/51')", qr/has 50 requests/, 'the 51st');
is($s->query("SELECT zk_try_lock('/n/50')"), 't', 're-entry takes no more');
is($test->session($node)->query("SELECT zk_try_lock('/n/51')"),
	't', 'nor is there one less for others');
$s->query('SELECT zk_unlock_all()');

# As often as one likes, one after the other
$s->query("SET $setting = 1");
is($s->query("SELECT count(*) FROM generate_series(1, 200) i"
		  . " WHERE zk_try_lock('/l/' || i) AND zk_unlock('/l/' || i)"),
	200, 'what was given back does not count');

# What all the others need
$s->query("SET $setting = 3");
refused_ok("zk_acquire_permits('/s', 3, max_permits => 9)", qr/needs 4 requests.*allows 3/, 'permits, and their guard');
cmp_ok($s->query("SELECT zk_acquire_permits('/s', 2, max_permits => 9)"), '>', 0, 'one less can be had');
refused_ok("zk_acquire_permits('/s', max_permits => 9)", qr/has 2 requests/, 'with those that are held');
is($s->query("SELECT zk_release_permits('/s')"), 't', 'one is given back');
$s->query("SELECT zk_lead('/l'), zk_barrier_enter('/b', 1)");
foreach my $call ("zk_once('/o', key => 'x')", "zk_lead('/l2')",
	"zk_barrier_enter('/b2', 1)", "zk_xact_lock_shared('/x')",
	"zk_try_acquire_permits('/s', max_permits => 9)")
{
	refused_ok($call, qr/has 3 requests/, $call);
}
is($s->query("SELECT zk_barrier_leave('/b')"), 't', 'a barrier ends');
$s->query('SELECT zk_unlock_all()');
$s->query("SET $setting = 0");
refused_ok("zk_lock('/x')", qr/allows 0/, 'none at all');
is($s->error("SET $setting = 262143"), '', 'more than there are');
is($s->query("SELECT count(zk_lock('/m/' || i)) FROM generate_series(1, 200) i"),
	200, 'means all');
is($s->error("SELECT zk_lock('/x')"), '53400', 'and no more');
$s->query('SELECT zk_unlock_all()');

# ---- several locks at once ----

$s->query("RESET $setting");
my $creates = $test->status($node, 'creates');
foreach my $call ('zk_multilock(%s)', 'zk_xact_multilock(%s)', 'zk_try_multilock(%s)',
	"zk_try_xact_multilock(%s, '1h')")
{
	refused_ok(sprintf($call, names(1, 51)), qr/needs 51 requests.*allows 50/,
		"$call of one more than allowed");
}
$s->query('CREATE TABLE many AS SELECT array_agg(repeat(chr(228), 100) || i) AS names'
	  . ' FROM generate_series(1, 100000) i');
my $memory = "SELECT coalesce(sum(total_bytes), 0) < 1000000"
  . " FROM pg_backend_memory_contexts WHERE name LIKE 'zklock%'";
is($s->error('SELECT zk_multilock(names) FROM many'), '53400',
	'a hundred thousand are refused, and their names not looked at');
is($s->error('SELECT zk_multiunlock(names) FROM many'), '53400',
	'also by zk_multiunlock(): so many can never be held');
is($s->query($memory), 't', 'no memory is taken for them');
is($test->status($node, 'creates'), $creates, 'nor was anything asked for');
$s->query('SELECT zk_multilock(' . names(1, 30) . ')');
refused_ok('zk_multilock(' . names(21, 71) . ')', qr/needs 51/, 'more than allowed');
refused_ok('zk_multilock(' . names(29, 78) . ')', qr/has 30 requests.*needs 48 more/,
	'more than is left');
is($s->query('SELECT count(*) FROM zk_locks'), 30, 'nothing of it is taken');
$s->query('SELECT zk_multilock(' . names(1, 50) . ')');
is($s->query('SELECT count(*) FROM zk_locks'), 50, 'what is held needs no more');
$s->query("SET $setting = 10");
refused_ok("zk_lock('/x')", qr/has 50 requests/, 'less than is held');
is($s->query("SELECT zk_lock('/n/1') > 0"), 't', 'is left to its holder, and taken again');
is($s->query('SELECT zk_multiunlock(' . names(1, 50) . ')'), 't', 'and given back');
$s->query("RESET $setting; SELECT zk_unlock_all()");
is($s->error("SELECT zk_lock_shared('/mutex/a')"), '0A000', 'the dialect has no shared locks');

# ---- what is kept ----

$s->query("SET $setting = 5");
$s->query("SELECT zk_lock('/k/' || i, at_least => '1h'),"
	  . " zk_unlock('/k/' || i) FROM generate_series(1, 3) i");
$test->look_until($node, $kept, 3, 'three locks are kept');
$s->query("SELECT zk_multilock(ARRAY['/x', '/y'])");
refused_ok("zk_lock('/z')", qr/has 5 requests, 3 of them for locks that are kept/,
	'kept locks count');
my $t = $test->session($node);
$t->query("SET $setting = 1");
is($t->query("SELECT zk_try_lock('/z')"), 't', 'for whoever took them only');
is($t->query("SELECT zk_unlock('/z') AND zk_break_lock('/k/1')"), 't', 'one is broken');
$test->look_until($node, $kept, 2, 'two are kept');
is($s->query("SELECT zk_try_lock('/z')"), 't', 'which makes room');
$t->query("SELECT zk_break_lock('/k/' || i) FROM generate_series(2, 3) i");
$s->query("SELECT zk_unlock_all(); RESET $setting");

# ---- all sessions of a role together ----

$node->safe_psql('postgres', 'CREATE ROLE many LOGIN; CREATE ROLE few LOGIN;'
	  . ' GRANT EXECUTE ON FUNCTION zk_try_lock, zk_reserve, zk_xact_multilock TO many, few;'
	  . ' ALTER ROLE many SET zklock.max_requests_per_session = 70');
my @many = map { $test->session($node, user => 'many') } 1 .. 2;
my $count = "SELECT count(*) FROM generate_series(%d, %d) i WHERE zk_try_lock('/role/' || i)";
is($many[0]->query(sprintf $count, 1, 60), 60, 'a session of a role');
is($many[1]->query(sprintf $count, 61, 99), 39, 'and another one');
cmp_ok($many[1]->query("SELECT zk_reserve('/role/100', '1h')"), '>', 0, 'and a reservation');
is($many[1]->error("SELECT zk_try_lock('/role/101')"), '53400', 'have half of all together');
like($many[1]->messages, qr/Its sessions, reservations and tickets have 100 requests, and the call needs 1 more.*max_requests_per_role" allows 100/,
	'which the error says');
is($test->session($node, user => 'few')->query("SELECT zk_try_lock('/role/101')"), 't', 'others have theirs');
$node->safe_psql('postgres', 'ALTER ROLE many SET zklock.max_requests_per_role = 101');
my $third = $test->session($node, user => 'many');
is($third->query("SELECT zk_try_lock('/role/102')"), 't', 'a superuser can allow more');
is($third->error("SELECT zk_try_lock('/role/103')"), '53400', 'and not more than that');
is($third->error('SET zklock.max_requests_per_role = 200'), '42501', 'which the role itself cannot do');

# What was just released does not count.
$many[$_]->query("SELECT zk_unlock_all()") foreach 0, 1;
my $reserved = $test->look($node, "SELECT fencing_token FROM zk_locks WHERE lifetime = 'reservation'");
is($s->query("SELECT zk_cancel_reservation('/role/100', $reserved)"), 't', 'the reservation ends');
foreach my $i (1 .. 20)
{
	$many[0]->query('BEGIN; SELECT zk_xact_multilock(' . names(1, 60) . '); COMMIT');
}
pass('what was just released does not count');
$_->close foreach @many, $third;
$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0, 'nothing is left of them');

# ---- at_least: for how long ----

my $at_least = "zk_try_lock('/a', '0', NULL, '%s')";
is($s->error('SELECT ' . sprintf $at_least, '1h 1ms'), '22023', 'an hour by default');
like($s->messages, qr/The argument is 3600001 ms, but the setting is 3600000 ms/, 'says so');
$s->query("SET zklock.max_at_least = '2h'");
is($s->query('SELECT ' . sprintf $at_least, '1h 1ms'), 't', 'or what is set');
is($s->query("SELECT zk_unlock('/a') AND zk_break_lock('/a')"), 't', 'broken');
$s->query('SET zklock.max_at_least = 0');
foreach my $call ('zk_lock', 'zk_lock_shared', 'zk_xact_lock', 'zk_xact_lock_shared')
{
	my $try = $call =~ s/lock/try_lock/r =~ s/xact_try/try_xact/r;

	is($s->error("SELECT $call('/a', at_least => '1ms')"), '42501', "$call: 0 forbids it");
	is($s->error("SELECT $try('/a', '0', NULL, '1ms')"), '42501', "$try: 0 forbids it");
	is($s->error("BEGIN; SELECT $try('/a', '1h', '1h', '0'); ROLLBACK"),
		'', "$try: but not no time");
}
$s->query('RESET zklock.max_at_least; SELECT zk_unlock_all(), zk_unlock_shared(\'/a\')');

# ---- a role that tries to lift its limits ----

my %limits = ($setting => 3, 'zklock.max_at_least' => 0, 'zklock.session_locks' => 'off');
$s->query('CREATE ROLE bound LOGIN; CREATE ROLE free LOGIN; GRANT free TO bound;'
	  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO bound, free;'
	  . ' GRANT CREATE ON SCHEMA public TO bound');
$s->query("ALTER ROLE bound SET $_ = $limits{$_}") foreach sort keys %limits;

foreach my $name (sort keys %limits)
{
	my $b = $test->session($node, user => 'bound');
	my $other = $limits{$name} eq 'off' ? 'on' : 100;
	my $small = $name =~ s/\W/_/gr;

	is($b->query("SHOW $name"), $limits{$name}, "$name: set for a role");
	is($b->error($_), '42501', "$name: $_")
	  foreach "SET $name = $other", "SET LOCAL $name = $other", "SET $name TO DEFAULT",
	  "RESET $name", "SELECT set_config('$name', '$other', false)",
	  "UPDATE pg_settings SET setting = '$other' WHERE name = '$name'",
	  "ALTER ROLE bound SET $name = $other", "ALTER ROLE bound RESET $name",
	  "ALTER ROLE bound IN DATABASE postgres SET $name = $other",
	  "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET $name = $other AS 'SELECT 1'",
	  "ALTER SYSTEM SET $name = $other", "ALTER DATABASE postgres SET $name = $other";
	is($b->error($_), '', "$name: $_ has no effect")
	  foreach 'RESET ALL', 'DISCARD ALL', 'ALTER ROLE bound RESET ALL', 'SET ROLE free',
	  'SET SESSION AUTHORIZATION DEFAULT';
	is($b->query("SHOW $name"), $limits{$name}, "$name: after all that");

	# A function of a superuser's does with it what that superuser wants.
	$s->query("CREATE FUNCTION $small() RETURNS text LANGUAGE sql SET $name = $other"
		  . " AS \$\$ SELECT current_setting('$name') \$\$");
	is($b->error("SELECT $small()"), '42501', "$name: the SET clause of a function");
	$s->query("ALTER FUNCTION $small() SECURITY DEFINER");
	like($b->query("SELECT $small()"), qr/^$other(ms)?$/, "$name: if it is a superuser's own, it counts");
	is($b->query("SHOW $name"), $limits{$name}, "$name: while it runs");
	$s->query("DROP FUNCTION $small()");
	$b->close;

	my $options = PgSession->new($node, user => 'bound', wait => 0,
		options => "-c $name=$other");
	is($options->sqlstate, '42501', "$name: as an option of the connection");
	$options->close;
}

my $b = $test->session($node, user => 'bound');
$b->query('SET ROLE free');
is($b->error("SELECT zk_try_lock('/1')"), '0A000', 'no session locks, whatever the role of the moment');
$b->close;
$s->query('ALTER ROLE bound RESET zklock.session_locks');
$b = $test->session($node, user => 'bound');
$b->query('SET ROLE free');
is($b->error("SELECT zk_try_multilock(ARRAY['/1', '/2', '/3'])"), '', 'three are allowed');
is($b->error("SELECT zk_try_lock('/4')"), '53400', 'and no more, whatever the role of the moment');
is($b->error("SELECT zk_try_lock('/1', '0', NULL, '1s')"), '42501', 'nor at_least');
$b->close;
my $f = $test->session($node, user => 'free');
is($f->error("SELECT zk_try_multilock(ARRAY['/5', '/6', '/7', '/8'])"), '', 'another role may');
$f->close;
$s->query('DROP OWNED BY bound, free; DROP ROLE bound, free; DROP TABLE rows, many; DROP FUNCTION take()');
$_->close foreach $s, $t;

$test->finish;
