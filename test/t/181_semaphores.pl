# Semaphores: permits that two servers and Curator share, in the layout of
# InterProcessSemaphoreV2.  Each counts the others' permits; several are had all
# or none, first come first served; they end as locks do, and whatever is given
# up leaves nothing behind.

use strict;
use warnings;

use POSIX ();
use Test::More;

use CuratorClient;
use PgSession;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my ($s, $t, $u) =
  ($test->session($one), $test->session($two), $test->session($one));

# So many permits, and so many in the queue of the guard, in ZooKeeper itself
sub permits_ok
{
	my ($name, $permits, $guards, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $good = $test->wait_queue("$name/leases", $permits)
	  && $test->wait_queue("$name/locks", $guards);
	return ok($good, $case);
}

# Begins to acquire, and returns once it waits: with its permits, or, behind
# others, for the guard.
sub begins
{
	my ($session, $sql, $name, $where) = @_;

	return $test->enqueue($session, "SELECT $sql", "$name/$where");
}

sub curator_begins
{
	my ($key, $name, $max, $permits, $where) = @_;
	my $before = $test->queue("$name/$where");

	$curator->command('semaphore', 'acquire', $key, "/zklock$name", $max, $permits);
	return wait_for(sub { scalar($test->queue("$name/$where")) > $before },
		"Curator's $key waits");
}

sub curator_holds
{
	my ($key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $curator->command('semaphore', 'held', $key) }, $case),
		$case);
}

# ---- counting, both ways ----

cmp_ok($s->query("SELECT zk_acquire_permits('/a', max_permits => 3)"), '>', 0, 'we get a permit');
cmp_ok($t->query("SELECT zk_acquire_permits('/a', max_permits => 3)"), '>', 0, 'so does another server');
$curator->command('semaphore', 'acquire', 'c', '/zklock/a', 3, 1);
curator_holds('c', 'and Curator');
is($curator->command('semaphore', 'participants', '/zklock/a'), 3,
	'Curator counts ours');
is($s->query("SELECT zk_try_acquire_permits('/a', max_permits => 3)"), 'f', 'there are no more for us');
is($t->query("SELECT zk_try_acquire_permits('/a', 1, max_permits => 3, timeout => '100ms')"), 'f', 'nor in a while');
$test->times_out($t, "zk_acquire_permits('/a', max_permits => 3, timeout => '100ms')",
	qr{could not acquire distributed lock "/a" within 100 ms.*The nearest request ahead is that of .*; 3 requests are ahead}s);
$test->times_out($t, "zk_xact_acquire_permits('/a', 1, max_permits => 3, timeout => '0')",
	qr{could not acquire 1 of 3 permits of semaphore "/a" within 0 ms.*Other clients}s);
ok(!$curator->command('semaphore', 'try', '/zklock/a', 3, 1), 'nor for Curator');
is($s->query("SELECT string_agg(position || mode || granted || (pid IS NOT NULL),"
		  . " ' ' ORDER BY position) FROM zk_queue('/a')"),
	'1permittruetrue 2permittruetrue 3permittruefalse',
	'zk_queue() shows them all');
is($s->query("SELECT path, mode, lifetime, state, holds FROM zk_locks"),
	'/a|permit|session|granted|1', 'zk_locks shows those of this server');
is($s->query("SELECT zk_fencing_token('/a') = fencing_token FROM zk_locks"),
	't', 'the fencing token');

# Who waits for others: with its permit the first, for the guard the next.
begins($s, "zk_acquire_permits('/a', max_permits => 3)", '/a', 'leases');
curator_begins('d', '/a', 3, 1, 'locks');
begins($t, "zk_acquire_permits('/a', max_permits => 3)", '/a', 'locks');
is($u->query("SELECT string_agg(granted || ' ' || (pid IS NOT NULL),"
		  . " ', ' ORDER BY position) FROM zk_queue('/a')"),
	'true true, true true, true false, false true, false false, false true',
	'zk_queue() shows who waits');
is($u->query("SELECT zk_try_acquire_permits('/a', max_permits => 3)"), 'f', 'a try does not pass them');
is($u->query("SELECT path, mode, state FROM zk_locks WHERE state = 'waiting'"),
	'/a|permit|waiting', 'zk_locks, too');
$test->look_until($two,
	"SELECT path || mode || state FROM zk_locks WHERE state = 'waiting'",
	'/apermitwaiting', 'also who waits for the guard');
$curator->command('semaphore', 'release', 'c');
cmp_ok($s->value, '>', 0, 'the first gets what Curator gives back');
ok(!$curator->command('semaphore', 'held', 'd'), 'the second waits');
is($s->query("SELECT zk_release_permits('/a')"), 't', 'we give one back');
curator_holds('d', 'the second gets it');
ok($test->still_waits($t), 'the third waits');
is($s->query("SELECT zk_release_permits('/a', 1)"), 't', 'and another');
cmp_ok($t->value, '>', 0, 'the third gets it');
$curator->command('semaphore', 'release', 'd');
is($t->query("SELECT zk_release_permits('/a', 2)"), 't', 'two at once');
permits_ok('/a', 0, 0, 'nothing is left');

# ---- all or none ----

is($s->query("SELECT zk_try_acquire_permits('/b', 2, max_permits => 3)"), 't', 'two of three');
is($t->query("SELECT zk_try_acquire_permits('/b', 2, max_permits => 3)"), 'f', 'two more are not there');
is($t->query("SELECT zk_try_acquire_permits('/b', 2, max_permits => 3, timeout => '50ms')"), 'f', 'nor in a while');
permits_ok('/b', 2, 0, 'those who tried have left nothing');
ok(wait_for(sub { $test->zk->child_watches == 0 }, 'no watch'), 'nor a watch');

$s->query("SELECT zk_acquire_permits('/watched', max_permits => 1)");
is($test->zk->child_watches, 0, 'nobody watches the children of a znode');
$t->send("SELECT zk_acquire_permits('/watched', max_permits => 1)");
ok(wait_for(sub { $test->zk->child_watches == 1 }, 'a watch'),
	'a call that waits for a permit does');
$t->cancel;
is($t->sqlstate, '57014', 'it is given up');
ok(wait_for(sub { $test->zk->child_watches == 0 }, 'no watch'),
	'and takes its watch back');
$s->query("SELECT zk_release_permits('/watched')");
permits_ok('/watched', 0, 0, 'nothing is left');
curator_begins('c', '/b', 3, 2, 'leases');
ok(!$curator->command('semaphore', 'held', 'c'), 'Curator waits for two');
is($t->query("SELECT zk_try_acquire_permits('/b', 1, max_permits => 3)"), 'f', 'which nobody passes');
$s->query("SELECT zk_release_permits('/b')");
curator_holds('c', 'Curator gets two');
begins($t, "zk_acquire_permits('/b', 2, max_permits => 3)", '/b', 'leases');
permits_ok('/b', 5, 1, 'we make two permits at once');
$curator->command('semaphore', 'release', 'c');
cmp_ok($t->value, '>', 0, 'and get both');
is($s->query("SELECT zk_try_acquire_permits('/b', 1, max_permits => 3)"), 'f', 'now all are taken');
$_->query('SELECT zk_unlock_all()') foreach $s, $t;
permits_ok('/b', 0, 0, 'zk_unlock_all() gives them back');

# What this server has given back is free for it, though ZooKeeper may not know.
$s->query("SELECT zk_acquire_permits('/k', max_permits => 1)");
my $free = grep {
	$s->query("SELECT zk_release_permits('/k')");
	($_ % 2 ? $s : $u)->query("SELECT zk_try_acquire_permits('/k', max_permits => 1)") eq 't'
	  && ($_ % 2 || $u->query("SELECT zk_release_permits('/k')") eq 't'
		&& $s->query("SELECT zk_try_acquire_permits('/k', max_permits => 1 + $_)") eq 't'
		&& $s->query("SELECT zk_release_permits('/k')") eq 't'
		&& $s->query("SELECT zk_try_acquire_permits('/k', max_permits => 1)") eq 't')
} 1 .. 30;
is($free, 30, 'a try right after a release gets the permit, with any maximum');
$s->query("SELECT zk_release_permits('/k')");

# ---- again, and too much ----

$s->query("SELECT zk_acquire_permits('/c', max_permits => 4), zk_acquire_permits('/c', 2, max_permits => 4)");
is($s->query("SELECT count(*) FROM zk_locks"), 3, 'each acquire counts its permits');
is($s->query("SELECT zk_release_permits('/c', 4)"), 'f', 'four are not held');
like($s->messages, qr/do not hold 4 permits of semaphore "\/c".*holds 3; none was released/s,
	'which is a warning');
is($s->query("SELECT count(*) FROM zk_locks"), 3, 'none was released');
is($s->query("SELECT zk_unlock('/c')"), 'f', 'permits are no lock');
like($s->messages, qr/Release the other hold of that name with zk_release_permits\(\)/, 'the hint has the right call');
$s->query("SELECT zk_lock_shared('/d/lock')");
is($s->query("SELECT zk_release_permits('/d/lock')"), 'f', 'nor is a lock a permit');
like($s->messages, qr/Release the other hold of that name with zk_unlock_shared\(\)/, 'the hint has the right call');
$s->query("SELECT zk_unlock_shared('/d/lock')");
is($s->error("SELECT zk_acquire_permits('/c', 2, max_permits => 4)"), '40P01', 'who would wait for himself');
is($s->error("SELECT zk_acquire_permits('/c', 2, max_permits => 4, timeout => '1h')"), '40P01', 'however long');
is($s->error("SELECT zk_try_acquire_permits('/c', 2, max_permits => 4, timeout => NULL)"), '40P01', 'also in a try for ever');
is($s->query("SELECT zk_try_acquire_permits('/c', 2, max_permits => 4)"), 'f', 'a try is only refused');
is($s->query("SELECT zk_release_permits('/c', 2)"), 't', 'two are released');
is($s->query("SELECT zk_try_lock('/c')"), 't', 'a lock of that name is another thing');
is($s->query("SELECT zk_unlock('/c')"), 't', 'and is released as such');
$s->query('DISCARD ALL');
permits_ok('/c', 0, 0, 'DISCARD ALL gives the rest back');

# ---- the maximum ----

$s->query("SELECT zk_acquire_permits('/d', max_permits => 3)");
is($t->error("SELECT zk_acquire_permits('/d', max_permits => 4)"), '22023', 'another maximum is refused');
like($t->result->{error}{detail}, qr/maximum is 3 permits.*specifies 4/, 'with both');
is($t->error("SELECT zk_try_acquire_permits('/d', max_permits => 2)"), '22023', 'for a try, too');
permits_ok('/d', 1, 0, 'it leaves nothing');
is($t->query("SELECT zk_try_acquire_permits('/d', max_permits => 3)"), 't', 'the same is good');
$t->query("SELECT zk_release_permits('/d')");
$s->query("SELECT zk_release_permits('/d')");
permits_ok('/d', 0, 0, 'and goes');

# Another kind of client always has a permit.  It goes by no record, so that of
# permits long gone does not bind those who come.
my $client = $test->zk->new_client;
$client->create(
	'/zklock/d/leases/_c_12345678-1234-4234-9234-123456789012-lease-',
	'10.0.0.1', [ 'ephemeral', 'sequence' ]);
is($s->query("SELECT zk_try_acquire_permits('/d', max_permits => 2)"), 't',
	'another maximum, when only other clients have permits');
is($t->query("SELECT zk_try_acquire_permits('/d', max_permits => 2)"), 'f', 'their permits count');
is($t->error("SELECT zk_acquire_permits('/d', max_permits => 3)"), '22023', 'and it binds the next one');
$s->query("SELECT zk_release_permits('/d')");
$client->quit;
permits_ok('/d', 0, 0, 'nobody has one');
cmp_ok($t->query("SELECT zk_acquire_permits('/d', max_permits => 4)"), '>', 0, 'now it may be changed');
is($s->error("SELECT zk_acquire_permits('/d', max_permits => 3)"), '22023', 'and counts for all');
$t->query("SELECT zk_release_permits('/d')");

# ---- transactions and savepoints ----

$s->query("BEGIN; SELECT zk_xact_acquire_permits('/e', max_permits => 3)");
$s->query("SAVEPOINT x; SELECT zk_try_xact_acquire_permits('/e', 2, max_permits => 3)");
is($t->query("SELECT zk_try_acquire_permits('/e', max_permits => 3)"), 'f', 'a transaction has all');
is($s->query("SELECT zk_release_permits('/e')"), 'f', 'it cannot give them back itself');
$s->query('ROLLBACK TO x');
permits_ok('/e', 1, 0, 'those of a savepoint are back');
is($t->query("SELECT zk_try_acquire_permits('/e', 2, max_permits => 3)"), 't', 'and can be had');
$s->query('COMMIT');
permits_ok('/e', 2, 0, 'the others are back with the commit');
$s->query("BEGIN; SELECT zk_xact_acquire_permits('/e', max_permits => 3)");
is($s->error("PREPARE TRANSACTION 'x'"), '0A000', 'no prepared transactions');
permits_ok('/e', 2, 0, 'an abort gives them back');
$t->query("SELECT zk_release_permits('/e', 2)");

# ---- giving up ----

$s->query("SELECT zk_acquire_permits('/f', 2, max_permits => 2)");
my %ends = (
	cancel => [ sub { $t->cancel }, '57014' ],
	lock_timeout => [ sub { }, '55P03', "SET lock_timeout = '100ms'" ],
	terminate => [
		sub { $s->query('SELECT 1'); $two->safe_psql('postgres',
				'SELECT pg_terminate_backend(' . $t->pid . ')') }, '57P01' ]);
foreach my $where ('leases', 'locks')
{
	begins($u, "zk_acquire_permits('/f', max_permits => 2)", '/f', 'leases') if $where eq 'locks';
	my $rest = $where eq 'locks' ? 3 : 2;

	foreach my $end (sort keys %ends)
	{
		my ($do, $sqlstate, $set) = @{ $ends{$end} };

		# A timeout may end before we could see that it waits.
		if ($set) { $t->query($set); $t->send("SELECT zk_acquire_permits('/f', max_permits => 2)"); }
		else { begins($t, "zk_acquire_permits('/f', max_permits => 2)", '/f', $where); }
		$do->();
		is($t->sqlstate, $sqlstate, "$end while waiting for $where");
		permits_ok('/f', $rest, $rest - 2, "$end leaves nothing behind");
		if ($end eq 'terminate') { $t = $test->session($two); }
		else { $t->query('RESET ALL'); }
	}
}
$s->query("SELECT zk_release_permits('/f')");
cmp_ok($u->value, '>', 0, 'who waited on comes in');
$u->close;
permits_ok('/f', 1, 0, 'the end of a session gives its permit back');
$u = $test->session($one);
$s->query('SELECT zk_unlock_all()');

# ---- operators ----

$s->query("SELECT zk_acquire_permits('/g', max_permits => 2)");
$curator->command('semaphore', 'acquire', 'c', '/zklock/g', 2, 1);
curator_holds('c', 'Curator is second');
$u->send("SELECT zk_break_lock('/g')");
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE state = 'lost'",
	1, 'breaking a semaphore takes the oldest permit');
is($s->query("SELECT zk_release_permits('/g')"), 'f', 'whose loss is acknowledged');
like($s->messages, qr/was already lost/, 'with a warning');
is($u->value, 't', 'it is broken');
is($u->query("SELECT zk_break_lock('/g')"), 't', "Curator's is broken, too");
permits_ok('/g', 0, 0, 'and gone');
is($u->query("SELECT zk_break_lock('/g')"), 'f', 'there is nothing more');

# ---- a session of ZooKeeper's that is lost ----

$s->query("SELECT zk_acquire_permits('/h', max_permits => 2)");
$t->query("SELECT zk_acquire_permits('/h', max_permits => 2)");
begins($u, "zk_acquire_permits('/h', max_permits => 2)", '/h', 'leases');
$t->query("BEGIN; SELECT txid_current()");
my $lost = $test->status($two, 'sessions_lost');
my $worker = $test->status($two, 'worker_pid');
kill 'STOP', $worker;
kill 'KILL', $test->status($two, 'session_pid');
cmp_ok($u->value, '>', 0, 'what a lost session held is had by who waited');
kill 'CONT', $worker;
is($t->error('COMMIT'), '40001', 'who lost a permit does not commit');
is($t->query("SELECT zk_release_permits('/h')"), 'f', 'and acknowledges it');
ok($test->wait_connected($two), 'that server goes on');

# One that waits, with the guard, is in the queue again by itself.
begins($t, "zk_acquire_permits('/h', max_permits => 2)", '/h', 'leases');
kill 'STOP', $worker;
kill 'KILL', $test->status($two, 'session_pid');
permits_ok('/h', 2, 0, 'who waited is out');
kill 'CONT', $worker;
permits_ok('/h', 3, 1, 'and waits again');
ok($t->busy, 'without a word');
$s->query("SELECT zk_release_permits('/h')");
cmp_ok($t->value, '>', 0, 'and comes in');

# A worker that is started again takes up who waits; permits are lost.
begins($s, "zk_acquire_permits('/h', max_permits => 2)", '/h', 'leases');
$test->look_until($one, "SELECT count(*) FROM zk_locks", 2, 'one holds, one waits');
$test->restart_worker($one);
cmp_ok($s->value, '>', 0, 'who waited comes in');
is($t->query("SELECT zk_release_permits('/h')"), 't', 'and who holds one on another server has it');
$_->query('SELECT zk_unlock_all()') foreach $s, $u;

# Somebody deletes the guard of one who waits: it begins again.
$t->query("SELECT zk_acquire_permits('/i', max_permits => 1)");
begins($s, "zk_acquire_permits('/i', max_permits => 1)", '/i', 'leases');
my ($guard) = $test->queue('/i/locks');
wait_for(sub { $test->zk->watches->{"/zklock/i/locks/$guard"} }, 'it is watched');
$test->zk->client->delete("/zklock/i/locks/$guard");
ok(wait_for(sub { my @now = $test->queue('/i/locks'); @now == 1 && $now[0] ne $guard },
		'a new guard'),
	'who loses the guard takes it again');
permits_ok('/i', 2, 1, 'with one permit');
$t->query("SELECT zk_release_permits('/i')");
cmp_ok($s->value, '>', 0, 'and comes in');
$s->query("SELECT zk_release_permits('/i')");

# ---- many of all kinds at once ----

my $rounds = 130;
my $dir = PostgreSQL::Test::Utils::tempdir('inside');

sub run_here
{
	my ($node, $number, $seen) = @_;
	my $pid = fork // die $!;

	return $pid if $pid;
	my $session = PgSession->new($node);
	my $most = 0;
	foreach my $round (1 .. $rounds)
	{
		my $mine = "$dir/$number.$round";

		$session->query("SELECT zk_acquire_permits('/j', max_permits => 3)");
		open my $out, '>', $mine or POSIX::_exit(101);
		close $out;

		# The first time until there are as many as there may be.
		for (my $looks = 0; $looks < ($round == 1 && $most < 3 ? 3000 : 1); $looks++)
		{
			opendir my $all, $dir or POSIX::_exit(102);
			my $n = grep { !/^\./ } readdir $all;
			closedir $all;
			$most = $n if $n > $most;
			select undef, undef, undef, 0.003;
		}
		unlink $mine or POSIX::_exit(103);
		$session->query("SELECT zk_release_permits('/j')");
	}
	POSIX::_exit($most);
}

my @here = map { run_here($_ % 2 ? $one : $two, $_) } 1 .. 5;
$curator->command('semaphore', 'run', "r$_", '/zklock/j', 3, $dir, $rounds)
  foreach 1 .. 3;
my $most = 0;
foreach my $key (map { "r$_" } 1 .. 3)
{
	ok(wait_for(sub { $curator->command('semaphore', 'ran', $key) == $rounds },
			"Curator's $key is through"),
		"Curator's $key is through");
	my $n = $curator->command('semaphore', 'most', $key);
	$most = $n if $n > $most;
	cmp_ok($n, '<=', 3, 'it saw three inside at most');
}
foreach my $pid (@here)
{
	waitpid $pid, 0;
	my $n = $? >> 8;
	$most = $n if $n > $most;
	is($? & 255, 0, 'one of ours is through');
	cmp_ok($n, '<=', 3, 'it saw three inside at most');
}
is($most, 3, 'there were three at times');
permits_ok('/j', 0, 0, 'nothing is left of 1040 acquisitions');

$curator->quit;
$test->finish;
