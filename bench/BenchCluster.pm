# The servers of a benchmark: one ZooKeeper or an ensemble of three, configured
# as in production, as many etcd servers, and PostgreSQL servers with zklock; and
# what can be read off them while somebody runs.
#
#	my $cluster = BenchCluster->new('zk');		# 'ensemble', or 'tls', see there
#	$cluster->hosts;						# ZooKeeper's connect string
#	$cluster->node(0);						# a PostgreSQL server
#	my $before = $cluster->meter(0);		# processor time of server 0
#	...
#	my $used = $cluster->used($before);		# see meter
#	$cluster->stop;

package BenchCluster;

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use List::Util qw(sum0);
use POSIX ();
use Time::HiRes qw(time usleep);

use CertificateAuthority;
use ChaosProcesses;
use EtcdServers;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;
use ZooKeeper;
use ZooKeeperEnsemble;

my $clock_ticks = POSIX::sysconf(POSIX::_SC_CLK_TCK());

# tickTime and the size of the log's files are ZooKeeper's own defaults; fsync
# is on.  No containers are reaped: that would hit whoever happens to run.
my %settings = (
	tick_time => 2000,
	container_check_ms => 3_600_000,
	java => ['-Xmx1g']);

# What zklock makes in ZooKeeper is its own, as it should be in a fleet.
my $credentials = 'zklock:open-sesame';

sub new
{
	my ($class, $kind) = @_;
	my $authority = $kind eq 'tls' ? CertificateAuthority->new('ca') : undef;
	my $zk = $kind eq 'ensemble'
	  ? ZooKeeperEnsemble->new('zk', %settings)
	  : ZooKeeper->new('zk', %settings, $authority ? tls($authority) : ());
	my $auth_file = rel2abs(PostgreSQL::Test::Utils::tempdir()) . '/credentials';
	write_secret($auth_file, "digest:$credentials\n");
	my $test = ZklockTest->new(
		servers => 3,
		prefix => "$kind-server",
		zk => $zk,
		session_timeout => '10s',
		max_requests => 12_000,
		conf => <<"EOC");
zklock.auth_file = '$auth_file'
zklock.max_requests_per_session = 12000
max_connections = 700
max_worker_processes = 4
shared_buffers = 64MB
max_parallel_workers = 0
autovacuum = off
log_connections = off
log_disconnections = off
log_line_prefix = '%m [%p] '
log_min_messages = warning
EOC

	my $self = bless {
		zk => $zk,
		test => $test,
		etcd => EtcdServers->new(scalar(() = $zk->servers)),
	}, $class;
	$self->_use_tls($authority) if $authority;
	$zk->client->authenticate($credentials);
	return $self;
}

# Options of a ZooKeeper that speaks TLS at a second port
sub tls
{
	my ($authority) = @_;
	my $certificate = $authority->issue('zookeeper', names => 'IP:127.0.0.1');

	return (tls => { certificate => $certificate, authority => $authority });
}

# In the cluster 'tls' PostgreSQL server 1 goes to that port, and the others to the
# one without TLS.
sub _use_tls
{
	my ($self, $authority) = @_;
	my $node = $self->node(1);

	$node->append_conf('postgresql.conf', <<"EOC");
zklock.tls = 'verify-full'
zklock.tls_ca_file = '@{[ $authority->file ]}'
zklock.connect_string = '127.0.0.1:@{[ $self->zk->secure_port ]}'
EOC
	$node->restart;
	$self->test->wait_connected($node)
	  or die $node->name . " does not connect to ZooKeeper\n";
	return;
}

# Whether the PostgreSQL servers cache locks.  A new run begins with its warm-up,
# which is long enough for the workers to see the change.
sub cache
{
	my ($self, $on) = @_;

	return if defined $self->{caches} && $self->{caches} == $on;
	foreach my $node ($self->{test}->nodes)
	{
		$node->safe_psql('postgres',
			"ALTER SYSTEM SET zklock.cache_time = " . ($on ? "'100ms'" : 0));
		$node->reload;
	}
	$self->{caches} = $on;
	return;
}

# Whether their workers send each other messages, likewise
sub words
{
	my ($self, $on) = @_;

	$on = $on ? 1 : 0;
	return if ($self->{words} // 0) == $on;
	foreach my $node ($self->{test}->nodes)
	{
		my $port = $self->{peer_ports}{ $node->name } //=
		  PostgreSQL::Test::Cluster::get_free_port();

		$self->{test}->set($node,
			peer_address => '127.0.0.1',
			peer_port => $on ? $port : 0);
	}
	$self->{words} = $on;
	return;
}

sub credentials { return $credentials; }
sub zk { return $_[0]->{zk}; }
sub etcd { return $_[0]->{etcd}; }
sub test { return $_[0]->{test}; }
sub hosts { return $_[0]->{zk}->connect_string; }
sub node { return ($_[0]->{test}->nodes)[ $_[1] ]; }
sub status { return $_[0]->{test}->status($_[0]->node($_[1]), $_[2]); }

sub stop
{
	my ($self) = @_;

	foreach my $node ($self->{test}->nodes)
	{
		$self->{test}->stop_looking($node);
		$node->stop('immediate');
	}
	$self->{zk}->stop;
	$self->{etcd}->stop;
	return;
}

# Waits until a directory has so many children; returns how often it looked.
sub wait_length
{
	my ($self, $directory, $length) = @_;
	my $looks = 0;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	for (;;)
	{
		my @queue = $self->{zk}->client->ls($directory);

		$looks++;
		return $looks if @queue == $length;
		die "not $length in $directory, but " . @queue . "\n"
		  if time > $deadline;
		usleep(1_000);
	}
	return;
}

# ---- meters ----

# Seconds of processor time that a process has used, with all its threads
sub cpu_seconds
{
	my ($pid) = @_;
	my $stat = eval { slurp_file("/proc/$pid/stat") } // return 0;
	my @fields = split ' ', $stat =~ s/.*\) //sr;

	return ($fields[11] + $fields[12]) / $clock_ticks;
}

# Busy seconds of all processors, of whatever runs on the machine
sub machine_seconds
{
	my ($line) = slurp_file('/proc/stat') =~ /^cpu +(.*)/;
	my ($user, $nice, $system, undef, undef, $irq, $softirq) = split ' ', $line;

	return ($user + $nice + $system + $irq + $softirq) / $clock_ticks;
}

# Kilobytes of memory that are a process's own
sub private_kb
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+)/m ? $1 : 0;
}

# How often a process went to sleep
sub sleeps
{
	my ($pid) = @_;

	return slurp_file("/proc/$pid/status") =~ /^voluntary_ctxt_switches:\s+(\d+)/m
	  ? $1 : 0;
}

sub worker_pid { return ChaosProcesses::worker($_[0]->node($_[1])->{_pid}); }

sub session_pid
{
	return ChaosProcesses::session_process($_[0]->node($_[1])->{_pid});
}

sub zk_count { return scalar(() = $_[0]{zk}->servers); }

# Requests that all ZooKeeper servers have received
sub packets
{
	my ($self) = @_;

	return sum0(map { $_->packets_received } $self->{zk}->servers);
}

# Bytes that went over the open connections of clients, both ways
sub bytes
{
	my ($self) = @_;
	my $filter = join ' or ', map { 'sport = :' . $_->port } $self->{zk}->servers;
	my $sockets = `ss -tinH state established '( $filter )' 2>/dev/null`;

	return sum0($sockets =~ /\bbytes_(?:sent|received):(\d+)/g);
}

# What zklock has counted on all PostgreSQL servers
sub counted
{
	my ($self, $column) = @_;

	return sum0(map { $self->status($_, $column) } 0 .. 2);
}

# What to compare later with "used"; "worker" and "session" are a server's.
sub meter
{
	my ($self, $server) = @_;

	return {
		server => $server,
		time => time,
		packets => $self->packets,
		batches => $self->counted('batches'),
		listings => $self->counted('listings'),
		machine => machine_seconds(),
		zookeeper => sum0(map { cpu_seconds($_->pid) } $self->{zk}->servers),
		worker => cpu_seconds($self->worker_pid($server)),
		session => cpu_seconds($self->session_pid($server)),
	};
}

# The differences since then; "machine" as busy processors.  Each look at a
# ZooKeeper server is a request itself.
sub used
{
	my ($self, $before) = @_;
	my $now = $self->meter($before->{server});
	my %used = map { $_ => $now->{$_} - $before->{$_} } keys %$now;

	$used{packets} -= $self->zk_count;
	$used{machine} /= $used{time};
	return \%used;
}

1;
