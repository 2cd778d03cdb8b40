# The numbers of sequential znodes end at 2147483647 (row 21), where single
# creates repeat the last one and those in a transaction go on below zero.  Who
# gets a number near that gets an error, and an empty directory is deleted: no
# two holders, growing tokens, and soon everybody gets the lock again.  The counter
# is moved there in the snapshot that ZooKeeper starts with.

use strict;
use warnings;

use Test::More;

use Workload;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $limit = 2**31 - 2**20;
my $path = '/zklock/workload/0';
my $lock = "SELECT zk_lock('/workload/0')";
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

# It was empty, and may not yet be deleted: the error says that a retry helps.
sub retry
{
	my ($session) = @_;
	my $token;

	wait_for(
		sub {
			$session->send($lock);
			my $answer = $session->result;
			die $answer->{error}{sqlstate} if $answer->{error} && $answer->{error}{sqlstate} ne '54000';
			$token = $answer->{rows}[0][0] unless $answer->{error};
			return defined $token;
		},
		'the lock');
	return $token;
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
	my $failed = delete $seen->{errors}{54000};
	note "$case: ", $failed // 0, " of 400 failed, $seen->{grants} were granted";
	ok($failed, "$case: some requests get no number");
	is_deeply($seen->{errors}, {}, "$case: no other error");
	is($seen->{overlaps}, 0, "$case: no two holders");
	my $token = retry($s);
	cmp_ok($test->zk->client->stat($path)->{czxid},
		'>', $before, "$case: the directory is another one");
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
my $fourth = $test->session($one);
is($_->error($lock), '54000', 'writers fail') foreach $t, $fourth;
is($s->error($lock), '54000', 'so does an upgrade');
like($s->messages, qr/nobody holds the lock or waits/, 'the error says until when');
note $s->messages;
is($s->query("SELECT zk_unlock_shared('/workload/0')"), 't', 'which has its shared lock still');
is($_->error($lock), '54000', 'they fail because of the foreign one too') foreach $t, $fourth;
$foreign->unlock('w');
cmp_ok(retry($t), '>', $last, 'then one gets in');
$fourth->send($lock);
ok($test->still_waits($fourth), 'alone');
$t->query("SELECT zk_unlock('/workload/0')");
cmp_ok($fourth->value, '>', $last, 'and then the other');

$_->query('SELECT zk_unlock_all()') foreach $s, $t, $fourth;

# What belongs to no session keeps the directory from being deleted.
move_counter($limit);
$test->zk->client->create("$path/left");
foreach (1 .. 2)
{
	is($s->error($lock), '54000', 'a directory that cannot be deleted: an error');
	like($s->messages, qr{"\Q$path\E/left" is in the way}, 'that says why');
}
note $s->messages;
is_deeply([ $test->lock_znodes ], [], 'which leaves nothing');
$test->zk->client->delete("$path/left");
cmp_ok(retry($s), '>', $last, 'and none when it can');
$s->query("SELECT zk_unlock('/workload/0')");

$_->close foreach $s, $t, $fourth;
$foreign->quit;
$test->finish;
