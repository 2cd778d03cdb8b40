# The numbers of sequential znodes end at 2147483647 (row 21), where single
# creates repeat the last one and those in a transaction go on below zero.  A
# directory that comes near is left to drain, and started again: no two
# holders, growing tokens, nobody is refused.  The counter is moved there in
# the snapshot that ZooKeeper starts with.

use strict;
use warnings;

use Test::More;

use Workload;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $limit = 2**31 - 2**20;
my $path = '/zklock/workload/0';
my $s = $test->session($one);

# Moves the counter of the lock's directory, with everybody at rest.
sub move_counter
{
	my ($counter) = @_;

	$s->query("SELECT zk_lock('/workload/0'), zk_unlock('/workload/0')");
	$test->wait_queue('/workload/0', 0);
	$test->zk->restart_with_counter($path, $counter);
	$test->wait_connected($_) foreach $one, $two;
	return;
}

my $last = 0;
foreach my $counter ($limit - 40, $limit, 2**31 - 4, 2**31 - 1, -2**31,
	-2**31 + 3)
{
	my $case = "counter at $counter";

	move_counter($counter);
	my $before = $test->zk->client->stat($path)->{czxid};

	# The first number given out is the one wanted: the test does what it says.
	my $probe = $test->zk->client->create("$path/probe-", '', ['sequence']);
	is($probe =~ s/.*probe-//r + 0, $counter, "$case: the counter is moved");
	$test->zk->client->delete($probe);

	my $seen = Workload::run(
		$test,
		sessions => 8,
		names => 1,
		rounds => 400,
		lock => "SELECT zk_lock('%s')",
		unlock => "SELECT zk_unlock('%s')");
	is_deeply($seen->{errors}, {}, "$case: no error");
	cmp_ok($seen->{grants}, '>=', 400, "$case: all are granted");
	is($seen->{overlaps}, 0, "$case: no two holders");
	cmp_ok($test->zk->client->stat($path)->{czxid},
		'>', $before, "$case: the directory is another one");
	my $token = $s->query("SELECT zk_lock('/workload/0')");
	cmp_ok($token, '>', $last, "$case: tokens grow");
	$last = $token;
	my ($znode) = $test->queue('/workload/0');
	like($znode, qr/00000\d{5}$/, "$case: numbers are small again");
	$s->query("SELECT zk_unlock('/workload/0')");
}

# Holders of before, of both kinds, are waited for.
my $foreign = $test->zk->new_client;
my $t = $test->session($two);
move_counter($limit - 2);
$foreign->lock('w', 'read', $path);
wait_for(sub { $foreign->held('w') }, 'a foreign reader');
cmp_ok($s->query("SELECT zk_lock_shared('/workload/0')"),
	'>', $last, 'two readers near the end of the sequence');
$t->send("SELECT zk_lock('/workload/0')");
my $fourth = $test->session($one);
$fourth->send("SELECT zk_lock('/workload/0')");
ok($test->still_waits($t) && $test->still_waits($fourth), 'writers wait');
is($s->query("SELECT zk_unlock_shared('/workload/0')"), 't', 'one leaves');
ok($test->still_waits($t) && $test->still_waits($fourth),
	'they wait for the foreign one too');
$foreign->unlock('w');
ok(wait_for(sub { !$t->busy || !$fourth->busy }, 'a writer'), 'one gets in');
my ($first, $second) = $t->busy ? ($fourth, $t) : ($t, $fourth);
cmp_ok($first->value, '>', $last, 'with a larger token');
ok($test->still_waits($second), 'alone');
$first->query("SELECT zk_unlock('/workload/0')");
cmp_ok($second->value, '>', $last, 'and then the other');

# What an operator left in the directory keeps it from being started again.
$_->query('SELECT zk_unlock_all()') foreach $s, $t, $fourth;
move_counter($limit);
$test->zk->client->create("$path/left");
is($s->error("SELECT zk_lock('/workload/0')"),
	'58000', 'a directory that cannot be started again: an error');
like($s->messages, qr/NOTEMPTY/, 'that says why');
note $s->messages;
$test->zk->client->delete("$path/left");
cmp_ok($s->query("SELECT zk_lock('/workload/0')"),
	'>', $last, 'and none when it can');
$s->query("SELECT zk_unlock('/workload/0')");

$_->close foreach $s, $t, $fourth;
$foreign->quit;
$test->finish;
