# zk_stat_locks counts, for each lock, what the sessions of a server had of it:
# acquires, waits, timeouts, denials and losses, exactly; a restart of the worker
# loses nothing; the name used least recently makes room.  zk_stat_reset() and a
# restart of the server begin from nothing, and only superusers may reset.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my ($a, $b) = map { $test->session($one) } 1 .. 2;
my $other = $test->session($two);
my $counts = "acquires || ' ' || waited || ' ' || timeouts || ' ' || denials || ' ' || losses";

# What is freed is counted, so wait until no slot is in use.
sub counts
{
	my ($name, $expected, $what, $node) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$node //= $one;
	$test->look_until($node, "SELECT count(*) FROM zk_locks WHERE path = '$name'"
		  . " AND state NOT IN ('granted', 'unconfirmed', 'waiting')", 0, "$name is quiet");
	ok($test->look_until($node,
			"SELECT coalesce((SELECT $counts FROM zk_stat_locks"
			  . " WHERE path = '$name'), 'none')",
			$expected, $what),
		$what);
	return;
}

# Waits until the worker knows that a request has to wait for others, which it
# may learn after ZooKeeper has the request's znode.
sub wait_blocked
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($one,
		"SELECT count(*) FROM zk_dump() WHERE path = '$name' AND item = 'request'"
		  . " AND state LIKE '% waiting %' AND state NOT LIKE '% together%'",
		1, "one waits for others for $name");
}

# ---- what counts

counts('/s/a', 'none', 'no row before the first lock');
$a->query("SELECT zk_lock('/s/a')");
counts('/s/a', 'none', 'a hold counts when it is over');
$a->query("SELECT zk_unlock('/s/a')");
counts('/s/a', '1 0 0 0 0', 'one acquire');
$a->query("SELECT zk_lock('/s/a'), zk_lock('/s/a')");
$a->query("SELECT zk_unlock('/s/a'), zk_unlock('/s/a')");
counts('/s/a', '2 0 0 0 0', 'a hold that is taken twice is one');

# shared holders do not wait for each other
$a->query("SELECT zk_lock_shared('/s/a')");
$b->query("SELECT zk_lock_shared('/s/a')");
$_->query("SELECT zk_unlock_shared('/s/a')") foreach $a, $b;
counts('/s/a', '4 0 0 0 0', 'two readers');

# a wait for a session of the same server, and for one of another
$a->query("SELECT zk_lock('/s/a')");
$test->enqueue($b, "SELECT zk_lock('/s/a')", '/s/a');
wait_blocked('/s/a');
$a->query("SELECT zk_unlock('/s/a')");
$b->value;
$b->query("SELECT zk_unlock('/s/a')");
counts('/s/a', '6 1 0 0 0', 'one waited for a local holder');
$other->query("SELECT zk_lock('/s/a')");
$test->enqueue($a, "SELECT zk_xact_lock('/s/a')", '/s/a');
wait_blocked('/s/a');
$other->query("SELECT zk_unlock('/s/a')");
$a->value;
counts('/s/a', '7 2 0 0 0', 'and one for a foreign one');
counts('/s/a', '1 0 0 0 0', 'the other server has its own counts', $two);

# timeouts, denials; a cancel is neither
$b->query("SELECT zk_lock('/s/a')");
is($a->error("SELECT zk_lock('/s/a', '10 ms')"), '55P03', 'timeout');
$a->query("SET lock_timeout = '10 ms'");
is($a->error("SELECT zk_lock_shared('/s/a')"), '55P03', 'lock_timeout');
$a->query('RESET lock_timeout');
is($a->query("SELECT zk_try_lock('/s/a')"), 'f', 'a try');
is($a->query("SELECT zk_try_lock('/s/a', '10 ms')"), 'f', 'a try with a timeout');
is($a->query("SELECT zk_try_lock_shared('/s/a')"), 'f', 'a shared try');
$test->enqueue($a, "SELECT zk_lock('/s/a')", '/s/a');
$a->cancel;
is($a->sqlstate, '57014', 'a cancel');
$b->query("SELECT zk_unlock('/s/a')");
counts('/s/a', '8 2 2 3 0', 'timeouts and denials');

# a loss; zk_stat_locks has only what was acknowledged
$a->query("SET zklock.lost_lock_action = 'none'");
$a->query("SELECT zk_lock('/s/a')");
$test->zk->client->delete('/zklock/s/a/' . ($test->queue('/s/a'))[0]);
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/s/a'",
	'lost', 'it is lost');
$a->query("SELECT zk_unlock('/s/a')");
counts('/s/a', '9 2 2 3 1', 'a loss');

# semaphores: a row of the name that people use
$a->query("SELECT zk_acquire_permits('/s/sem', 2, max_permits => 2)");
$test->enqueue($b, "SELECT zk_acquire_permits('/s/sem', max_permits => 2)", '/s/sem/leases');
is($test->session($one)->error("SELECT zk_acquire_permits('/s/sem', max_permits => 2, timeout => '10 ms')"),
	'55P03', 'a timeout behind a waiter');
$a->query("SELECT zk_release_permits('/s/sem', 2)");
$b->value;
$b->query("SELECT zk_release_permits('/s/sem')");
counts('/s/sem', '3 0 1 0 0', 'permits');
is($test->look($one, "SELECT count(*) FROM zk_stat_locks WHERE path LIKE '/s/sem/%'"),
	0, 'its parts have no rows');

# ---- times

is($test->look($one, 'SELECT count(*) FROM zk_stat_locks'
		  . ' WHERE NOT (total_wait_time >= max_wait_time AND max_wait_time >= mean_wait_time'
		  . ' AND mean_wait_time > 0 AND total_hold_time >= max_hold_time'
		  . ' AND max_hold_time > 0)'), 0, 'times fit together');
is($test->look($one, 'SELECT count(*) FROM zk_stat_locks'
		  . ' WHERE abs(mean_wait_time * acquires - total_wait_time) > 0.001'),
	0, 'the mean is that of the acquires');
$a->query("SELECT zk_lock('/s/slow')");
$b->send("SELECT zk_xact_lock('/s/slow')");
wait_blocked('/s/slow');
$a->query("SELECT pg_sleep(0.1), zk_unlock('/s/slow')");
$b->value;
counts('/s/slow', '2 1 0 0 0', 'a wait of 100 ms');
is($test->look($one, 'SELECT max_wait_time > 99, max_hold_time > 99,'
		  . " total_wait_time < 60000 FROM zk_stat_locks WHERE path = '/s/slow'"),
	't|t|t', 'is that long');

# ---- the worker, and those who make room

$a->query("SELECT zk_lock('/s/kept')");
$test->restart_worker($one);
is($a->query("SELECT zk_unlock('/s/kept')"), 'f', 'a hold ends with the worker');
$test->look_until($one, "SELECT losses FROM zk_stat_locks WHERE path = '/s/kept'", 1,
	'and counts as lost');
counts('/s/a', '9 2 2 3 1', 'what was counted before');
is($test->status($one, 'stats_evicted'), 0, 'none made room yet');

my $names = "SELECT string_agg(path, ' ' ORDER BY path) FROM zk_stat_locks WHERE path LIKE '/s/%'";
is($test->look($one, $names), '/s/a /s/kept /s/sem /s/slow', 'four names');
$a->query("SELECT zk_lock('/many/' || i), zk_unlock('/many/' || i) FROM generate_series(1, 996) i");
$test->look_until($one, 'SELECT count(*) FROM zk_stat_locks', 1000, 'a thousand names are counted');
is($test->status($one, 'stats_evicted'), 0, 'which is as many as there can be');
$a->query("SELECT zk_lock('/s/a'), zk_unlock('/s/a')");
counts('/s/a', '10 2 2 3 1', 'the oldest one becomes the youngest');
foreach my $i (1 .. 3)
{
	$a->query("SELECT zk_lock('/s/n$i'), zk_unlock('/s/n$i')");
	counts("/s/n$i", '1 0 0 0 0', "a new name, $i");
}
is($test->look($one, $names), '/s/a /s/n1 /s/n2 /s/n3', 'the oldest names are gone');
is($test->status($one, 'stats_evicted'), 3, 'and counted');

# ---- who sees what

$one->safe_psql('postgres', 'CREATE ROLE looks LOGIN; GRANT SELECT ON zk_stat_locks TO looks;'
	  . ' GRANT EXECUTE ON FUNCTION zk_stat_reset() TO looks;'
	  . ' CREATE ROLE monitors LOGIN IN ROLE pg_monitor');
my $looks = $test->session($one, user => 'looks');
my $monitors = $test->session($one, user => 'monitors');
is($looks->query('SELECT count(*), count(path), sum(acquires) FROM zk_stat_locks'),
	'1000|0|1009', 'others see no names');
is($monitors->query('SELECT count(path) FROM zk_stat_locks'), 1000, 'pg_monitor does');
is($looks->error('SELECT zk_stat_reset()'), '42501', 'only superusers reset');
is($monitors->error('SELECT zk_stat_reset()'), '42501', 'nor does pg_monitor');

my $since = $test->status($one, 'stats_reset');
$a->query('SELECT zk_stat_reset()');
is($test->look($one, 'SELECT count(*) FROM zk_stat_locks'), 0, 'reset');
is($test->look($one, "SELECT stats_reset > '$since', stats_evicted FROM zk_stat_server"),
	't|0', 'and since when');
$a->query("SELECT zk_lock('/s/a'), zk_unlock('/s/a')");
counts('/s/a', '1 0 0 0 0', 'it counts again');

# ---- a restart

$test->stop_looking($one);
$one->restart;
$test->wait_connected($one);
counts('/s/a', 'none', 'a restart of the server begins from nothing');
$other->close;
$test->finish;
