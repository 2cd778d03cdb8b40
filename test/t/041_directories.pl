# What a server knows of a lock's directory must not outlive the truth: other
# clients' znodes made in between are seen, a directory that was reaped or
# deleted and made again is not mistaken for the old one, and fencing tokens
# grow through it all.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(zk => { container_check_ms => 200 });
my ($one, $two) = $test->nodes;
my $s = $test->session($one);
my $t = $test->session($two);
my $foreign = $test->zk->new_client;
my $path = '/zklock/d/sub/lock';
my $lock = "SELECT zk_lock('/d/sub/lock')";
my $unlock = "SELECT zk_unlock('/d/sub/lock')";

# zklock makes the directory, a container; then something keeps it.
$s->query($lock);
$test->zk->client->create("$path/keep");
$s->query($unlock);

# Others lock between two locks of ours, now and then, holding or gone.
my $wrong = 0;
my $last = 0;
my $growing = 1;
foreach my $round (1 .. 60)
{
	my $what = $round % 6;

	if ($what == 1) { $t->query("$lock; $unlock"); }
	elsif ($what == 2) { $foreign->create("$path/x-", '', ['sequence']); }
	elsif ($what == 3)
	{
		$foreign->lock('w', 'write', $path);
		wait_for(sub { $foreign->held('w') }, 'the foreign lock');
		$wrong++ if $s->query("SELECT zk_try_lock('/d/sub/lock')") ne 'f';
		$foreign->unlock('w');
	}
	elsif ($what == 4)
	{
		$t->query($lock);
		$s->send($lock);
		$wrong++ unless $test->still_waits($s);
		$t->query($unlock);
		$s->value;
		$s->query($unlock);
	}
	my $token = $s->query($lock);
	$growing &&= $token > $last;
	$last = $token;
	$wrong++ if $t->query("SELECT zk_try_lock('/d/sub/lock')") ne 'f';
	$s->query($unlock);
}
is($wrong, 0, 'never granted past another holder');
ok($growing, 'tokens grow');

# The container is reaped between uses.
$test->wait_queue('/d/sub/lock', 0);
$foreign->delete($_) foreach $foreign->tree($path);
foreach my $round (1 .. 4)
{
	ok(wait_for(
			sub { !$foreign->stat('/zklock/d') }, 'the containers are reaped'),
		"round $round: the directory and its parents are reaped");
	my ($first, $second) = $round % 2 ? ($s, $t) : ($t, $s);
	my $token = $first->query($lock);
	cmp_ok($token, '>', $last, "round $round: locked, with a larger token");
	is($second->query("SELECT zk_try_lock('/d/sub/lock')"),
		'f', "round $round: the other server is kept out");
	$test->enqueue($second, $lock, '/d/sub/lock');
	$first->query($unlock);
	$last = $second->value;
	cmp_ok($last, '>', $token, "round $round: and comes next");
	$second->query($unlock);
	$test->wait_queue('/d/sub/lock', 0);
}

# Many at once whose directories were all reaped
$s->query('SET zklock.max_requests_per_session = 200');
wait_for(sub { !$foreign->stat('/zklock/d') }, 'the containers are reaped');
foreach my $round (1, 2)
{
	is($s->query("SELECT count(zk_lock('/wide/' || n % 10 || '/' || n))"
			  . ' FROM generate_series(1, 100) n'),
		100, "a hundred new names, round $round");
	$s->query('SELECT zk_unlock_all()');
	ok(wait_for(
			sub { !$foreign->stat('/zklock/wide') },
			'the containers are reaped'),
		'all are reaped');
}

# A directory that an operator deletes and makes again starts to count anew.
foreach my $round (1 .. 3)
{
	$foreign->create("$path/keep");
	$last = $s->query($lock);
	$s->query($unlock);
	$test->wait_queue('/d/sub/lock', 0);
	$foreign->delete_tree($path);
	$foreign->create("$path/keep");
	$foreign->lock('w', 'write', $path);
	wait_for(sub { $foreign->held('w') }, 'the foreign lock');
	is($s->query("SELECT zk_try_lock('/d/sub/lock')"),
		'f', 'in a directory made again, another holder is seen');
	$s->send($lock);
	$test->wait_queue('/d/sub/lock', 2);
	ok($test->still_waits($s), 'and waited for');
	$foreign->unlock('w');
	cmp_ok($s->value, '>', $last, 'tokens grow all the same');
	$s->query($unlock);
	$test->wait_queue('/d/sub/lock', 0);
	$foreign->delete_tree($path);
}

$_->close foreach $s, $t;
$foreign->quit;
$test->finish;
