# What PGXN's specification of META.json asks for, version 1.0.0.
#
#	my @errors = PgxnMeta::errors(decode_json($text));	# none: it is valid

package PgxnMeta;

use strict;
use warnings;

my $number = qr/(?:0|[1-9]\d*)/;
my $semver = qr/$number\.$number\.$number(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?/;
my $comparison = qr/(?:(?:<=|>=|==|!=|<|>)\s*)?(?:0|$semver)/;
my @licenses = qw(agpl_3 apache_1_1 apache_2_0 artistic_1 artistic_2 bsd freebsd gfdl_1_2
  gfdl_1_3 gpl_1 gpl_2 gpl_3 lgpl_2_1 lgpl_3_0 mit mozilla_1_0 mozilla_1_1 openssl perl_5
  postgresql qpl_1_0 ssleay sun zlib open_source restricted unrestricted unknown);

# Kinds of text
my %kinds = (
	text => qr/\A.+\z/s,
	term => qr{\A[^\s[:cntrl:]/\\]{2,}\z},
	tag => qr{\A[^[:cntrl:]/\\]{1,256}\z},
	version => qr/\A$semver\z/,
	versions => qr/\A$comparison(?:\s*,\s*$comparison)*\z/,
	url => qr{\A[a-z][a-z0-9+.-]*://[^/?#\s]+\S*\z}i,
	email => qr/\A\S+\@\S+\z/,
	lower => qr/\A[^[:upper:]]+\z/,
	license => qr/\A(?:@{[ join '|', @licenses ]})\z/,
	status => qr/\A(?:stable|testing|unstable)\z/,
	phase => qr/\A(?:configure|build|test|runtime|develop)\z/,
	relation => qr/\A(?:requires|recommends|suggests|conflicts)\z/);

# A name with "!" must be there; "<kind>" stands for each name of that kind.  A list
# of one rule is for a list, or for one value without it.
my %specification = (
	'name!' => 'term',
	'version!' => 'version',
	'abstract!' => 'text',
	'maintainer!' => ['text'],
	'license!' => ['license'],
	'meta-spec!' => { 'version!' => 'version', url => 'url' },
	'provides!' => {
		'<term>' => {
			'file!' => 'text',
			'version!' => 'version',
			abstract => 'text',
			docfile => 'text'
		}
	},
	description => 'text',
	generated_by => 'text',
	release_status => 'status',
	tags => ['tag'],
	no_index => { file => ['text'], directory => ['text'] },
	prereqs => { '<phase>' => { '<relation>' => { '<term>' => 'versions' } } },
	resources => {
		homepage => 'url',
		license => ['url'],
		bugtracker => { web => 'url', mailto => 'email' },
		repository => { url => 'url', web => 'url', type => 'lower' }
	});

sub errors
{
	my ($meta) = @_;

	return _errors_of($meta, \%specification, 'META.json');
}

sub _errors_of
{
	my ($value, $rule, $where) = @_;

	if (ref $rule eq 'HASH')
	{
		return ref $value eq 'HASH' ? _errors_of_map($value, $rule, $where)
		  : "$where is no map";
	}
	if (ref $rule eq 'ARRAY')
	{
		my @values = ref $value eq 'ARRAY' ? @$value : ($value);
		return @values ? map { _errors_of($_, $rule->[0], $where) } @values
		  : "$where is empty";
	}
	return defined $value && !ref $value && $value =~ $kinds{$rule} ? ()
	  : "$where is no $rule";
}

sub _errors_of_map
{
	my ($map, $rules, $where) = @_;
	my ($kind) = map { /^<(.*)>$/ } keys %$rules;
	my @errors = map { /^(.*)!$/ && !defined $map->{$1} ? "$where/$1 is missing" : () }
	  sort keys %$rules;

	push @errors, "$where is empty" if $kind && !%$map;
	foreach my $name (sort keys %$map)
	{
		my $rule = $rules->{$name} // $rules->{"$name!"};

		$rule //= $rules->{"<$kind>"} if $kind && $name =~ $kinds{$kind};
		if ($rule)
		{
			push @errors, _errors_of($map->{$name}, $rule, "$where/$name");
		}
		elsif ($name !~ /\Ax_/i)
		{
			push @errors, "$where/$name is unknown";
		}
	}
	return @errors;
}

1;
