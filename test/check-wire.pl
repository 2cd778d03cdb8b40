# The number of the link's protocol grows with the messages: of each number
# test/link-protocols has the checksum of what wire.h says about the messages, and
# of znode/zkapi.h, whose enums travel in them; the line of the present number
# fits.  If only words of comments change, change the checksum; if messages do, add
# a number.  The line of a number that was released stays.  Prints TAP.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use FindBin;

my $top = "$FindBin::Bin/..";

sub contents
{
	my ($name) = @_;

	open my $file, '<', "$top/$name" or die "$name: $!";
	local $/ = undef;
	return <$file>;
}

my ($messages) = contents('src/wire/wire.h') =~
  /^(typedef enum ZklWireType\n.*^\} ZklWireStat;)$/ms
  or die 'the messages are not found';
$messages .= contents('src/znode/zkapi.h');
$messages =~ s/[\s*]+/ /g;
my $checksum = substr sha256_hex($messages), 0, 16;
my ($number) = contents('src/wire/version.h') =~ /^#define ZKL_LINK_PROTOCOL\s+(\d+)$/m
  or die 'the number is not found';
my @known = map { [ split ' ' ] } grep { !/^#/ } split /\n/, contents('test/link-protocols');
my ($own) = grep { $_->[0] == $number } @known;
my $good = $own && $own->[1] eq $checksum;

print $good ? '' : 'not ', "ok 1 - the messages are those of link protocol $number\n";
print "# their checksum is $checksum: see test/check-wire.pl\n" unless $good;
$good &&= $known[-1][0] == $number;
print $good ? '' : 'not ', "ok 2 - which is the last one\n1..2\n";
exit !$good;
