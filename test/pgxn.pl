# Looks at a zip as PGXN does that gets it: one folder, named after the distribution and
# its version, and a META.json that is valid, whose files are there.
#
#	perl test/pgxn.pl zklock-1.0.0.zip

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use IO::Uncompress::Unzip qw($UnzipError);
use JSON::PP;
use Test::More;

use lib abs_path(dirname(__FILE__) . '/perl');
use PgxnMeta;

my ($file) = @ARGV or die "usage: perl test/pgxn.pl ARCHIVE.zip\n";
my $zip = IO::Uncompress::Unzip->new($file) or die "could not read $file: $UnzipError\n";
my (%text, $status);
for ($status = 1; $status > 0; $status = $zip->nextStream)
{
	my $name = $zip->getHeaderInfo->{Name};

	local $/ = undef;
	$text{$name} = readline($zip) // '';
}
is($status, 0, 'the archive is whole');

my ($folder) = map { s{/.*}{}r } sort keys %text;
my $meta = decode_json($text{"$folder/META.json"} // '{}');
is(join("\n", PgxnMeta::errors($meta)), '', 'META.json is valid');
is($folder, join('-', map { $_ // '' } @$meta{qw(name version)}), 'the name of the folder');
is(basename($file), "$folder.zip", 'and of the archive');
is(join(' ', grep { !m{^\Q$folder\E/} } sort keys %text), '', 'all is in that folder');
foreach my $name (sort keys %{ $meta->{provides} })
{
	ok(length($text{"$folder/$meta->{provides}{$name}{$_}"} // ''), "$name: its $_")
	  foreach qw(file docfile);
}
done_testing();
