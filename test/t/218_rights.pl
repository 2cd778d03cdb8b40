# Rights by prefix: each kind of call needs its privilege, and no call that ends
# something needs any.  The longest prefix decides, by whole parts.  A function
# counts as its owner if it is SECURITY DEFINER, a role as those that it inherits.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use ZklockTest;

my $test = ZklockTest->new(servers => 1);
my ($node) = $test->nodes;
my $root = $test->session($node);

$root->query("CREATE ROLE $_ LOGIN") foreach qw(alice bob team);
$root->query('CREATE ROLE monitor LOGIN IN ROLE pg_monitor');
$root->query('CREATE ROLE inherits LOGIN IN ROLE team;'
	  . ' CREATE ROLE noinherits LOGIN NOINHERIT IN ROLE team');
$root->query('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC');
my %sessions = map { $_ => $test->session($node, user => $_) }
  qw(alice bob monitor inherits noinherits);
my $alice = $sessions{alice};

# Takes all grants back, and makes these: prefix, role, privileges
sub grants
{
	$root->query('DELETE FROM zk_rights');
	foreach (@_)
	{
		$root->query('SELECT zk_grant(' . join(', ', map { "'$_'" } @$_) . ')');
	}
	return;
}

# Whether a session's call is refused for want of that privilege at that prefix.
sub refused_ok
{
	my ($session, $call, $privilege, $prefix) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->error("SELECT $call"), '42501', "$call: refused");
	return like($session->messages,
		qr/needs the privilege "$privilege" .* prefix "\Q$prefix\E"/,
		"$call: needs $privilege, says $prefix");
}

sub allowed_ok
{
	my ($session, $call) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->error("SELECT $call"), '', "$call: allowed") or diag $session->messages;
	return $session->error('SELECT zk_unlock_all()');
}

# ---- each privilege ----

my %calls = (
	lock => [
		"zk_lock('/p/x')", "zk_xact_lock('/p/x')", "zk_try_lock('/p/x')",
		"zk_try_xact_lock('/p/x')", "zk_multilock(ARRAY['/p/x', '/p/y'])",
		"zk_xact_multilock(ARRAY['/p/x'])", "zk_try_multilock(ARRAY['/p/x'])",
		"zk_try_xact_multilock(ARRAY['/p/x'])", "zk_lock('/p/x', at_least => '0')" ],
	shared => [
		"zk_lock_shared('/p/x')", "zk_xact_lock_shared('/p/x')",
		"zk_try_lock_shared('/p/x')", "zk_try_xact_lock_shared('/p/x')" ],
	once => [
		"zk_once('/p/x', interval '1 day')", "zk_once('/p/x', key => 'k')",
		"zk_once_reset('/p/x')" ],
	lead => ["zk_lead('/p/x')"],
	semaphore => [
		"zk_acquire_permits('/p/s', max_permits => 3)", "zk_xact_acquire_permits('/p/s', max_permits => 3)",
		"zk_try_acquire_permits('/p/s', max_permits => 3)", "zk_try_xact_acquire_permits('/p/s', max_permits => 3)" ],
	barrier => [ "zk_barrier('/p/b', 1)", "zk_barrier_enter('/p/b', 1)" ],
	request_release => ["zk_request_release('/p/x')"],
	look => [
		"count(*) FROM zk_queue('/p/x')", "count(*) FROM zk_queue('/.once/p/x')",
		"count(*) FROM zk_leader('/p/x')" ]);
my @all = map { @$_ } @calls{ sort keys %calls };
my $requests;

allowed_ok($alice, $_) foreach @all;    # as long as there are no grants
foreach my $privilege (sort keys %calls)
{
	grants([ '/p', 'alice', $privilege ], [ '/p', 'bob', 'all' ]);
	allowed_ok($alice, $_) foreach @{ $calls{$privilege} };
	$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0, 'all is given back');
	$requests = $test->status($node, 'creates');
	foreach my $other (grep { $_ ne $privilege } sort keys %calls)
	{
		refused_ok($alice, $_, $other, '/p') foreach @{ $calls{$other} };
	}
	is($test->status($node, 'creates'), $requests,
		"$privilege: what was refused was not asked for");
}

# at_least needs another one
my $at_least = ", at_least => '1ms')";
grants([ '/p', 'alice' ]);
is($root->query('SELECT privileges FROM zk_grants'),
	'barrier, lead, lock, once, semaphore, shared', 'the default');
foreach my $call (@{ $calls{lock} }, @{ $calls{shared} })
{
	refused_ok($alice, $call =~ s/\)$/$at_least/r, 'keep', '/p')
	  if $call !~ /ARRAY|at_least/;
}
refused_ok($alice, "zk_request_release('/p/x')", 'request_release', '/p');
refused_ok($alice, "count(*) FROM zk_queue('/p/x')", 'look', '/p');
my @keeping = ("zk_lock('/p/k'$at_least", "zk_reserve('/p/k', '1ms')", "zk_enqueue('/p/k', '1ms', '1ms')",
	"zk_enqueue_all(ARRAY['/p/k'], '1ms', '1ms')");
refused_ok($alice, $_, 'keep', '/p') foreach @keeping;
grants([ '/p', 'alice', 'lock,keep' ]);
allowed_ok($alice, $_) foreach @keeping;
grants([ '/p', 'alice', 'keep' ]);
refused_ok($alice, $_, 'lock', '/p') foreach @keeping;
$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0, 'not kept for long');

# ---- what is never asked ----

grants();
$alice->query("SELECT zk_lock('/p/held'), zk_lock_shared('/p/held'), zk_acquire_permits('/p/s', max_permits => 2),"
	  . " zk_lead('/p/l'), zk_barrier_enter('/p/b', 1), zk_multilock(ARRAY['/p/a1', '/p/a2'])");
$alice->query("BEGIN; SELECT zk_xact_lock('/p/xact'), zk_once('/p/o', key => 'x')");
my $waiter = $test->session($node, user => 'alice');
my $holder = $test->session($node);
$holder->query("SELECT zk_lock('/p/wanted')");
$test->enqueue($waiter, "SELECT zk_lock('/p/wanted')", '/p/wanted');
grants([ '/p', 'bob' ]);
is($alice->query("SELECT zk_extend('/p/held', '1h')"), 't', 'extended');
cmp_ok($alice->query("SELECT zk_fencing_token('/p/held')"), '>', 0, 'the token');
is($alice->error('COMMIT'), '', 'committed');
is($alice->query("SELECT zk_unlock('/p/held') AND zk_unlock_shared('/p/held')"
		  . " AND zk_release_permits('/p/s') AND zk_resign('/p/l') AND zk_barrier_leave('/p/b')"
		  . " AND zk_multiunlock(ARRAY['/p/a1', '/p/a2'])"), 't', 'all that is held ends');
$holder->query("SELECT zk_unlock('/p/wanted')");
cmp_ok($waiter->value, '>', 0, 'a request that waits already gets its lock');
refused_ok($waiter, "zk_lock('/p/wanted')", 'lock', '/p');    # once more
is($waiter->query("SELECT zk_unlock('/p/wanted')"), 't', 'which was not counted');
is($root->query("SELECT zk_try_lock('/p/wanted') AND zk_unlock('/p/wanted')"), 't', 'a superuser passes');
$_->close foreach $holder, $waiter;

# An array: all or none
grants([ '/p/1', 'alice' ], [ '/p/2', 'bob' ]);
$requests = $test->status($node, 'creates');
refused_ok($alice, "zk_try_multilock(ARRAY['/p/1', '/p/2', '/q'])", 'lock', '/p/2');
is($test->status($node, 'creates'), $requests, 'nothing of it is taken');

# ---- which prefix decides ----

grants([ '/team', 'alice' ]);
allowed_ok($alice, "zk_lock('$_')") foreach '/team', '/team/x', '/team/x/y', '/teams', '/tea', '/Team';
my $bob = $sessions{bob};
allowed_ok($bob, "zk_lock('$_')") foreach '/teams', '/teams/x', '/tea', '/Team', '/Team/x', '/x/team';
refused_ok($bob, "zk_lock('$_')", 'lock', '/team') foreach '/team', '/team/x', '/team/x/y';
grants([ '/team', 'alice' ], [ '/team/x', 'bob', 'shared' ], [ '/', 'public', 'once' ]);
refused_ok($alice, "zk_lock('/team/x')", 'lock', '/team/x');
refused_ok($alice, "zk_lock('/team/x/y')", 'lock', '/team/x');
allowed_ok($alice, "zk_lock('/team/xy')");
refused_ok($bob, "zk_lock('/team/x')", 'lock', '/team/x');
allowed_ok($bob, "zk_lock_shared('/team/x/y')");
refused_ok($bob, "zk_lock_shared('/team/y')", 'shared', '/team');
refused_ok($bob, "zk_once('/team/y', key => 'k')", 'once', '/team');
refused_ok($bob, "zk_lock('/other')", 'lock', '/');
allowed_ok($bob, "zk_once('/other', key => 'k')");
is($root->query("SELECT zk_revoke('/team/x', 'bob')"), 't', 'no more grants for a prefix');
like($root->messages, qr/has no grants left/, 'which is told');
refused_ok($bob, "zk_lock_shared('/team/x')", 'shared', '/team');
allowed_ok($alice, "zk_lock('/team/x')");

# ---- directories of semaphores ----

grants([ '/s', 'alice', 'lock, shared, lead, barrier, request_release' ], [ '/s/db', 'alice', 'all' ],
	[ '/s/db', 'bob', 'semaphore' ], [ '/s/db/leases', 'alice', 'lock' ]);
allowed_ok($alice, "zk_lock('/s/lock')");
foreach my $call ("zk_lock('/s/x/%s')", "zk_lock_shared('/s/x/%s')", "zk_lead('/s/x/%s')",
	"zk_barrier('/s/x/%s', 1)", "zk_lock('/s/x/%s/below')", "zk_multilock(ARRAY['/s/x/%s'])",
	"zk_request_release('/s/x/%s')")
{
	refused_ok($alice, sprintf($call, $_), 'semaphore', '/s') foreach 'leases', 'locks';
}
allowed_ok($alice, "zk_lock('/s/x/$_')") foreach 'lease', 'locks2', 'Leases';
allowed_ok($alice, "zk_lock('/s/db/$_')") foreach 'leases', 'locks';
refused_ok($alice, "zk_acquire_permits('/s/db/leases', max_permits => 1)", 'semaphore', '/s/db/leases');
allowed_ok($bob, "zk_acquire_permits('/s/db', max_permits => 1)");
grants([ '/s', 'alice', 'lock, semaphore' ], [ '/s/x', 'bob' ]);
refused_ok($alice, "zk_lock('/s/x/leases/deep/locks')", 'lock', '/s/x');
grants([ '/s', 'bob', 'semaphore' ], [ '/s/x', 'alice' ], [ '/s/leases/y', 'alice' ]);
refused_ok($alice, "zk_acquire_permits('/s/leases/y', max_permits => 1)", 'semaphore', '/s');
allowed_ok($alice, "zk_lock('/locks/x')");

# ---- jobs ----

grants();
$root->query("SELECT zk_once('/j/1', key => 'k'); SELECT zk_once('/j/2', key => 'k')");
my $history = "SELECT string_agg(path, ',' ORDER BY path) FROM zk_jobs WHERE path ~ '^/j'";
is($alice->error($history), '42501', 'zk_jobs: not to everybody');
is($alice->error('SELECT zk_get_jobs()'), '42501', 'nor is what it calls');
$root->query('GRANT SELECT ON zk_jobs TO alice');
is($alice->query($history), '/j/1,/j/2', 'all jobs');
grants([ '/j', 'alice', 'once' ], [ '/j/2', 'alice', 'look' ]);
is($alice->query($history), '/j/2', 'those that may be looked at');
is($root->query($history), '/j/1,/j/2', 'a superuser sees all');
my $monitor = $sessions{monitor};
is($monitor->query($history), '/j/1,/j/2', 'so do members of pg_monitor');
allowed_ok($monitor, $_)
  foreach "count(*) FROM zk_queue('/j/1')", "count(*) FROM zk_queue('/.once/j/1')",
  "count(*) FROM zk_leader('/j/1')";
refused_ok($monitor, "zk_once('/j/1', key => 'k')", 'once', '/j');
refused_ok($alice, "count(*) FROM zk_queue('/.once/j/1')", 'look', '/j');
is($alice->query("SELECT zk_once_reset('/j/1')"), 't', 'a job is reset');
refused_ok($alice, "zk_once_reset('/j/2')", 'once', '/j/2');

# ---- members of roles ----

grants([ '/m', 'team' ]);
allowed_ok($sessions{inherits}, "zk_lock('/m/x')");
refused_ok($sessions{noinherits}, "zk_lock('/m/x')", 'lock', '/m');
refused_ok($alice, "zk_lock('/m/x')", 'lock', '/m');
$sessions{noinherits}->query('SET ROLE team');
allowed_ok($sessions{noinherits}, "zk_lock('/m/x')");
$sessions{noinherits}->query('RESET ROLE');
$root->query('REVOKE team FROM inherits');
refused_ok($sessions{inherits}, "zk_lock('/m/x')", 'lock', '/m');
grants([ '/m', 'team', 'lock' ], [ '/m', 'public', 'shared' ]);
allowed_ok($alice, "zk_lock_shared('/m/x')");
refused_ok($alice, "zk_lock('/m/x')", 'lock', '/m');

# A wrapper is its owner, who may do one thing that its callers may not.
$root->query('CREATE FUNCTION wrapper() RETURNS bigint LANGUAGE sql SECURITY DEFINER'
	  . " AS \$\$ SELECT zk_lock('/m/wrapped') \$\$;"
	  . ' CREATE FUNCTION plain() RETURNS bigint LANGUAGE sql'
	  . " AS \$\$ SELECT zk_lock('/m/wrapped') \$\$;"
	  . ' ALTER FUNCTION wrapper() OWNER TO team; ALTER FUNCTION plain() OWNER TO team');
refused_ok($alice, 'plain()', 'lock', '/m');
cmp_ok($alice->query('SELECT wrapper()'), '>', 0, 'through a wrapper');
refused_ok($alice, "zk_lock('/m/wrapped')", 'lock', '/m');
is($alice->query("SELECT zk_unlock('/m/wrapped')"), 't', 'and given back without it');
$root->query('ALTER FUNCTION wrapper() OWNER TO bob');
refused_ok($alice, 'wrapper()', 'lock', '/m');

# Granting is for superusers, or through a function of one of them.
foreach my $call ("zk_grant('/m', 'alice')", "zk_revoke('/m', 'team')")
{
	is($alice->error("SELECT $call"), '42501', "$call: not for everybody");
}
$root->query('CREATE FUNCTION delegate(r name) RETURNS void LANGUAGE sql SECURITY DEFINER'
	  . " AS \$\$ SELECT zk_grant('/m', r, 'lock') \$\$");
is($alice->error("SELECT delegate('alice')"), '', 'delegated');
allowed_ok($alice, "zk_lock('/m/x')");

# ---- roles come and go ----

my $health = "SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'rights'";
$root->query('CREATE ROLE temp LOGIN');
grants([ '/r', 'temp' ], [ '/r', 'public', 'shared' ]);
my $temp = $test->session($node, user => 'temp');
allowed_ok($temp, "zk_lock('/r/x')");
is($test->look($node, $health), 't|All roles that zk_grants names exist.', 'all is well');
$root->query('ALTER ROLE temp RENAME TO other');
refused_ok($temp, "zk_lock('/r/x')", 'lock', '/r');
is($test->look($node, $health), 'f|Names in zk_grants that are no roles: "temp".', 'a role was renamed');
is($monitor->query('SELECT count(*) FROM zk_grants WHERE role = $$temp$$'), 1, 'the grant is still there');
$root->query('ALTER ROLE other RENAME TO temp');
allowed_ok($temp, "zk_lock('/r/x')");
$temp->close;
is($root->error('DROP ROLE temp'), '', 'a role with grants can be dropped');
like($test->look($node, $health), qr/^f/, 'which is told');
allowed_ok($alice, "zk_lock_shared('/r/x')");
refused_ok($alice, "zk_lock('/r/x')", 'lock', '/r');
is($root->query("SELECT zk_revoke('/r', 'temp')"), 't', 'its grants can be taken back');
like($test->look($node, $health), qr/^t/, 'and all is well');

# ---- no search_path leads to another table ----

my $fake = 'zk_rights (prefix text, role name, privilege text, PRIMARY KEY (prefix, role, privilege))';
$root->query('CREATE SCHEMA evil AUTHORIZATION alice; GRANT CREATE ON SCHEMA public TO alice');
grants([ '/e', 'bob' ]);
sub lead_astray
{
	my ($session) = @_;
	my $all = "SELECT '/e', 'alice', 'lock'";

	return $session->query('SET search_path = pg_temp, evil, public;'
		  . " CREATE TEMP TABLE $fake; INSERT INTO zk_rights $all");
}
$alice->query("CREATE TABLE evil.$fake; INSERT INTO evil.zk_rights SELECT '/e', 'alice', 'lock'");
$alice->query("CREATE FUNCTION evil.always(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT true';"
	  . ' CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.always)');
lead_astray($alice);
refused_ok($alice, "zk_lock('/e/x')", 'lock', '/e');
lead_astray($root);
$root->query('SET search_path = evil, pg_temp, pg_catalog, public');
is($root->query("SELECT zk_grant('/e', 'team') IS NULL"), 'f', 'granted');
is($root->query("SELECT zk_revoke('/e', 'nobody')"), 'f', 'not granted');
is($root->query('SELECT count(*) FROM evil.zk_rights'), 1, 'not in that table');
is($root->query('SELECT count(*) FROM pg_temp.zk_rights'), 1, 'nor in that');
is($root->query('SELECT string_agg(DISTINCT role, $$,$$) FROM public.zk_rights'), 'bob,team', 'but in its own');
$root->query('RESET search_path; DROP TABLE pg_temp.zk_rights');

# The extension goes elsewhere, and a table of that name comes where it was.
$root->query('CREATE SCHEMA elsewhere; GRANT USAGE ON SCHEMA elsewhere TO PUBLIC;'
	  . ' ALTER EXTENSION zklock SET SCHEMA elsewhere');
$alice->query("SET search_path = elsewhere, public; CREATE TABLE public.$fake;"
	  . " INSERT INTO public.zk_rights SELECT '/e', 'alice', 'lock'");
refused_ok($alice, "zk_lock('/e/x')", 'lock', '/e');
$root->query("SELECT elsewhere.zk_grant('/e', 'alice', 'lock')");
allowed_ok($alice, "zk_lock('/e/x')");
$root->query("SELECT elsewhere.zk_revoke('/e', 'alice')");
refused_ok($alice, "zk_lock('/e/x')", 'lock', '/e');
$root->query('DROP TABLE public.zk_rights; ALTER EXTENSION zklock SET SCHEMA public');

# A new extension has no grants.
$alice->query('RESET search_path');
$root->query('DROP EXTENSION zklock');
$root->query('CREATE EXTENSION zklock; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC');
allowed_ok($alice, "zk_lock('/e/x')");
grants([ '/e', 'bob' ]);
refused_ok($alice, "zk_lock('/e/x')", 'lock', '/e');

$_->close foreach $root, values %sessions;
$test->finish;
