# A call that acquires permits has one deadline for all that it does, and a try
# never says "false" when it does not know: here somebody holds the guard of a
# semaphore and does nothing with it, so that nobody can find out how many permits
# could be had.

use strict;
use warnings;

use Test::More;

use ZklockTest;

# The lock "/held/locks" of this dialect is the guard of semaphore "/held".
my $test = ZklockTest->new(
	conf => "zklock.dialects = '/held/locks=curator_mutex'\n");
my ($one, $two) = $test->nodes;
my ($s, $t, $u) = map { $test->session($_) } $one, $two, $two;
my @tries = map { ("zk_try_acquire_permits($_)", "zk_try_xact_acquire_permits($_)") }
  ("'/held', 1, 3", "'/held', 3, 3", "'/held', 1, 3, '200ms'");

sub permits
{
	return scalar grep { /-lease-/ } $test->queue('/held/leases');
}

# ---- nobody takes permits, and the guard is held ----

$t->query("SELECT zk_lock('/held/locks')");
foreach my $try (@tries)
{
	$s->query("SET zklock.answer_timeout = '1s'");
	# On a busy machine the second may be over before it waits for the guard.
	my $sqlstate;
	wait_for(
		sub {
			$sqlstate = $s->error("SELECT $try");
			return $s->messages =~
			  m{semaphore "/held" has enough.*guard, the lock "/held/locks"}s;
		},
		"$try: says why");
	is($sqlstate, '08006', "$try: it is not known");
	$s->query("SET zklock.answer_timeout = '1h'; SET lock_timeout = '600ms'");
	is($s->error("SELECT $try"), '55P03', "$try: lock_timeout counts from the call");
	$s->query('RESET lock_timeout');
	$s->send("SELECT $try");
	$test->wait_queue('/held/locks', 2);
	$s->cancel;
	is($s->sqlstate, '57014', "$try: cancelled");
	$test->wait_queue('/held/locks', 1);
}
$s->query("SET lock_timeout = '600ms'");
is($s->error("SELECT zk_try_acquire_permits('/held', 1, max_permits => 3, timeout => '1h')"),
	'55P03', 'also if the try has time');
is($s->error("SELECT zk_acquire_permits('/held', max_permits => 3)"), '55P03', 'or is none');
$s->query('RESET lock_timeout');
is(permits(), 0, 'none has left a permit');

# It waits for the guard: as soon as that is free it knows.
foreach my $try (@tries)
{
	$s->query('BEGIN');
	$s->send("SELECT $try");
	$test->wait_queue('/held/locks', 2);
	$t->query("SELECT zk_unlock('/held/locks')");
	is($s->value, 't', "$try: the guard is free: true");
	$s->query('COMMIT; SELECT zk_unlock_all()');
	wait_for(sub { permits() == 0 }, 'the permits are back');
	$t->query("SELECT zk_lock('/held/locks')");
}

# ---- there are too few permits: then that is known, whoever has the guard ----

$t->query("SELECT zk_unlock('/held/locks')");
$u->query("SELECT zk_acquire_permits('/held', 3, max_permits => 3)");
$t->query("SELECT zk_lock('/held/locks')");
foreach my $try (@tries)
{
	is($s->query("SELECT $try"), 'f', "$try: all permits are taken: false");
}

# One is given back, but for the guard.
$s->query("SET lock_timeout = '600ms'");
$u->query("SELECT zk_release_permits('/held')");
wait_for(sub { permits() == 2 }, 'one permit is back');
is($s->error("SELECT zk_try_acquire_permits('/held', max_permits => 3)"), '55P03', 'one is free: it waits again');
$s->query('RESET lock_timeout');
is($s->query("SELECT zk_try_acquire_permits('/held', 2, max_permits => 3)"), 'f', 'for two it need not');

# ---- ZooKeeper does not answer ----

$s->query("SET lock_timeout = 0; SET zklock.answer_timeout = '700ms'");
$test->zk->pause;
is($s->error("SELECT $_"), '08006', "ZooKeeper stopped: $_") foreach @tries[ 0, 1 ];
$s->query("SET lock_timeout = '500ms'");
is($s->error("SELECT zk_acquire_permits('/held', max_permits => 3)"), '08006', 'ZooKeeper stopped: lock_timeout');
$test->zk->resume;
$test->wait_connected($_) foreach $one, $two;

$_->query('RESET ALL; SELECT zk_unlock_all()') foreach $s, $t, $u;
$_->close foreach $s, $t, $u;
$test->finish;
