# Clients that are not PostgreSQL, with znodes as Curator's
# InterProcessReadWriteLock writes them, share locks with two servers: they
# exclude each other both ways, in one queue.  What does not parse as a
# contender is ignored.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $foreign = $test->zk->new_client;
my $s = $test->session($one);
my $t = $test->session($two);
my $path = '/zklock/f';

sub held_ok
{
	my ($key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $foreign->held($key) }, $case), $case);
}

foreach my $kind ('write', 'kazoo')
{
	# They hold, we wait.
	$foreign->lock('w', $kind, $path);
	held_ok('w', "$kind: gets a free lock");
	is($s->query("SELECT zk_try_lock('/f')"), 'f', "$kind: a try says no");
	is($s->query("SELECT zk_try_lock_shared('/f')"),
		'f', "$kind: a shared try says no");
	$test->enqueue($s, "SELECT zk_lock('/f')", '/f');
	ok($test->still_waits($s), "$kind: we wait for it");

	# We hold, they wait, and so does another server behind them.
	$foreign->lock('w2', $kind, $path);
	$test->wait_queue('/f', 3);
	$test->enqueue($t, "SELECT zk_lock('/f')", '/f');
	$foreign->unlock('w');
	cmp_ok($s->value, '>', 0, "$kind: granted after it");
	ok(!$foreign->held('w2'), "$kind: it waits for us");
	$s->query("SELECT zk_unlock('/f')");
	held_ok('w2', "$kind: first come, first served");
	ok($test->still_waits($t), "$kind: the other server waits for it");
	$foreign->unlock('w2');
	cmp_ok($t->value, '>', 0, "$kind: and comes last");
	$t->query("SELECT zk_unlock('/f')");
	$test->wait_queue('/f', 0);
}

# Readers
$foreign->lock('r', 'read', $path);
held_ok('r', 'a foreign reader gets in');
is($s->query("SELECT zk_try_lock_shared('/f')"), 't', 'so does ours');
is($t->query("SELECT zk_try_lock('/f')"), 'f', 'but no writer');
$test->enqueue($t, "SELECT zk_lock('/f')", '/f');
$foreign->lock('r2', 'read', $path);
$test->wait_queue('/f', 4);
ok(!$foreign->held('r2'), 'a foreign reader waits behind our writer');
$foreign->unlock('r');
ok($test->still_waits($t), 'our writer waits for our reader');
$s->query("SELECT zk_unlock_shared('/f')");
cmp_ok($t->value, '>', 0, 'the last reader lets our writer in');
ok(!$foreign->held('r2'), 'which keeps the foreign reader out');
$t->query("SELECT zk_unlock('/f')");
held_ok('r2', 'until it is done');
$foreign->lock('w', 'write', $path);
$test->wait_queue('/f', 2);
$test->enqueue($s, "SELECT zk_lock_shared('/f')", '/f');
ok($test->still_waits($s), 'our reader waits behind a foreign writer');
$foreign->unlock('r2');
held_ok('w', 'which waits for the foreign reader');
$foreign->unlock('w');
cmp_ok($s->value, '>', 0, 'then our reader gets in');
$s->query("SELECT zk_unlock_shared('/f')");
$test->wait_queue('/f', 0);

# A foreign waiter between two of one server: no local hand-over past it.
my $u = $test->session($one);
$s->query("SELECT zk_lock('/f')");
$foreign->lock('w', 'write', $path);
$test->wait_queue('/f', 2);
$test->enqueue($u, "SELECT zk_lock('/f')", '/f');
$s->query("SELECT zk_unlock('/f')");
held_ok('w', 'a foreign waiter between two of ours comes first');
ok($test->still_waits($u), 'ours waits for it');
$foreign->unlock('w');
cmp_ok($u->value, '>', 0, 'and comes next');
$u->query("SELECT zk_unlock('/f')");

# A foreign client that dies with the lock
my $dying = $test->zk->new_client(session_timeout => 2);
$dying->lock('w', 'write', $path);
ok(wait_for(sub { $dying->held('w') }, 'held'), 'a foreign client holds');
$test->enqueue($u, "SELECT zk_lock('/f')", '/f');
$dying->kill9;
cmp_ok($u->value, '>', 0, 'its session expires, and we go on');
$u->query("SELECT zk_unlock('/f')");
$test->wait_queue('/f', 0);

# A foreign znode ahead of us that an operator deletes
$foreign->lock('w', 'write', $path);
held_ok('w', 'a foreign client holds again');
$test->enqueue($u, "SELECT zk_lock('/f')", '/f');
$test->zk->client->delete("$path/" . ($test->queue('/f'))[0]);
cmp_ok($u->value, '>', 0, 'its znode deleted by an operator, we go on');
$u->query("SELECT zk_unlock('/f')");
eval { $foreign->unlock('w') };

# Children that are no contenders, before and between ours
my @junk = ('nested', 'lock-', '__WRIT__', 'x__WRIT__12', "\x{e4}", '_c_junk',
	'-0000000001', '__READ__00000000x1');
$test->zk->client->create("$path/$_", 'junk') foreach @junk;
$test->zk->client->create("$path/plain-", 'junk', ['sequence']);
cmp_ok($s->query("SELECT zk_lock('/f')"), '>', 0, 'foreign children are ignored');
$test->zk->client->create("$path/more-", 'junk', ['sequence']);
$test->enqueue($t, "SELECT zk_lock('/f')", '/f');
$test->zk->client->create("$path/more-", 'junk', [ 'sequence', 'ephemeral' ]);
ok($test->still_waits($t), 'one waits for the other all the same');
$s->query("SELECT zk_unlock('/f')");
cmp_ok($t->value, '>', 0, 'and is granted');
is($t->query("SELECT count(*) FROM zk_queue('/f')"),
	1, 'zk_queue shows contenders only');
$t->query("SELECT zk_unlock('/f')");
cmp_ok($s->query("SELECT zk_lock('/f/nested')"), '>', 0,
	'a lock may lie below another');
$s->query("SELECT zk_unlock('/f/nested')");
$test->wait_queue($_, 0) foreach '/f', '/f/nested';
$test->zk->client->delete($_)
  foreach grep { !/nested|leak/ } $test->zk->client->tree($path);

# A znode that can have no children
$test->zk->client->create('/zklock/short-lived', '', ['ephemeral']);
is($s->error("SELECT zk_lock('/short-lived/x')"), '42809', 'no lock below an ephemeral znode');
$test->zk->client->delete('/zklock/short-lived');
cmp_ok($s->query("SELECT zk_lock('/short-lived/x')"), '>', 0, 'but when it is gone');
$s->query("SELECT zk_unlock('/short-lived/x')");

$_->close foreach $s, $t, $u;
$foreign->quit;
$test->finish;
