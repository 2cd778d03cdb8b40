# Tools for migrations, which call PostgreSQL's advisory locks, over two servers at
# once: by the search_path of their role, they get locks of all servers.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $folder = PostgreSQL::Test::Utils::tempdir();

foreach my $node ($one, $two)
{
	$node->safe_psql('postgres', <<'EOS');
CREATE EXTENSION zklock_advisory;
CREATE ROLE plain LOGIN SUPERUSER;
CREATE ROLE migrator LOGIN SUPERUSER;
ALTER ROLE migrator SET search_path = zk_advisory, pg_catalog, "$user", public;
CREATE TABLE gate ();
EOS
}

# ---- the tools ----

mkdir "$folder/$_" or die "$folder/$_: $!" foreach 'active_record', 'node';
append_to_file("$folder/active_record/1_pass_gate.rb", <<'EOS');
class PassGate < ActiveRecord::Migration[6.1]
  def up
    execute 'LOCK TABLE gate'
  end

  def down
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
exports.up = (pgm) => pgm.sql('LOCK TABLE gate');
exports.down = () => {};
EOS

# The command that migrates one server as a role
my %tools = (
	'ActiveRecord' => {
		migrate => sub {
			my ($node, $role) = @_;
			return ('ruby', "$folder/active_record.rb", "$folder/active_record", $node->host,
				$node->port, $role);
		},
		refused => qr/ConcurrentMigrationError/,
		forget => 'DROP TABLE schema_migrations',
	},
	'node-pg-migrate' => {
		migrate => sub {
			my ($node, $role) = @_;
			local $_ = $node->host =~ s{/}{%2F}gr;
			return ('env', "DATABASE_URL=postgres://$role\@$_:" . $node->port . '/postgres',
				"$folder/node_modules/.bin/node-pg-migrate", 'up', '-m', "$folder/node");
		},
		refused => qr/Another migration is already running/,
		forget => 'DROP TABLE pgmigrations',
	});

sub installed
{
	my ($tool) = @_;

	return system("ruby -e 'require \"active_record\"; require \"pg\"' 2>/dev/null") == 0
	  if $tool eq 'ActiveRecord';
	local $ENV{npm_config_cache} = "$folder/npm";
	return run_log([ 'npm', 'install', '--silent', '--no-audit', '--no-fund', '--prefix', $folder,
			'node-pg-migrate@7.9.1', 'pg@8.13.1' ]);
}

# ---- each of them ----

foreach my $tool (sort keys %tools)
{
  SKIP:
	{
		skip "$tool is not installed", 6 unless installed($tool);
		my %is = %{ $tools{$tool} };
		my $keeper = $test->session($one);
		my ($output, $said) = ('', '');

		$keeper->query('BEGIN; LOCK TABLE gate');
		my $first = IPC::Run::start([ $is{migrate}->($one, 'migrator') ], '>&', \$output);
		ok($test->look_until($one,
				"SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass",
				1, 'a migration under way'),
			"$tool: a server migrates");
		isnt(IPC::Run::run([ $is{migrate}->($two, 'migrator') ], '>&', \$said),
			1, "$tool: meanwhile another one does not");
		like($said, $is{refused}, "$tool: and says why");
		ok(IPC::Run::run([ $is{migrate}->($two, 'plain') ], '>&', \$said),
			"$tool: without the search_path it does") or diag $said;
		$two->safe_psql('postgres', $is{forget});
		$keeper->query('COMMIT');
		ok($first->finish, "$tool: the first one comes to its end") or diag $output;
		ok(IPC::Run::run([ $is{migrate}->($two, 'migrator') ], '>&', \$said),
			"$tool: then the other one migrates") or diag $said;
		$keeper->close;
	}
}
$test->finish;
