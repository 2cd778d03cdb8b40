# What must hold of the sections of a chaos run, whatever faults there were.
#
#	my $check = ChaosCheck->new(trust => $seconds);
#	$check->section($record); ...		# as ChaosClient.pm writes them
#	$check->confirm($id); ...			# committed, as its server says
#	$check->operator($lock, $server, $begun, $done);
#	my @violations = $check->violations;	# [ kind, text ]
#
# A record: id, server, client, lock, shared, asked, granted, token, znode,
# entered and left (places in the resource's order of visits), proved (until
# when the lease was seen to last), commit_sent, commit_seen, released, ended,
# error; inner (it is that of an outer lock, and did nothing by itself); own (what
# it read on its own server).  All times are of one clock.
#
# Tokens give the order of grants, so a section and a conflicting one with a
# higher token (a later one) need no clock to be put in order:
#
#	overlap		a section passed its commit check after a later one was granted
#	stale		the same by the resource's own order of visits: an update that
#				was committed is not in what a later one had read
#	lease		a later one was granted while the lease of an earlier one lasted
#	token		two grants with one token, or a token that changed
#	own			a later one on the same server did not read what it has committed
#	changed		what it had read was changed before it ended
#	order		ahead in the queue, but granted behind
#	refused		a try was refused, but nobody could have had the lock
#	unexplained	an error that has no cause
#	vanished	a commit that was acknowledged is not there
#
# Only a section whose commit succeeded is vouched for until its commit was
# sent.  One whose session or znode an operator's tool ended is not, for the
# time that zklock may take to notice ("trust"); the operator is undef's
# server for a deleted znode, and undef's lock for a closed session.

package ChaosCheck;

use strict;
use warnings;

use ChaosCause;

sub new
{
	my ($class, %params) = @_;

	return bless {
		trust => $params{trust} // 0,
		patience => $params{patience} // 0,
		causes => $params{causes} // [],
		believe_all => $params{believe_all},
		sections => [],
		confirmed => {},
		operator => [],
		found => [],
	}, $class;
}

sub section { push @{ $_[0]->{sections} }, $_[1]; return; }
sub confirm { $_[0]->{confirmed}{ $_[1] } = 1; return; }
sub sections { return @{ $_[0]->{sections} }; }

sub operator
{
	my ($self, $lock, $server, $begun, $done) = @_;

	push @{ $self->{operator} },
	  { lock => $lock, server => $server, begun => $begun, done => $done };
	return;
}

sub violations
{
	my ($self) = @_;
	my %by_lock;

	$self->{found} = [];
	foreach my $section ($self->sections)
	{
		$self->_judge($section);
		push @{ $by_lock{ $section->{lock} } }, $section;
		$self->_found('unexplained', $section)
		  if $section->{error} && !ChaosCause::is_explained($section,
			$self->{patience}, @{ $self->{causes} });
	}
	foreach my $lock (sort keys %by_lock)
	{
		$self->_check_refusals(@{ $by_lock{$lock} });
		my @sections = sort { $a->{token} <=> $b->{token} }
		  grep { defined $_->{token} } @{ $by_lock{$lock} };

		$self->_check_own(@sections);
		$self->_check_tokens(@sections);
		$self->_check_later_ones(@sections);
		$self->_check_queue(@sections);
	}
	return @{ $self->{found} };
}

sub _found
{
	my ($self, $kind, @sections) = @_;

	push @{ $self->{found} },
	  [ $kind, join "\n    ", map { describe($_) } @sections ];
	return;
}

sub describe
{
	my ($section) = @_;

	return join ' ', map {
		my $value = $section->{$_};
		"$_=" . (ref $value ? scalar @$value : $value =~ /^\d+\.\d{4,}$/
			? sprintf('%.4f', $value) : $value)
	  } grep { defined $section->{$_} } qw(id lock shared how transaction token
	  znode asked granted proved entered entered_at hold works left left_at
	  commit_sent commit_seen good released ended at_most outer inner own own_changed
	  stopped lost closed error message);
}

# Until when a section is vouched for: "end" by the clock, "last" on the
# resource, "alive" by its lease.
sub _judge
{
	my ($self, $section) = @_;
	my $good = $self->{confirmed}{ $section->{id} };

	$section->{good} = $good ? 1 : 0;
	$self->_found('vanished', $section)
	  if defined $section->{commit_seen} && !$good;
	return unless defined $section->{token};
	if ($self->{believe_all} && defined $section->{left})
	{
		# As a client that does not ask whether its commit succeeded
		@{$section}{qw(end last)} = @{$section}{qw(left_at left)};
	}
	elsif ($good)
	{
		@{$section}{qw(end last)} = @{$section}{qw(commit_sent left)};
	}
	my $released = $section->{released};
	$section->{alive} =
	  $released < $section->{proved} ? $released : $section->{proved};

	foreach my $act ($self->_acts_on($section))
	{
		if (defined $section->{end}
			&& $section->{end} > $act->{begun}
			&& $section->{end} < $act->{done} + $self->{trust})
		{
			$section->{end} = $act->{begun};
			delete $section->{last};
		}
		$section->{alive} = $act->{begun} if $section->{alive} > $act->{begun};
	}
	return;
}

# What an operator did to a section: its grant may have been read late, so all
# that was done since it asked counts.
sub _acts_on
{
	my ($self, $section) = @_;

	return grep {
		(!defined $_->{lock} || $_->{lock} eq $section->{lock})
		  && (!defined $_->{server} || $_->{server} == $section->{server})
		  && $_->{done} >= $section->{asked}
		  && $_->{begun} <= $section->{ended}
	} @{ $self->{operator} };
}

sub _check_tokens
{
	my ($self, @sections) = @_;

	foreach my $section (@sections)
	{
		$self->_found('token', $section)
		  if defined $section->{told} && $section->{told} != $section->{token};
	}
	foreach my $i (1 .. $#sections)
	{
		my ($one, $two) = @sections[ $i - 1, $i ];
		$self->_found('token', $one, $two) if $one->{token} == $two->{token};
	}
	return;
}

# The greatest value of a key among the sections so far, for those that
# conflict with a shared and with an exclusive one.
sub _keep_greatest
{
	my ($greatest, $key, $section) = @_;

	return unless defined $section->{$key};
	foreach my $against ($section->{shared} ? 'exclusive' : qw(exclusive shared))
	{
		my $old = $greatest->{$against}{$key};
		$greatest->{$against}{$key} = $section
		  if !$old || $old->{$key} < $section->{$key};
	}
	return;
}

sub _check_later_ones
{
	my ($self, @sections) = @_;
	my %greatest;

	foreach my $later (@sections)
	{
		my $before = $greatest{ $later->{shared} ? 'shared' : 'exclusive' };
		my ($by_clock, $by_visit, $by_lease) = @{$before}{qw(end last alive)};

		$self->_found('overlap', $by_clock, $later)
		  if $by_clock && $by_clock->{end} > $later->{granted};
		$self->_found('stale', $by_visit, $later)
		  if $by_visit
		  && defined $later->{entered}
		  && $by_visit->{last} > $later->{entered};
		$self->_found('lease', $by_lease, $later)
		  if $by_lease && $by_lease->{alive} > $later->{granted};
		_keep_greatest(\%greatest, $_, $later) foreach qw(end last alive);
	}
	return;
}

# Sections that were good to their ends, and wrote: on each server the one with the
# higher token must have read more.
sub _check_own
{
	my ($self, @sections) = @_;
	my %last;

	foreach my $section (grep { defined $_->{last} && $_->{good} } @sections)
	{
		$self->_found('changed', $section)
		  if $section->{own_changed} || ($section->{fenced_changed} // '') eq 't';
		next if !defined $section->{own} || $section->{shared};
		my $before = $last{ $section->{server} };
		$self->_found('own', $before, $section)
		  if $before && $before->{own} >= $section->{own};
		$last{ $section->{server} } = $section;
	}
	return;
}

# Whoever was there, or left a lock behind without giving it back, may be the reason;
# or a session of the server's that ended.
sub _check_refusals
{
	my ($self, @sections) = @_;
	my $patience = $self->{patience};

	foreach my $refused (grep { $_->{refused} } @sections)
	{
		next if grep {
			my $clean = !$_->{error} && !$_->{lost} && !$_->{closed};
			$_ != $refused
			  && !($_->{shared} && $refused->{shared})
			  && $_->{asked} <= $refused->{ended}
			  && $_->{ended} + ($clean ? 0 : $patience) >= $refused->{asked}
		} @sections;
		next if ChaosCause::may_be_taken($refused, $patience, @{ $self->{causes} });
		$self->_found('refused', $refused);
	}
	return;
}

# Both were good to their ends, so they did not hold at the same time, and the
# order of their visits is that of their grants.  Sessions of one server share the
# znode of a lock that it caches.
sub _check_queue
{
	my ($self, @sections) = @_;
	my %of_znode = map { $_->{znode} => $_ }
	  grep { length $_->{znode} && defined $_->{last} } @sections;

	foreach my $later (grep { $_->{ahead} && defined $_->{last} } @sections)
	{
		foreach my $znode (grep { $_ ne ($later->{znode} // '') } @{ $later->{ahead} })
		{
			my $first = $of_znode{$znode} or next;
			next if $first->{shared} && $later->{shared};
			$self->_found('order', $first, $later)
			  if $first->{entered} > $later->{entered};
		}
	}
	return;
}

1;
