# Keeps a ZooKeeper session alive while its own client is away: a connection that
# attaches to it, and pings.  When the client comes back, ZooKeeper closes this one.
#
#	my $keeper = SessionKeeper->new($zk, $id, 4000);	# id in hex, timeout in ms
#	wait_for(sub { $keeper->is_relieved }, 'its client is back');
#
# No machine is too slow for that, as what waits also keeps the session alive.

package SessionKeeper;

use strict;
use warnings;

use Carp;
use IO::Socket::INET;
use Time::HiRes qw(time);

my $ping = pack 'N N N', 8, -2 & 0xffffffff, 11;

sub new
{
	my ($class, $zk, $id, $timeout_ms) = @_;
	my $socket = IO::Socket::INET->new(PeerAddr => $zk->connect_string)
	  or croak "could not connect to ZooKeeper: $!";
	my $self = bless { socket => $socket, interval => $timeout_ms / 3000, pinged => time }, $class;
	my $session = pack 'H16', substr "0000000000000000$id", -16;

	# version of the protocol, last transaction seen, timeout, session, password, not read-only
	$self->_send(pack 'N/a*', pack 'N x8 N a8 N/a* x',
		0, $timeout_ms, $session, pack 'H*', $zk->client->password(hex $id));
	my $answer = $self->_receive(4);
	$answer = $self->_receive(unpack 'N', $answer);
	substr($answer, 8, 8) eq $session or croak "session $id has expired";
	return $self;
}

sub _send
{
	my ($self, $bytes) = @_;

	local $SIG{PIPE} = 'IGNORE';
	return syswrite $self->{socket}, $bytes;
}

sub _receive
{
	my ($self, $length) = @_;
	my $bytes = '';

	while (length $bytes < $length)
	{
		sysread $self->{socket}, $bytes, $length - length $bytes, length $bytes
		  or croak 'ZooKeeper has closed the connection';
	}
	return $bytes;
}

# Whether ZooKeeper has closed this connection; pings if that is due.
sub is_relieved
{
	my ($self) = @_;

	if (time - $self->{pinged} > $self->{interval})
	{
		$self->{pinged} = time;
		$self->_send($ping) or return 1;
	}
	$self->{socket}->blocking(0);
	my $got = sysread $self->{socket}, my $ignored, 4096;
	my $relieved = defined $got ? $got == 0 : !$!{EAGAIN};
	$self->{socket}->blocking(1);
	return $relieved;
}

1;
