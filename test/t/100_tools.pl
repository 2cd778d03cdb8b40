# The tools of the tests that follow: what the proxy does to a connection, and
# that the servers of an ensemble have no way around it.

use strict;
use warnings;

use IO::Socket::INET;
use POSIX ();
use Test::More;

use TcpProxy;
use ZklockTest;
use ZooKeeperEnsemble;

my $net = TcpProxy->new;

# A plain server, played by this test
my $listener = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1')
  or die "could not listen: $!";
my $port = $net->route('plain', $listener->sockport, framed => 0);

sub client
{
	return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $_[0]);
}

# What arrives within the time, '' for nothing; undef for a broken connection
sub arrives
{
	my ($socket, $seconds) = @_;
	my $bytes;

	return '' unless PipedProgram::can_read($socket, $seconds // 60);
	return sysread($socket, $bytes, 1000) ? $bytes : undef;
}

my $near = client($port);
my $far = $listener->accept;
syswrite $near, 'hello';
is(arrives($far), 'hello', 'it passes what goes up');
syswrite $far, 'good day';
is(arrives($near), 'good day', 'and what comes down');

$net->hold('plain', 'up');
syswrite $near, 'late';
syswrite $far, 'meanwhile';
is(arrives($near), 'meanwhile', 'one direction is held, the other is not');
is(arrives($far, 0.2), '', 'nothing arrives while it is held');
$net->hold('plain');
my $second = client($port);
my $third = client($port);
close $third;
ok(!PipedProgram::can_read($listener, 0.2),
	'nobody gets to the target while it is held');
$net->pass('*');
is(arrives($far), 'late', 'it arrives late');
my $second_far = $listener->accept;
syswrite $second, 'second';
is(arrives($second_far), 'second', 'and so does who still wants');
wait_for(sub { $net->stats('plain')->{open} == 2 }, 'the third is forgotten');
ok(!PipedProgram::can_read($listener, 0.2), 'who has given up never does');

$net->drop('plain', 'down');
syswrite $far, 'void';
wait_for(sub { $net->stats('plain')->{dropped}{down} }, 'dropped');
is(arrives($near, 0), '', 'what is dropped does not arrive');
$net->pass('plain');
$net->cut('plain', 3, 'down');
syswrite $far, 'abcdef';
is(arrives($near), 'abc', 'three bytes');
is(arrives($near), undef, 'and a broken connection');
is($net->reset('plain'), 1, 'reset ends those that are left');
is(arrives($second), undef, 'for the client');
is(arrives($second_far), undef, 'and for the server');
$net->refuse('plain');
is(client($port), undef, 'refused');
$net->pass('plain');
ok(client($port), 'and accepted again');
ok(!eval { $net->hold('nothing'); 1 }, 'an unknown route is an error');

# A ZooKeeper server, played by this test, that has no answer at first, and then only
# the beginning of one
my $busy = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1')
  or die "could not listen: $!";
my $server = fork // die "could not fork: $!";
if ($server == 0)
{
	foreach my $answer ('', "SessionTracker dump:\n", "SessionTracker dump:\n0x1a\nephemeral nodes dump:\n0x1b\n")
	{
		my $socket = $busy->accept;

		sysread $socket, my $word, 4;
		syswrite $socket, $answer;
	}
	POSIX::_exit(0);
}
is_deeply([ bless({ port => $busy->sockport, logfile => '' }, 'ZooKeeper')->sessions ],
	['1a'], 'what a server does not answer is not taken for "no sessions"');
kill 'KILL', $server;
waitpid $server, 0;

# An ensemble behind it
my $zk = ZooKeeperEnsemble->new('zk', net => $net, tick_time => 300);
$zk->start;
my $leader = $zk->leader;
my @followers = $zk->followers;
is(scalar(@followers), 2, 'three servers, one leader');
$zk->client->create('/x');

$zk->isolate($leader);
my $next = $zk->wait_leader(@followers);
isnt($next->name, $leader->name, 'an isolated leader is deposed');
wait_for(sub { !$zk->role($leader) }, 'it serves no more');
$zk->heal;
$leader->wait_until_serving;
is($zk->role($leader), 'follower', 'and follows when the network is mended');

$next->kill9;
my $last = $zk->wait_leader;
isnt($last->name, $next->name, 'a dead leader is replaced');
$next->start;
is_deeply([ $zk->client->ls('/x') ], [], 'clients go on');

# All three cut off from each other: with a way around, two would still agree.
$zk->isolate($_) foreach $zk->servers;
wait_for(sub { !grep { $zk->role($_) } $zk->servers }, 'no quorum');
foreach my $server ($zk->servers)
{
	$server->kill9;
	$server->launch;
}
wait_for(sub { !grep { !$_->four_letter('ruok') } $zk->servers },
	'all run again');
my @routes = grep { /-election/ } $net->names;
wait_for(sub { !grep { !$net->stats($_)->{accepted} } @routes },
	'each has tried to call each');
is(scalar(grep { $zk->role($_) } $zk->servers),
	0, 'cut off from each other they elect nobody, restarted or not');
$zk->heal;
$zk->start;
ok($zk->leader, 'mended, they elect a leader');

$zk->stop;
$net->quit;
done_testing();
