# A leader, or a holder outside a transaction, asks whether it still has its lock:
# the answer is for how long, by the lease or at_most, and an error at once when
# the lease has ended or the lock is lost.  A fencing token does not tell that.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(session_timeout => '3s');
my ($one, $two) = $test->nodes;
my $worker = $test->status($one, 'worker_pid');
my $s = $test->session($one);
my $lease = "interval '2 s'";    # two thirds of the session timeout

sub assert_ok
{
	my ($name, $most, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($s->query("SELECT zk_assert_lock('$name') > '0' AND zk_assert_lock('$name') <= $most"),
		't', $case);
}

sub refused_ok
{
	my ($name, $sqlstate, $message, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($s->error("SELECT zk_assert_lock('$name')"), $sqlstate, "$case: refused");
	return like($s->messages, $message, "$case: and says why");
}

# ---- while all is well: whatever it holds, and nothing that others hold ----

my $rival = $test->session($two);
$rival->query("SELECT zk_lock('/a/rival')");
refused_ok('/a/rival', '55000', qr{you do not hold distributed lock "/a/rival"}, 'another one\'s');
my %calls = (
	lock => "zk_lock('/a/lock')",
	shared => "zk_lock_shared('/a/shared')",
	leader => "zk_lead('/a/leader')",
	leases => "zk_acquire_permits('/a/leases', 2, max_permits => 3)",
	once => "zk_xact_lock('/a/once')");
foreach my $name (sort keys %calls)
{
	refused_ok("/a/$name", '55000', qr{you do not hold}, "$name: not yet");
	$s->query('BEGIN') if $name eq 'once';
	$s->query("SELECT $calls{$name}");
	assert_ok("/a/$name", $lease, "$name: held");
	$s->query('COMMIT') if $name eq 'once';
}
refused_ok('/a/once', '55000', qr{you do not hold}, 'once: no longer');

$s->query("SELECT zk_lock('/a/short', at_most => '1 s'), zk_lock('/a/long', at_most => '1 h')");
assert_ok('/a/short', "interval '1 s'", 'less than its at_most');
assert_ok('/a/long', $lease, 'or than the lease');

# A role that may take no locks may ask.
$one->safe_psql('postgres', 'CREATE ROLE nobody LOGIN');
my $nobody = $test->session($one, user => 'nobody');
is($nobody->error("SELECT zk_assert_lock('/a/lock')"), '55000', 'everybody may ask');

# ---- at_most has passed ----

$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/a/short'", 'lost',
	'its time has come');
refused_ok('/a/short', '40001', qr{"/a/short" was lost\n.*longer than its at_most}, 'overdue');
$s->query("SELECT zk_unlock('/a/short')");

# ---- the lease has ended: the worker cannot tell, and nobody waits for it ----

kill 'STOP', $worker;
$test->look_until($one, "SELECT lease_remaining <= '0' FROM zk_status", 't', 'the lease ends');
$s->query("SET zklock.commit_wait = '1 h'");
foreach my $name (qw(lock shared leader leases))
{
	refused_ok("/a/$name", '40001', qr{lease of distributed lock "/a/$name[^"]*" has ended\n},
		"$name: without a lease");
}
cmp_ok($s->query("SELECT zk_fencing_token('/a/leader')"), '>', 0, 'the token is known');
$s->query('BEGIN');
is($s->error("SELECT zk_assert_lock('/a/lock')"), '40001', 'in a transaction, too');
$s->query('ROLLBACK');
kill 'CONT', $worker;
$test->look_until($one, "SELECT lease_remaining > '0' FROM zk_status", 't', 'it is renewed');
assert_ok("/a/$_", $lease, "$_: again") foreach qw(lock shared leader leases);

# ---- all is lost ----

$test->lose_session($one, '/a/lock');
my %release = (
	lock => 'zk_unlock',
	shared => 'zk_unlock_shared',
	leader => 'zk_resign',
	leases => 'zk_release_permits');
foreach my $name (qw(lock shared leader leases))
{
	refused_ok("/a/$name", '40001', qr{"/a/$name[^"]*" was lost\n.*session}, "$name: lost");
	like($s->messages, qr{Acknowledge the loss with $release{$name}\(\), then}, "$name: what to call");
	is($s->query("SELECT zk_fencing_token('/a/$name')"), '', "$name: has no token");
}
$s->query('SELECT zk_unlock_all()');
refused_ok('/a/lock', '55000', qr{you do not hold}, 'acknowledged');
$rival->query('SELECT zk_unlock_all()');
$test->finish;
