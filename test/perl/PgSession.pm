# A PostgreSQL client session that a test can leave waiting.
#
#	my $s = PgSession->new($node, user => 'x', dbname => 'y',
#		options => '-c name=value');	# as PGOPTIONS gives them
#	$s->query('SELECT 1');			# the result as psql -At shows it, or dies
#	$s->error('SELECT 1/0');		# the SQLSTATE, 22012
#	$s->send("SELECT zk_lock('/x')");	# does not wait for the answer
#	$s->busy;						# still no answer
#	$s->cancel;						# once the server has begun with it
#	$s->result;						# waits for the answer, and returns it
#
# With wait => 0 new does not wait for the connection either: the first answer
# tells whether it was made.
#
# It speaks the simple query protocol by itself: a thousand of them cost no
# process, and SQLSTATEs and warnings need no parsing.

package PgSession;

use strict;
use warnings;

use Carp;
use IO::Select;
use IO::Socket::UNIX;
use Time::HiRes qw(time usleep);

use PostgreSQL::Test::Utils;

sub new
{
	my ($class, $node, %params) = @_;
	my $path = $node->host . '/.s.PGSQL.' . $node->port;
	my $socket = IO::Socket::UNIX->new(Peer => $path)
	  or croak "could not connect to $path: $!";

	my $self = bless {
		socket => $socket,
		node => $node,
		buffer => '',
		busy => 1,
		sql => 'the connection request',
		answer => _empty_answer(),
	}, $class;
	my $startup = pack 'N', 196608;
	my %options = (
		user => $params{user} // scalar getpwuid($<),
		database => $params{dbname} // 'postgres',
		application_name => $params{application_name} // 'zklock test');
	$options{options} = $params{options} if defined $params{options};
	$startup .= "$_\0$options{$_}\0" foreach sort keys %options;
	$startup .= "\0";
	$self->_write(pack('N', 4 + length $startup) . $startup);
	return $self unless $params{wait} // 1;
	my $answer = $self->result;
	croak "could not connect: $answer->{error}{message}" if $answer->{error};
	return $self;
}

# Its backend's process id
sub pid { return $_[0]->{pid}; }

sub _empty_answer
{
	return { rows => [], error => undef, notices => [], tag => undef };
}

sub _write
{
	my ($self, $bytes) = @_;
	my $socket = $self->{socket};

	local $SIG{PIPE} = 'IGNORE';
	print $socket $bytes;
	$socket->flush;
	return;
}

# Sends a query without waiting for its answer.
sub send
{
	my ($self, $sql) = @_;

	croak "session still waits for the answer to: $self->{sql}"
	  if $self->{busy};
	$self->{sql} = $sql;
	$self->{busy} = 1;
	$self->{answer} = _empty_answer();
	$self->_write('Q' . pack('N', 5 + length $sql) . "$sql\0");
	return $self;
}

# The same by the extended query protocol, as drivers speak it: several
# statements on their way, and one Sync.
sub send_extended
{
	my ($self, @statements) = @_;
	my $bytes = '';

	croak "session still waits for the answer to: $self->{sql}"
	  if $self->{busy};
	$self->{sql} = join '; ', @statements;
	$self->{busy} = 1;
	$self->{answer} = _empty_answer();
	foreach my $sql (@statements)
	{
		$bytes .= 'P' . pack('N Z* Z* n', 8 + length $sql, '', $sql, 0);
		$bytes .= 'B' . pack('N Z* Z* n n n', 12, '', '', 0, 0, 0);
		$bytes .= 'E' . pack('N Z* N', 9, '', 0);
	}
	$self->_write($bytes . 'S' . pack('N', 4));
	return $self;
}

# Takes in what has come, without waiting; true while the answer is not yet
# complete.
sub busy
{
	my ($self) = @_;

	$self->_receive(0) if $self->{busy};
	return $self->{busy};
}

# Takes in what the server says unasked, such as why it ends the session; true
# while the connection is good.
sub is_open
{
	my ($self) = @_;

	$self->_receive(0) unless $self->{answer}{closed};
	return !$self->{answer}{closed};
}

# Waits for the answer to what was sent: a hash of rows (arrays), error (hash
# of sqlstate, message, detail, hint, context, position, internal_position and
# internal_query; undef if none), notices (the same hashes) and tag.  A connection that broke has closed set.
sub result
{
	my ($self, $timeout) = @_;
	my $deadline =
	  time + ($timeout // $PostgreSQL::Test::Utils::timeout_default);

	while ($self->{busy})
	{
		my $left = $deadline - time;
		confess "no answer in time to: $self->{sql}" if $left <= 0;
		$self->_receive($left);
	}
	return $self->{answer};
}

# The result as psql -At shows it; dies on an error.
sub value
{
	my ($self) = @_;
	my $answer = $self->result;

	confess "$self->{sql}: $answer->{error}{sqlstate}: "
	  . $answer->{error}{message}
	  if $answer->{error};
	return join "\n",
	  map { join '|', map { $_ // '' } @$_ } @{ $answer->{rows} };
}

sub query
{
	my ($self, $sql) = @_;

	return $self->send($sql)->value;
}

# The SQLSTATE of the answer to what was sent; '' when there was no error.
sub sqlstate
{
	my ($self) = @_;
	my $answer = $self->result;

	return $answer->{error} ? $answer->{error}{sqlstate} : '';
}

sub error
{
	my ($self, $sql) = @_;

	return $self->send($sql)->sqlstate;
}

# Everything the last answer said beside rows, for patterns.
sub messages
{
	my ($self) = @_;
	my $answer = $self->result;

	return join "\n", map { $_->{text} } grep { defined } @{ $answer->{notices} },
	  $answer->{error};
}

# Waits until the server has begun with what was sent, or has answered it.
sub wait_running
{
	my ($self) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $looker = (ref $self)->new($self->{node}, application_name => 'looker');

	while ($self->busy
		&& $looker->query("SELECT state FROM pg_stat_activity WHERE pid = $self->{pid}") ne 'active')
	{
		confess "server does not begin with: $self->{sql}" if time > $deadline;
		usleep(10_000);
	}
	$looker->close;
	return;
}

# Asks the server to cancel what was sent, as Ctrl-C in psql does.  A backend
# that has not read it yet would ignore that, so wait for it first, unless the
# caller knows better (running => 1).  With wait => 0 neither this is waited for,
# nor that the request has been sent on.
sub cancel
{
	my ($self, %params) = @_;
	my $wait = $params{wait} // 1;

	$self->wait_running if $wait && !$params{running};
	my $socket =
	  IO::Socket::UNIX->new(Peer => $self->{socket}->peerpath)
	  or croak "could not connect for a cancel: $!";

	print $socket pack('NNNN', 16, 80877102, $self->{pid}, $self->{key});
	$socket->flush;
	return unless $wait;
	local $/ = undef;
	readline $socket;
	return;
}

# Ends the session as psql does.
sub close
{
	my ($self) = @_;

	return unless $self->{socket};
	$self->_write('X' . pack('N', 4));
	$self->abandon;
	return;
}

# Lets the connection go without a word, as a client that died.
sub abandon
{
	my ($self) = @_;

	CORE::close($self->{socket}) if $self->{socket};
	delete $self->{socket};
	$self->{busy} = 0;
	return;
}

sub _receive
{
	my ($self, $timeout) = @_;

	return unless IO::Select->new($self->{socket})->can_read($timeout);
	my $n = sysread $self->{socket}, $self->{buffer}, 65536,
	  length $self->{buffer};
	if (!$n)
	{
		$self->{answer}{closed} = 1;
		$self->{answer}{error} //=
		  { sqlstate => '08006', message => 'connection closed', text => '' };
		$self->{busy} = 0;
		return;
	}
	while (length $self->{buffer} >= 5)
	{
		my ($type, $length) = unpack 'aN', $self->{buffer};
		last if length $self->{buffer} < $length + 1;
		my $body = substr $self->{buffer}, 5, $length - 4;
		substr($self->{buffer}, 0, $length + 1) = '';
		$self->_take($type, $body);
	}
	return;
}

sub _take
{
	my ($self, $type, $body) = @_;
	my $answer = $self->{answer};

	if ($type eq 'Z')
	{
		$self->{busy} = 0;
	}
	elsif ($type eq 'K')
	{
		($self->{pid}, $self->{key}) = unpack 'NN', $body;
	}
	elsif ($type eq 'D')
	{
		my ($count, @row) = (unpack('n', $body));
		my $at = 2;
		while ($count-- > 0)
		{
			my $length = unpack 'N', substr($body, $at, 4);
			$at += 4;
			if ($length == 0xffffffff) { push @row, undef; next; }
			push @row, substr($body, $at, $length);
			$at += $length;
		}
		push @{ $answer->{rows} }, \@row;
	}
	elsif ($type eq 'C')
	{
		$answer->{tag} = $body =~ s/\0$//r;
	}
	elsif ($type eq 'E' || $type eq 'N')
	{
		my %field = map { substr($_, 0, 1) => substr($_, 1) }
		  grep { length } split /\0/, $body;
		my $report = {
			severity => $field{S},
			sqlstate => $field{C},
			message => $field{M},
			detail => $field{D},
			hint => $field{H},
			context => $field{W},
			position => $field{P},
			internal_position => $field{p},
			internal_query => $field{q},
			text => join("\n", grep { defined } @field{qw(S C M D H W)}),
		};
		# What ends the connection may come right behind an error.
		if ($type eq 'E') { $answer->{error} //= $report; }
		else { push @{ $answer->{notices} }, $report; }
	}
	return;
}

1;
