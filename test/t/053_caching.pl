# A lock that the sessions of a server take again and again stays on the server: the
# next session takes it without the worker and without ZooKeeper.  It is a holder as
# any other, with its own role, settings and token, and nothing is left of the one
# before.  Any other server gets the lock at once, and what needs the worker goes to
# the worker: limits, jobs, statistics, a lease that has ended.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	zk => { tick_time => 1500, container_check_ms => 3_600_000 },
	session_timeout => '30s',
	max_requests => 40,
	conf => "zklock.cache_time = '60s'\nzklock.max_requests_per_session = 40\n");
my ($one, $two) = $test->nodes;
my ($first, $s) = map { $test->session($one) } 1 .. 2;
my $other = $test->session($two);

sub state_of
{
	my ($path) = @_;

	return "SELECT state FROM zk_locks WHERE path = '$path'";
}

my $warmings = 0;    # of the last call of "warm"

# Takes and releases a lock until it is cached.
sub warm
{
	my ($path, $call) = @_;

	$warmings = 0;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$call //= "zk_lock('$path'), zk_unlock('$path')";
	return $test->look_until($one, state_of($path), 'cached', "$path is cached",
		before => sub { $first->query("SELECT $call"); $warmings++; });
}

sub cached_ok
{
	my ($path, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($test->look($one, state_of($path)), 'cached', $what);
}

sub status { return $test->status($one, $_[0]); }

# ---- what it looks like

ok(warm('/c/x'), 'a lock becomes cached');
is($test->look($one, 'SELECT mode, lifetime, state, pid, fencing_token, holds, requested_at,'
		  . " granted_at, datname, usename, application_name, znode LIKE '/zklock/c/x/%'"
		  . " FROM zk_locks WHERE path = '/c/x'"), 'exclusive||cached|||0||||||t', 'it is no session\'s');
is(status('cached'), 1, 'zk_status counts it');
is(status('locks_held'), 0, 'but not as held');
is($test->look($_, "SELECT granted, cached, server IS NOT NULL, pid, datname, usename"
		  . " FROM zk_queue('/c/x')"), ($_ == $one ? 'f' : 't') . '|t|t|||', 'the queue on '
	  . $_->name) foreach $one, $two;
is($test->look($two, "SELECT pid, usename FROM zk_fleet_locks('/c/x')"), '|',
	'nor does the fleet show a session');
$one->safe_psql('postgres', 'CREATE ROLE plain LOGIN;'
	  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO plain;'
	  . ' GRANT SELECT ON zk_locks TO plain');
my $plain = $test->session($one, user => 'plain');
is($plain->query('SELECT path, state FROM zk_locks'), '|cached', 'others do not see its name');
$first->query("SET ROLE plain; SELECT zk_lock('/c/x'), zk_unlock('/c/x'); RESET ROLE");
cached_ok('/c/x', 'a role that is set is no other session');

# ---- taking it

my $takes = status('cache_takes');
my $token = 0;
my $grew = 0;
my $requests = $test->zk->packets_received;
foreach (1 .. 100)
{
	my $next = $s->query("SELECT zk_lock('/c/x')");

	$grew++ if $next > $token;
	$token = $next;
	$s->query("SELECT zk_unlock('/c/x')");
}
$requests = $test->zk->packets_received - $requests;
cmp_ok($requests, '<', 20, "100 takes: $requests requests, as beats");
is($grew, 100, 'each token is greater');
is(status('cache_takes') - $takes, 100, 'all are counted');

$plain->query("SELECT zk_lock('/c/x')");
is($test->look($one, 'SELECT state, pid, usename, datname, lifetime, holds, release_requested'
		  . " FROM zk_locks WHERE path = '/c/x'"),
	'granted|' . $plain->pid . '|plain|postgres|session|1|f', 'the holder is the one who took it');
is($s->query("SELECT zk_try_lock('/c/x')"), 'f', 'a try is denied');
is($plain->query("SELECT zk_lock('/c/x'), zk_unlock('/c/x')") > $token, 1, 're-entry');
is($plain->query("SELECT zk_unlock('/c/x')"), 't', 'it releases');
cached_ok('/c/x', 'and leaves it cached');

# every lifetime and every end
foreach my $case (
	[ 'a try', "SELECT zk_try_lock('/c/x'), zk_unlock('/c/x')", 't|t' ],
	[ 'a transaction', "BEGIN; SELECT zk_xact_lock('/c/x') > 0; COMMIT", 't' ],
	[ 'a transaction that fails', "BEGIN; SELECT zk_xact_lock('/c/x') > 0; ROLLBACK", 't' ],
	[
		'a savepoint',
		"BEGIN; SAVEPOINT a; SELECT zk_xact_lock('/c/x') > 0; ROLLBACK TO a; COMMIT",
		't'
	],
	[ 'all at once', "SELECT zk_lock('/c/x') > 0; SELECT zk_unlock_all()", "t\n" ])
{
	my ($what, $sql, $answer) = @$case;

	$takes = status('cache_takes');
	is($s->query($sql), $answer, $what);
	cached_ok('/c/x', "$what: cached again");
	is(status('cache_takes') - $takes, 1, "$what: it was taken");
}
$s->query("BEGIN; SAVEPOINT a; SELECT zk_xact_lock('/c/x'); ROLLBACK TO a");
is($plain->query("SELECT zk_try_lock('/c/x')"), 't', 'after a savepoint it is free at once');
$plain->query("SELECT zk_unlock('/c/x')");
$s->query('COMMIT');
$s->query("SELECT zk_lock('/c/x')");
$s->query('DISCARD ALL');
cached_ok('/c/x', 'DISCARD ALL');
my $ends = $test->session($one);
$ends->query("SELECT zk_lock('/c/x')");
$ends->close;
ok($test->look_until($one, state_of('/c/x'), 'cached', 'cached'), 'the end of a session');

# One znode has tokens for 4 096 grants; then another znode follows.
my $recalls = status('recalls');
is($s->query("DO \$\$ DECLARE last bigint := 0; next bigint; BEGIN FOR i IN 1 .. 10000 LOOP"
		  . " next := zk_lock('/c/x');"
		  . " IF next <= last THEN RAISE 'token % behind %', next, last; END IF;"
		  . " last := next; PERFORM zk_unlock('/c/x'); END LOOP; END \$\$"),
	'', '10 000 takes: each token is greater');
cmp_ok(status('recalls') - $recalls, '>=', 2, 'the znode was replaced on the way');
ok(warm('/c/x'), 'and the lock is cached again');

# Somebody deletes the znode while no session holds the lock: nobody is told.
my ($contender) = $test->queue('/c/x');
$test->zk->client->delete("/zklock/c/x/$contender");
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'gone'),
	'a lock whose znode is deleted is cached no longer');
is($s->query("SELECT zk_lock('/c/x') > $token, zk_unlock('/c/x')"), 't|t', 'it is taken anew');
ok(warm('/c/x'), 'and cached');

# While the worker is stopped, it can be taken; after the lease it cannot.
my $worker = status('worker_pid');
kill 'STOP', $worker;
is($s->query("SELECT zk_try_lock('/c/x'), zk_unlock('/c/x')"), 't|t', 'without the worker');
kill 'CONT', $worker;

# ---- nothing is left of the holder before

$first->query("SET zklock.on_release_request = 'ignore'; SET zklock.lost_lock_action = 'none'");
$first->query("SELECT zk_lock('/c/x'), zk_unlock('/c/x')");
cached_ok('/c/x', 'a holder that ignores whatever happens');
my $willing = $test->session($one);
$willing->query("SET zklock.on_release_request = 'terminate'; SELECT zk_lock('/c/x')");
is($other->query("SELECT count(*) FROM zk_request_release('/c/x')"), 1, 'a holder is asked');
ok($test->look_until($one, 'SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $willing->pid,
		0, 'the session'), 'and ends, as it has chosen');
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'the lock is free');

# A wait that was cancelled, or a limit, is not the next one's.
ok(warm('/c/x'), 'cached once more');
$willing = $test->session($one);
$willing->query("SET zklock.lost_lock_action = 'terminate'; SELECT zk_lock('/c/x')");
my ($znode) = $test->queue('/c/x');
$test->zk->client->delete("/zklock/c/x/$znode");
ok($test->look_until($one, 'SELECT count(*) FROM pg_stat_activity WHERE pid = ' . $willing->pid,
		0, 'the session'), 'a loss ends a session that has chosen so');
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'the lock is free');

# ---- limits, and what has to be written

ok(warm('/c/x'), 'cached');
$s->query("SELECT zk_lock('/c/x', at_most => '1h'), zk_unlock('/c/x')");
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released');
pass('a lock with a limit is not cached');
ok(warm('/c/x'), 'cached');
$s->query("SELECT zk_lock('/c/x', at_least => '1s'), zk_unlock('/c/x')");
is($test->look($one, state_of('/c/x')), 'kept', 'at_least');
is($plain->query("SELECT zk_try_lock('/c/x')"), 'f', 'keeps it');
ok(warm('/c/x'), 'cached');
$s->query("SELECT zk_lock('/c/x')");
$s->query("SELECT zk_extend('/c/x', '1h'), zk_unlock('/c/x')");
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released');
pass('nor is one that got a limit later');

# A call that finds its key used leaves the lock of the job cached; one that runs the
# job takes that lock, and its note is written after the commit: before anybody else
# takes the lock.
$s->query('CREATE TABLE runs (key text)');
my $job = "INSERT INTO runs SELECT '%s' WHERE zk_once('/c/job', key => '%1\$s',"
  . " guarantee => 'at_least_once')";
$first->query(sprintf $job, 0);
foreach my $key (1 .. 5)
{
	my $used = $key - 1;

	ok(warm('/.once/c/job', "zk_once('/c/job', key => '$used')"), "job $used has run");
	$takes = status('cache_takes');
	$s->query(sprintf $job, $key);
	is(status('cache_takes') - $takes, 1, "job $key runs under a cached lock");
	$first->query(sprintf $job, $key);
}
is($s->query('SELECT count(*), count(DISTINCT key) FROM runs'), '6|6', 'each job runs once');

# ---- other servers

ok(warm('/c/x'), 'cached');
$recalls = status('recalls');
cmp_ok($other->query("SELECT zk_lock('/c/x')"), '>', $token, 'another server gets the lock');
cmp_ok(status('recalls'), '>', $recalls, 'by a recall');
is($s->query("SELECT zk_try_lock('/c/x')"), 'f', 'which has it alone');
$other->query("SELECT zk_unlock('/c/x')");
ok(warm('/c/x'), 'cached');
is($other->query("SELECT zk_try_lock('/c/x')"), 't', 'a try of another server');
$other->query("SELECT zk_unlock('/c/x')");
ok(warm('/c/x'), 'cached');
$s->query("SELECT zk_lock('/c/x')");
is($other->query("SELECT zk_try_lock('/c/x')"), 'f', 'is denied if a session holds it');
$test->enqueue($other, "SELECT zk_lock('/c/x')", '/c/x');
$s->query("SELECT zk_unlock('/c/x')");
cmp_ok($other->value, '>', 0, 'and gets it afterwards');
$other->query("SELECT zk_unlock('/c/x')");
ok(warm('/c/x'), 'cached');
is($other->query("SELECT count(*) FROM zk_request_release('/c/x')"), 1, 'zk_request_release()');
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released'),
	'ends the caching');
ok(warm('/c/x'), 'cached');
is($other->query("SELECT zk_break_lock('/c/x')"), 't', 'zk_break_lock()');
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released'),
	'too');

# two sessions of this server
ok(warm('/c/x'), 'cached');
$s->query("SELECT zk_lock('/c/x')");
$plain->send("SELECT zk_lock('/c/x')");
$test->wait_waiting($one, '/c/x', 1);
$s->query("SELECT zk_unlock('/c/x')");
cmp_ok($plain->value, '>', 0, 'a session that waits gets it');
$plain->query("SELECT zk_unlock('/c/x')");

# ---- statistics, the log, slots, the setting

$s->query('SELECT zk_stat_reset()');
ok(warm('/c/stat'), 'cached');
$s->query("SELECT zk_lock('/c/stat'), zk_unlock('/c/stat')") foreach 1 .. 50;
$other->query("SELECT zk_lock('/c/stat'), zk_unlock('/c/stat')");
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/stat'", 0, 'released');
is($test->look($one, "SELECT acquires FROM zk_stat_locks WHERE path = '/c/stat'"),
	$warmings + 50, 'each take is an acquire, and counted once');
is($test->look($one, 'SELECT waited, denials, losses, total_hold_time > 0, max_hold_time > 0'
		  . " FROM zk_stat_locks WHERE path = '/c/stat'"), '0|0|0|t|t', 'with its times');

ok(warm("/c/many/$_"), "cached: $_") foreach 1 .. 20;
is($s->query("SELECT count(zk_lock('/c/other/' || n)) FROM generate_series(1, 30) n"), 30,
	'cached locks make room');
$s->query('SELECT zk_unlock_all()');

# Places that are only cached are given back late if the worker is stopped.
ok(warm("/c/many/$_"), "cached: $_") foreach 1 .. 20;
my $stopped_worker = status('worker_pid');
kill 'STOP', $stopped_worker;
my $began_to_wait = time;
$s->send("SELECT array_length(zk_multilock(array_agg('/c/third/' || n)), 1) FROM generate_series(1, 30) n");
wait_for(sub { time > $began_to_wait + 2 }, 'two seconds');
kill 'CONT', $stopped_worker;
is($s->value, 30, 'a request waits for them');
$s->query('SELECT zk_unlock_all()');

ok(warm('/c/x'), 'cached');
$one->append_conf('postgresql.conf', "zklock.log_locks = 'all'");
$one->reload;
wait_for(sub { $s->query('SHOW zklock.log_locks') eq 'all' }, 'the setting');
$s->query("SELECT zk_lock('/c/x'), zk_unlock('/c/x')") foreach 1 .. 2;
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'not cached'),
	'nothing is cached if all is logged');
$one->append_conf('postgresql.conf', "zklock.log_locks = 'lost'");
$one->reload;

ok(warm('/c/x'), 'cached');
$other->query("SELECT zk_lock('/c/y')");
$s->query("SELECT zk_drain('1min')");
is($test->look($one, 'SELECT count(*) FROM zk_locks'), 0, 'a drain leaves nothing');
$s->query('SELECT zk_undrain()');

ok(warm('/c/x'), 'cached');
kill 'TERM', status('worker_pid');
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released'),
	'a new worker leaves nothing');
$test->wait_connected($one);

ok(warm('/c/x'), 'cached');
$one->append_conf('postgresql.conf', 'zklock.cache_time = 0');
$one->reload;
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released'),
	'the setting 0 ends it');
$s->query("SELECT zk_lock('/c/x'), zk_unlock('/c/x')") foreach 1 .. 20;
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'released');
is(status('cached'), 0, 'for good');

# ---- the log of all locks

$one->append_conf('postgresql.conf', "zklock.cache_time = '60s'");
$one->reload;
ok(warm('/c/x'), 'cached');
$one->append_conf('postgresql.conf', 'zklock.log_locks = all');
$one->reload;
ok($test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/c/x'", 0, 'released'),
	'log_locks = all ends it');
my %marks;
foreach (1 .. 20)
{
	$s->query("SELECT zk_lock('/c/logged')");
	$marks{ $test->look($two, "SELECT cached FROM zk_queue('/c/logged')") } = 1;
	$s->query("SELECT zk_unlock('/c/logged')");
}
is(join(' ', keys %marks), 'f', 'and no znode is marked');
$one->append_conf('postgresql.conf', 'zklock.log_locks = lost');
$one->reload;

# ---- a try whose time is shorter than the other server's answer takes

my $got = 0;
foreach my $round (1 .. 5)
{
	last if $got;
	ok(warm('/c/x'), 'cached');
	my $slow = status('worker_pid');
	kill 'STOP', $slow;
	my $began = time;
	$other->send("SELECT zk_try_lock('/c/x', '50ms')");
	wait_for(sub { time > $began + 0.2 }, 'its time is over');
	kill 'CONT', $slow;
	$got = $other->value eq 't';
	$other->query("SELECT zk_unlock('/c/x')") if $got;
}
ok($got, 'waits for a server that answers a moment later');

# ---- a worker that is stopped, so that nobody tells whether the lock is held: a try
# does not know either, and says so

ok(warm('/c/x'), 'cached');
$worker = status('worker_pid');
$other->query("SET zklock.answer_timeout = '1s'");
kill 'STOP', $worker;
foreach my $call ("zk_try_lock('/c/x')", "zk_try_lock('/c/x', '100ms')",
	"zk_try_multilock(ARRAY['/c/x', '/c/y'])")
{
	is($other->error("SELECT $call"), '08006', "$call does not know");
	like($other->messages,
		qr{server "server1" may have distributed lock "/c/x" cached, and does not answer},
		"$call: the error names the server");
}
$other->query("SET lock_timeout = '500ms'");
is($other->error("SELECT zk_try_lock('/c/x')"), '08006', 'lock_timeout ends a try');
like($other->messages, qr{The wait was for server "server1", which may have distributed lock "/c/x" cached},
	'and says what it waited for');
$other->query('RESET lock_timeout');
is($other->error("SELECT zk_lock('/c/x', '1s')"), '08006', 'a wait has its end');
like($other->messages, qr{The wait was for server "server1", which may have}, 'and does not know either');
kill 'CONT', $worker;
$other->query('RESET zklock.answer_timeout');
is($other->query("SELECT zk_try_lock('/c/x'), zk_unlock('/c/x')"), 't|t', 'then it is free');

# ---- a server that is switched off, or stopped

ok(warm('/c/x'), 'cached');
$one->append_conf('postgresql.conf', 'zklock.enabled = off');
$one->reload;
ok($test->look_until($one, 'SELECT state FROM zk_status', 'disabled', 'disabled'),
	'a cached lock keeps no server from being switched off');
is($other->query("SELECT zk_try_lock('/c/x'), zk_unlock('/c/x')"), 't|t', 'and is free');
$one->append_conf('postgresql.conf', 'zklock.enabled = on');
$one->reload;
$test->wait_connected($one);
ok(warm('/c/x'), 'cached');
$test->stop_looking($one);
$one->stop('fast');
is($other->query("SELECT zk_try_lock('/c/x'), zk_unlock('/c/x')"), 't|t',
	'a server that stops leaves it free');

$_->close foreach $first, $s, $plain, $other;
$test->finish;
