# A section of a client of a chaos run, before it begins: the lock, mode,
# lifetime and manner of asking are drawn by lot, and put into SQL.  Sleepers
# always wait for the lock in exclusive mode: the one that comes after a holder
# that was cut off writes what that holder writes, too.  Each server has a lock
# that one of its clients takes again and again, so that it is cached, and the
# clients of all servers now and then.  Some take another lock before ("outer"), and
# some may hold for so many ms only ("at_most").

package ChaosSection;

use strict;
use warnings;

my $serial = 0;

sub home { return "/chaos/home$_[0]"; }

sub alone { return "/chaos/alone$_[0]"; }

sub choose
{
	my ($client) = @_;
	my $section = _draw($client);
	my @before = grep { $_ lt $section->{lock} } @{ $client->{locks} };

	$section->{at_most} = (20, 200, 2000)[ rand 3 ]
	  if $section->{how} =~ /^(wait|try)$/ && !$client->{sleeper} && rand 12 < 1;
	# All take locks in the order of their names.
	$section->{outer} = $before[ rand @before ]
	  if $section->{how} eq 'wait'
	  && !$section->{at_most}
	  && !$client->{sleeper}
	  && @before
	  && rand 6 < 1;
	return $section;
}

sub _draw
{
	my ($client) = @_;
	my $sleeper = $client->{sleeper};
	my $at_home = $client->{alone} || $client->{at_home} && rand 20 < 19;
	my $how = $sleeper ? 'wait' : $client->{alone} ? 'try' : $at_home ? (('wait') x 4, 'try')[ rand 5 ] : (
		('wait') x 12, ('try') x 3, ('timeout') x 2, ('cancel') x 2,
		'savepoint', 'both', 'upgrade')[ rand 22 ];
	my $hold = rand 1;

	return {
		id => join('-', $client->{server}, $client->{number}, $serial++),
		server => $client->{server},
		client => "$client->{server}-$client->{number}",
		lock => $sleeper
		? '/chaos/long'
		: $client->{alone} ? alone($client->{server})
		: $at_home ? home($client->{server})
		: rand 20 < 1 ? home(1 + int rand 3)
		: $client->{locks}[ rand @{ $client->{locks} } ],
		shared => (!$sleeper && !$at_home && $how ne 'upgrade' && rand 4 < 1 ? 1 : 0),
		transaction => $how eq 'savepoint' || ($how ne 'both' && rand 2 < 1)
		? 1
		: 0,
		how => $how,
		patience => (0, 5, 20, 100, 1000)[ rand 5 ],
		hold => $sleeper ? $client->{longest}
		: $hold < 0.88 ? rand 0.01
		: $hold < 0.998 ? rand 0.1
		: rand $client->{longest},
		works => (rand 4 < 1 ? 1 : 0),
		# Its backend is stopped right after COMMIT was sent.
		to_stop => (rand 300 < 1 ? 1 : 0),
	};
}

# The statements that ask for the lock, as one message
sub question
{
	my ($section) = @_;
	my $suffix = $section->{shared} ? '_shared' : '';
	my $try = $section->{how} eq 'try' ? 'try_' : '';
	my $arguments = "'$section->{lock}'"
	  . ($try ? ", '$section->{patience} ms'" : '')
	  . ($section->{at_most} ? ", at_most => '$section->{at_most} ms'" : '');
	my $ask = "SELECT zk_$try";
	my $xact = "${ask}xact_lock$suffix($arguments)";
	my $call = $section->{transaction} ? $xact : "${ask}lock$suffix($arguments)";
	my $first = $call =~ s{lock\(}{lock_shared(}r;
	my $begin = $section->{transaction} ? 'BEGIN; ' : '';
	my $local = $section->{transaction} ? 'LOCAL ' : '';
	my $limit = $section->{patience} || 1;

	return "${begin}SET ${local}statement_timeout = $limit; $call;"
	  . " SET ${local}statement_timeout = 0"
	  if $section->{how} eq 'timeout';
	return "BEGIN; SAVEPOINT a; $call; ROLLBACK TO a;"
	  . " SAVEPOINT b; $call; RELEASE b"
	  if $section->{how} eq 'savepoint';
	return "BEGIN; SELECT zk_lock$suffix($arguments); $xact"
	  if $section->{how} eq 'both';
	return "$begin$first; $call" if $section->{how} eq 'upgrade';
	my $outer = $section->{outer} ? $call =~ s{'.*?'}{'$section->{outer}'}r . '; ' : '';
	return "$begin$outer$call";
}

1;
