# Tools for migrations, which call PostgreSQL's advisory locks, over two servers at
# once, as an ordinary role: by its search_path, they get locks of all servers.  Which of
# them do is what the page says.  Their tables are where they would be without it.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

use Document;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $folder = PostgreSQL::Test::Utils::tempdir();

# The statements of the page, for its role, and the word that it has for each tool
my $page = Document->new('docs/locks.md')->text;
my ($recipe) = $page =~ /^## Replace advisory locks.*?^```sql\n(.*?)^```/ms;
my %says = $page =~ /^\| (ActiveRecord|postgres-migrations|node-pg-migrate|sqitch) [^|]*\| (yes|no)\b/mg;

foreach my $node ($one, $two)
{
	$node->safe_psql('postgres', <<"EOS");
CREATE ROLE plain LOGIN;
CREATE ROLE batch_role LOGIN;
GRANT CREATE ON DATABASE postgres TO plain, batch_role;
GRANT CREATE ON SCHEMA public TO plain, batch_role;
CREATE TABLE gate ();
GRANT ALL ON gate TO plain, batch_role;
$recipe
EOS
}

# ---- how to check ----

foreach ([ plain => 'pg_catalog', '55000' ], [ batch_role => 'zk_advisory', '' ])
{
	my ($role, $schema, $error) = @$_;
	my $session = $test->session($one, user => $role);

	is($session->query("SELECT pronamespace::regnamespace FROM pg_proc WHERE oid = 'pg_advisory_lock(bigint)'::regprocedure"),
		$schema, "$role: whose function it calls");
	is($session->error('SELECT zk_advisory.check()'), $error, "$role: what the check says");
	like($session->messages, qr/calls pg_catalog.pg_.*advisory/, "$role: and why") if $error;
	$session->close;
}
my $guard = $test->session($one, user => 'batch_role');
$guard->query('CREATE FUNCTION public.pg_advisory_unlock_all() RETURNS void LANGUAGE plpgsql AS $$BEGIN END$$');
is($guard->error('SELECT zk_advisory.check()'), '55000', 'a function that stands in front');
like($guard->messages, qr/calls public\.pg_advisory_unlock_all\(\)/, 'is named');
$guard->query('DROP FUNCTION public.pg_advisory_unlock_all()');
$guard->close;
$one->safe_psql('postgres', 'CREATE DATABASE without');
my $without = $test->session($one, user => 'batch_role', dbname => 'without');
is($without->error('SELECT pg_advisory_lock(1)'), '', 'a database without the extension locks in silence');
is($without->error('SELECT zk_advisory.check()'), '3F000', 'but not behind the check');
$without->close;

# ---- the tools ----

mkdir "$folder/$_" or die "$folder/$_: $!" foreach 'active_record', 'node', 'postgres', 'sqitch', 'sqitch/deploy';
append_to_file("$folder/active_record/1_pass_gate.rb", <<'EOS');
class PassGate < ActiveRecord::Migration[6.1]
  def up
    create_table :made
    execute 'LOCK TABLE gate'
  end
end
EOS
append_to_file("$folder/active_record.rb", <<'EOS');
require 'active_record'
folder, host, port, role = ARGV
ActiveRecord::Base.establish_connection(adapter: 'postgresql', host: host, port: port,
                                        database: 'postgres', username: role)
ActiveRecord::MigrationContext.new(folder, ActiveRecord::SchemaMigration).migrate
EOS
append_to_file("$folder/node/1_pass-gate.js", <<'EOS');
exports.up = (pgm) => { pgm.createTable('made', { id: 'id' }); pgm.sql('LOCK TABLE gate'); };
exports.down = () => {};
EOS
append_to_file("$folder/postgres/1_pass-gate.sql", "CREATE TABLE made ();\nLOCK TABLE gate;\n");
append_to_file("$folder/postgres.js", <<'EOS');
const [folder, host, port, user] = process.argv.slice(2);
require('postgres-migrations')
  .migrate({ database: 'postgres', user, password: '', host, port: Number(port) }, folder)
  .catch((error) => { console.error(error); process.exit(1); });
EOS
append_to_file("$folder/sqitch/sqitch.conf", "[core]\n\tengine = pg\n[user]\n\tname = t\n\temail = t\@localhost\n");
append_to_file("$folder/sqitch/sqitch.plan",
	"%syntax-version=1.0.0\n%project=gate\n\npass_gate 2026-01-01T00:00:00Z t <t\@localhost> # waits\n");
append_to_file("$folder/sqitch/deploy/pass_gate.sql", "BEGIN;\nCREATE TABLE made ();\nLOCK TABLE gate;\nCOMMIT;\n");

sub has_package
{
	my ($package) = @_;

	local $ENV{npm_config_cache} = "$folder/npm";
	return run_log([ 'npm', 'install', '--silent', '--no-audit', '--no-fund', '--prefix', $folder, $package, 'pg@8.13.1' ]);
}

# The command that migrates one server as a role, the table that it makes for itself, and
# what it says if another one is under way: nothing, if it waits
my @tools = (
	{ name => 'ActiveRecord',
		is_there => sub { system("ruby -e 'require \"active_record\"; require \"pg\"' 2>/dev/null") == 0 },
		migrate => sub {
			my ($node, $role) = @_;
			return ('ruby', "$folder/active_record.rb", "$folder/active_record", $node->host, $node->port, $role);
		},
		refused => qr/ConcurrentMigrationError/,
		own => [ 'public.schema_migrations', 'public.ar_internal_metadata' ],
	},
	{ name => 'node-pg-migrate',
		is_there => sub { has_package('node-pg-migrate@7.9.1') },
		migrate => sub {
			my ($node, $role) = @_;
			local $_ = $node->host =~ s{/}{%2F}gr;
			return ('env', "DATABASE_URL=postgres://$role\@$_:" . $node->port . '/postgres',
				"$folder/node_modules/.bin/node-pg-migrate", 'up', '-m', "$folder/node");
		},
		refused => qr/Another migration is already running/,
		own => ['public.pgmigrations'],
	},
	{ name => 'postgres-migrations',
		is_there => sub { has_package('postgres-migrations@5.3.0') },
		migrate => sub {
			my ($node, $role) = @_;
			return ('node', "$folder/postgres.js", "$folder/postgres", $node->host, $node->port, $role);
		},
		own => ['public.migrations'],
	},
	{ name => 'sqitch',
		is_there => sub { system('sqitch --version >/dev/null 2>&1') == 0 },
		migrate => sub {
			my ($node, $role) = @_;
			return ('sqitch', '--chdir', "$folder/sqitch", 'deploy',
				"db:pg://$role\@:" . $node->port . '/postgres?host=' . $node->host);
		},
		own => ['sqitch.projects'],
	});

# Where the tables are that a migration on a server has made
sub tables
{
	my ($node) = @_;

	return $test->look($node, "SELECT string_agg(schemaname || '.' || tablename, ' ' ORDER BY schemaname, tablename) FROM pg_tables"
		  . " WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
		  . " AND tablename IN ('made', 'migrations', 'pgmigrations', 'schema_migrations')") // '';
}

sub forget
{
	my ($node, $tool) = @_;
	my @tables = ('public.made', @{ $tool->{own} });

	$node->safe_psql('postgres', 'DROP TABLE IF EXISTS ' . join(', ', @tables) . ' CASCADE; DROP SCHEMA IF EXISTS sqitch CASCADE');
	return;
}

# ---- each of them ----

foreach my $tool (@tools)
{
	my $name = $tool->{name};
	my $migrate = $tool->{migrate};

  SKIP:
	{
		skip "$name is not installed", 6 unless $tool->{is_there}();
		my $keeper = $test->session($one);
		my ($output, $said) = ('', '');
		my $works = ($says{$name} // 'not on the page') eq 'yes';

		$keeper->query('BEGIN; LOCK TABLE gate');
		my $first = IPC::Run::start([ $migrate->($one, 'batch_role') ], '>&', \$output);
		ok($test->look_until($one,
				"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass",
				1, 'a migration under way'),
			"$name: a server migrates") or diag $output;

		my $second = IPC::Run::start([ $migrate->($two, 'batch_role') ], '>&', \$said);
		if ($works && !$tool->{refused})
		{
			ok($test->look_until($two, "SELECT count(*) FROM pg_stat_activity WHERE usename = 'batch_role' AND state = 'idle' AND query ~ 'pg_try_advisory_lock'", 1, 'a try'), "$name: meanwhile another one waits");
		}
		else
		{
			is($second->finish ? 'migrates' : 'is refused', $works ? 'is refused' : 'migrates', "$name: meanwhile another one") or diag $said;
			like($said, $tool->{refused}, "$name: and says why") if $works;
		}
		is(tables($two) =~ /made/ ? 'no' : 'yes', $says{$name}, "$name: the page says whether it works");

		$keeper->query('COMMIT');
		ok($first->finish, "$name: the first one comes to its end") or diag $output;
		my $done = $works && $tool->{refused} ? IPC::Run::run([ $migrate->($two, 'batch_role') ], '>&', \$said) : !$works || $second->finish;
		ok($done, "$name: then the other one migrates") or diag $said;
		is(tables($_), join(' ', sort 'public.made', grep { /migrations/ } @{ $tool->{own} }), "$name: the tables") foreach $one, $two;
		$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'no lock');
		forget($_, $tool) foreach $one, $two;

		# Without the search_path
		$keeper->query('BEGIN; LOCK TABLE gate');
		$first = IPC::Run::start([ $migrate->($one, 'batch_role') ], '>&', \$output);
		$test->look_until($one,
			"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass",
			1, 'a migration under way');
		ok(IPC::Run::run([ $migrate->($two, 'plain') ], '>&', \$said), "$name: a role without the search_path migrates") or diag $said;
		$keeper->query('COMMIT');
		$first->finish;
		forget($_, $tool) foreach $one, $two;
		note "$output\n$said";
		$keeper->close;
	}
}
$test->finish;
