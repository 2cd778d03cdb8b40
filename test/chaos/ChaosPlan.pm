# The schedule of a chaos run's faults: which there are, how often, and when.
#
#	my @plan = ChaosPlan::plan($seed, $seconds, $timeout, $is_first);
#	my ($method, @arguments) = ChaosPlan::method($plan[0]{name});
#
# A fault has a target, one server or ZooKeeper, that has no other fault until
# this one has ended, and parameters drawn from the seed: the same seed gives
# the same plan.  What a plan cannot fix is who holds a lock at that moment.
# The first plan begins with a fault that takes a lock from its holder for
# sure: without that a run would not show that the checkers see anything.
#
# $timeout is that of a ZooKeeper session, in seconds.

package ChaosPlan;

use strict;
use warnings;

# name => [ weight, target, method, its arguments ], of ChaosFaults.pm
my %faults = (
	'session process killed' => [ 3, 'server', 'signal_session', 'KILL' ],
	'session process stopped' => [ 2, 'server', 'signal_session', 'STOP' ],
	'session process aborted' => [ 1, 'server', 'signal_session', 'ABRT' ],
	'worker terminated' => [ 3, 'server', 'terminate_worker' ],
	'worker stopped' => [ 4, 'server', 'stop_worker' ],
	'holder killed' => [ 1, 'server', 'kill_holder' ],
	'holders terminated' => [ 2, 'server', 'signal_backends', 'TERM' ],
	'backends cancelled' => [ 2, 'server', 'signal_backends', 'INT' ],
	'backends stopped' => [ 4, 'server', 'stop_backends' ],
	'server paused' => [ 3, 'server', 'pause_server' ],
	'host died' => [ 2, 'server', 'host_dies' ],
	'postmaster killed' => [ 1, 'server', 'kill_postmaster' ],
	'fast restart' => [ 2, 'server', 'restart_server', 'fast' ],
	'immediate restart' => [ 1, 'server', 'restart_server', 'immediate' ],
	'cut off' => [ 5, 'server', 'network', 'hold', 'zk*', 'both' ],
	'cut off one way' => [ 4, 'server', 'network', 'hold', 'zk*', 'either' ],
	'one way black' => [ 2, 'server', 'network', 'drop', 'zk*', 'either' ],
	'cut off from one' => [ 3, 'server', 'network', 'hold', 'one', 'both' ],
	'slow network' => [ 2, 'server', 'network', 'delay', 'zk*', 'both' ],
	'connections reset' => [ 3, 'server', 'network_once', 'reset' ],
	'cut in a frame' => [ 3, 'server', 'network_once', 'cut' ],
	'reply lost' => [ 4, 'server', 'network_once', 'lose_reply' ],
	'session closed' => [ 2, 'server', 'close_session' ],
	'znode deleted' => [ 2, 'server', 'delete_znode' ],
	'lock broken' => [ 3, 'server', 'break_lock' ],
	'member killed' => [ 2, 'zookeeper', 'kill_member', 'any' ],
	'member stopped' => [ 2, 'zookeeper', 'pause_members', 'any' ],
	'leader killed' => [ 3, 'zookeeper', 'kill_member', 'leader' ],
	'leader stopped' => [ 3, 'zookeeper', 'pause_members', 'leader' ],
	'quorum lost' => [ 2, 'zookeeper', 'pause_members', 'two' ],
	'rolling restart' => [ 1, 'zookeeper', 'rolling_restart' ],
	'leader isolated' => [ 5, 'zookeeper', 'isolate', 'leader' ],
	'member isolated' => [ 3, 'zookeeper', 'isolate', 'any' ],
	'long holder cut off' => [ 0, 'server', 'cut_off_holder' ],
	'two members parted' => [ 2, 'zookeeper', 'part_members' ],
	'members slow' => [ 2, 'zookeeper', 'among_members', 'delay' ],
	'members reset' => [ 2, 'zookeeper', 'among_members', 'reset' ]);

# What carries a fault out
sub method
{
	my ($name) = @_;
	my (undef, undef, @method) = @{ $faults{$name} };

	return @method;
}

# A fault is short, about as long as a lease, or longer than the session lives.
sub _length
{
	my ($timeout) = @_;
	my $class = rand 10;

	return $timeout * (
		$class < 6 ? 0.02 + rand 0.3
		: $class < 7.5 ? 0.33 + rand 0.67
		: 1.1 + rand 0.6);
}

sub plan
{
	my ($seed, $seconds, $timeout, $is_first) = @_;
	my @bag = map { ($_) x $faults{$_}[0] } sort keys %faults;
	my (@plan, %busy_until);
	my $at = 0.5;

	srand $seed;
	if ($is_first)
	{
		push @plan, {
			name => 'long holder cut off', at => $at, server => 0, member => 0,
			either => 'both', chance => 0, length => 2 * $timeout,
		};
		$at += $plan[0]{length} + 1;
	}
	while ($at < $seconds)
	{
		my $name = $bag[ rand @bag ];
		my $number = 1 + int rand 3;
		my $fault = {
			name => $name,
			at => $at,
			server => $number,
			member => 1 + int rand 3,
			length => _length($timeout),
			either => (qw(up down))[ rand 2 ],
			chance => rand 1,
		};
		my $target = $faults{$name}[1] eq 'server' ? $number : 'zookeeper';
		$at += 0.3 + rand 2;
		next if ($busy_until{$target} // 0) > $fault->{at};
		$busy_until{$target} = $fault->{at} + $fault->{length} + 1;
		push @plan, $fault;
	}
	return @plan;
}

1;
