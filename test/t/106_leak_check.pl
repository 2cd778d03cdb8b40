# The search for leaks at the end of each test takes all locks of a server.  If the server
# loses its ZooKeeper session in the midst of that, as one that has no time may, this
# is no leak.

use strict;
use warnings;

use POSIX ();
use Test::More;

use ZklockTest;

my $test = ZklockTest->new(servers => 1, session_timeout => '2s', max_requests => 20);
my ($one) = $test->nodes;
my ($worker, $process) = split /\|/, $test->status($one, 'worker_pid, session_pid');

# Another client has one of the locks, so that the search waits with others in its hands.
my $blocker = '/zklock/leak-check/server1-15';
my $foreign = $test->zk->new_client;
$foreign->lock('b', 'write', $blocker, 'somebody');
wait_for(sub { $foreign->held('b') }, 'another client has a lock');
my ($znode) = $test->zk->client->ls($blocker);

my $disturber = fork // die "could not fork: $!";
if ($disturber == 0)
{
	my $client = $test->zk->new_client;
	my $taken = sub { scalar $client->ls('/zklock/leak-check/server1-14') };
	my $good = wait_for(sub { $taken->() && (() = $client->ls($blocker)) == 2 },
		'the search waits');

	kill 'STOP', $worker;
	kill 'KILL', $process;
	$good &&= wait_for(sub { !$taken->() }, 'the session is lost');
	kill 'CONT', $worker;
	$client->delete("$blocker/$znode");
	POSIX::_exit(!$good);
}
$test->check_no_leaks;
waitpid $disturber, 0;
is($?, 0, 'the session was lost in the midst of the search');
is($test->status($one, 'sessions_lost'), 1, 'once');
$foreign->quit;
$test->finish;
