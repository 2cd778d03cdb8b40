# Datagrams as the workers of servers send them to each other, made by the rules of
# src/wire/peer.h, with the key that stands in ZooKeeper.
#
#	my $forger = PeerForger->new($client);		# a ZooKeeperClient that may read it
#	my $forger = PeerForger->new($client, key => $bytes);
#	my $bytes = $forger->datagram(kind => 'word', from => $session, to => $session,
#		znode => $uuid, waiter => $uuid);
#	$forger->send($bytes, $port);				# to 127.0.0.1, or
#	$forger->send($bytes, $port, '::1');

package PeerForger;

use strict;
use warnings;

use Carp;
use Digest::SHA qw(hmac_sha256);
use IO::Socket::IP;
use Socket qw(SOCK_DGRAM);

my %kinds = (ask => 1, word => 2, ask_echo => 3, echo => 4);

my $znode = '/zklock/.peer_key';

sub new
{
	my ($class, $client, %params) = @_;

	return bless {
		number => $client->stat($znode)->{czxid},
		key => $params{key} // pack('H*', $client->get_hex($znode)),
	}, $class;
}

sub znode { return $znode; }
sub key { return $_[0]->{key}; }
sub number { return $_[0]->{number}; }

# Sessions are as zk_status shows them, ids of znodes as they stand in znodes.
sub datagram
{
	my ($self, %params) = @_;
	my ($from, $to) = map { s/^0x//r } @params{ 'from', 'to' };
	my ($znode, $waiter) = map { s/-//gr } @params{ 'znode', 'waiter' };
	my $signed = 'zk'
	  . pack('CCq>',
		$params{version} // 2,
		$kinds{ $params{kind} } // $params{kind},
		$params{key} // $self->{number})
	  . pack('H*', sprintf('%016s%016s%s%s', $from, $to, $znode, $waiter) =~ tr/ /0/r);

	return $signed . hmac_sha256($signed, $self->{key});
}

sub send
{
	my ($self, $bytes, $port, $host) = @_;
	my $socket = IO::Socket::IP->new(
		PeerHost => $host // '127.0.0.1',
		PeerPort => $port,
		Type => SOCK_DGRAM) or croak "no socket: $@";

	$socket->send($bytes) // croak "could not send: $!";
	return;
}

1;
