# Whether what is committed here can be released under a tag: it has that version and a
# date, and its tests ran, as test/matrix.md says, with each version of PostgreSQL that
# the README promises, since src/ changed last.
#
#	perl test/release.pl v1.0.0		# in the sources, a git repository

use strict;
use warnings;

use JSON::PP;
use Test::More;

my ($tag) = @ARGV or die "usage: perl test/release.pl TAG\n";

sub slurp
{
	my ($name) = @_;

	open my $file, '<', $name or die "could not open $name: $!\n";
	local $/ = undef;
	return scalar readline $file;
}

sub git
{
	my @command = ('git', @_);

	open my $out, '-|', @command or die "could not run git: $!\n";
	local $/ = undef;
	my $text = readline($out) // '';
	close $out or return undef;
	return $text;
}

my $version = decode_json(slurp('META.json'))->{version};
is($tag, "v$version", 'the tag is the version of META.json');
like(slurp('CHANGELOG.md'), qr/^## \[\Q$version\E\] - \d{4}-\d\d-\d\d$/m,
	'the CHANGELOG has its date');

my @lines = grep { /^\|/ } split /\n/, slurp('test/matrix.md');
my @columns = map { [ map { s/^\s+|\s+$//gr } (split /\|/)[ 1 .. 10 ] ] } @lines;
my @names = @{ shift @columns };
my %tested;
shift @columns;
foreach my $row (@columns)
{
	my %row;
	@row{@names} = @$row;
	my $what = "$row{release}, PostgreSQL $row{PostgreSQL}, $row{tests}";
	my ($commit) = ($row{commit} // '') =~ /^([0-9a-f]{7,40})$/;
	my $since = $commit ? git('log', '-n', 3, '--format=%h %s', "$commit..HEAD", '--', 'src', 'sql') : undef;

	is($since // "no commit: $row{commit}", '', "$what: src/ has not changed since $row{date}");
	is($row{failed}, 0, "$what: nothing failed");
	$tested{$1} = 1 if $row{PostgreSQL} =~ /^(\d+)/;
}
my ($from, $to) = slurp('README.md') =~ /PostgreSQL (\d+) to (\d+)/;
ok($tested{$_}, "PostgreSQL $_ was tested") foreach $from .. $to;
done_testing();
