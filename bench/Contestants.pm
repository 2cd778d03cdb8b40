# Who takes part in the benchmarks.
#
#	my $curator = Contestants::make('curator', $cluster);
#	$curator->run($scenario, $seconds, $warmup);
#		{ rate (per second), total (warm-up included), p50, p99 (ms) }
#	$curator->acquire($server, $id, $path);	# begins to wait for it
#	$curator->held($id);					# when it had it, in seconds
#	$curator->release($id);					# when it began to release it
#	$curator->forget;						# whatever is held or awaited
#	$curator->stop;
#
# Each dies with a message when it fails.  Those through SQL are in
# PgContestants.pm; here are programs that speak to ZooKeeper or etcd themselves: a
# process for each server, which lives until stop (so that Java has compiled
# what it runs), and reads commands: see CuratorBench.java.  The raw client is
# a program for each run.

package Contestants;

use strict;
use warnings;

use IPC::Open2;

use PgContestants;
use PipedProgram;

my $bench = $ENV{BENCH_DIR};    # where the programs are built
my %roots = map { $_ => "/$_" } qw(curator kazoo etcd mutex raw);

# in the order in which they run
our @all = qw(zklock words uncached tls curator kazoo etcd mutex raw advisory sql);

our %titles = (
	zklock => 'zklock',
	words => 'zklock with messages between servers',
	uncached => 'zklock, nothing cached',
	tls => 'zklock over TLS',
	curator => 'Curator',
	kazoo => 'kazoo',
	etcd => 'etcd\'s lock service',
	mutex => 'etcd\'s Mutex',
	raw => 'raw C client',
	advisory => 'pg_advisory_lock',
	sql => 'empty statements');

sub make
{
	my ($name, $cluster) = @_;

	return PgContestants->new($name, $cluster)
	  if $name =~ /^(?:zklock|words|uncached|tls|advisory|sql)$/;
	$cluster = $cluster->etcd if $name =~ /^(?:etcd|mutex)$/;
	return ($name eq 'raw' ? 'Contestants::Raw' : 'Contestants::Program')
	  ->new($name, $cluster, $roots{$name});
}

# Whether its program was built: not every system has etcd's packages.
sub is_built { return $_[0] !~ /^(?:etcd|mutex)$/ || -x "$bench/etcdbench"; }

# "ok name=value ..." as a hash; dies with what else it says.
sub parse
{
	my ($name, $line) = @_;

	die "$name ended\n" unless defined $line;
	die "$name: $1\n" if $line =~ /^error (.*)/;
	return { $line =~ /(\w+)=(\S+)/g };
}

package Contestants::Program;

my @jars = qw(curator-recipes curator-framework curator-client guava
  failureaccess zookeeper zookeeper-jute slf4j-api slf4j-nop);

sub new
{
	my ($class, $name, $cluster, $root) = @_;

	return bless {
		name => $name,
		cluster => $cluster,
		root => $root,
		servers => [],
		server_of => {},
	}, $class;
}

sub root { return $_[0]->{root}; }

# How to start the process that plays a server
sub _program
{
	my ($self, $number) = @_;
	my $cluster = $self->{cluster};
	my $classpath = join ':', $bench, map { "/usr/share/java/$_.jar" } @jars;

	return ('java', '-Xmx1g', '-cp', $classpath, 'CuratorBench',
		$cluster->hosts, $self->{root})
	  if $self->{name} eq 'curator';
	return ("$bench/etcdbench", $self->{name}, $cluster->hosts, $self->{root})
	  if $self->{name} =~ /^(?:etcd|mutex)$/;
	return ('/usr/bin/python3', "$bench/kazoobench.py", $cluster->hosts,
		$self->{root})
	  if $self->{name} eq 'kazoo';

	# Advisory locks end at their server; theirs is key (3, 0), whatever the path.
	my $advisory = $self->{name} eq 'advisory';
	return ("$bench/pgclient",
		$cluster->node($advisory ? 0 : $number)->connstr('postgres'), '/bench',
		map { $advisory ? "SELECT pg_advisory_$_(3, length(\$1::text) * 0)"
			  : "SELECT zk_$_(\$1)" } qw(lock unlock));
}

# That process, started when it is first asked for
sub _server
{
	my ($self, $number) = @_;

	return $self->{servers}[$number] if $self->{servers}[$number];
	my $server = {};
	$server->{pid} = IPC::Open2::open2($server->{out}, $server->{in}, 'setpriv',
		'--pdeathsig', 'KILL', '--', $self->_program($number));
	$self->{servers}[$number] = $server;
	$self->_answer($server, 60);
	return $server;
}

sub _answer
{
	my ($self, $server, $timeout) = @_;

	if (!PipedProgram::can_read($server->{out}, $timeout))
	{
		# It may be in any state: the next one asked starts anew.
		$self->stop;
		die "$self->{name} does not answer\n";
	}
	return Contestants::parse($self->{name}, scalar readline $server->{out});
}

sub _command
{
	my ($self, $number, $timeout, @words) = @_;
	my $server = $self->_server($number);
	my $in = $server->{in};

	print $in "@words\n";
	$in->flush;
	return $self->_answer($server, $timeout);
}

sub run
{
	my ($self, $scenario, $seconds, $warmup) = @_;

	return $self->_command(0, 15 + $warmup + $seconds, 'run',
		$scenario->{kind}, $scenario->{clients}, $scenario->{names}, $seconds,
		$warmup);
}

sub prepare { $_[0]->_server($_[1]); return; }

sub acquire
{
	my ($self, $server, $id, $path) = @_;

	$self->{server_of}{$id} = $server;
	$self->_command($server, 60, 'lock', $id, $path);
	return;
}

sub held
{
	my ($self, $id) = @_;

	return $self->_command($self->{server_of}{$id}, 60, 'held', $id)->{at} / 1e9;
}

sub release
{
	my ($self, $id) = @_;

	return $self->_command($self->{server_of}{$id}, 60, 'unlock', $id)->{at} / 1e9;
}

# Those that wait on one server may have to wait for those of another.
sub forget
{
	my ($self) = @_;
	my @servers = grep { $self->{servers}[$_] } 0 .. $#{ $self->{servers} };

	foreach my $number (@servers)
	{
		my $in = $self->{servers}[$number]{in};

		print $in "forget\n";
		$in->flush;
	}
	$self->_answer($self->{servers}[$_], 60) foreach @servers;
	return;
}

sub stop
{
	my ($self) = @_;

	foreach my $server (grep { defined } @{ $self->{servers} })
	{
		close $server->{in};
		# What waits for a lock would go on waiting.
		kill 'KILL', $server->{pid}
		  unless PipedProgram::can_read($server->{out}, 2);
		waitpid $server->{pid}, 0;
	}
	$self->{servers} = [];
	return;
}

package Contestants::Raw;

our @ISA = ('Contestants::Program');

sub _start
{
	my ($self, $root, @arguments) = @_;

	open my $program, '-|', "$bench/rawclient", $self->{cluster}->hosts, $root,
	  @arguments
	  or die "rawclient: $!\n";
	return $program;
}

# What a program says that was started
sub result
{
	my ($self, $program) = @_;

	return Contestants::parse('raw client', scalar readline $program);
}

# Makes directories 0 .. count-1 below a path.
sub fill
{
	my ($self, $path, $count) = @_;

	$self->result($self->_start($path, 'fill', $count, $self->{cluster}->credentials));
	return;
}

# Starts a run, for "result" to wait for.
sub begin
{
	my ($self, $scenario, $seconds, $warmup) = @_;
	my $root = "$self->{root}/"
	  . ($scenario->{names} =~ /^\d+$/ ? 'many' : $scenario->{names});

	return $self->_start($root, 'run', $scenario->{clients}, $scenario->{names},
		$seconds, $warmup, $scenario->{in_flight} // 2);
}

sub run
{
	my ($self, @what) = @_;

	return $self->result($self->begin(@what));
}

1;
