# The ensemble is wiped under a running server: every lock is lost, and since
# fencing tokens would begin again below those given before, nothing is granted
# until a superuser says that this is meant.

use strict;
use warnings;

use File::Path qw(rmtree);
use Test::More;

use PostgreSQL::Test::Utils;

use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s', servers => 1);
my ($one) = $test->nodes;

my $holder = $test->session($one);
my $waiter = $test->session($one);
my $other = $test->session($one);
$holder->query("SET zklock.lost_lock_action = 'none'");
$other->query("SELECT zk_lock('/w/' || n), zk_unlock('/w/' || n)"
	  . " FROM generate_series(1, 100) n");
$holder->query("BEGIN; SELECT zk_xact_lock('/w/a')");
my $token = $holder->query("SELECT zk_fencing_token('/w/a')");
$test->enqueue($waiter, "SELECT zk_lock('/w/a')", '/w/a');

$test->zk->client->quit;
delete $test->zk->{client};
$test->zk->stop;
rmtree("$test->{zk}{dir}/data");
$test->zk->start;
$test->look_until($one,
	"SELECT last_error LIKE 'transaction ids of ZooKeeper have gone back%'"
	  . " AND state <> 'connected' FROM zk_status",
	't', 'the server notices');
is($holder->error('COMMIT'), '40001', 'the lock is lost');
ok($waiter->busy, 'who waits is granted nothing');
$other->query("SET zklock.answer_timeout = '100ms'");
is($other->error("SELECT zk_try_lock('/w/b')"),
	'08006', 'and a try is not answered');
like($other->messages, qr{zk_accept_lower_tokens},
	'the message says what to do');
my $lost = $test->status($one, 'sessions_lost');
my $connects = $test->status($one, 'connects');
$test->look_until($one, "SELECT connects > $connects FROM zk_stat_server",
	't', 'it tries again');
ok($waiter->busy, 'in vain');
is($test->status($one, 'sessions_lost'),
	$lost, 'which counts as no loss, for there is nothing to lose');
like(
	slurp_file($one->logfile),
	qr/transaction ids of ZooKeeper have gone back/,
	'and the server log says why');
ok(wait_for(
		sub { !$test->lock_znodes && $test->zk->mntr->{zk_ephemerals_count} == 0 },
		'nothing is left behind'),
	'and leaves nothing in the way of others');

$other->query('SELECT zk_accept_lower_tokens()');
cmp_ok($waiter->value, '<', $token, 'once accepted, locks are granted again');
$waiter->query("SELECT zk_unlock('/w/a')");
$test->wait_connected($one);

# The wiped one is what counts from now on.
$connects = $test->status($one, 'connects');
kill 'KILL', $test->status($one, 'session_pid');
$test->look_until($one,
	"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
	't', 'it goes on connecting');
is($other->query("SELECT zk_try_lock('/w/b', '1min')"), 't', 'and granting');
$_->close foreach $holder, $waiter, $other;
$test->finish;
