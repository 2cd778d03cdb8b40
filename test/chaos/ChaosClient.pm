# One client of a chaos run: a session on one PostgreSQL server that enters
# sections, one after the other, each under a lock of random name, mode,
# lifetime and manner of asking.
#
# It never waits: the event loop (ChaosWorkload.pm) calls "answered" when
# something came from the server and "woken" when the time in {wake} has come.
# In its section it visits the resource, twice; in between it holds, for
# milliseconds or for longer than a lease, and does not care what becomes of its
# server: at the end of its time it writes, as a process does that does not
# look.  Then it commits a row on its own server, and that is what zklock
# vouches for.
#
# One record per section goes to the log; ChaosCheck.pm says what is in it.

package ChaosClient;

use strict;
use warnings;

use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use ChaosSection;
use PgSession;

sub now { return clock_gettime(CLOCK_MONOTONIC); }

# node, server (its number), number, locks (names), resource (a PgSession),
# sleeper (true: holds long, and on a lock for those only), at_home (true: mostly
# on its server's lock), longest (seconds of the longest hold), log (called with
# each record)
sub new
{
	my ($class, %params) = @_;

	return bless { %params, state => 'down', wake => 0 }, $class;
}

# Whoever waits to hold for long need not be waited for.
sub pause
{
	my ($self) = @_;

	$self->{wake} = 0 if $self->{sleeper} && $self->{state} eq 'asking';
	return;
}

sub is_quiet { return $_[0]->{state} eq 'idle'; }

# What to wait on for the server; undef when there is nobody any more.
sub socket
{
	my ($self) = @_;
	my $session = $self->{session};

	return $session && !$session->{answer}{closed} ? $session->{socket} : undef;
}

sub _go
{
	my ($self, $state, $wake) = @_;

	$self->{state} = $state;
	$self->{wake} = $wake;
	return;
}

sub _send
{
	my ($self, $state, $sql, $wake) = @_;

	$self->_go($state, $wake);
	$self->{session}->send($sql);
	return;
}

sub _connect
{
	my ($self) = @_;

	$self->{session} = eval { PgSession->new($self->{node}, wait => 0) };
	if ($self->{session}) { $self->_go('connecting'); }
	else { $self->_disconnected; }
	return;
}

sub _disconnected
{
	my ($self) = @_;

	$self->{session}->abandon if $self->{session};
	delete $self->{session};
	$self->_go('down', now() + 0.1 + rand 0.2);
	return;
}

sub close
{
	my ($self) = @_;

	$self->{session}->close if $self->{session};
	return;
}

# ---- events ----

sub woken
{
	my ($self, $paused) = @_;
	my $state = $self->{state};

	if ($state eq 'down') { $self->_connect; }
	elsif ($state eq 'idle')
	{
		if ($paused) { $self->{wake} = now() + 0.05; }
		else { $self->_begin; }
	}
	elsif ($state eq 'asking')
	{
		$self->{wake} = undef;
		$self->{section}{cancelled} = 1;
		$self->{cancelled_at} = now();
		eval { $self->{session}->cancel(wait => 0) };
	}
	elsif ($state eq 'holding') { $self->_leave; }
	elsif ($state eq 'committing') { $self->_stop_or_continue; }
	return;
}

# Its backend goes to sleep somewhere in its commit, for less or more than a lease.
sub _stop_or_continue
{
	my ($self) = @_;
	my $section = $self->{section};

	return $self->_continue if $section->{stopped};
	$section->{stopped} = 1;
	$self->{wake} = now() + rand 0.8 * $self->{longest};
	kill 'STOP', $self->{session}->pid;
	return;
}

sub _continue
{
	my ($self) = @_;

	$self->{wake} = undef;
	kill 'CONT', $self->{session}->pid;
	return;
}

sub answered
{
	my ($self) = @_;
	my $session = $self->{session};

	if (!$session->{busy})
	{
		return if $session->is_open;
		return $self->_disconnected if $self->{state} eq 'idle';
		$self->_note_error($self->{state}, $session->{answer});
		return;
	}
	return if $session->busy;
	$self->_continue if $self->{section}{stopped} && defined $self->{wake};
	my $answer = $session->result;
	my $handler = "_answer_$self->{state}";

	if ($self->{section} && !$answer->{closed})
	{
		$self->{section}{heard_before} = $self->{section}{heard};
		$self->{section}{heard} = now();
	}
	$self->$handler($answer);
	return;
}

sub _answer_connecting
{
	my ($self, $answer) = @_;

	return $self->_disconnected if $answer->{error};
	my $action = (qw(cancel cancel terminate none))[ rand 4 ];
	my $wait = (qw(0 1s 4s 10s))[ rand 4 ];
	my $on_request = (qw(notice ignore cancel terminate))[ rand 4 ];
	$self->_send('setting',
		"SET zklock.lost_lock_action = '$action';"
		  . " SET zklock.on_release_request = '$on_request';"
		  . " SET zklock.commit_wait = '$wait'");
	return;
}

sub _answer_setting
{
	my ($self, $answer) = @_;

	if ($answer->{error}) { $self->_disconnected; }
	else { $self->_idle; }
	return;
}

sub _idle
{
	my ($self) = @_;

	$self->_go('idle', now() + rand 0.02);
	return;
}

sub _begin
{
	my ($self) = @_;
	my $section = $self->{section} = ChaosSection::choose($self);

	$section->{asked} = now();
	# What asks a backend to cancel may come late, and meet a later statement.
	$section->{cancelled_before} = 1
	  if now() - ($self->{cancelled_at} // -1e9) < 5;
	if (rand 20 < 1)
	{
		$self->_send('looking',
			"SELECT znode, mode FROM zk_queue('$section->{lock}')");
		return;
	}
	$self->_ask;
	return;
}

# Who is in the queue before this one has asked is ahead of it.
sub _answer_looking
{
	my ($self, $answer) = @_;

	return $self->_failed('look', $answer) if $answer->{error};
	$self->{section}{ahead} =
	  [ map { _node_name($_->[0]) } @{ $answer->{rows} } ];
	$self->_ask;
	return;
}

sub _node_name { return ($_[0] // '') =~ s{.*/}{}r; }

sub _ask
{
	my ($self) = @_;
	my $section = $self->{section};

	$section->{asked} = now();
	$self->_send('asking', ChaosSection::question($section),
		$section->{how} eq 'cancel'
		? $section->{asked} + $section->{patience} / 1000
		: undef);
	return;
}

sub _answer_asking
{
	my ($self, $answer) = @_;
	my $section = $self->{section};

	return $self->_failed('ask', $answer) if $answer->{error};
	if ($section->{how} eq 'try' && $answer->{rows}[-1][0] eq 'f')
	{
		$section->{refused} = 1;
		return $self->_clean_up;
	}
	$section->{granted} = now();
	$section->{told} = $answer->{rows}[-1][0] unless $section->{how} eq 'try';
	$self->_send('looking_at_own',
		"SELECT h.*, (SELECT n FROM own WHERE name = '$section->{lock}')"
		  . ($section->{outer} ? ', o.token, o.znode' : '')
		  . " FROM holding('$section->{lock}') h"
		  . ($section->{outer} ? ", holding('$section->{outer}') o" : ''));
	return;
}

sub _answer_looking_at_own
{
	my ($self, $answer) = @_;
	my $section = $self->{section};

	return $self->_failed('holding', $answer) if $answer->{error};
	my ($lease, $token, $znode, $own, $outer_token, $outer_znode) =
	  @{ $answer->{rows}[0] };
	if (!defined $token || ($section->{outer} && !defined $outer_token))
	{
		$section->{lost} = 1;
		return $self->_clean_up;
	}
	$section->{token} = $token;
	$section->{znode} = _node_name($znode);
	$section->{own} = $own;
	@{$section}{qw(outer_token outer_znode)} =
	  ($outer_token, _node_name($outer_znode)) if $section->{outer};
	# Not later than the deadline itself, whenever the server read its clock
	$section->{proved} = $section->{granted} + ($lease // 0);
	my $overdue = $section->{asked} + ($section->{at_most} // 1e9) / 1000;
	$section->{proved} = $overdue if $section->{proved} > $overdue;
	$self->_enter;
	return;
}

sub _shared { return $_[0]->{shared} ? 'true' : 'false'; }

sub _enter
{
	my ($self) = @_;
	my $section = $self->{section};
	my $row = $self->{resource}->send(sprintf
		  "SELECT * FROM enter('%s', %s, %s)",
		$section->{lock}, $section->{token}, _shared($section))
	  ->result->{rows}[0];

	@{$section}{qw(entered fenced unfenced)} = @$row;
	$section->{entered_at} = now();
	$self->_go('holding', $section->{entered_at} + $section->{hold});
	$self->{session}->send("SELECT pg_sleep($section->{hold})")
	  if $section->{works};
	return;
}

# An answer while it holds: its statement ended, or its server did.
sub _answer_holding
{
	my ($self, $answer) = @_;

	$self->_note_error('hold', $answer) if $answer->{error};
	return;
}

sub _leave
{
	my ($self) = @_;
	my $section = $self->{section};
	my $row = $self->{resource}->send(
		sprintf "SELECT * FROM leave('%s', %s, %s, %s, %s)",
		$section->{lock}, $section->{token}, _shared($section),
		$section->{fenced} // 'NULL', $section->{unfenced})
	  ->result->{rows}[0];

	@{$section}{qw(left fenced_changed unfenced_changed)} = @$row;
	$section->{left_at} = now();
	return $self->_go('waiting_for_hold') if $self->{session}->busy;

	# Its answer may have come just now.
	$self->_answer_holding($self->{session}->result) if $section->{works};
	$self->_commit;
	return;
}

sub _answer_waiting_for_hold
{
	my ($self, $answer) = @_;

	$self->_note_error('hold', $answer) if $answer->{error};
	$self->_commit;
	return;
}

sub _commit
{
	my ($self) = @_;
	my $section = $self->{section};

	return $self->_clean_up if $section->{error};
	$section->{commit_sent} = now();
	$self->_send('committing', _early($section)
		  . ($section->{transaction} || $section->{how} eq 'both' ? '' : 'BEGIN; ')
		  . "SELECT n FROM own WHERE name = '$section->{lock}'; "
		  . ($section->{shared} ? '' :
			  "UPDATE own SET n = $section->{own} + 1 WHERE name = '$section->{lock}'; ")
		  . "INSERT INTO committed VALUES ('$section->{id}'); COMMIT",
		$section->{to_stop} ? now() + rand 0.003 : undef);
	return;
}

# What the checkers must see: it gives the lock back before it commits.
sub _early
{
	my ($section) = @_;

	return '' unless ($ENV{TEETH} // '') eq 'early' && !$section->{transaction}
	  && $section->{how} ne 'both';
	return "SELECT zk_unlock_all(); SELECT pg_sleep(0.02); ";
}

sub _answer_committing
{
	my ($self, $answer) = @_;
	my $section = $self->{section};

	return $self->_failed('commit', $answer) if $answer->{error};
	$section->{commit_seen} = now();
	my $again = $answer->{rows}[-1];
	$section->{own_changed} = 1 if $again && $again->[0] != $section->{own};
	$section->{released} = $section->{commit_sent};
	return $self->_done if $section->{transaction};

	$section->{released} = now();
	if (rand 20 < 1)
	{
		$section->{closed} = 1;
		$self->_record;
		$self->{session}->close;
		delete $self->{session};
		$self->_go('down', 0);
		return;
	}
	my $unlock = $section->{how} =~ /both|upgrade/ || $section->{outer} || rand 8 < 1
	  ? 'zk_unlock_all()'
	  : 'zk_unlock'
	  . ($section->{shared} ? '_shared' : '') . "('$section->{lock}')";
	$self->_send('releasing', "SELECT $unlock");
	return;
}

sub _answer_releasing
{
	my ($self, $answer) = @_;

	return $self->_failed('release', $answer) if $answer->{error};
	$self->{section}{not_held} = 1 if ($answer->{rows}[0][0] // '') eq 'f';
	$self->_done;
	return;
}

# ---- ends ----

sub _note_error
{
	my ($self, $step, $answer) = @_;
	my $section = $self->{section};

	$section->{error} //= "$step $answer->{error}{sqlstate}";
	$section->{message} //= $answer->{error}{message};

	# The transaction was rolled back, and its lock given back with it, at some
	# time since the answer before.
	$section->{released} //= $section->{heard_before} // $section->{asked}
	  if $section->{transaction};
	return;
}

sub _failed
{
	my ($self, $step, $answer) = @_;

	$self->_note_error($step, $answer);
	$self->_clean_up;
	return;
}

# Acknowledges what was lost, and gives up what may be held.
sub _clean_up
{
	my ($self) = @_;
	my $section = $self->{section};
	my $answer = $self->{session}{answer};

	# A server that went took its locks along at some time since it was heard.
	if ($answer->{closed} || ($answer->{error}{sqlstate} // '') =~ /^57P/)
	{
		# Its last words may have waited for a while to be read.
		$section->{released} //=
		  $section->{ $answer->{closed} ? 'heard' : 'heard_before' }
		  // $section->{asked};
		$self->_record;
		$self->_disconnected;
		return;
	}
	$section->{released} //= now();
	$self->_send('cleaning_up', 'ROLLBACK; SELECT zk_unlock_all()');
	return;
}

sub _answer_cleaning_up
{
	my ($self, $answer) = @_;

	if ($answer->{error})
	{
		$self->_note_error('clean up', $answer);
		$self->_record;
		$self->_disconnected;
		return;
	}
	$self->_done;
	return;
}

sub _record
{
	my ($self) = @_;

	my $section = delete $self->{section};

	$section->{ended} = now();
	$self->{log}->($section);
	$self->{log}->(_of_outer($section)) if $section->{outer_token};
	return;
}

# Its outer lock had a section, too, which does nothing by itself.
sub _of_outer
{
	my ($section) = @_;
	my %outer = map { $_ => $section->{$_} } qw(id server client shared transaction
	  how asked granted proved commit_sent commit_seen released ended);

	@outer{qw(lock token znode inner)} =
	  (@{$section}{qw(outer outer_token outer_znode)}, $section->{lock});
	return \%outer;
}

sub _done
{
	my ($self) = @_;

	$self->_record;
	$self->_idle;
	return;
}

1;
