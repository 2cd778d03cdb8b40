# Clients of two servers ask for one lock in turn.  They get it in the order
# in which their znodes queue in ZooKeeper, whatever server they are on, and
# with growing fencing tokens; and one that gives up does not hold up those
# behind it.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/order')";
my $unlock = "SELECT zk_unlock('/order')";

# Runs one queue through: the nodes in the order of their asking.
sub run_queue
{
	my ($case, @nodes) = @_;
	my @waiting;
	my $first = $test->session($one);
	my $token = $first->query($lock);

	push @waiting, $test->enqueue($test->session($_), $lock, '/order')
	  foreach @nodes;
	is(scalar(grep { !$test->still_waits($_) } @waiting),
		0, "$case: all wait");

	my $holder = $first;
	my ($in_order, $growing) = (1, 1);
	while (my $next = shift @waiting)
	{
		$holder->query($unlock);
		my $new_token = $next->value;
		$growing &&= $new_token > $token;
		$in_order &&= !grep { !$test->still_waits($_) } @waiting;
		$token = $new_token;
		$holder->close;
		$holder = $next;
	}
	ok($in_order, "$case: granted one at a time, in the order of asking");
	ok($growing, "$case: tokens grow");
	$holder->close;
	$test->wait_queue('/order', 0);
	return;
}

run_queue('in turn', ($two, $one) x 4);
run_queue('other server in a block', ($two) x 4, ($one) x 4);
run_queue('own server first', ($one) x 3, ($two) x 2, ($one) x 2);

# The second of three gives up.
foreach my $nodes ([ $one, $two, $one ], [ $two, $one, $two ],
	[ $two, $two, $two ])
{
	my $case = join ' ', map { $_->name } @$nodes;
	my $holder = $test->session($one);
	$holder->query($lock);
	my @waiting =
	  map { $test->enqueue($test->session($_), $lock, '/order') } @$nodes;
	$waiting[1]->cancel;
	is($waiting[1]->sqlstate, '57014', "$case: the second gives up");
	$test->wait_queue('/order', 3);
	$holder->query($unlock);
	cmp_ok($waiting[0]->value, '>', 0, "$case: the first is granted");
	ok($test->still_waits($waiting[2]), "$case: the third waits for it");
	$waiting[0]->query($unlock);
	cmp_ok($waiting[2]->value, '>', 0, "$case: the third is granted");
	$_->close foreach $holder, @waiting;
	$test->wait_queue('/order', 0);
}

$test->finish;
