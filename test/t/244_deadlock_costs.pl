# What the detection of deadlocks costs: nothing for short waits, for waits of
# sessions that hold nothing, and for a thousand waiters on one name; a few requests
# for a long wait of a session that holds something.

use strict;
use warnings;

use POSIX ();
use Test::More;

use DeadlockTest;
use ZklockTest;

my $files = POSIX::sysconf(POSIX::_SC_OPEN_MAX());
my $waiters = $files > 1100 ? 1000 : $files - 100;
my $test = ZklockTest->new(
	max_requests => 1100,
	zk => { container_check_ms => 3_600_000 },
	conf => $deadlock_conf . "max_connections = 1100\n");
my ($one, $two) = $test->nodes;
my ($s, $t) = map { $test->session($one) } 1, 2;
my $other = $test->session($two);

# Requests that are no batch: a server that holds locks sends batches as heartbeats.
sub requests
{
	return $test->status($one, 'operations - batches');
}

sub published
{
	return scalar(my @all = $test->zk->client->ls('/zklock/.waits'));
}

# A thousand waiters that hold nothing
my $holder = $test->session($two);
$holder->query("SELECT zk_lock('/crowd')");
my @crowd;
foreach (1 .. $waiters)
{
	push @crowd, $test->session($one);
	$crowd[-1]->send("SELECT zk_lock('/crowd')");
}
$test->wait_waiting($one, '/crowd', $waiters);
ok($test->wait_queue('/crowd', $waiters + 1), "$waiters wait");
my $before = requests();
ok(still($test, 25, $crowd[0], $crowd[-1]), 'for many deadlock_timeouts');
is(requests(), $before, 'that costs no request');
is($test->status($one, 'deadlock_checks'), 0, 'no look for deadlocks');
is(published(), 0, 'and nothing is published');

# They give up at once.
$_->cancel(wait => 0, running => 1) foreach @crowd;
foreach my $session (@crowd)
{
	$session->result;
	$session->close;
}
$holder->query('SELECT zk_unlock_all()');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0);

# Short waits of a session that holds something
$s->query("SET deadlock_timeout = '1min'; SELECT zk_lock('/own')");
foreach (1 .. 20)
{
	$other->query("SELECT zk_lock('/short')");
	$test->enqueue($s, "SELECT zk_lock('/short')", '/short');
	$other->query("SELECT zk_unlock('/short')");
	$s->value;
	$s->query("SELECT zk_unlock('/short')");
}
is($test->status($one, 'deadlock_checks'), 0, 'short waits: no look for deadlocks');
is(published(), 0, 'and nothing is published');
$s->query('RESET deadlock_timeout');

# A long wait: one znode for each lock that the session holds, and a look after 1, 2,
# 4, 8, 16, 16 ... deadlock_timeouts
$s->query("SELECT zk_lock('/own/2'), zk_lock_shared('/own'), zk_xact_lock('/own/2')");
$other->query("SELECT zk_lock('/long')");
$test->enqueue($s, "SELECT zk_lock('/long')", '/long');
$test->look_until($one, 'SELECT deadlock_checks > 0 FROM zk_stat_server', 't');
is(published(), 2, 'a znode for each lock');
$before = requests();
ok(still($test, 20, $s), 'a long wait');
my $checks = $test->status($one, 'deadlock_checks');
cmp_ok($checks, '<=', 7, "looks for it: $checks");
cmp_ok(requests() - $before, '<=', 6 * $checks, 'requests for it: ' . (requests() - $before));
is($test->status($two, 'deadlock_checks'), 0, 'the server of the holder does nothing');

# Waits of one server share their looks.
my @more = map { $test->session($one) } 1 .. 20;
$more[$_]->query("SELECT zk_lock('/more/$_')") foreach 0 .. 19;
$more[$_]->send("SELECT zk_lock('/long')") foreach 0 .. 19;
$test->wait_waiting($one, '/long', 21);
wait_for(sub { published() == 22 }, 'all of them are published');
is(published(), 22, 'a znode for each lock of each session');
$checks = $test->status($one, 'deadlock_checks') - $checks;
cmp_ok($checks, '<=', 20, "20 waits: $checks looks");

# It ends with the wait.
$other->query("SELECT zk_unlock('/long')");
$s->value;
$s->query('SELECT zk_unlock_all()');
$_->cancel(running => 1) foreach @more;
foreach my $session (@more)
{
	$session->result;
	$session->query('SELECT zk_unlock_all()');
}
ok(wait_for(sub { !published() }, 'nothing is published any more'), 'a wait that is over is not published');

# A session that holds too many
$s->query("SET zklock.max_requests_per_session = 200; SELECT zk_lock('/many/' || i) FROM generate_series(1, 65) i");
$other->query("SELECT zk_lock('/long')");
$test->enqueue($s, "SELECT zk_lock('/long')", '/long');
$test->look_until($one, 'SELECT unpublished_waits FROM zk_stat_server', 1,
	'a session that holds 65 locks takes no part');
is(published(), 0, 'nothing of it is published');
$other->query("SELECT zk_unlock('/long')");
$s->value;

$_->close foreach $s, $t, $other, $holder, @more;
$test->finish;
