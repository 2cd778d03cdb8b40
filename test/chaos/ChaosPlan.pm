# The schedule of a chaos run's faults: which there are, how often, and when.
#
#	my @plan = ChaosPlan::plan($seed, $seconds, $timeout, $is_first);
#	my ($method, @arguments) = ChaosPlan::method($plan[0]{name});
#	my $target = ChaosPlan::target($plan[0]{name});
#
# A fault has a target, and parameters drawn from the seed: the same seed gives
# the same plan.  What a plan cannot fix is who holds a lock at that moment.
# ZooKeeper, and of each server its processes, its network, the messages to it, its
# locks and its settings, have one fault at a time.
#
# The first plan begins with a fault that takes a lock from its holder for
# sure: without that a run would not show that the checkers see anything.
#
# $timeout is that of a ZooKeeper session, in seconds.

package ChaosPlan;

use strict;
use warnings;

# name => [ weight, target, method, its arguments ], of ChaosFaults.pm
my %faults = (
	'session process killed' => [ 3, 'processes', 'signal_session', 'KILL' ],
	'session process stopped' => [ 2, 'processes', 'signal_session', 'STOP' ],
	'session process aborted' => [ 1, 'processes', 'signal_session', 'ABRT' ],
	'worker terminated' => [ 3, 'processes', 'terminate_worker' ],
	'session process killed three times' => [ 2, 'processes', 'kill_sessions' ],
	'worker killed' => [ 2, 'processes', 'kill_worker' ],
	'worker stopped' => [ 4, 'processes', 'stop_worker' ],
	'worker and session process stopped' => [ 3, 'processes', 'stop_both' ],
	'holder killed' => [ 1, 'processes', 'kill_holder' ],
	'holders terminated' => [ 2, 'processes', 'signal_backends', 'TERM' ],
	'backends cancelled' => [ 2, 'processes', 'signal_backends', 'INT' ],
	'backends stopped' => [ 4, 'processes', 'stop_backends' ],
	'server paused' => [ 3, 'processes', 'pause_server' ],
	'host died' => [ 2, 'processes', 'host_dies' ],
	'postmaster killed' => [ 1, 'processes', 'kill_postmaster' ],
	'storm' => [ 4, 'processes', 'storm' ],
	'fast restart' => [ 2, 'processes', 'restart_server', 'fast' ],
	'immediate restart' => [ 1, 'processes', 'restart_server', 'immediate' ],
	'cut off' => [ 5, 'network', 'network', 'hold', 'zk*', 'both' ],
	'cut off one way' => [ 4, 'network', 'network', 'hold', 'zk*', 'either' ],
	'one way black' => [ 2, 'network', 'network', 'drop', 'zk*', 'either' ],
	'cut off from one' => [ 3, 'network', 'network', 'hold', 'one', 'both' ],
	'connections refused' => [ 3, 'network', 'refuse' ],
	'flapping links' => [ 3, 'network', 'flap' ],
	'slow network' => [ 2, 'network', 'network', 'delay', 'zk*', 'both' ],
	'connections reset' => [ 3, 'network', 'network_once', 'reset' ],
	'cut in a frame' => [ 3, 'network', 'network_once', 'cut' ],
	'reply lost' => [ 4, 'network', 'network_once', 'lose_reply' ],
	'session closed' => [ 2, 'locks', 'close_session' ],
	'znode deleted' => [ 2, 'locks', 'delete_znode' ],
	'lock broken' => [ 3, 'locks', 'break_lock' ],
	'release requested' => [ 3, 'locks', 'request_release' ],
	'server drained' => [ 2, 'locks', 'drain' ],
	'messages dropped' => [ 3, 'messages', 'disturb_messages', 'drop' ],
	'messages late' => [ 3, 'messages', 'disturb_messages', 'delay' ],
	'messages doubled' => [ 2, 'messages', 'disturb_messages', 'double' ],
	'messages forged' => [ 2, 'messages', 'forge_messages' ],
	'settings changed' => [ 3, 'settings', 'change_settings' ],
	'member killed' => [ 2, 'zookeeper', 'kill_member', 'any' ],
	'member stopped' => [ 2, 'zookeeper', 'pause_members', 'any' ],
	'leader killed' => [ 3, 'zookeeper', 'kill_member', 'leader' ],
	'leader stopped' => [ 3, 'zookeeper', 'pause_members', 'leader' ],
	'quorum lost' => [ 2, 'zookeeper', 'pause_members', 'two' ],
	'quorum killed' => [ 2, 'zookeeper', 'kill_two' ],
	'rolling restart' => [ 1, 'zookeeper', 'rolling_restart' ],
	'leader isolated' => [ 5, 'zookeeper', 'isolate', 'leader' ],
	'member isolated' => [ 3, 'zookeeper', 'isolate', 'any' ],
	'long holder cut off' => [ 0, 'network', 'cut_off_holder' ],
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

# What it is done to: zookeeper, or of one server its processes, network, messages,
# locks or settings
sub target { return $faults{ $_[0] }[1]; }

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
		my $target = $faults{$name}[1];
		$target .= " $number" unless $target eq 'zookeeper';
		$at += 0.3 + rand 2;
		next if ($busy_until{$target} // 0) > $fault->{at};
		$busy_until{$target} = $fault->{at} + $fault->{length} + 1;
		push @plan, $fault;
	}
	return @plan;
}

1;
