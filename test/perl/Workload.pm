# Many client sessions that take and release few locks as fast as they can,
# with a checker for mutual exclusion.
#
#	my $seen = Workload::run($test, sessions => 16, names => 3, rounds => 500,
#		lock => "SELECT zk_lock('%s')", unlock => "SELECT zk_unlock('%s')");
#	is($seen->{overlaps}, 0);
#
# The sessions are spread over all servers of the test.  A hold counts from
# the moment that its grant has been read here to the moment before its
# release is sent: an interval inside the real one, so that each overlap seen
# is a real one.  Between the two the session makes one more round trip.  If the
# server ends a hold or its session, it says so before the lock is free: before
# a grant counts as an overlap, we read what has come for the other holder.
# Without lock and unlock the same traffic runs unprotected, which shows that
# the checker sees what it is to see.
#
# Further options: settings (SQL for each session at its start), tick (called
# with the number of started rounds, to disturb), until (ends the rounds early),
# reconnect (for how many seconds a session waits after an error, and connects
# again if its server has ended it).
# The result has grants, overlaps, refused (a try's false) and errors
# { sqlstate => count }.

package Workload;

use strict;
use warnings;

use IO::Select;
use List::Util qw(shuffle);
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;

# Nobody got an answer for too long: shows what each server knows, and dies.
sub _stalled
{
	my ($test, @clients) = @_;

	foreach my $node ($test->nodes)
	{
		diag $node->name, ":\n", $test->status($node, '*'),
		  "\n", $test->look($node, 'SELECT * FROM zk_locks ORDER BY path, znode');
	}
	diag join "\n", $test->lock_znodes;
	diag join "\n",
	  map { "backend $_->{session}{pid} $_->{state} $_->{name}" }
	  grep { $_->{session}{socket} } @clients;
	die 'no session got an answer';
}

sub run
{
	my ($test, %params) = @_;
	my $seen = { grants => 0, overlaps => 0, refused => 0, errors => {} };
	my @nodes = $test->nodes;
	my (%holder_of, %session_of, @resting, @ready);
	my $started = 0;
	my $select = IO::Select->new;

	my $begin = sub {
		my ($client) = @_;

		$client->{name} = '/workload/' . int(rand($params{names}));
		$client->{state} = 'wanting';
		$client->{session}
		  ->send(sprintf $params{lock} // 'SELECT true', $client->{name});
		$started++;
	};

	# Whether it holds a lock still.  Its socket may say nothing more after
	# this, so its turn comes now.
	my $holds = sub {
		my ($client) = @_;
		my $session = $client->{session};
		my $good = $session->is_open && !$session->{answer}{error};

		push @ready, $session->{socket};
		return $good;
	};

	foreach my $number (0 .. $params{sessions} - 1)
	{
		my $session = $test->session($nodes[ $number % @nodes ]);
		$session->query($params{settings}) if $params{settings};
		my $client = { session => $session };
		$session_of{ $session->{socket} } = $client;
		$select->add($session->{socket});
		$begin->($client);
	}

	my $last_answer = time;
	while ($select->count || @resting)
	{
		$params{tick}->($started) if $params{tick};
		_stalled($test, values %session_of)
		  if time - $last_answer > $PostgreSQL::Test::Utils::timeout_default;
		# In any order, as the numbers of the sockets say nothing.
		@ready = shuffle $select->can_read(0.05);
		while (my $socket = shift @ready)
		{
			next unless $select->exists($socket);
			$last_answer = time;
			my $client = $session_of{$socket};
			my $session = $client->{session};
			next if $session->busy;

			my $answer = $session->result;
			my $name = $client->{name};
			$seen->{errors}{ $answer->{error}{sqlstate} }++
			  if $answer->{error};
			if ($client->{state} eq 'wanting' && !$answer->{error}
				&& $answer->{rows}[0][0] eq 'f')
			{
				$seen->{refused}++;
				$client->{state} = 'done';
			}
			elsif ($client->{state} eq 'wanting' && !$answer->{error})
			{
				$seen->{grants}++;
				my $other = $holder_of{$name};
				$seen->{overlaps}++ if $other && $holds->($other);
				$holder_of{$name} = $client;
				$client->{state} = 'holding';
				$session->send('SELECT 1');
				next;
			}
			elsif ($client->{state} eq 'holding')
			{
				delete $holder_of{$name} if ($holder_of{$name} // 0) == $client;
				$client->{state} = 'done';
				$session->send(sprintf $params{unlock} // 'SELECT true',
					$name);
				next;
			}

			if ($started >= $params{rounds} || ($params{until} && $params{until}->())
				|| ($answer->{closed} && !$params{reconnect}))
			{
				$select->remove($socket);
				$session->close;
				next;
			}
			if ($answer->{error} && $params{reconnect})
			{
				$select->remove($socket);
				push @resting, [ $client, time + $params{reconnect} ];
				next;
			}
			$begin->($client);
		}
		foreach my $rest (splice @resting)
		{
			my ($client, $end) = @$rest;
			my $session = $client->{session};

			if (time < $end) { push @resting, $rest; next; }
			if ($session->{answer}{closed})
			{
				$session = eval { $test->session($session->{node}) };
				if (!$session) { push @resting, $rest; next; }
				$session->query($params{settings}) if $params{settings};
				delete $session_of{ $client->{session}{socket} };
				$client->{session} = $session;
				$session_of{ $session->{socket} } = $client;
			}
			$select->add($session->{socket});
			$begin->($client);
		}
	}
	return $seen;
}

# Six sessions that go on beside a procedure, whatever it does to their servers
sub run_beside
{
	my ($test, %more) = @_;

	return run(
		$test,
		sessions => 6,
		names => 2,
		rounds => 10_000_000,
		reconnect => 0.1,
		lock => "SELECT zk_lock('%s')",
		unlock => "SELECT zk_unlock('%s')",
		%more);
}

1;
