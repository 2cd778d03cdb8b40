# docs/reference.md has every function, view column, setting and error, as the
# server has them; the settings in blocks that say ```ini exist; links of all
# pages lead somewhere; tables fit on a screen; pictures are what their scripts
# make.

use strict;
use warnings;

use Test::More;

use Document;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ServerTemplates;

my $node = PostgreSQL::Test::Cluster->new('server');
ServerTemplates::init($node);
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'zklock'\nzklock.connect_string = '127.0.0.1:1'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION zklock');

my $reference = Document->new('docs/reference.md');

sub rows
{
	return [ sort split /\n/, $node->safe_psql('postgres', $_[0]) ];
}

# Functions: names, and up to an arrow what they have in common
my $in_extension = "IN (SELECT objid FROM pg_depend d JOIN pg_extension e"
  . " ON e.oid = d.refobjid AND e.extname = 'zklock' WHERE d.deptype = 'e')";
my $functions = rows("SELECT regexp_replace(CASE prokind WHEN 'p' THEN"
	  . " format('%s(%s) → CALL', proname, replace(pg_get_function_arguments(oid), 'IN ', ''))"
	  . " ELSE format('%s(%s) → %s', proname,"
	  . ' pg_get_function_arguments(oid), pg_get_function_result(oid)) END,'
	  . " '::[a-z]+([[][]])?', '', 'g') FROM pg_proc WHERE oid $in_extension");
s/'00:00:00'/'0'/g, s/'00:00:30'/'30 s'/g, s/NULL with time zone/NULL/, s/timestamp with time zone/timestamptz/g
  foreach @$functions;
my @signatures;
foreach my $block ($reference->blocks('text'))
{
	while ($block->{text} =~ /^(CALL )?(zk_\w+(?:, zk_\w+)*)(?:\n  )?(\(.*\))( → .*)?$/mg)
	{
		my $arguments = $3 . ($1 ? ' → CALL' : $4 // '');
		push @signatures, map { $_ . $arguments } split /, /, $2;
	}
}
is_deeply([ sort @signatures ], $functions, 'functions');

# Settings: in the section of that name
my $section = $reference->section('Settings');
my %context = (
	sighup => 'reload',
	postmaster => 'restart',
	superuser => 'superusers',
	user => 'everybody');
my @settings = sort map {
	my ($name, $default, $min, $max, $context) = split /\|/;
	join ' ', grep { $_ ne '' } $name, $default, $min eq '' ? '' : "$min to $max",
	  $context{$context}
  } @{ rows("SELECT name, boot_val, min_val, max_val, context"
		  . " FROM pg_settings WHERE name ~ '^zk(lock|_advisory)[.]'") };
my ($table) = $section->blocks('text');
is_deeply([ sort map { s/ +/ /gr } split /\n/, $table->{text} ], \@settings, 'settings');
is_deeply(rows("SELECT DISTINCT unit FROM pg_settings WHERE unit <> '' AND name LIKE 'zklock.%'"),
	['ms'], 'times are in ms');
foreach my $name (map { /^zklock\.(\w+)/ } @settings)
{
	ok($section->text =~ /^\* \*\*`$name`\*\*: /m, "$name is explained");
}

# Views, each in a section, and the rows of functions: lines with names, a type, and
# what it means.  Without a type, it is that of the column of zk_queue().
my %paragraphs;
foreach my $paragraph (map { split /\n\n/, $_->{text} } $reference->blocks('text'))
{
	$paragraphs{$1} = $2 if $paragraph =~ /\A(zk_\w+_row)\n(.*)/s;
}
my $type = qr/[a-z]+(?: precision)?(?:\[\])?/;
my %common = $paragraphs{zk_queue_row} =~ /^(\w+) +($type)(?:  |$)/mg;

sub columns_of
{
	my ($text) = @_;
	my @columns;

	foreach my $line (split /\n/, $text)
	{
		my ($names, $type) = $line =~ /^(\w+(?:, \w+)*)(?: +($type)(?:  |$))?/ or next;
		push @columns,
		  map { "$_ | " . ($type // $common{s/^(?:waiting|blocking|ahead|root)_//r} // '') }
		  split /, /, $names;
	}
	return [ sort @columns ];
}

foreach my $relation (
	@{ rows("SELECT relname FROM pg_class WHERE relkind = 'v' AND oid $in_extension"
			  . " UNION SELECT typname FROM pg_type t JOIN pg_class c ON c.oid = typrelid"
			  . " WHERE relkind = 'c' AND t.oid $in_extension AND NOT EXISTS (SELECT FROM"
			  . " pg_proc WHERE prorettype = t.oid AND proname LIKE 'zk\\_get\\_%')") })
{
	my $view = $reference->section($relation);
	my ($text) = $view ? map { $_->{text} } $view->blocks('text') : $paragraphs{$relation};
	is_deeply(
		columns_of($text // ''),
		rows("SELECT attname || ' | ' || replace(format_type(atttypid, atttypmod),"
			  . " 'timestamp with time zone', 'timestamptz')"
			  . " FROM pg_attribute WHERE attrelid = '$relation'::regclass AND attnum > 0"),
		"columns of $relation");
}

# Errors: what the sources raise stands in the table.
my $errors = $reference->section('Errors')->text;
my %raised = map { $_ => 1 }
  map { slurp_file($_) =~ /ERRCODE_(?:T_R_)?([A-Z_]+)/g }
  Document::files('src/*.c'), Document::files('src/*/*.[ch]');
is(delete $raised{STALE_FENCING_TOKEN}, 1, 'one error is zklock\'s own');
like($errors, qr/^ZK001 /m, 'and stands there, too');
ok(delete $raised{INTERNAL_ERROR}, 'the sources raise errors');
my @missing = grep { my $name = lc; $errors !~ /^\w{5}  $name$/m && $errors !~ /^\w{5}  $name  /m }
  sort keys %raised;
is("@missing", '', 'every error of the sources is in the table');

# Blocks and links of all pages
my %known = map { $_->[0] => 1 }
  map { [ split /\|/ ] } @{ rows('SELECT name FROM pg_settings') };
my %languages = map { $_ => 1 } qw(sql ini text java python go c make perl sh yaml);
foreach my $name (Document::all())
{
	my $page = Document->new($name);
	my @strange = grep { !$languages{ $_->{language} } } $page->blocks;
	is(join(', ', map { "line $_->{line}" } @strange),
		'', "$name: every block says what it is");
	my @unknown = grep { !$known{$_} }
	  map { $_->{text} =~ /^([\w.]+) *=/mg } $page->blocks('ini');
	is("@unknown", '', "$name: settings exist");
	my @dead = grep { !link_is_good(@$_) } $page->links;
	is(join(', ', map { join '#', $_->[0], $_->[1] // () } @dead),
		'', "$name: links");
	my @gone = grep { !-e Document->path($_) && !-e Document->path("src/$_") }
	  $page->prose =~ m{`([a-z]+/[a-z0-9_/-]+\.(?:[chs]|sh|p[lmy]|md|sql|csv))`}g;
	push @gone,
	  grep { !-e Document->path("test/t/$_.pl") } $page->prose =~ m{`(\d{3}_[a-z_]+)`}g;
	is("@gone", '', "$name: files that it names");
}

# Every block of shell commands is part of a procedure that a test runs, or a test
# takes all of the page.
my (%procedures, %is_whole);
foreach my $test (Document::files('test/t/*.pl'), Document::files('test/*.pl'))
{
	my $text = slurp_file($test);

	$procedures{$1}{$2} = 1
	  while $text =~ /Procedure->new\('([^']+)',\s*'([^']+)'/g;
	$is_whole{$1} = 1
	  if $text =~ /->blocks\('sh'\)/ && $text =~ /Document->new\('([^']+)'\)/;
}
foreach my $name (Document::all())
{
	my $page = Document->new($name);
	my $tested = $is_whole{$name} ? $page->blocks('sh') : 0;

	foreach my $heading (sort keys %{ $procedures{$name} })
	{
		my $section = $page->section($heading);
		ok($section, "$name has the procedure \"$heading\"") or next;
		$tested += $section->blocks('sh');
	}
	is($tested, scalar $page->blocks('sh'), "$name: a test runs all shell commands");
}

sub link_is_good
{
	my ($file, $anchor) = @_;

	return 0 unless -e Document->path($file);
	return 1 unless defined $anchor;
	return scalar grep { $_ eq $anchor } Document->new($file)->anchors;
}

# README
my $readme = Document->new('README.md');
cmp_ok($readme->text =~ tr/\n//, '<=', 200, 'README.md has 200 lines at most');

# A page is as long as a reader has time for; what it says is tested elsewhere.  Its
# bound may be passed by a tenth, but not that of all pages together.
my %words = (
	'README.md' => 1240,
	'docs/coming-from.md' => 630,
	'docs/install.md' => 1380,
	'docs/jobs.md' => 2960,
	'docs/locks.md' => 2630,
	'docs/outages.md' => 1700,
	'docs/guarantees.md' => 2540,
	'docs/operations.md' => 2550,
	'docs/procedures.md' => 1900,
	'docs/monitoring.md' => 1650,
	'docs/security.md' => 1550,
	'docs/interop.md' => 1200,
	'docs/reference.md' => 4570,);
is_deeply([ sort(Document::for_users()) ], [ sort keys %words ], 'pages that have a bound');
my ($sum, $limit) = (0, 0);
foreach my $name (sort keys %words)
{
	my @words = split ' ', Document->new($name)->text;

	cmp_ok(scalar @words, '<=', $words{$name} * 1.1, "$name: words");
	$sum += @words;
	$limit += $words{$name};
}
cmp_ok($sum, '<=', $limit, 'words of all pages');
cmp_ok($limit, '<=', 26_500, 'the sum of the bounds');
foreach my $name (Document::for_users())
{
	my @wide = grep { length > 120 } Document->new($name)->cells;
	is(join("\n", @wide), '', "$name: no cell of a table is wider than 120");
}

# The figures of the page for users are those of the last benchmark.
my $performance = Document->new('docs/operations.md')->section('Performance');
my $benchmark = slurp_file(Document->path('bench/results/benchmarks.md'));
my @strange = grep { index($benchmark, $_) < 0 }
  ((grep { /^[\d ]+$/ } $performance->cells), $performance->prose =~ /(\d+\.\d+) ms/g);
is(join(', ', @strange), '', 'the figures of operations.md are measured');

my @passing = $benchmark =~
  /^\| hand-over between two servers(?: with messages)?, p50, against Curator \|[^|]*\| ([\d.]+) ×/mg;
is_deeply([ $readme->text =~ /([\d.]+)\s+times/g ], \@passing,
	'so are those of README.md: how a lock passes on, without messages and with them');

# Pictures
foreach my $picture (Document::files('docs/pictures/*.svg'))
{
	my $script = $picture =~ s/\.svg$/.py/r;
	my ($out, $err) = run_command([ 'python3', '-B', $script ]);
	my ($name) = $picture =~ m{([^/]+)$};
	ok($out eq slurp_file($picture) =~ s/\n\z//r,
		"$name is what its script makes")
	  or diag $err;
}

$node->stop;
done_testing();
