# Measures what sessions, batches, reads, watches and znodes cost a ZooKeeper
# server: processor time and memory.  capacity.sh prepares what it needs.
#
#	BENCH_DIR			where the program "crowd" is
#	BENCH_OUT			the file for the results
#	BENCH_SECONDS		for which each rate is measured (5); four times as
#						long where there are pauses

use strict;
use warnings;

# The test library takes STDOUT for its log.
my $terminal;
BEGIN { open $terminal, '>&', \*STDOUT or die "$!"; }

use IPC::Open2;
use POSIX ();

use PostgreSQL::Test::Utils;
use ZooKeeper;

my $seconds = $ENV{BENCH_SECONDS} || 5;
my $warmup = 10;
my $clock_ticks = POSIX::sysconf(POSIX::_SC_CLK_TCK());
my $directories = 2000;
my $started = time;

open my $results, '>', $ENV{BENCH_OUT} or die "$ENV{BENCH_OUT}: $!";
$terminal->autoflush(1);
$results->autoflush(1);
print $results "what,sessions,rate,us,bytes\n";

sub say_so { printf $terminal "[%4d s] %s\n", time - $started, $_[0]; return; }

# A line of results; what does not apply is undef.
sub note
{
	my ($what, $sessions, $rate, $us, $bytes) = @_;
	my @figures = map { defined $_ ? sprintf '%.6g', $_ : '' } $rate, $us, $bytes;

	print $results join(',', $what, $sessions, @figures), "\n";
	say_so(join ' ', $what, $sessions, @figures);
	return;
}

# As in production, but for the containers; see BenchCluster.pm.
sub start_server
{
	my ($name) = @_;
	my $zk = ZooKeeper->new($name, tick_time => 2000,
		container_check_ms => 3_600_000, java => ['-Xmx1g']);

	$zk->start;
	return $zk;
}

sub cpu_seconds
{
	my ($zk) = @_;
	my @fields = split ' ', slurp_file('/proc/' . $zk->pid . '/stat') =~ s/.*\) //sr;

	return ($fields[11] + $fields[12]) / $clock_ticks;
}

# Bytes of what lives on the heap: making the list collects garbage first.
sub heap_bytes
{
	my ($zk) = @_;
	my $histogram = `jcmd @{[ $zk->pid ]} GC.class_histogram`;

	$histogram =~ /^Total\s+\d+\s+(\d+)/m or die "jcmd: $histogram\n";
	return $1;
}

sub open_crowd
{
	my ($zk, $sessions) = @_;
	my $crowd = {};

	$crowd->{pid} = open2($crowd->{out}, $crowd->{in}, 'setpriv', '--pdeathsig',
		'KILL', '--', "$ENV{BENCH_DIR}/crowd", $zk->connect_string, '/crowd',
		$sessions, $directories);
	answer($crowd);
	return $crowd;
}

sub answer
{
	my ($crowd) = @_;
	my $line = readline($crowd->{out}) // die "crowd ended\n";

	die $line unless $line =~ /^ok/;
	return { $line =~ /(\w+)=(\S+)/g };
}

sub command
{
	my ($crowd, $command) = @_;
	my $in = $crowd->{in};

	print $in "$command\n";
	$in->flush;
	return answer($crowd);
}

sub close_crowd
{
	my ($crowd) = @_;

	close $crowd->{in};
	waitpid $crowd->{pid}, 0;
	return;
}

# Until Java has compiled what it runs
sub warm_up
{
	my ($zk) = @_;
	my $crowd = open_crowd($zk, 100);

	command($crowd, "run $warmup 4 0");
	close_crowd($crowd);
	return;
}

# Processor time per batch: as fast as it goes, with four listings behind each,
# and with pauses as between the heartbeats of a session of 10 s
sub measure_batches
{
	my ($zk, $sessions) = @_;
	my $crowd = open_crowd($zk, $sessions);

	foreach my $run ([ 'batch', 0, 0 ], [ 'batch and 4 listings', 4, 0 ],
		[ 'paced batch', 0, 10_000 / 6 ])
	{
		my ($what, $reads, $pause) = @$run;
		my $length = $pause > 0 ? 4 * $seconds : $seconds;
		my $before = cpu_seconds($zk);
		my $result = command($crowd, "run $length $reads $pause");

		note($what, $sessions, $result->{rate},
			1e6 * (cpu_seconds($zk) - $before) / $result->{batches}, undef);
	}
	close_crowd($crowd);
	return;
}

# What is on the heap for each of so many sessions, watches and znodes
sub measure_memory
{
	my $zk = start_server('memory');
	my $sessions = 1000;
	my $few = open_crowd($zk, 1);
	my $before = heap_bytes($zk);
	my $crowd = open_crowd($zk, $sessions);
	my $after = heap_bytes($zk);

	close_crowd($few);
	note('session', $sessions, undef, undef, ($after - $before) / $sessions);
	foreach my $step ([ 'first watch', 'watch 0 1 0', 1 ],
		[ 'shared watch', 'watch 1 400 0', 400 ],
		[ 'lone watch', 'watch 401 1 1', 1 ], [ 'znode', 'nodes 50', 50 ])
	{
		my ($what, $command, $count) = @$step;

		$before = heap_bytes($zk);
		command($crowd, $command);
		note($what, $sessions, undef, undef,
			(heap_bytes($zk) - $before) / ($sessions * $count));
	}
	close_crowd($crowd);
	$zk->stop;
	return;
}

my $zk = start_server('batches');
warm_up($zk);
measure_batches($zk, $_) foreach 1, 10, 100, 1000;
$zk->stop;
measure_memory();
close $results or die "$ENV{BENCH_OUT}: $!";
