# Whether what a client was told has a cause, of those that there were: the faults,
# and what the section itself did.
#
#	ChaosCause::is_explained($section, $patience, @causes)	# its error
#	ChaosCause::may_be_taken($section, $patience, @causes)	# a refusal
#
# A cause is a hash of name, server (undef: all), begun and done, as ChaosFaults.pm
# notes them.  It counts for so many seconds ("patience") after its end.  A section
# is a record as ChaosCheck.pm describes it; without an end of its own it is as long
# as its try.

package ChaosCause;

use strict;
use warnings;

use ChaosPlan;

my $crash = join '|', 'worker killed', 'holder killed', 'host died', 'postmaster killed',
  'fast restart', 'immediate restart';
$crash = qr/^(?:$crash)$/;
my $signal = qr/^(backends cancelled|holders terminated|storm)$/;
my $act = qr/^(session closed|znode deleted|lock broken|storm)$/;
my $request = qr/^(release requested|server drained)$/;
my $drain = qr/^server drained$/;

# Which faults may be told of by an SQLSTATE; "away" are those after which ZooKeeper,
# or zklock's processes, do not answer for a while.
my %tellers = (
	'57014' => [ $signal, $act, $request, 'away' ],
	'57P01' => [ $crash, $signal, $act, $request, 'away' ],
	'57P02' => [$crash],
	'57P03' => [$crash],
	'08006' => [ $crash, $signal, 'away' ],
	'40001' => [ $crash, $act, 'away' ],
	'25P02' => [ $signal, $act, $request, 'away' ],
	'55000' => [$drain]);

sub _is
{
	my ($cause, $kind) = @_;
	my $name = $cause->{name};

	return $name =~ $kind unless $kind eq 'away';
	return ChaosPlan::target($name) =~ /network|zookeeper/
	  || $name =~ /worker|session process|paused|stopped/
	  || $name =~ $crash;
}

# Those that concern a section
sub _at_work
{
	my ($section, $patience, @causes) = @_;

	return grep {
		(!defined $_->{server} || $_->{server} == $section->{server})
		  && $_->{begun} <= $section->{ended}
		  && (!defined $_->{done} || $_->{done} + $patience >= $section->{asked})
	} @causes;
}

# What it did itself
sub _explains_itself
{
	my ($section, $sqlstate) = @_;

	return $section->{how} eq 'upgrade' if $sqlstate eq '40P01';
	return 1 if $sqlstate eq '57014'
	  && ($section->{how} =~ /^(cancel|timeout)$/ || $section->{cancelled_before});

	# If a session is terminated just when it is sent a statement, the client may see
	# the end of the connection, and not the reason.
	return 0
	  unless $sqlstate =~ /^(57014|57P01|40001|25P02)$/
	  || ($section->{message} // '') eq 'connection closed';
	return $section->{at_most} || $section->{stopped};
}

# An error is "step SQLSTATE".  Locks that are taken in one order by all never make
# a deadlock: there must be none but that of two that are to become writers.
sub is_explained
{
	my ($section, $patience, @causes) = @_;
	my ($sqlstate) = $section->{error} =~ /(\w+)$/;

	return 1 if _explains_itself($section, $sqlstate);
	my $tellers = $tellers{$sqlstate} or return 0;
	foreach my $cause (_at_work($section, $patience, @causes))
	{
		return 1 if grep { _is($cause, $_) } @$tellers;
	}
	return 0;
}

# A lock that only one client asks for may be taken after all if the server's
# session with ZooKeeper may have ended: its last one is dead, and has it still.
sub may_be_taken
{
	my ($section, $patience, @causes) = @_;

	return scalar grep { _is($_, $_->{name} =~ $act ? $act : 'away') }
	  _at_work($section, $patience, @causes);
}

1;
