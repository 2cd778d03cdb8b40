# Sessions that wait for each other, for TAP tests.
#
#	my @victims = settle($test, $one, $two);	# sessions that wait in transactions
#	one_victim($test, [ $one, $two ], 'a cycle of two');
#	still($test, 10, $one, $two);		# for so many deadlock_timeouts
#
# Servers need $deadlock_conf, so that the tests need not wait long.

package DeadlockTest;

use strict;
use warnings;

use Exporter 'import';
use Test::More;
use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Utils;

our @EXPORT = qw($deadlock_conf $deadlock_ms one_victim cycle settle still ways);

our $deadlock_ms = 200;
our $deadlock_conf = "deadlock_timeout = '${deadlock_ms}ms'\n";

# Each session holds a lock of its own, in a transaction, and waits for that of the
# next one: the first one begins to wait first.  They wait in "mode" ('': exclusive,
# or '_shared') and hold in "held".
sub cycle
{
	my ($test, $path, $sessions, %params) = @_;
	my $n = @$sessions;
	my $held = $params{held} // '';
	my $mode = $params{mode} // '';

	foreach my $i (0 .. $n - 1)
	{
		$sessions->[$i]->query("BEGIN; SELECT zk_xact_lock$held('$path/$i')");
	}
	foreach my $i (0 .. $n - 1)
	{
		my $next = ($i + 1) % $n;

		$test->enqueue($sessions->[$i],
			"SELECT zk_xact_lock$mode('$path/$next')", "$path/$next");
	}
	return;
}

# Waits until all sessions have their answers: who gets one ends its transaction,
# so that the others can go on.  Returns those that got a deadlock's error; any other
# error is a failure.
sub settle
{
	my ($test, @waiting) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my @victims;

	while (@waiting && time < $deadline)
	{
		my @done = grep { !$_->busy } @waiting;

		foreach my $s (@done)
		{
			my $state = $s->sqlstate;

			if ($state eq '40P01')
			{
				push @victims, { session => $s, messages => $s->messages };
			}
			elsif ($state ne '')
			{
				fail("a session that waits gets $state");
			}
			$s->query($state eq '' ? 'COMMIT' : 'ROLLBACK');
		}
		@waiting = grep { my $s = $_; !grep { $_ == $s } @done } @waiting;
		sleep 0.01 if !@done;
	}
	is(scalar(@waiting), 0, 'all sessions get an answer');
	return @victims;
}

# The same where there is one cycle; returns the victim
sub one_victim
{
	my ($test, $sessions, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my @victims = settle($test, @$sessions);
	is(scalar(@victims), 1, "$name: one session is the victim");
	return $victims[0];
}

# Whether all of them still wait after so many deadlock_timeouts
sub still
{
	my ($test, $times, @sessions) = @_;
	my $end = time + $times * $deadlock_ms / 1000;

	while (time < $end)
	{
		return 0 if grep { !$_->busy } @sessions;
		sleep 0.02;
	}
	return 1;
}

# All orders of a list
sub ways
{
	my (@all) = @_;

	return [] if !@all;
	return map {
		my @rest = @all;
		my ($first) = splice @rest, $_, 1;
		map { [ $first, @$_ ] } ways(@rest)
	} 0 .. $#all;
}

1;
