# Runs the benchmarks: all contestants in turn, round by round, on the same
# servers.  run.sh prepares what it needs, and report.pl shows the results.
#
#	BENCH_DIR			where the programs of the contestants are
#	BENCH_OUT			the file for the results
#	BENCH_SCENARIOS		the first letters of those to run (all)
#	BENCH_CONTESTANTS	who takes part (all)
#	BENCH_ROUNDS		how often each is run (5), at most: some have less
#	BENCH_SECONDS		for which each is measured (2)
#	BENCH_WARMUP		seconds before that, not counted (1)

use strict;
use warnings;

# The test library takes STDOUT for its log.
my $terminal;
BEGIN { open $terminal, '>&', \*STDOUT or die "$!"; }

use List::Util qw(min);
use Time::HiRes qw(time);

use BenchCluster;
use Contestants;
use Scenarios;

my $rounds = $ENV{BENCH_ROUNDS} || 5;
my $seconds = $ENV{BENCH_SECONDS} || 2;
my $warmup = $ENV{BENCH_WARMUP} || 1;
my $java_warmup = 5 * $seconds;    # until Curator's rates stay
my @wanted = split ' ', $ENV{BENCH_SCENARIOS} // '';
my %invited = map { $_ => 1 } split ' ', $ENV{BENCH_CONTESTANTS} // '';
my @columns = (qw(rate p50 p99 requests zookeeper_us worker_us session_us busy
	  bytes batches listings worker_kb slot_bytes worker_wakeups session_wakeups),
	@ScenarioSteps::columns);
my $started = time;
my (%failed, $failures);
my ($done, $all) = (0, 0);

# No eval catches this, and END stops all servers.
$SIG{$_} = sub { exit 130 }
  foreach grep { ($SIG{$_} // '') ne 'IGNORE' } qw(HUP INT TERM);
$SIG{PIPE} = 'IGNORE';
$terminal->autoflush(1);

sub say_so { printf $terminal "[%4d s] %s\n", time - $started, $_[0]; return; }

sub is_wanted
{
	my ($scenario) = @_;

	return !@wanted || grep { index($scenario->{name}, $_) == 0 } @wanted;
}

# Of a scenario, those who are invited and can come
sub contestants
{
	my ($scenario) = @_;

	return grep { Contestants::is_built($_) && (!%invited || $invited{$_}) }
	  @{ $scenario->{contestants} };
}

sub rounds_of { return min($_[0]{rounds} // $rounds, $rounds); }

# One line of results.  What fails is a result, too.
sub run_one
{
	my ($out, $scenario, $contestant, $cluster, $round) = @_;
	my $key = "$scenario->{name} $contestant->{name}";
	my $result = eval {
		die "failed twice, not run again\n" if ($failed{$key} // 0) > 1;
		Scenarios::measure($scenario, $contestant, $cluster, $seconds, $warmup);
	};
	my $error = $@ =~ s/\s+/ /gr;
	my $good = defined $result;

	if (!$good)
	{
		$failures++;
		$failed{$key}++;
		eval { $contestant->forget } if $contestant->can('forget');
	}
	print $out join(',',
		$scenario->{name}, $contestant->{name}, $round,
		$good ? 'ok' : 'failed',
		(map { defined $result->{$_} ? sprintf '%.6g', $result->{$_} : '' }
			  @columns),
		$good ? '' : '"' . $error =~ s/"/'/gr . '"'), "\n";
	$out->flush;
	$done++;
	say_so(sprintf '%d/%d  round %d  %-14s %-9s %s', $done, $all, $round,
		$scenario->{name}, $contestant->{name},
		$good ? describe($result) : "FAILED: $error");
	return;
}

sub describe
{
	my ($result) = @_;
	my %formats = (
		rate => '%.0f/s', p50 => 'p50 %.2f ms', p99 => 'p99 %.2f ms',
		requests => '%.2f requests', bytes => '%.0f bytes',
		batches => '%.2f batches', listings => '%.2f listings',
		(map { $_ => "$_ %.0f" } @ScenarioSteps::columns),
		worker_kb => 'worker %d kB', worker_wakeups => 'worker wakes %.2f/s');

	return join ', ', map { sprintf $formats{$_}, $result->{$_} }
	  grep { $formats{$_} && defined $result->{$_} } @columns;
}

# Java compiles what it runs often: the first seconds of Curator's process do not count.
sub warm_up_curator
{
	my ($curator, $cluster, @scenarios) = @_;
	my ($scenario) = grep {
		$_->{kind} eq 'pairs' && grep { $_ eq 'curator' } contestants($_)
	} @scenarios;

	return unless $scenario;
	say_so("warming up with $scenario->{name}");
	Scenarios::measure($scenario, $curator, $cluster, $java_warmup, 0);
	return;
}

# All scenarios for one kind of cluster
sub run_cluster
{
	my ($out, $kind, @scenarios) = @_;

	say_so('starting servers: ' . ($kind eq 'ensemble' ? 'three ZooKeepers'
			: 'one ZooKeeper') . ', three PostgreSQL');
	my $cluster = BenchCluster->new($kind);
	my %contestants = map { $_ => Contestants::make($_, $cluster) }
	  @Contestants::all;

	if (grep { ($_->{names} // '') =~ /^\d+$/ } @scenarios)
	{
		say_so("making $Scenarios::drawn_names directories for each");
		$contestants{raw}->fill($contestants{$_}->root . '/many',
			$Scenarios::drawn_names) foreach qw(zklock curator kazoo raw);
	}
	warm_up_curator($contestants{curator}, $cluster, @scenarios);
	foreach my $round (1 .. $rounds)
	{
		foreach my $scenario (grep { $round <= rounds_of($_) } @scenarios)
		{
			run_one($out, $scenario, $contestants{$_}, $cluster, $round)
			  foreach contestants($scenario);
		}
	}
	$_->stop foreach values %contestants;
	$cluster->stop;
	return;
}

my @scenarios = grep { is_wanted($_) } @Scenarios::all;
if (!@scenarios)
{
	say_so("there is no such scenario; there are: "
		  . join(' ', map { $_->{name} } @Scenarios::all));
	exit 2;
}
$all += contestants($_) * rounds_of($_) foreach @scenarios;

open my $out, '>', $ENV{BENCH_OUT} or die "$ENV{BENCH_OUT}: $!";
print $out join(',', qw(scenario contestant round status), @columns, 'error'),
  "\n";
foreach my $kind (qw(zk tls ensemble))
{
	my @these = grep { ($_->{zk} // 'zk') eq $kind } @scenarios;
	run_cluster($out, $kind, @these) if @these;
}
close $out or die "$ENV{BENCH_OUT}: $!";
say_so(sprintf 'done, %d of %d failed', $failures // 0, $all);
