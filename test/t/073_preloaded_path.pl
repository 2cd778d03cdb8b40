# A library that is preloaded by its path: the worker runs the same file.  If the
# path is too long for a worker, the server says so and does not start.

use strict;
use warnings;

use File::Copy qw(cp);
use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $test = ZklockTest->new(servers => 1);
my ($one) = $test->nodes;
my $far = PostgreSQL::Test::Utils::tempdir_short();

chomp(my $libdir = qx{$pg_config --pkglibdir});
chomp(my $share = qx{$pg_config --sharedir});

# Copies the library, and returns its path.
sub copy_library
{
	my ($dir) = @_;

	mkdir $dir;
	foreach my $file ('zklock.so', 'zklock_session')
	{
		cp("$libdir/$file", "$dir/$file") or die "could not copy $file: $!";
	}
	chmod 0755, "$dir/zklock_session";
	return "$dir/zklock.so";
}

# What CREATE EXTENSION makes, with the functions of another library
sub create_functions
{
	my ($node, $dbname, $path) = @_;
	my $script = slurp_file("$share/extension/zklock--1.0.sql");

	$script =~ s/^\\echo.*$//m;
	$script =~ s/^SELECT pg_catalog\.pg_extension_config_dump\(.*?;$//gms;
	$script =~ s/'MODULE_PATHNAME'/'$path'/g;
	$node->safe_psql($dbname, $script);
	return;
}

my $library = copy_library("$far/lib");
my $two = $test->new_node('far',
	conf => "shared_preload_libraries = 'auth_delay, $library'\n");
$two->start;
create_functions($two, 'postgres', $library);
ok($test->wait_connected($two), 'its worker runs');

my $holder = $test->session($one);
$holder->query("SELECT zk_lock('/far')");
is($test->look($two, "SELECT zk_try_lock('/far')"), 'f', 'it sees others');
$holder->query("SELECT zk_unlock('/far')");
is($test->look($two, "SELECT zk_try_lock('/far', '1min')"), 't', 'and locks');
$test->look($two, "SELECT zk_unlock('/far')");
$holder->close;

# The library of the extension is another one there, which nobody preloaded.
$two->safe_psql('postgres', 'CREATE DATABASE other');
my ($status, $out, $err) = $two->psql('other', 'CREATE EXTENSION zklock');
is($status, 0, 'the extension can be created');
($status, $out, $err) = $two->psql('other', "SELECT zk_lock('/far')");
like($err, qr/zklock is not loaded/, 'but its library refuses');

my $long = copy_library("$far/" . 'x' x 100);
$two->safe_psql('postgres', 'CREATE DATABASE long');
$test->stop_looking($two);
$two->stop;
$two->append_conf('postgresql.conf', "shared_preload_libraries = '$long'");
if ($two->start(fail_ok => 1))
{
	create_functions($two, 'long', $long);
	ok($two->poll_query_until(
			'long', "SELECT state = 'connected' FROM zk_status"),
		'a long path is good in this version');
	$two->stop;
}
else
{
	like(slurp_file($two->logfile), qr/zklock cannot be preloaded from "\Q$long"/,
		'a path that is too long is refused');
	like(slurp_file($two->logfile), qr/HINT:.*dynamic_library_path/,
		'with a hint what to do');
}
$two->append_conf('postgresql.conf', "shared_preload_libraries = '$library'");
$two->start;
ok($test->wait_connected($two), 'the shorter one is good again');
$test->finish;
