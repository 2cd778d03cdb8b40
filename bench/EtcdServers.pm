# The etcd servers of a benchmark: one, or a cluster of three, with etcd's own
# settings (fsync is on).  They start when they are first asked for, and die with
# the benchmark.  For a measurement they stand in place of a BenchCluster.
#
#	my $etcd = EtcdServers->new(3);
#	$etcd->hosts;							# what a client connects to
#	$etcd->wait_length('/etcd/turns', 2);	# until 2 clients are in that queue
#	my $before = $etcd->meter;
#	my $used = $etcd->used($before);		# packets: messages of clients
#	$etcd->stop;

package EtcdServers;

use strict;
use warnings;

use HTTP::Tiny;
use JSON::PP;
use List::Util qw(sum0);
use MIME::Base64 qw(encode_base64);
use POSIX ();
use Time::HiRes qw(time usleep);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

my @all;
my $http = HTTP::Tiny->new(timeout => 10);

sub new
{
	my ($class, $count) = @_;
	my $self = bless { count => $count, servers => [] }, $class;

	push @all, $self;
	return $self;
}

sub hosts
{
	my ($self) = @_;

	$self->_start unless @{ $self->{servers} };
	return join ',', map { $_->{client} } @{ $self->{servers} };
}

sub _start
{
	my ($self) = @_;
	my @servers = map {
		my ($client, $peer) = map {
			'http://127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port()
		} 1, 2;

		{ name => "etcd$_", client => $client, peer => $peer }
	} 1 .. $self->{count};
	my $members = join ',', map { "$_->{name}=$_->{peer}" } @servers;

	$self->{servers} = \@servers;
	$_->{pid} = launch($_, $members) foreach @servers;
	wait_until_serving($_) foreach @servers;
	return;
}

sub launch
{
	my ($server, $members) = @_;
	my $log = "$PostgreSQL::Test::Utils::log_path/bench_$server->{name}.log";
	my $dir = PostgreSQL::Test::Utils::tempdir($server->{name});
	my $pid = fork() // die "could not fork: $!";

	return $pid if $pid;
	open STDIN, '<', '/dev/null';
	open STDOUT, '>>', $log;
	open STDERR, '>&', \*STDOUT;
	exec('setpriv', '--pdeathsig', 'KILL', '--', 'etcd', '--log-level', 'warn',
		'--logger', 'zap', '--name', $server->{name}, '--data-dir', $dir,
		'--listen-client-urls', $server->{client},
		'--advertise-client-urls', $server->{client},
		'--listen-peer-urls', $server->{peer},
		'--initial-advertise-peer-urls', $server->{peer},
		'--initial-cluster', $members)
	  or POSIX::_exit(127);
}

sub wait_until_serving
{
	my ($server) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	until ($http->get("$server->{client}/health")->{content} =~ /"true"/)
	{
		die "$server->{name} does not serve\n"
		  if time > $deadline || waitpid($server->{pid}, POSIX::WNOHANG()) != 0;
		usleep(50_000);
	}
	return;
}

sub stop
{
	my ($self) = @_;

	foreach my $server (grep { $_->{pid} } @{ $self->{servers} })
	{
		kill 'KILL', $server->{pid};
		waitpid $server->{pid}, 0;
	}
	$self->{servers} = [];
	return;
}

# How many keys there are below a path: a request of a client, too
sub length_of
{
	my ($self, $path) = @_;
	my $url = "$self->{servers}[0]{client}/v3/kv/range";
	my %range = (
		key => encode_base64("$path/", ''),
		range_end => encode_base64("${path}0", ''),    # 0 follows /
		count_only => JSON::PP::true);
	my $answer = $http->post($url, { content => encode_json(\%range) });

	die "etcd: $answer->{content}\n" unless $answer->{success};
	return decode_json($answer->{content})->{count} // 0;
}

# Waits until there are so many; returns how often it looked.
sub wait_length
{
	my ($self, $path, $length) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $looks = 1;

	while ((my $keys = $self->length_of($path)) != $length)
	{
		die "not $length in $path, but $keys\n" if time > $deadline;
		usleep(1_000);
		$looks++;
	}
	return $looks;
}

# Messages that a server has received from clients
sub messages
{
	my ($server) = @_;
	my $metrics = $http->get("$server->{client}/metrics")->{content};

	return sum0($metrics =~ /^grpc_server_msg_received_total\S* (\S+)/mg);
}

sub meter
{
	my ($self) = @_;
	my @servers = @{ $self->{servers} };

	return {
		packets => sum0(map { messages($_) } @servers),
		zookeeper => sum0(map { BenchCluster::cpu_seconds($_->{pid}) } @servers),
	};
}

sub used
{
	my ($self, $before) = @_;
	my $now = $self->meter;

	return { map { $_ => $now->{$_} - $before->{$_} } keys %$now };
}

END
{
	my $exit_code = $?;

	$_->stop foreach @all;
	$? = $exit_code;
}

1;
