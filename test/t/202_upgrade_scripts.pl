# An extension that was updated by the scripts of sql/ is the same as a new one:
# objects, their properties, comments and rights.  As long as there is one
# version only, and because this test must be able to fail, it makes up an older
# version of its own, and one that is updated badly.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ServerTemplates;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
chomp(my $share = qx{$pg_config --sharedir});
my $folder = "$share/extension";
my ($current) =
  slurp_file("$folder/zklock.control") =~ /^default_version = '(.*)'$/m;

plan skip_all => "cannot write to $folder" unless -w $folder;

# No release begins with 0: such versions are made up, here or by 217_upgrade.
sub remove_made_up { return unlink glob "$folder/zklock--0.[12]*.sql"; }
remove_made_up();
END { remove_made_up(); }

sub write_script
{
	my ($name, $text) = @_;

	unlink "$folder/$name";
	append_to_file("$folder/$name", $text);
	return;
}

my $node = PostgreSQL::Test::Cluster->new('server');
ServerTemplates::init($node);
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'zklock'\nzklock.connect_string = '127.0.0.1:1'");
$node->start;

# All members of the extension, with all that a dump has of them.  Such a dump
# restores object ids and the age of tables, too, which differ.
sub dump_of
{
	my ($dbname) = @_;
	my ($out, $err) = run_command(
		[ 'pg_dump', '--binary-upgrade', '--schema-only', '-p', $node->port,
			'-h', $node->host, $dbname ]);
	die $err if $err ne '';
	my @objects = split /^-- Name: /m, $out;
	shift @objects;
	foreach (@objects)
	{
		s/^.*binary_upgrade_set.*\n//mg;
		s/^.*binary_upgrade_create_empty_extension.*\n//mg;
		s/^\\(?:un)?restrict.*\n//mg;
		s/^--.*\n//mg;
		s/^UPDATE pg_catalog\.pg_class\nSET relfrozenxid .*?;\n//msg;
		s/'\d+'::pg_catalog\.oid/OID/g;
	}
	return [ sort @objects ];
}

sub install
{
	my ($dbname, @sql) = @_;

	$node->safe_psql('postgres', "CREATE DATABASE $dbname");
	$node->safe_psql($dbname, $_) foreach @sql;
	return dump_of($dbname);
}

my $fresh = install('fresh', 'CREATE EXTENSION zklock');
cmp_ok(scalar(@$fresh), '>', 30, 'the dump has the objects');
like("@$fresh", qr/FUNCTION.*zk_try_lock/, 'functions, say');
like("@$fresh", qr/COMMENT ON VIEW/, 'comments');
like("@$fresh", qr/GRANT.*pg_monitor/, 'and rights');

# Every version from which there is a way to the current one
my @versions = grep { !/^0\./ } split /\n/, $node->safe_psql('postgres',
	"SELECT source FROM pg_extension_update_paths('zklock')"
	  . " WHERE target = '$current' AND path IS NOT NULL");
foreach my $version (@versions)
{
	my $name = "from_$version" =~ s/\W/_/gr;

	is_deeply(
		install($name, "CREATE EXTENSION zklock VERSION '$version'",
			'ALTER EXTENSION zklock UPDATE'),
		$fresh,
		"$version, updated to $current, is the same as $current");
}
my @scripts = map { s{.*/}{}r } glob "$folder/zklock--[!0]*--*.sql";
foreach my $script (@scripts)
{
	my ($source) = $script =~ /^zklock--(.*)--.*\.sql$/;
	ok((grep { $_ eq $source } @versions), "$script leads to $current");
}

# ---- the test can fail ----

my $install = slurp_file("$folder/zklock--$current.sql");
my ($comment) = $install =~ /^(COMMENT ON FUNCTION zk_barrier\(.*?;\n)/ms
  or die 'it has no comment';
my ($signature) = $comment =~ /FUNCTION (zk_barrier\(.*?\))/;

# Before the made-up version zk_barrier had no comment.
write_script('zklock--0.1.sql', $install =~ s/\Q$comment//r);
write_script("zklock--0.1--$current.sql", $comment);
is_deeply(
	install('good', "CREATE EXTENSION zklock VERSION '0.1'",
		'ALTER EXTENSION zklock UPDATE'),
	$fresh,
	'a good update is the same');

write_script('zklock--0.2.sql', $install);
foreach my $bad (
	[ 'comments', "COMMENT ON FUNCTION $signature IS NULL;" ],
	[ 'rights', "GRANT EXECUTE ON FUNCTION $signature TO PUBLIC;" ],
	[ 'properties', "ALTER FUNCTION $signature COST 7;" ],
	[ 'objects', "DROP FUNCTION $signature;" ])
{
	my ($name, $sql) = @$bad;

	write_script("zklock--0.2--$current.sql", $sql);
	isnt(
		join('', @{ install(
					"bad_$name", "CREATE EXTENSION zklock VERSION '0.2'",
					'ALTER EXTENSION zklock UPDATE') }),
		join('', @$fresh),
		"a bad update is seen: $name");
}

$node->stop;
done_testing();
