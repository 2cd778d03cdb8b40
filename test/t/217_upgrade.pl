# A fleet is upgraded as docs/procedures.md says: libraries first, standbys before
# the primary, and then the script.  All the time locks exclude each other, the
# health check says what is still to be done, and a mixture that is not served is
# refused (55000).
#
# There is one release only.  So the test makes up an older one: the same library
# and program with another version in them, and a script that lacks a function and
# the last column of a view.

use strict;
use warnings;

use Cwd qw(abs_path);
use Test::More;

use Document;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
chomp(my $share = qx{$pg_config --sharedir});
chomp(my $libdir = qx{$pg_config --pkglibdir});
my $folder = "$share/extension";
my ($version) = slurp_file(Document->path('META.json')) =~ /"version": *"([^"]+)"/;
my ($script) =
  slurp_file(Document->path('zklock.control')) =~ /^default_version = '(.*)'$/m;

plan skip_all => "cannot write to $folder" unless -w $folder;

my @scripts = map { "$folder/zklock--$_.sql" }
  (qw(0.8 0.8--0.9 0.9 0.9--0.10 0.9--0.11), "0.9--$script");
unlink @scripts;
END { unlink @scripts; }

# Takes a part out of a script, and returns it.
sub cut
{
	my ($script, $pattern) = @_;

	$$script =~ s/($pattern)// or die "not found: $pattern";
	return $1;
}

# ---- the older release ----

my $current = slurp_file("$folder/zklock--$script.sql");
my $old = $current;
my $function = cut(\$old, qr/^CREATE FUNCTION zk_stat_reset\(\).*?;\nCOMMENT .*?';\n/ms);
cut(\$old, qr/\tzk_stat_reset\(\),\n/);
my ($column) = $old =~ /^CREATE TYPE zk_status_row AS \([^)]*,\n\t([^)]*)\);/m
  or die 'there is no last column';
$old =~ s/,\n\t\Q$column\E\);/);/;
my ($name) = $column =~ /^(\w+)/;
my $comment = cut(\$old, qr/^COMMENT ON COLUMN zk_status\.$name IS\n'.*?';\n/ms);

# Its library is not in the folder of the current one.
$old =~ s/'MODULE_PATHNAME'/'zklock'/g;
append_to_file("$folder/zklock--0.9.sql", $old);
append_to_file("$folder/zklock--0.9--$script.sql", <<"EOS");
$function
ALTER TYPE zk_status_row ADD ATTRIBUTE $column;
CREATE OR REPLACE VIEW zk_status AS SELECT * FROM zk_get_status();
$comment
EOS

# A release between the two, for those who update the script too early, and one
# that the current library does not serve
append_to_file("$folder/zklock--0.9--0.10.sql",
	'ALTER TYPE zk_status_row ADD ATTRIBUTE a integer, ADD ATTRIBUTE b integer;'
	  . 'ALTER FUNCTION zk_unlock_all() COST 2');
append_to_file("$folder/zklock--0.9--0.11.sql",
	"CREATE FUNCTION zk_new() RETURNS void AS 'zklock', 'zkl_sql_new' LANGUAGE C");
append_to_file("$folder/zklock--0.8.sql", $old);
append_to_file("$folder/zklock--0.8--0.9.sql", 'SELECT 1');

my $library = abs_path(PostgreSQL::Test::Utils::tempdir('library'));
foreach my $file ('zklock.so', 'zklock_session')
{
	my $bytes = slurp_file("$libdir/$file");

	foreach ([ $version, '0.9.0' ], $file eq 'zklock.so' ? [ $script, '0.9' ] : ())
	{
		my ($new, $old) = @$_;

		$old .= "\0" x (length($new) - length $old);
		$bytes =~ s/\x00\Q$new\E\x00/\x00$old\x00/ or die "$file has no $new";
	}
	append_to_file("$library/$file", $bytes);
	chmod 0755, "$library/$file";
}

# ---- an old primary and its standby ----

my $versions = 'SELECT library, script, session_process FROM zk_version()';
my $bad = 'SELECT string_agg(check_name, $$,$$ ORDER BY check_name) FROM zk_healthcheck()'
  . ' WHERE ok IS NOT TRUE AND check_name <> $$zookeeper version$$';
my $advice = q(SELECT detail FROM zk_healthcheck() WHERE check_name = 'script');

my $test = ZklockTest->new(servers => 0);
my $primary = $test->new_node(
	'primary',
	init => { allows_streaming => 1 },
	conf => "dynamic_library_path = '$library:\$libdir'\n");
$primary->start;
$primary->safe_psql('postgres', "CREATE EXTENSION zklock VERSION '0.9'");
$test->wait_connected($primary);
is($test->look($primary, $versions), '0.9.0|0.9|0.9.0', 'the older release');
$test->look_until($primary, $bad, '', 'it is healthy');

my $p = $test->session($primary);
$p->query("SELECT zk_lock('/primary')");

# ---- first the library of the standby
my $standby = $test->add_standby($primary, "dynamic_library_path = '\$libdir'\n");
my $s = $test->session($standby);
is($test->look($standby, $versions), "$version|0.9|$version", 'the standby has the new library');
is($s->query("SELECT zk_try_lock('/primary')"), 'f', 'it sees the locks of the primary');
cmp_ok($s->query("SELECT zk_lock('/standby')"), '>', 0, 'and takes its own');
is($p->query("SELECT zk_try_lock('/standby')"), 'f', 'which the primary sees');
is($s->query("SELECT zk_try_acquire_permits('/leases', max_permits => 1)"), 't', 'a lease');
is($p->query("SELECT zk_try_acquire_permits('/leases', max_permits => 1)"), 'f', 'is one for both');
$test->enqueue($s, "SELECT zk_lock('/primary')", '/primary');
$p->query("SELECT zk_unlock('/primary')");
cmp_ok($s->value, '>', 0, 'a lock goes from the old one to the new one');
$test->enqueue($p, "SELECT zk_lock('/primary')", '/primary');
$s->query("SELECT zk_unlock('/primary')");
cmp_ok($p->value, '>', 0, 'and back');
ok($test->look_until($standby, $bad, 'fleet versions,script', 'checked'),
	'the standby says what is to be done');
like($test->look($standby, $advice), qr/version 0\.9, and the library \Q$script\E\.  Run ALTER EXTENSION/,
	'and how');
ok($test->look_until($primary, $bad, 'fleet versions', 'checked'), 'as does the primary');
is($test->look($standby, "SELECT count(*) FROM pg_attribute WHERE attrelid = 'zk_status'::regclass AND attname = '$name'"),
	0, "zk_status has no $name yet");
is($test->look($standby, 'SELECT zklock_version FROM zk_servers ORDER BY 1')
	  =~ s/\n/,/r, "0.9.0,$version", 'zk_servers shows both');

# ---- the script too early: the library of this server does not know it
$primary->safe_psql('postgres', 'CREATE DATABASE early');
$primary->safe_psql('early', "CREATE EXTENSION zklock VERSION '0.9'");
my $early = $test->session($primary, dbname => 'early');
$early->query("SELECT zk_lock('/early')");
like(($primary->psql('early', "ALTER EXTENSION zklock UPDATE TO '0.11'"))[2],
	qr/could not find function "zkl_sql_new"/, 'a new function is not in the old library');
cmp_ok($early->query("SELECT zk_lock('/early')"), '>', 0, 'so nothing has changed');
$early->query("SELECT zk_unlock('/early')");
$primary->safe_psql('early', "ALTER EXTENSION zklock UPDATE TO '0.10'");
is($early->error("SELECT zk_lock('/other')"), '55000', 'too early: locks are refused');
like($early->messages, qr/is newer than its library.*0\.10, and the library serves 0\.9 to 0\.9.*Restart/s,
	'and why');
is($early->error('SELECT * FROM zk_status'), '55000', 'as are views with other columns');
is($early->query("SELECT zk_unlock('/early')"), 't', 'but what is held can be released');
like($early->query($advice), qr/version 0\.10, .* Restart the server/, 'the health check');
$early->close;

# ---- back to the old library, and once more to the new one
sub restart_standby
{
	my ($path, $version) = @_;

	$_->close foreach $s;
	$test->stop_looking($standby);
	$standby->append_conf('postgresql.conf', "dynamic_library_path = '$path'\n");
	$standby->restart;
	$test->wait_connected($standby);
	$s = $test->session($standby);
	is($test->look($standby, 'SELECT library FROM zk_version()'), $version, "now $version");
	cmp_ok($s->query("SELECT zk_lock('/standby')"), '>', 0, "$version: it takes locks");
	is($s->query("SELECT zk_try_lock('/primary')"), 'f', "$version: it sees others");
	return;
}
restart_standby("$library:\$libdir", '0.9.0');
restart_standby('$libdir', $version);

# ---- switchover: now the standby leads
$_->close foreach $p;
$test->stop_looking($primary);
$primary->stop('fast');
$standby->promote;
is($s->query('SELECT pg_is_in_recovery()'), 'f', 'promoted');
cmp_ok($s->query("SELECT zk_fencing_token('/standby')"), '>', 0, 'its lock is held');
cmp_ok($s->query("SELECT zk_lock('/primary', '1min')"), '>', 0, 'and others are granted');
$s->query('BEGIN');
$s->query("SELECT zk_xact_lock('/xact')");
is($s->query('COMMIT'), '', 'a commit');
ok($test->look_until($standby, $bad, 'script', 'checked'), 'the script is still to be updated');

# ---- then the script, while locks are held
is($s->error('SELECT zk_stat_reset()'), '42883', 'what is new is not there');
$standby->safe_psql('postgres', 'ALTER EXTENSION zklock UPDATE');
is($test->look($standby, $versions), "$version|$script|$version", 'the update');
is($s->query('SELECT zk_stat_reset()'), '', 'what is new');
is($s->query("SELECT count($name) <= 1 FROM zk_status"), 't', 'and the new column');
cmp_ok($s->query("SELECT zk_fencing_token('/standby')"), '>', 0, 'the lock is held');
cmp_ok($s->query("SELECT zk_lock('/after')"), '>', 0, 'and others are granted');
ok($test->look_until($standby, $bad, '', 'checked'), 'all is well');

# ---- the old primary comes back with the new library, as a standby would
$primary->append_conf('postgresql.conf', "dynamic_library_path = '\$libdir'\n");
$primary->set_standby_mode;
$primary->enable_streaming($standby);
$primary->start;
$test->wait_connected($primary);
is($test->look($primary, 'SELECT library FROM zk_version()'), $version, 'the old primary is new, too');
is($test->look($primary, "SELECT zk_try_lock('/standby')"), 'f', 'and sees the locks');

# ---- a script that is too old is refused
$standby->safe_psql('postgres', 'CREATE DATABASE late');
$standby->safe_psql('late', "CREATE EXTENSION zklock VERSION '0.8'");
my $late = $test->session($standby, dbname => 'late');
is($late->error("SELECT zk_lock('/other')"), '55000', 'too old: locks are refused');
like($late->messages, qr/is too old for its library.*0\.8, and the library serves 0\.9 to \Q$script\E.*ALTER EXTENSION zklock UPDATE/s,
	'and why');
$late->query("ALTER EXTENSION zklock UPDATE TO '0.9'");
cmp_ok($late->query("SELECT zk_lock('/other')"), '>', 0, 'after an update they are granted');

# ---- settings of the root in a later format
my $settings = $test->zk->client->get('/zklock/.settings');
$test->zk->client->set('/zklock/.settings', $settings =~ s/"protocol":1/"protocol":2/r);
ok(wait_for(
		sub {
			$late->query('SELECT zk_unlock_all()');
			return ($late->error("SELECT zk_lock('/other')") // '') eq '55000';
		},
		'the settings are read'),
	'a later format: locks are refused');
like($late->messages, qr/If a newer version wrote it, upgrade this server/, 'and why');
$test->zk->client->set('/zklock/.settings', $settings);
ok(wait_for(
		sub { return ($late->error("SELECT zk_lock('/other')") // '') ne '55000' },
		'they are read again'),
	'then they are granted again');
$_->close foreach $late, $s;

$test->finish;
