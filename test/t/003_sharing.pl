# Readers of two servers hold a lock together; a writer waits for all of them,
# and a reader that comes after the waiting writer waits behind it.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $shared = "SELECT zk_lock_shared('/doc')";
my $exclusive = "SELECT zk_lock('/doc')";

foreach my $writer_node ($one, $two)
{
	my $case = 'writer on ' . $writer_node->name;
	my @readers = map { $test->session($_) } $one, $two, $one;
	foreach my $reader (@readers)
	{
		cmp_ok($reader->query($shared), '>', 0, "$case: a reader gets in");
	}

	my $writer = $test->session($writer_node);
	is($writer->query("SELECT zk_try_lock('/doc')"),
		'f', "$case: a writer's try says no");
	is($writer->query("SELECT zk_try_lock_shared('/doc')"),
		't', "$case: a reader's try says yes");
	is($writer->query("SELECT zk_unlock('/doc')"), 'f', "$case: zk_unlock says no");
	like($writer->messages, qr/shared lock with zk_unlock_shared\(\)/,
		"$case: and which function to call");
	$writer->query("SELECT zk_unlock_shared('/doc')");
	$test->wait_queue('/doc', 3);
	$test->enqueue($writer, $exclusive, '/doc');

	my @late = map { $test->enqueue($test->session($_), $shared, '/doc') }
	  $one, $two;
	my $after = $test->enqueue($test->session($two), $exclusive, '/doc');
	is(scalar(grep { $test->still_waits($_) } $writer, @late, $after),
		4, "$case: the writer and all behind it wait");

	foreach my $reader (@readers)
	{
		ok($test->still_waits($writer), "$case: as long as a reader is in");
		$reader->query("SELECT zk_unlock_shared('/doc')");
	}
	my $token = $writer->value;
	cmp_ok($token, '>', 0, "$case: the last one out lets it in");
	is(scalar(grep { $test->still_waits($_) } @late),
		2, "$case: it keeps readers out");
	$writer->query("SELECT zk_unlock('/doc')");
	cmp_ok($_->value, '>', $token, "$case: then both readers get in")
	  foreach @late;
	ok($test->still_waits($after), "$case: but not the next writer");
	$_->query("SELECT zk_unlock_shared('/doc')") foreach @late;
	cmp_ok($after->value, '>', $token, "$case: which comes last");

	$_->close foreach @readers, $writer, @late, $after;
	$test->wait_queue('/doc', 0);
}

# A writer that gives up lets the readers behind it in.
foreach my $writer_node ($one, $two)
{
	my $case = 'cancelled writer on ' . $writer_node->name;
	my $reader = $test->session($one);
	$reader->query($shared);
	my $writer = $test->enqueue($test->session($writer_node), $exclusive,
		'/doc');
	my @late = map { $test->enqueue($test->session($_), $shared, '/doc') }
	  $one, $two;
	$writer->cancel;
	is($writer->sqlstate, '57014', "$case: cancelled");
	cmp_ok($_->value, '>', 0, "$case: a reader behind it gets in")
	  foreach @late;
	$_->close foreach $reader, $writer, @late;
	$test->wait_queue('/doc', 0);
}

$test->finish;
