# The Makefile does what those of other extensions do: it builds in another
# directory, with the server's hardening flags; installs and cleans up; checks a
# running server without a ZooKeeper; passes flags to prove; makes an archive.
#
# $SOURCES is where the sources are, PG_CONFIG a server that zklock is installed
# for.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Find;
use JSON::PP;
use Test::More;

use PgxnMeta;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

my $pg_config = $ENV{PG_CONFIG};
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('build'));
my $clean = "$dir/sources";
my $log = '';    # what make said last

# Runs make in a directory; true if it succeeded.
sub make
{
	my ($where, @arguments) = @_;
	my $ok = IPC::Run::run(
		[ 'make', '-C', $where, "PG_CONFIG=$pg_config", 'with_llvm=no',
			@arguments ], '>&', \$log);

	diag "make @arguments: " . substr $log, -2000 if !$ok;
	return $ok;
}

sub pg_config
{
	chomp(my $value = qx{$pg_config $_[0]});
	return $value;
}

sub output
{
	my ($out) = run_command([@_]);
	return $out;
}

# debian/control for these versions of PostgreSQL
sub control
{
	my @servers = @_;
	my @paragraphs;

	foreach (split /\n{2,}/, slurp_file("$clean/debian/control.in"))
	{
		s/\n\z//;
		my @for = /^Package: .*PGVERSION/ ? @servers : $servers[-1];
		foreach my $server (@for)
		{
			push @paragraphs, s/PGVERSION/$server/gr;
		}
	}
	return join("\n\n", @paragraphs) . "\n";
}

# The files below a directory
sub tree
{
	my ($top) = @_;
	my @files;

	find(sub { push @files, $File::Find::name =~ s/^\Q$top\E//r if -f; }, $top);
	return sort @files;
}

system('cp', '-a', abs_path($ENV{SOURCES}), $clean) == 0 or die 'cp failed';

# ---- clean ----

make($clean, 'clean');
is(join(' ', grep { m{^/src/.*\.(o|d|bc|so)$} || $_ eq '/zklock.so' } tree($clean)),
	'', 'make clean leaves nothing');

# ---- another directory ----

mkdir "$dir/other";
ok(make("$dir/other", '-j2', '-f', "$clean/Makefile", 'COPT=-Werror'),
	'it builds in another directory');
my ($compiled) = $log =~ m{^(.* -o src/session/main\.o .*)$}m;
my $symbols = output('nm', '-D', '--defined-only', "$dir/other/zklock.so");
like($symbols, qr/ T $_$/m, "the library has $_")
  foreach qw(_PG_init zkl_worker_main zkl_sql_lock);
like(output('ldd', "$dir/other/zklock_session"),
	qr/libssl.*libzookeeper_st|libzookeeper_st.*libssl/s,
	'zklock_session is linked');
is(join(' ', grep { /\.[od]$/ } tree("$clean/src")),
	'', 'nothing is built among the sources');
ok(make("$dir/other", '-q', '-f', "$clean/Makefile", 'all'),
	'and then there is nothing to do');

# ---- hardening: what PostgreSQL itself was built with ----

foreach my $flag (grep { /^-[DW]|^-fstack|^-fcf/ && !/error/ } split ' ',
	pg_config('--cppflags') . ' ' . pg_config('--cflags'))
{
	ok(index(" $compiled ", " $flag ") >= 0, "zklock_session: $flag");
}
unlike($compiled, qr/-I\S*postgresql/, "and no headers of the server's");
SKIP:
{
	skip 'the server is linked without', 1
	  if pg_config('--ldflags') !~ /-z,now/;
	like(output('readelf', '-d', "$dir/other/zklock_session"),
		qr/BIND_NOW/, 'it is linked with the same flags');
}

# ---- without OpenSSL ----

# Only what asks for OpenSSL is compiled anew.
system('cp', '-a', "$dir/other", "$dir/plain") == 0 or die 'cp failed';
my @asking = split /\n/, output('grep', '-rl', '--include=*.c', 'ZKLOCK_OPENSSL', "$clean/src");
unlink "$dir/plain/zklock.so", "$dir/plain/zklock_session",
  map { s{^\Q$clean\E(.*)\.c$}{$dir/plain$1.o}r } @asking;
is(output('grep', '-rl', '--include=*.h', 'ZKLOCK_OPENSSL', "$clean/src"),
	'', 'no header asks for OpenSSL');
ok(make("$dir/plain", '-j2', '-f', "$clean/Makefile", 'WITHOUT_OPENSSL=1',
		'COPT=-Werror'),
	'it builds without OpenSSL');
unlike(output('ldd', "$dir/plain/zklock_session"), qr/libssl/, 'and needs none');
my $plain = PostgreSQL::Test::Cluster->new('plain');
$plain->init;
$plain->append_conf('postgresql.conf', <<"EOC");
shared_preload_libraries = '$dir/plain/zklock.so'
zklock.tls = 'verify-ca'
zklock.tls_ca_file = 'ca.pem'
EOC
ok(!$plain->start(fail_ok => 1), 'then a server with TLS does not start');
like(slurp_file($plain->logfile), qr/has no support for TLS/, 'and says why');

# ---- install and uninstall ----

my $root = "$dir/root";
my $share = "$root" . pg_config('--sharedir') . '/extension';
my $lib = "$root" . pg_config('--pkglibdir');
my $doc = "$root" . pg_config('--docdir') . '/extension/zklock';
ok(make("$dir/other", '-f', "$clean/Makefile", 'install', "DESTDIR=$root"),
	'it installs');
ok(-s "$share/$_.control", "the control file of $_") foreach 'zklock', 'zklock_advisory', 'zklock_fence';
my @scripts = map { s{.*/}{}r } glob "$clean/sql/zklock*--*.sql";
ok(-s "$share/$_", $_) foreach @scripts;
ok(-x "$lib/zklock.so", 'the library');
ok(-x "$lib/zklock_session", 'the session program');
ok(-x "$root" . pg_config('--bindir') . '/zklock-run', 'the program that runs others');
my @pages = map { s{.*/}{}r } glob "$clean/docs/*.md";
ok(-s "$doc/$_", "docs/$_") foreach 'CHANGELOG.md', @pages;
is(scalar(my @installed = tree($root)),
	7 + @scripts + @pages, 'and nothing else');
ok(make("$dir/other", '-f', "$clean/Makefile", 'uninstall', "DESTDIR=$root"),
	'it uninstalls');
is(join(' ', tree($root)), '', 'everything');

# ---- objects among the sources ----

append_to_file("$clean/src/module.o", '');
my ($status, $said) = (0, '');
$status = IPC::Run::run(
	[ 'make', '-C', "$dir/other", '-f', "$clean/Makefile",
		"PG_CONFIG=$pg_config" ], '>&', \$said);
ok(!$status, 'objects among the sources are not taken');
like($said, qr/run "make clean" there first/, 'and an error says so');
unlink "$clean/src/module.o";

# ---- a running server, without a ZooKeeper ----

my $node = PostgreSQL::Test::Cluster->new('server');
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'zklock'\nzklock.connect_string = '127.0.0.1:1'");
$node->start;
my @there = ('PGHOST=' . $node->host, 'PGPORT=' . $node->port);
ok(make($clean, 'installcheck', @there), 'make installcheck on a running server');
like($log, qr/\bonce\b.*\bok\b|ok .*\bonce\b/, 'runs the tests');
ok(make("$dir/other", '-f', "$clean/Makefile", 'installcheck', @there),
	'also from another directory');
append_to_file("$clean/expected/once.out", "more\n");
ok(!IPC::Run::run(
		[ 'make', '-C', $clean, "PG_CONFIG=$pg_config", 'installcheck', @there ],
		'>&', \$said),
	'a difference is an error');
$node->stop;

# ---- prove ----

ok(make(
		$clean, 'installcheck', 'OWN_SERVERS=yes', 'REGRESS=', 'ISOLATION=',
		'PROVE_TESTS=test/t/201_reference.pl', 'PROVE_FLAGS=--verbose'),
	'TAP tests run');
like($log, qr/^ok 1 - functions$/m, 'PROVE_FLAGS are passed on');

# ---- META.json and the archive ----

my $meta = decode_json(slurp_file("$clean/META.json"));
my $version = $meta->{version};
my ($default) =
  slurp_file("$clean/zklock.control") =~ /^default_version = '(.*)'$/m;
foreach my $extension (sort keys %{ $meta->{provides} })
{
	ok(-e "$clean/$meta->{provides}{$extension}{$_}", "META.json: $extension: $_ exists")
	  foreach qw(file docfile);
}
is_deeply(
	[ sort keys %{ $meta->{provides} } ],
	[ map { m{([^/]*)\.control$} } sort glob "$clean/*.control" ],
	'META.json: all extensions');
is($meta->{provides}{zklock}{file},
	"sql/zklock--$default.sql", 'it names the script of the default version');
like(slurp_file("$clean/src/wire/version.h"),
	qr/^#define ZKL_SCRIPT\s+"\Q$default\E"$/m, 'the library knows that version');
is($meta->{provides}{zklock}{version}, $version, 'one version in META.json');
like(slurp_file("$clean/CHANGELOG.md"),
	qr/^## \[\Q$version\E\] /m, 'the CHANGELOG has it, too');
like(slurp_file("$clean/debian/changelog"),
	qr/\Azklock \(\Q$version\E-/, 'and the Debian package');
like(slurp_file("$clean/rpm/zklock.spec"),
	qr/^Version:\s+\Q$version\E$/m, 'and the RPM package');
is($meta->{release_status}, 'stable', 'PGXN shows it to everybody');
is(join("\n", PgxnMeta::errors($meta)), '', 'PGXN takes it');

# What PGXN would refuse is seen.
my %wrong = (
	'name is no term' => sub { $_[0]{name} = 'z k' },
	'version is no version' => sub { $_[0]{version} = '1.0' },
	'license is no license' => sub { $_[0]{license} = 'postgres' },
	'maintainer is missing' => sub { delete $_[0]{maintainer} },
	'maintainer is empty' => sub { $_[0]{maintainer} = [] },
	'release_status is no status' => sub { $_[0]{release_status} = 'done' },
	'licence is unknown' => sub { $_[0]{licence} = 'mit' },
	'tags is no tag' => sub { push @{ $_[0]{tags} }, 'a/b' },
	'provides is empty' => sub { $_[0]{provides} = {} },
	'provides/zklock/version is missing' => sub { delete $_[0]{provides}{zklock}{version} },
	'prereqs/runtime/needs is unknown' => sub { $_[0]{prereqs}{runtime}{needs} = {} },
	'prereqs/runtime/requires/PostgreSQL is no versions' =>
	  sub { $_[0]{prereqs}{runtime}{requires}{PostgreSQL} = '15+' },
	'resources/homepage is no url' => sub { $_[0]{resources}{homepage} = 'zklock' },
	'resources/bugtracker is no map' => sub { $_[0]{resources}{bugtracker} = 'me' },
	'meta-spec/version is missing' => sub { delete $_[0]{'meta-spec'}{version} });
foreach my $error (sort keys %wrong)
{
	my $copy = decode_json(slurp_file("$clean/META.json"));

	$wrong{$error}->($copy);
	is(join("\n", PgxnMeta::errors($copy)), "META.json/$error", "META.json: $error");
}

# debian/control is what pg_buildext makes of control.in, for some versions.
my @servers =
  slurp_file("$clean/debian/control") =~ /^Package: postgresql-(\d+)-zklock$/mg;
is(slurp_file("$clean/debian/control"),
	control(@servers), 'debian/control has what control.in says');
(my $tests = slurp_file("$clean/debian/tests/control.in")) =~
  s/([a-z-]+)PGVERSION/join ', ', map { "$1$_" } @servers/ge;
is(slurp_file("$clean/debian/tests/control"),
	$tests, 'and debian/tests/control has its versions');

SKIP:
{
	skip 'there is no git', 3 if system('git --version >/dev/null 2>&1') != 0;
	my @git = ('git', '-C', $clean, '-c', 'user.name=x', '-c', 'user.email=x@x');
	unlink "$clean/.git";
	system(@git, 'init', '-q');
	system(@git, 'add', '-A');
	system(@git, 'commit', '-q', '-m', 'all');
	ok(make("$dir/other", '-f', "$clean/Makefile", 'dist'), 'make dist');
	my @files = split /\n/, output('tar', '-tzf', "$dir/other/zklock-$version.tar.gz");
	is(join(' ', grep { !m{^zklock-\Q$version\E/} } @files),
		'', 'all in one folder');
	is_deeply(
		[ grep { m{^[^/]*/(META\.json|Makefile|src/module\.c)$} } sort @files ],
		[ map { "zklock-$version/$_" } qw(META.json Makefile src/module.c) ],
		'with the sources');
	ok(IPC::Run::run(
			[ $^X, "$clean/test/pgxn.pl", "$dir/other/zklock-$version.zip" ], '>&', \$said),
		'and as PGXN takes it')
	  or diag $said;
}

done_testing();
