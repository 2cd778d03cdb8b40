# ClickHouse Keeper speaks ZooKeeper's protocol, but ends sessions by the wall clock: a
# step of that ends one inside the lease.  So it is refused, and everybody is told: who
# calls, who waits already, zk_healthcheck(), and the log.  A fake answers as Keeper's
# sources do, since Debian has no Keeper.  Its handshake tells it; and if a later one has
# another handshake, its answer to "srvr" does.

use strict;
use warnings;

use Test::More;

use FakeZooKeeper;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $fake = FakeZooKeeper->new($port);
my $net = TcpProxy->new;
my $test = ZklockTest->new(
	start_zookeeper => 0,
	servers => 1,
	net => $net,
	route => { framed => 0 },
	session_timeout => '2s',
	zk => { port => $port, tick_time => 250 });
my ($node) = $test->nodes;
my $has_words = !$ENV{ZKLOCK_TEST_TLS};
my $keeper = qr/"127\.0\.0\.1:\d+" is ClickHouse Keeper, whose sessions end by the wall clock/;

sub wait_refused
{
	my ($what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		wait_for(sub { $test->status($node, 'last_error') =~ /^$keeper$/ }, $what), $what);
}

sub logged { return scalar(() = slurp_file($node->logfile) =~ /LOG:  zklock: $keeper/g); }

sub check
{
	my ($name) = @_;

	return $test->look($node,
		"SELECT ok, detail FROM zk_healthcheck() WHERE check_name = '$name'");
}

# ---- by its handshake

my $waiter = $test->session($node);
my $s = $test->session($node);
$waiter->send("SELECT zk_lock('/k/waits')");
$fake->mode('connect: ClickHouse Keeper');
wait_refused('it is refused, and zk_status says why');
is($waiter->sqlstate, '0A000', 'who waits already is told');
foreach my $call ("zk_lock('/k')", "zk_try_lock('/k')", "zk_try_xact_lock('/k')", "zk_once('/k', key => 'a')",
	"zk_acquire_permits('/k', max_permits => 1)", "count(*) FROM zk_queue('/k')")
{
	is($s->error("SELECT $call"), '0A000', "$call is refused at once");
}
is($s->error("CALL zk_run_exclusive('/k', 'SELECT 1', timeout => '0')"), '0A000', 'so is a job');
like($s->messages,
	qr/ClickHouse Keeper cannot be used in place of ZooKeeper.*If that is set, a lock can have two holders\..*$keeper.*Set "zklock\.connect_string"/s,
	'the error says which server, why, and what to do');

$node->safe_psql('postgres', 'CREATE ROLE guest; GRANT EXECUTE ON FUNCTION zk_try_lock TO guest');
$s->query('SET ROLE guest');
is($s->error("SELECT zk_try_lock('/k')"), '0A000', 'a role that may not see hosts');
unlike($s->messages, qr/127\.0\.0\.1/, 'is not told the host');
$s->query('RESET ROLE');

like(check('connected'), qr/^f\|.*$keeper/, 'zk_healthcheck: connected');
like(check('zookeeper version'), qr/^f\|The server is ClickHouse Keeper/, 'zk_healthcheck: version');
like(check('hosts'), $has_words ? qr/"127\.0\.0\.1:\d+" is ClickHouse Keeper\./ : qr/: 0\.  /,
	'zk_healthcheck: hosts');
my $accepted = $fake->stats->{accepted};
wait_for(sub { $fake->stats->{accepted} >= $accepted + 3 }, 'it is tried again and again');
is(logged(), 1, 'and logged once');

# ---- ZooKeeper in its place

$fake->stop;
$test->zk->start;
$test->wait_connected($node);
cmp_ok($s->query("SELECT zk_lock('/k')"), '>', 0, 'ZooKeeper in its place serves');
is($s->query("SELECT zk_unlock('/k')"), 't', 'and the lock is released');

# ---- by its words

SKIP:
{
	skip 'nobody asks for words through TLS', 3 unless $has_words;
	$net->release('*', 'v99.1.1.1-lts', 'ClickHouse Keeper');
	$net->reset('server1-zk');
	ok(wait_for(sub { logged() > 1 }, 'the refusal'), 'its words are enough');
	ok(wait_for(sub { $s->error("SELECT zk_try_xact_lock('/k')") eq '0A000' }, 'a caller'),
		'who calls is told then, too');
	$net->release('*', '3.9.4');
	$test->wait_connected($node);
	ok(wait_for(sub { check('zookeeper version') =~ /^t\|/ }, 'the version'), 'ZooKeeper again');
}

$_->close foreach $waiter, $s;
$fake->quit;
$test->finish;
