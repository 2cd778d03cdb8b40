# Measures how many tickets one connection makes, claims and cancels, against the locks that
# one session takes and releases without caching, in turns; and the memory of those who
# wait: a server with 1000 tickets, one with 200 sessions in zk_lock(), and a program with
# 200 threads of Curator.  tickets.sh prepares what it needs.
#
#	ROUNDS			of each measurement of speed (9)
#	SECONDS_EACH	how long each takes (2)

use strict;
use warnings;

# The test library takes STDOUT for its log.
my $terminal;
BEGIN { open $terminal, '>&', \*STDOUT or die "$!"; }

use Cwd qw(abs_path);
use File::Basename;
use IPC::Open2;
use Time::HiRes qw(sleep time);

use CuratorClient;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $rounds = $ENV{ROUNDS} || 9;
my $seconds = $ENV{SECONDS_EACH} || 2;
my ($tickets, $waiters, $names, $batch) = (1000, 200, 100, 500);
my $test = ZklockTest->new(
	session_timeout => '10s',
	max_requests => 1500,
	zk => { tick_time => 2000 },
	conf => "max_connections = 300\nzklock.cache_time = 0\n"
	  . "zklock.max_requests_per_role = 1500\nzklock.max_requests_per_session = 1500\n");
my ($one, $two) = $test->nodes;
my ($s, $holder) = ($test->session($one), $test->session($two));
$terminal->autoflush(1);

sub median { return (sort { $a <=> $b } @_)[ @_ / 2 ]; }

# ---- speed

# Calls one, which says how many it has done, for that long; how many in a second
sub rate
{
	my ($one_of) = @_;
	my ($begun, $done) = (time, 0);

	$done += $one_of->() while time < $begun + $seconds;
	return $done / (time - $begun);
}

my $n = 0;
my %speed = (
	'zk_lock, zk_unlock' => sub {
		my $name = '/b/' . ++$n % $batch;
		$s->query("SELECT zk_lock('$name')");
		$s->query("SELECT zk_unlock('$name')");
		return 1;
	},
	'zk_enqueue, zk_claim_next, zk_cancel_reservation' => sub {
		my $name = '/b/' . ++$n % $batch;
		$s->query("SELECT zk_enqueue('$name', '1 min')");
		my (undef, $path, $token) = split /\|/, $s->query('SELECT * FROM zk_claim_next()');
		$s->query("SELECT zk_cancel_reservation('$path', $token)");
		return 1;
	},
	"$batch with one zk_enqueue_all, each claimed and cancelled by one statement" => sub {
		$s->query("SELECT zk_enqueue_all(array_agg('/b/' || n), '1 min') FROM generate_series(0, $batch - 1) n");
		$s->query('SELECT zk_cancel_reservation(path, token) FROM zk_claim_next()') foreach 1 .. $batch;
		return $batch;
	});
my %rates = map { $_ => [] } keys %speed;
$_->() foreach values %speed;
foreach my $round (1 .. $rounds)
{
	push @{ $rates{$_} }, rate($speed{$_}) foreach sort keys %speed;
}
my $base = median(@{ $rates{'zk_lock, zk_unlock'} });
printf $terminal "%7.0f a second, %4.2f of the first: %s\n", median(@{ $rates{$_} }), median(@{ $rates{$_} }) / $base, $_
  foreach 'zk_lock, zk_unlock', grep { !/^zk_lock/ } sort { length $a <=> length $b } keys %rates;

# ---- memory

sub children
{
	my ($pid) = @_;
	my @children = split ' ', slurp_file("/proc/$pid/task/$pid/children");

	return map { ($_, children($_)) } @children;
}

# Kilobytes of a process and all below it, with its part of what they share
sub memory
{
	my ($pid) = @_;
	my $sum = 0;

	$sum += slurp_file("/proc/$_/smaps_rollup") =~ /^Pss:\s+(\d+)/m ? $1 : 0 foreach $pid, children($pid);
	return $sum;
}

my %memory;

# What it takes more when so many wait
sub growth
{
	my ($what, $pid, $number, $wait) = @_;
	my $before = memory($pid);

	$wait->();
	my $more = memory($pid) - $before;
	printf $terminal "%7d kB more, %7.1f kB each: %d %s\n", $more, $more / $number, $number, $what;
	return;
}

$holder->query("SELECT count(zk_lock('/m/' || n)) FROM generate_series(0, $names - 1) n");
my $server = $one->{_pid};
growth('tickets', $server, $tickets, sub {
		$s->query("SELECT zk_enqueue_all(array_agg('/m/' || n % $names), '1 min') FROM generate_series(1, $tickets) n");
		wait_for(sub { $test->lock_znodes >= $tickets + $names }, 'all wait');
});
$s->query('SELECT zk_withdraw(NULL)');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0);
my @crowd;
growth('sessions', $server, $waiters, sub {
		foreach my $number (1 .. $waiters)
		{
			push @crowd, $test->session($one);
			$crowd[-1]->send("SELECT zk_lock('/m/" . $number % $names . "')");
		}
		wait_for(sub { $test->lock_znodes >= $waiters + $names }, 'all wait');
});
$_->abandon foreach @crowd;

my $dir = PostgreSQL::Test::Utils::tempdir('curator');
my @java = CuratorClient::compile($dir, dirname(abs_path(__FILE__)) . '/CuratorBench.java');
my ($from, $to);
my $curator = open2($from, $to, @java, 'CuratorBench', $test->zk->connect_string, '/zklock');
my $curator_holds = open2(my $from_holder, my $to_holder, @java, 'CuratorBench', $test->zk->connect_string, '/zklock');
print {$to_holder} "lock $_ /c/$_\nheld $_\n" foreach 0 .. $names - 1;
$to_holder->flush;
readline $from_holder foreach 1 .. 2 * $names;

# A thread that has waited, so that all classes are there
print {$to} "lock w /c/w\nheld w\nunlock w\n";
$to->flush;
readline $from foreach 1 .. 3;
growth('threads of Curator', $curator, $waiters, sub {
		print {$to} "lock $_ /c/@{[ $_ % $names ]}\n" foreach 1 .. $waiters;
		$to->flush;
		readline $from foreach 1 .. $waiters;
		wait_for(sub { grep({ m{/c/} } $test->lock_znodes) >= $waiters + $names }, 'all wait');
});
kill 'KILL', $curator, $curator_holds;
waitpid $_, 0 foreach $curator, $curator_holds;
$_->close foreach $s, $holder;
$_->stop('immediate') foreach $test->nodes;
$test->zk->stop;
