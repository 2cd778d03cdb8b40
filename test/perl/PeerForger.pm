# Datagrams as the workers of servers send them to each other, made by the rules of
# src/wire/peer.h and src/worker/peer_key.c.
#
#	my $forger = PeerForger->new(root => '/zklock', lines => ['digest:zklock:secret']);
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

my %kinds = (ask => 1, word => 2);

# PBKDF2 with HMAC-SHA-256, one block
sub _derive
{
	my ($password, $salt, $iterations) = @_;
	my $block = hmac_sha256($salt . pack('N', 1), $password);
	my $key = $block;

	for (2 .. $iterations)
	{
		$block = hmac_sha256($block, $password);
		$key ^= $block;
	}
	return $key;
}

sub new
{
	my ($class, %params) = @_;
	my $secrets = join '', map { "$_\n" } sort @{ $params{lines} };

	return
	  bless { key => _derive($secrets, "zklock peers 1 $params{root}", 16384) }, $class;
}

# Sessions are as zk_status shows them, ids of znodes as they stand in znodes.
sub datagram
{
	my ($self, %params) = @_;
	my ($from, $to) = map { s/^0x//r } @params{ 'from', 'to' };
	my ($znode, $waiter) = map { s/-//gr } @params{ 'znode', 'waiter' };
	my $signed = 'zk'
	  . pack('CC', $params{version} // 1, $kinds{ $params{kind} } // $params{kind})
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
