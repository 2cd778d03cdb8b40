# Measures how long deadlocks across servers last: from the moment at which the last
# session begins to wait until one of them has the error.  deadlocks.sh prepares what
# it needs.
#
#	ROUNDS		how often each scenario is measured (30)
#	SCENARIOS	a pattern for the names of those to measure (all)

use strict;
use warnings;

# The test library takes STDOUT for its log.
my $terminal;
BEGIN { open $terminal, '>&', \*STDOUT or die "$!"; }

use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $rounds = $ENV{ROUNDS} || 30;
my $wanted = $ENV{SCENARIOS} || '.';
my $timeout = 1;    # deadlock_timeout, in seconds
my $test = ZklockTest->new(
	servers => 4,
	session_timeout => '10s',
	zk => { tick_time => 2000 },
	conf => "deadlock_timeout = '${timeout}s'\n");
my @nodes = $test->nodes;
$_->safe_psql('postgres',
	'CREATE TABLE t (i int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 9)')
  foreach @nodes;
my @s = map { $test->session($nodes[ $_ % 4 ]) } 0 .. 7;
$terminal->autoflush(1);

# How one session waits for the next of a cycle, and what it does before
my $lock = 'SELECT zk_xact_lock(\'/%d\')';
my $row = 'UPDATE t SET i = i WHERE i = %d';

sub cycle_of
{
	my ($n, $held) = @_;

	return map {
		{
			session => $s[$_],
			begin => 'BEGIN; SELECT zk_xact_lock' . ($held // '') . "('/$_')",
			wait => sprintf($lock, ($_ + 1) % $n)
		}
	} 0 .. $n - 1;
}

# s0 and s4 are of the first server, s1 and s5 of the second one: s0 and s1 wait for
# rows, s4 and s5 for locks.
my @one_row = (
	{ session => $s[0], begin => 'BEGIN; SELECT zk_xact_lock(\'/0\')', wait => sprintf($row, 1) },
	{ session => $s[4], begin => 'BEGIN; ' . sprintf($row, 1), wait => sprintf($lock, 1) },
	{ session => $s[1], begin => 'BEGIN; SELECT zk_xact_lock(\'/1\')', wait => sprintf($lock, 0) });
my @two_rows = (
	@one_row[ 0, 1 ],
	{ session => $s[1], begin => 'BEGIN; SELECT zk_xact_lock(\'/1\')', wait => sprintf($row, 1) },
	{ session => $s[5], begin => 'BEGIN; ' . sprintf($row, 1), wait => sprintf($lock, 0) });
my @scenarios = (
	[ 'two servers', cycle_of(2) ],
	[ 'two servers, writers and readers', cycle_of(2, '_shared') ],
	[ 'three servers', cycle_of(3) ],
	[ 'four servers', cycle_of(4) ],
	[ 'eight sessions of four servers', cycle_of(8) ],
	[ 'a row lock on one server, which is waited for first', @one_row ],
	[ 'a row lock on one server, which is waited for last', @one_row[ 1, 2, 0 ] ],
	[ 'row locks on two servers', @two_rows ]);

# All begin to wait at once, or one after the other, "pause" seconds apart.
sub measure
{
	my ($pause, @members) = @_;
	my ($began, @failed);

	$_->{session}->query($_->{begin}) foreach @members;
	foreach my $member (@members)
	{
		sleep $pause if $pause && $began;
		$began = time;
		$member->{session}->send($member->{wait});
	}
	my @waiting = map { $_->{session} } @members;
	while (@waiting)
	{
		my @done = grep { !$_->busy } @waiting;
		my $now = time;

		foreach my $session (@done)
		{
			push @failed, $now - $began if $session->sqlstate eq '40P01';
			$session->query($session->sqlstate eq '' ? 'COMMIT' : 'ROLLBACK');
		}
		@waiting = grep { my $one = $_; !grep { $one == $_ } @done } @waiting;
		sleep 0.001 if !@done;
	}
	die scalar(@failed) . " sessions failed\n" if @failed != 1;
	return $failed[0];
}

printf $terminal "%-52s %10s %10s\n", "seconds behind deadlock_timeout ($timeout s)", 'p50', 'worst';
foreach my $scenario (grep { $_->[0] =~ /$wanted/ } @scenarios)
{
	my ($name, @members) = @$scenario;
	my %spread = ('at once' => 0, 'one after the other' => 0.4);

	foreach my $how (sort keys %spread)
	{
		my @times = sort { $a <=> $b } map { measure($spread{$how}, @members) - $timeout } 1 .. $rounds;

		printf $terminal "%-52s %10.3f %10.3f\n", "$name, $how", $times[ $#times / 2 ], $times[-1];
	}
}
$_->close foreach @s;
$test->finish(leaks => 0);
