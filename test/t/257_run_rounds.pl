# Of zklock-run and its two guards, any two are killed or stopped, or all three.  The next
# holder's program, on another server, begins when nothing of the first one is left: a
# program with children in its process group, in another one, and in another session.
#
# All ways at the same time, each with a lock of its own; ROUNDS=50 repeats that.

use strict;
use warnings;

use List::Util qw(min);
use Test::More;

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '4s');
my ($one, $two) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
$_->safe_psql('postgres', <<'EOS') foreach $one, $two;
CREATE ROLE batch LOGIN;
GRANT EXECUTE ON FUNCTION zk_try_reserve TO batch;
GRANT EXECUTE ON PROCEDURE zk_await_reservation TO batch;
EOS

# What is done to whom.  Where nobody is left to end them, the program
# has no children.
my %ways = (
	'kill -9 of zklock-run' => { run => 'KILL' },
	'SIGSTOP of zklock-run' => { run => 'STOP' },
	'kill -9 of the outer guard, SIGSTOP of zklock-run' => { outer => 'KILL', run => 'STOP' },
	'kill -9 of the outer guard and zklock-run' => { outer => 'KILL', run => 'KILL' },
	'kill -9 of the inner guard' => { inner => 'KILL' },
	'kill -9 of the inner guard, SIGSTOP of zklock-run' => { inner => 'KILL', run => 'STOP' },
	'kill -9 of the inner guard and zklock-run' => { inner => 'KILL', run => 'KILL' },
	'kill -9 of both guards' => { outer => 'KILL', inner => 'KILL' },
	'SIGSTOP of the outer guard and zklock-run' => { outer => 'STOP', run => 'STOP' },
	'SIGSTOP of the inner guard and zklock-run' => { inner => 'STOP', run => 'STOP' },
	'SIGSTOP of the inner guard, kill -9 of zklock-run' => { inner => 'STOP', run => 'KILL' },
	'SIGSTOP of the outer guard, kill -9 of zklock-run' => { outer => 'STOP', run => 'KILL' },
	'SIGSTOP of the guards' => { outer => 'STOP', inner => 'STOP', goes_on => 1 },
	'kill -9 of the outer guard' => { outer => 'KILL', goes_on => 1 },
	'kill -9 of all three' => { run => 'KILL', outer => 'KILL', inner => 'KILL', alone => 1 });

sub next_one
{
	my ($jobs, $lock) = @_;

	return $jobs->start($two, '-U', 'batch', $lock, '--', $jobs->job('next', 0.05));
}

# Starts a program on one server, and a waiter on another one.
sub start
{
	my ($way, $round) = @_;
	my $lock = '/race/' . $way =~ tr/a-zA-Z0-9/_/cr;
	my $jobs = LockedProgram->new("$dir/log $round $way");
	my $seconds = $ways{$way}{goes_on} ? 4 : 60;
	my ($main, $group, $session) = map { $jobs->line("stubborn $_", $seconds) } qw(main group session);
	my $race = { way => $way, jobs => $jobs, lock => $lock };
	my $line = "set -m; $group & exec setsid $session & exec $main";

	$line = "exec $main" if $ways{$way}{alone};
	$race->{run} = $jobs->start($one, '-U', 'batch', '--grace=1s', $lock, '--', 'bash', '-c', $line);
	$jobs->begins("stubborn $_") foreach $ways{$way}{alone} ? 'main' : qw(main group session);
	$race->{other} = next_one($jobs, $lock);
	$test->wait_waiting($two, $lock, 1);
	wait_for(sub { 2 == grep { defined } @{$race}{qw(outer inner)} = $race->{run}->guards },
		'two guards');
	return $race;
}

# On a machine that stands still, the next one may be told to end before it has begun.
sub runs
{
	my ($race) = @_;

	foreach (1 .. 3)
	{
		my $status = $race->{other}->status;

		return is($status, 0, "$race->{way}: the next one runs")
		  if $status eq '0' || $race->{other}->err !~ /could not be kept/;
		note "$race->{way}: the next one ended with $status: " . $race->{other}->err;
		$race->{other} = next_one($race->{jobs}, $race->{lock});
	}
	return is($race->{other}->status, 0, "$race->{way}: the next one runs");
}

my @distances;
foreach my $round (1 .. $ENV{ROUNDS} // 1)
{
	my @races = map { start($_, $round) } sort keys %ways;
	foreach my $race (@races)
	{
		my %pids = (%$race, run => $race->{run}->pid);
		my $what = $ways{ $race->{way} };
		kill $what->{$_}, $pids{$_} foreach grep { $what->{$_} } qw(outer inner run);
	}
	foreach my $race (@races)
	{
		runs($race);
		my $distance = $race->{jobs}->distance('stubborn', 'next');
		cmp_ok($distance, '>', 0, "$race->{way}: when nothing of the first one is left");
		push @distances, $distance;
		note sprintf '%s: %.3f s', $race->{way}, $distance;
		kill 'CONT', grep { defined } $race->{run}->pid, @{$race}{qw(outer inner)};
		$race->{run}->status;
	}
}
note sprintf '%d overlaps in %d rounds, the least distance is %.0f ms', scalar(grep { $_ <= 0 } @distances),
  $ENV{ROUNDS} // 1, 1000 * min(@distances);
$test->finish;
