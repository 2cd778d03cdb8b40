# A member of a Patroni cluster, with the real Patroni, for TAP tests.  Sessions
# connect to it as to a server.
#
#	my $member = PatroniMember->new('db1', $zk, $page_config);	# or, behind these:
#		'zklock.name' => $value, ...	# settings of this member
#	$member->start;					# launches Patroni, which makes the server
#	$member->wait_role('primary');	# or replica: as its REST interface says
#	PgSession->new($member);
#	$member->stop;
#	$member->die_at_once($session_process, $worker);
#	$member->hang; $member->wake;	# Patroni, not PostgreSQL
#
# The configuration is that of a page, as YAML, with what a test needs beside it:
# directories, ports, short times.

package PatroniMember;

use strict;
use warnings;

use parent 'OwnProcess';

use Carp;
use HTTP::Tiny;
use JSON::PP;
use POSIX ();

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $merge = <<'EOS';
import json, sys, yaml
def merge(a, b):
    for key, value in b.items():
        if isinstance(value, dict) and isinstance(a.get(key), dict):
            merge(a[key], value)
        else:
            a[key] = value
    return a
page, test = sys.argv[1:]
print(json.dumps(merge(yaml.safe_load(page), json.loads(test))))
EOS

sub new
{
	my ($class, $name, $zk, $page_config, %settings) = @_;
	my $dir = PostgreSQL::Test::Utils::tempdir_short();
	my ($port, $rest) = map { PostgreSQL::Test::Cluster::get_free_port() } 1, 2;
	my ($bindir) = run_command([ 'pg_config', '--bindir' ]);
	my %config = (
		scope => 'batman',
		name => $name,
		zookeeper => { hosts => [ $zk->connect_string ] },
		restapi => { listen => "127.0.0.1:$rest", connect_address => "127.0.0.1:$rest" },
		bootstrap => {
			dcs => {
				ttl => 20,
				loop_wait => 1,
				retry_timeout => 3,
				postgresql => {
					use_slots => JSON::PP::true,
					parameters => {
						'zklock.connect_string' => $zk->connect_string,
						'zklock.tick_time' => $zk->tick_time,
						max_connections => 30
					}
				}
			},
			initdb => [ { encoding => 'UTF8' }, { auth => 'trust' } ]
		},
		postgresql => {
			listen => "127.0.0.1:$port",
			connect_address => "127.0.0.1:$port",
			data_dir => "$dir/data",
			bin_dir => $bindir,
			pgpass => "$dir/pgpass",
			pg_hba => [
				'local all all trust',
				'host all all 127.0.0.1/32 trust',
				'host replication all 127.0.0.1/32 trust'
			],
			authentication => {
				superuser => { username => scalar getpwuid $< },
				replication => { username => 'replicator' }
			},
			parameters => {
				unix_socket_directories => $dir,
				'zklock.server_name' => $name,
				%settings
			}
		});
	my ($merged, $error) =
	  run_command([ '/usr/bin/python3', '-c', $merge, $page_config, encode_json(\%config) ]);
	croak $error if $error;
	append_to_file("$dir/config.yml", "$merged\n");
	return bless {
		name => $name,
		dir => $dir,
		port => $port,
		rest => $rest,
		log => "$PostgreSQL::Test::Utils::log_path/patroni_$name.log"
	}, $class;
}

# As PgSession and ZklockTest ask them of a server
sub name { return $_[0]->{name}; }
sub host { return $_[0]->{dir}; }
sub port { return $_[0]->{port}; }
sub data_dir { return "$_[0]->{dir}/data"; }
sub logfile { return $_[0]->{log}; }
sub config { return "$_[0]->{dir}/config.yml"; }

# Patroni knows it.
sub _update_pid { return; }

sub start
{
	my ($self) = @_;
	my $pid = fork // die "could not fork: $!";

	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $self->{log};
		open STDERR, '>&', \*STDOUT;
		delete @ENV{ grep { /^PG/ } keys %ENV };
		exec '/usr/bin/patroni', $self->config or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	return;
}

# Waits until it is the primary, or a replica that streams.
sub wait_role
{
	my ($self, $role) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ZklockTest::wait_for(
		sub {
			my $answer = HTTP::Tiny->new(timeout => 5)
			  ->get("http://127.0.0.1:$self->{rest}/$role");
			return $answer->{status} eq '200';
		},
		"$self->{name} becomes a $role");
}

# Patroni without a watchdog: nobody demotes the server meanwhile.
sub hang { return kill 'STOP', $_[0]->{pid}; }
sub wake { return kill 'CONT', $_[0]->{pid}; }

# As if its machine were gone: Patroni, PostgreSQL and the given processes of it
sub die_at_once
{
	my ($self, @pids) = @_;
	my ($postmaster) = split /\n/, slurp_file($self->data_dir . '/postmaster.pid');
	my $patroni = delete $self->{pid};

	kill 'KILL', $patroni, @pids, $postmaster;
	waitpid $patroni, 0;
	return;
}

1;
