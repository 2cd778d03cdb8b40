# An ensemble loses the end of a session, as ZooKeeper does when a leader fails at a
# bad moment: the session lives again, with its znodes, after another server has got
# its locks.  Its server was held up meanwhile, and sees who stands behind it.

use strict;
use warnings;

use Test::More;

use ZklockTest;
use ZooKeeperEnsemble;

my $zk = ZooKeeperEnsemble->new('zk', tick_time => 1000);
my $test = ZklockTest->new(
	zk => $zk,
	session_timeout => '10s',
	conf => "zklock.cache_time = 0\n");
my ($one, $two) = $test->nodes;
my ($holder, $lonely, $waiter) = map { $test->session($one) } 1 .. 3;
my ($next, $first, $second) = map { $test->session($two) } 1 .. 3;
my @held_up = map { $test->status($one, $_) } 'worker_pid', 'session_pid';

$_->query("SET zklock.lost_lock_action = 'none'; SET zklock.commit_wait = '10min'")
  foreach $holder, $lonely;
$holder->query("BEGIN; CREATE TABLE stale (); SELECT zk_xact_lock('/held')");
$lonely->query("BEGIN; SELECT zk_xact_lock('/alone')");
$first->query("SELECT zk_lock('/awaited')");
$test->enqueue($waiter, "SELECT zk_lock('/awaited')", '/awaited');
$test->enqueue($second, "SELECT zk_lock('/awaited')", '/awaited');
$test->enqueue($next, "SELECT zk_lock('/held')", '/held');
my %data = map { $_->id => $_->copy_data } $zk->servers;

# ---- another server gets the locks

kill 'STOP', @held_up;
my $token = $next->value;
cmp_ok($token, '>', 0, 'the session ends, and the next one holds the lock');
is($first->query("SELECT zk_unlock('/awaited')"), 't', 'another holder leaves');
my $awaited_token = $second->value;
cmp_ok($awaited_token, '>', 0, 'and the next one holds that lock, too');
delete $zk->{client};

# ---- ZooKeeper loses that

$_->kill9 foreach $zk->servers;
$_->go_back($data{ $_->id }) foreach $zk->servers;
$zk->start;
ok(wait_for(
		sub {
			$two->log_contains(
				qr{WARNING:  distributed lock "/held" of server "[^"]+" may have another holder on server "[^"]+"}
			);
		},
		'the warning'),
	'the server that holds the lock says that another one stands ahead');
cmp_ok($test->status($two, 'lost_writes'), '>', 0, 'it counts that');
is($test->look($two, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'lost writes'"),
	'f',
	'and the health check says so');
kill 'CONT', @held_up;

# ---- the session is back

$test->wait_connected($one);
is($test->status($one, 'sessions_lost'), 0, 'the session lives');
is($holder->error('COMMIT'), '40001', 'the former holder cannot commit');
like($holder->messages, qr{another client that waited for the lock may have got it},
	'and is told why');
is($test->look($one, "SELECT to_regclass('stale') IS NULL"), 't', 'nothing stays of it');
is($lonely->query('COMMIT'), '', 'the holder of a lock that nobody waits for commits');
is($next->query("SELECT zk_fencing_token('/held')"), $token, 'the later holder goes on');
ok($test->wait_queue('/awaited', 2), 'the znode of the holder that had left goes');
ok($test->still_waits($waiter), 'a request that waits is not granted beside a holder');
is($second->query("SELECT zk_unlock('/awaited')"), 't', 'but after it');
cmp_ok($waiter->value, '>', $awaited_token, 'with a greater token');
$_->close foreach $holder, $lonely, $waiter, $next, $first, $second;
$test->wait_queue($_, 0) foreach '/held', '/alone', '/awaited';
$test->finish;
