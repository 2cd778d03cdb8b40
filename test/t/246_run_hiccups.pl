# Programs under zklock-run, with its defaults and those of zklock, live through hiccups:
# all servers of ZooKeeper stand still for a tenth, a fifth or two fifths of the session
# timeout, or for a third of it right behind the program's start, or their leader is killed.
#
# ROUNDS=25 does each of them so often, with a program on each of two servers, and says what
# was left to a program at least.  HICCUP=leader does only those whose names match, and
# SESSION_TIMEOUT=60 is another one, in seconds.

use strict;
use warnings;

use List::Util qw(min);
use POSIX qw(:sys_wait_h);
use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_BOOTTIME);

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;
use ZooKeeperEnsemble;

my $rounds = $ENV{ROUNDS} // 1;
my $timeout = $ENV{SESSION_TIMEOUT} // 10;

# As installations have them
my $zk = ZooKeeperEnsemble->new('zk', tick_time => 2000, sync_limit => 5, max_session_timeout => 60_000);
my $test = ZklockTest->new(zk => $zk, session_timeout => "${timeout}s");
my @nodes = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $jobs = LockedProgram->new("$dir/log");

$_->safe_psql('postgres', <<'EOS') foreach @nodes;
CREATE ROLE batch LOGIN;
GRANT EXECUTE ON FUNCTION zk_try_reserve TO batch;
GRANT EXECUTE ON PROCEDURE zk_await_reservation TO batch;
EOS

# Programs, and for how long each still may run if nothing is heard of ZooKeeper
my @runs;

sub begin
{
	@runs = map { $jobs->start($_, '-U', 'batch', '/hiccup/' . $_->name, '--', 'sleep', 86_400) } @nodes;
	wait_for(sub { !grep { $_->deadline == 0 } @runs }, 'programs run');
	return;
}

sub end
{
	kill 'TERM', $_->pid foreach @runs;
	return map { $_->status } @runs;
}

sub left { return $_[0]->deadline - clock_gettime(CLOCK_BOOTTIME); }

# Until each has renewed its lock so often that its lease is as long as it gets
sub settle
{
	foreach my $run (@runs)
	{
		foreach my $time (1 .. 4)
		{
			my $before = $run->deadline;

			wait_for(sub { $run->deadline != $before }, 'a renewal');
		}
	}
	return;
}

# What was left at least, until that is over
sub watch
{
	my ($is_over) = @_;
	my $least = $timeout;

	until ($is_over->())
	{
		$least = min($least, map { left($_) } grep { $_->deadline > 0 } @runs);
		usleep(10_000);
	}
	return $least;
}

# Since the end of what had happened, until each has renewed its lock
sub watch_renewals
{
	my @before = map { $_->deadline } @runs;

	return watch(sub {
			return !grep { $runs[$_]->deadline == $before[$_] && $runs[$_]->look->{harness}->pumpable } 0 .. $#runs;
	});
}

sub pause
{
	my ($seconds) = @_;
	my $until = clock_gettime(CLOCK_BOOTTIME) + $seconds;

	$_->pause foreach $zk->servers;
	my $least = watch(sub { return clock_gettime(CLOCK_BOOTTIME) >= $until; });
	$_->resume foreach $zk->servers;
	return min($least, watch_renewals());
}

# Who leads is asked by another process, as an answer may take long.
sub kill_leader
{
	my $leader = $zk->leader;
	my @others = grep { $_ != $leader } $zk->servers;

	$leader->kill9;
	my $asker = fork // die "could not fork: $!";
	if ($asker == 0)
	{
		POSIX::_exit(eval { $zk->wait_leader(@others); 1 } ? 0 : 1);
	}
	my $least = watch(sub { return waitpid($asker, WNOHANG) == $asker; });
	is($?, 0, 'another one leads');
	$least = min($least, watch_renewals());
	$leader->launch;
	$leader->wait_until_serving;
	return $least;
}

my %hiccups = (
	map({
			my $seconds = $timeout * $_;
			("$seconds s" => sub { return pause($seconds) })
	} 0.1, 0.2, 0.4),
	'the leader killed' => \&kill_leader,
	sprintf('%.1f s, when it has just begun', $timeout / 3) => sub {
		end();
		begin();
		return pause($timeout / 3);
	});
my (%ended, %least);

delete $hiccups{$_} foreach grep { !/$ENV{HICCUP}/ } $ENV{HICCUP} ? keys %hiccups : ();
begin();
foreach my $round (1 .. $rounds)
{
	foreach my $hiccup (sort keys %hiccups)
	{
		settle();
		usleep(rand(1e6 * $timeout / 12));
		my $least = $hiccups{$hiccup}->();
		$least{$hiccup} = min($least, $least{$hiccup} // $least);
		my @ended = grep { left($_) < 0 || !$_->look->{harness}->pumpable } @runs;
		$ended{$hiccup} += @ended;
		next unless @ended;
		end();
		diag "$hiccup: ", map { $_->err } @ended;
		begin();
	}
}
foreach my $hiccup (sort keys %hiccups)
{
	is($ended{$hiccup}, 0, "$hiccup: no program is ended");
	diag sprintf('%s: ended %d of %d, which had %.2f s left at least', $hiccup, $ended{$hiccup},
		$rounds * @nodes, $least{$hiccup});
}
end();
$test->finish;
