# A Curator (5.5 and later) client that holds a lock for writing takes it for
# reading too, under the number of its write node, and then deletes that (row
# 40): a reader comes up where nobody could be seen before.  Our readers go in
# beside it, our writers wait for it, whoever of ours was granted in between.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $foreign = $test->zk->new_client;
my $client = $test->zk->client;
my $path = '/zklock/g';
my $exclusive = "SELECT zk_lock('/g')";
my $shared = "SELECT zk_lock_shared('/g')";

foreach my $node ($one, $two)
{
	foreach my $queue ('w', 'rw', 'rrw', 'ww', 'rwr')
	{
		my $case = "$queue, the last one on " . $node->name;
		my @waiting;

		$foreign->lock('w', 'write', $path);
		wait_for(sub { $foreign->held('w') }, 'a foreign writer');
		my $write = ($test->queue('/g'))[0];
		my $read = $write =~ s/__WRIT__/__READ__/r;

		# All but the last are on the first server.
		foreach my $i (0 .. length($queue) - 1)
		{
			my $mode = substr $queue, $i, 1;
			my $session =
			  $test->session($i == length($queue) - 1 ? $node : $one);

			$test->enqueue($session, $mode eq 'w' ? $exclusive : $shared, '/g');
			push @waiting, { mode => $mode, session => $session };
		}

		$foreign->create("$path/$read", '', ['ephemeral']);
		$foreign->delete("$path/$write");

		# Readers ahead of the first writer are in, all others wait.
		while (@waiting && $waiting[0]{mode} eq 'r')
		{
			my $reader = (shift @waiting)->{session};

			cmp_ok($reader->value, '>', 0, "$case: a reader goes in beside");
			$reader->query("SELECT zk_unlock_shared('/g')");
			$reader->close;
		}
		is(scalar(grep { !$test->still_waits($_->{session}) } @waiting),
			0, "$case: from the writer on all wait for the foreign reader");
		$foreign->delete("$path/$read");
		foreach my $next (@waiting)
		{
			my $unlock = $next->{mode} eq 'w' ? 'unlock' : 'unlock_shared';

			cmp_ok($next->{session}->value, '>', 0, "$case: until it has left");
			$next->{session}->query("SELECT zk_$unlock('/g')");
			$next->{session}->close;
		}
		$test->wait_queue('/g', 0);
		eval { $foreign->unlock('w') };
	}
}

# It may come a little later than the deletion is seen to be possible: a writer
# of ours that came when both nodes were there
$foreign->lock('w', 'write', $path);
wait_for(sub { $foreign->held('w') }, 'a foreign writer');
my $write = ($test->queue('/g'))[0];
my $read = $write =~ s/__WRIT__/__READ__/r;
$foreign->create("$path/$read", '', ['ephemeral']);
my $s = $test->session($one);
$test->enqueue($s, $exclusive, '/g');
$foreign->delete("$path/$write");
ok($test->still_waits($s), 'both nodes there: the writer waits for the second');
is($test->look($one, "SELECT count(*) FROM zk_queue('/g')"),
	2, 'and zk_queue shows it');
$foreign->delete("$path/$read");
cmp_ok($s->value, '>', 0, 'until that is gone');
$s->query("SELECT zk_unlock('/g')");
eval { $foreign->unlock('w') };

$s->close;
$foreign->quit;
$test->finish;
