# The clients of one PostgreSQL server of a chaos run, in a process of their
# own, so that a server that hangs and the runner's own work delay nobody else.
#
#	my $w = ChaosWorkload->new(node => $node, server => 1, clients => 10,
#		locks => [...], longest => 8, resource => $node4, seed => 7,
#		log => $path);
#	$w->run; ... $w->pause; $w->is_quiet; ... $w->quit;
#
# Paused clients end their sections and begin no new ones.  The first client of
# each holds long, as those do that lose their locks; the second one takes mostly
# the lock of its server, and the third one tries for a lock that nobody else asks
# for.

package ChaosWorkload;

use strict;
use warnings;

use IO::Handle;
use IO::Select;
use JSON::PP;
use POSIX ();
use Socket;

use ChaosClient;
use PgSession;

sub new
{
	my ($class, %params) = @_;

	socketpair my $mine, my $theirs, AF_UNIX, SOCK_STREAM, PF_UNSPEC
	  or die "could not make a socket pair: $!";
	my $pid = fork() // die "could not fork: $!";
	if ($pid == 0)
	{
		# What the parent has open must not stay open because of this one.  The
		# numbers stay taken: Perl would not close a new file that had one of them.
		my $keep = fileno $theirs;
		my $null = POSIX::open('/dev/null');
		POSIX::dup2($null, $_)
		  foreach grep { $_ != $keep && -e "/proc/self/fd/$_" } 3 .. 255;
		$SIG{INT} = 'IGNORE';
		$SIG{TERM} = 'DEFAULT';
		my $good = eval { $class->_work($theirs, %params); 1 };
		print STDERR "workload $params{server}: $@" unless $good;
		POSIX::_exit($good ? 0 : 1);
	}
	close $theirs;
	$mine->autoflush(1);
	return bless { pid => $pid, control => $mine, buffer => '' }, $class;
}

sub _tell
{
	my ($self, $word) = @_;
	my $control = $self->{control};

	local $SIG{PIPE} = 'IGNORE';
	print $control "$word\n";
	$self->{quiet} = 0;
	return;
}

sub run { $_[0]->_tell('run'); return; }
sub pause { $_[0]->_tell('pause'); return; }

sub is_quiet
{
	my ($self) = @_;

	while (IO::Select->new($self->{control})->can_read(0))
	{
		sysread($self->{control}, my $bytes, 100)
		  or die "a workload process has ended\n";
		$self->{quiet} = 1 if $bytes =~ /quiet/;
	}
	return $self->{quiet};
}

# Its exit status: 0 if all went well.
sub quit
{
	my ($self) = @_;

	return 0 unless $self->{pid};
	$self->_tell('quit');
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return $?;
}

# ---- the process ----

sub _work
{
	my ($class, $control, %params) = @_;
	my $paused = 1;
	my $told = 1;
	my $json = JSON::PP->new->canonical;

	srand $params{seed};
	open my $log, '>>', $params{log} or die "could not open $params{log}: $!";
	$log->autoflush(1);
	$control->autoflush(1);
	my $resource = PgSession->new($params{resource});
	my @clients = map {
		ChaosClient->new(
			%params,
			number => $_,
			sleeper => $_ == 1,
			at_home => $_ == 2,
			alone => $_ == 3,
			resource => $resource,
			log => sub { print $log $json->encode($_[0]), "\n"; })
	} 1 .. $params{clients};

	while (1)
	{
		my $word = _serve($control, $paused, @clients);
		return _close(@clients) if $word eq 'quit';
		$told = 0 if $word;
		$paused = $word eq 'pause' if $word;
		if ($word eq 'pause') { $_->pause foreach @clients; }
		if ($paused && !$told && !grep { !$_->is_quiet } @clients)
		{
			print $control "quiet\n";
			$told = 1;
		}
	}
	return;
}

sub _close
{
	my (@clients) = @_;

	$_->close foreach @clients;
	return;
}

# Waits for something to happen, and passes it on to the client concerned.
# Returns the last word of the parent, or ''.
sub _serve
{
	my ($control, $paused, @clients) = @_;
	my $now = ChaosClient::now();
	my $select = IO::Select->new($control);
	my $timeout = 1;
	my (%client_of, @due);

	foreach my $client (@clients)
	{
		if (my $socket = $client->socket)
		{
			$client_of{$socket} = $client;
			$select->add($socket);
		}
		next unless defined $client->{wake};
		my $left = $client->{wake} - $now;
		$timeout = $left < 0 ? 0 : $left if $left < $timeout;
	}
	my $word = '';
	foreach my $socket ($select->can_read($timeout))
	{
		if ($socket == $control)
		{
			return 'quit' unless sysread $control, my $bytes, 100;
			$word = (split ' ', $bytes)[-1];
			next;
		}
		$client_of{$socket}->answered;
	}
	$now = ChaosClient::now();
	foreach my $client (@clients)
	{
		$client->woken($paused)
		  if defined $client->{wake} && $client->{wake} <= $now;
	}
	return $word;
}

1;
