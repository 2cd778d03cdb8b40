# A program under zklock-run, and its PostgreSQL server, which is stopped, restarted,
# promoted, drained or switched off, or whose worker ends: the program of the next
# holder, on another server, does not begin before the first one is dead.  And a session
# that was told a time, and is terminated.
#
# ROUNDS=50 does each of them so often, and says how close they came, and how long the
# server took to stop; CASES='restart|promotion' leaves out the others.

use strict;
use warnings;

use IPC::Run;
use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $rounds = $ENV{ROUNDS} // 1;
my $cases = $ENV{CASES} // '.';
my $test = ZklockTest->new(session_timeout => '4s', init => { allows_streaming => 1 });
my ($one, $two) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();

$one->safe_psql('postgres', 'CREATE ROLE batch LOGIN');
$two->safe_psql('postgres', 'CREATE ROLE batch LOGIN');
$_->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION zk_try_reserve, zk_lock TO batch;'
	  . ' GRANT EXECUTE ON PROCEDURE zk_await_reservation TO batch')
  foreach $one, $two;

# A program that writes down that it lives, every 5 ms, by a clock that all have in common
append_to_file("$dir/job", <<'EOS');
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);
my ($log, $seconds) = @ARGV;
open my $file, '>>', $log or die;
$file->autoflush(1);
my $end = clock_gettime(CLOCK_MONOTONIC) + $seconds;
while ((my $now = clock_gettime(CLOCK_MONOTONIC)) < $end)
{
	printf $file "%.4f\n", $now;
	usleep(5_000);
}
EOS

sub run
{
	my ($node, $name, $log, $seconds) = @_;
	my ($out, $err) = ('', '');
	my $run = { err => \$err };

	$run->{harness} = IPC::Run::start(
		[
			'zklock-run', '-d', $node->connstr('postgres'), '-U', 'batch', $name, '--', 'perl',
			"$dir/job", $log, $seconds
		],
		'<', \undef, '>', \$out, '2>', \$err);
	return $run;
}

sub times_in
{
	my @times = -e $_[0] ? split(/\n/, slurp_file($_[0])) : ();

	return @times;
}

my %least;    # the shortest time between two of them, in ms
my $number = 0;

sub note_distance
{
	my ($case, $distance) = @_;

	$least{$case} = $distance if !defined $least{$case} || $distance < $least{$case};
	return;
}

my %took;    # what each case took, in ms

sub timed
{
	my ($case, $event) = @_;
	my $begin = clock_gettime(CLOCK_MONOTONIC);

	$event->();
	push @{ $took{$case} }, 1000 * (clock_gettime(CLOCK_MONOTONIC) - $begin);
	return;
}

# The least, the middle and the most of what it took
sub spread
{
	my @times = sort { $a <=> $b } @_;

	return sprintf '%.0f, %.0f, %.0f ms', @times[ 0, $#times / 2, -1 ];
}

# A program of one server, what happens to that server, and the next one's program.
# "again" makes all as it was.
sub round
{
	my ($case, $node, $event, $again) = @_;
	my $name = '/round/' . ++$number;
	my ($first_log, $next_log) = map { "$dir/$_$number" } qw(first next);
	my $first = run($node, $name, $first_log, 20);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_for(sub { times_in($first_log) > 10 }, "$case: the program runs");
	my $next = run($two, $name, $next_log, 0.1);
	$test->wait_waiting($two, $name, 1);
	$test->stop_looking($node);
	timed($case, $event);
	if ($case =~ /goes on/)
	{
		my $lines = times_in($first_log);

		wait_for(sub { times_in($first_log) > $lines + 200 }, "$case: it goes on");
		is(scalar(times_in($next_log)), 0, "$case: and the next one waits");
		$first->{harness}->signal('TERM');
	}
	$_->{harness}->finish foreach $next, $first;
	isnt($first->{harness}->result(0), 0, "$case: which does not succeed") if $case eq 'end of the worker';
	like(${ $first->{err} }, qr{"$name" could not be kept: (?:FATAL:  )?terminating connection due to}, "$case: it says why")
	  if $case eq 'fast stop';
	my @first = times_in($first_log);
	my @next = times_in($next_log);
	note_distance($case, 1000 * ($next[0] - $first[-1]));
	cmp_ok($next[0], '>', $first[-1], "$case: one after the other");
	$again->() if $again;
	return;
}

sub start
{
	$one->start;
	$test->wait_connected($one);
	return;
}

sub end_worker
{
	my $pid = $test->status($one, 'worker_pid');

	kill 'TERM', $pid;
	$test->wait_gone($pid);
	return;
}

my $standby;
my %cases = (
	'restart' => [ sub { $one->restart }, sub { $test->wait_connected($one) } ],
	'fast stop' => [ sub { $one->stop('fast') }, \&start ],
	'immediate stop' => [ sub { $one->stop('immediate') }, \&start ],
	'end of the worker' => [ \&end_worker, sub { $test->wait_connected($one) } ],
	'smart stop, goes on' => [
		sub { $one->command_ok([ 'pg_ctl', '-D', $one->data_dir, '-m', 'smart', '-W', 'stop' ], 'smart stop'); },
		sub {
			my $postmaster = $one->{_pid};

			$test->wait_gone($postmaster);
			$one->_update_pid(0);
			start();
		}
	],
	'drain, goes on' => [
		sub { $test->look($one, "SELECT count(*) FROM zk_drain('0')") },
		sub { $test->look($one, 'SELECT zk_undrain()') }
	],
	'switched off, goes on' => [
		sub { $test->set($one, enabled => 'off') },
		sub {
			$test->look_until($one, 'SELECT state FROM zk_status', 'disabled', 'it is off');
			$test->set($one, enabled => 'on');
			$test->wait_connected($one);
		}
	],
	'another timeout, goes on' => [
		sub { $test->set($one, session_timeout => '5s') },
		sub {
			$test->look_until($one, 'SELECT session_timeout FROM zk_status', '00:00:05', 'a new session');
			$test->set($one, session_timeout => '4s');
			$test->look_until($one, 'SELECT session_timeout FROM zk_status', '00:00:04', 'and back');
		}
	],
	'zklock-run\'s session is terminated, goes on' => [
		sub {
			$test->look($one,
				"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'zklock-run'");
		}
	]);
foreach my $case (grep { /$cases/ } sort keys %cases)
{
	round($case, $one, @{ $cases{$case} }) foreach 1 .. $rounds;
}

foreach ('promotion' =~ /$cases/ ? 1 .. $rounds : ())
{
	$standby = $test->add_standby($one, "zklock.server_name = 'standby'\n");
	round('promotion, goes on', $standby, sub { $standby->promote });
	$test->stop_looking($standby);
	$standby->stop('immediate');
	$standby->clean_node;
	pop @{ $test->{nodes} };
	system('rm', '-rf', $one->backup_dir . '/base');
}

# A session works until the time that it was told, whatever has become of it.
my $rival = $test->session($two);
foreach ('terminated session' =~ /$cases/ ? 1 .. $rounds : ())
{
	my $name = '/round/' . ++$number;
	my $s = $test->session($one, user => 'batch');

	$s->query("SELECT zk_lock('$name')");
	my $asked = clock_gettime(CLOCK_MONOTONIC);
	my $until = $asked + $s->query("SELECT extract(epoch FROM zk_assert_lock('$name'))");
	$test->enqueue($rival, "SELECT zk_lock('$name')", $name);
	kill 'TERM', $s->pid;
	$rival->value;
	my $now = clock_gettime(CLOCK_MONOTONIC);
	note_distance('a terminated session', 1000 * ($now - $until));
	cmp_ok($now, '>=', $until, 'a terminated session: not before the time that it was told');
	$rival->query('SELECT zk_unlock_all()');
}

# Nobody relies on anything: what a stop takes then
foreach my $stop (qw(fast immediate))
{
	foreach ("$stop stop" =~ /$cases/ ? 1 .. $rounds : ())
	{
		my $s = $test->session($one);

		$s->query("SELECT zk_lock('/unpromised')");
		$test->stop_looking($one);
		timed("$stop stop without a promise", sub { $one->stop($stop) });
		$s->abandon;
		start();
	}
}
note "$_ took (least, middle, most) " . spread(@{ $took{$_} }) foreach sort keys %took;
note sprintf '%s: %d rounds, at least %.1f ms apart', $_, $rounds, $least{$_} foreach sort keys %least;
$test->finish;
