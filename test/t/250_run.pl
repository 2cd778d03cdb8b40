# zklock-run: a program under a lock.  Whatever ends, the next holder's program does not
# begin before the last one is dead.

use strict;
use warnings;

use Test::More;

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '4s');
my ($one, $two) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $jobs = LockedProgram->new("$dir/log");

sub start { return $jobs->start(@_); }
sub run_it { return $jobs->run_it(@_); }
sub job { return $jobs->job(@_); }
sub begins { return $jobs->begins(@_); }

# ---- what it passes on

my ($status, $out, $err) =
  run_it($one, '/run', '--', 'sh', '-c', 'echo "$ZKLOCK_NAME $ZKLOCK_TOKEN"; exit 7');
is($status, 7, 'the exit status is that of the program');
like($out, qr{^/run [1-9]\d+$}, 'the program knows the lock and its token');
is($err, '', 'and nothing else is said');
($status) = run_it($one, '/run', '--', 'sh', '-c', 'kill -9 $$');
is($status, 137, 'a signal');
($status, $out, $err) = run_it($one, '/run', '--', "$dir/nothing");
is($status, 127, 'no such program');
like($err, qr/could not run ".*nothing": No such file/, 'which it says');
($status) = run_it($one, '/run', '--', "$dir/job");
is($status, 126, 'a program that is none');
is($test->look($one, 'SELECT count(*) FROM zk_locks'), 0, 'no reservation is left of them')
  if $test->wait_queue('/run', 0);

# ---- bad input

my %bad = (
	'' => qr/no lock is given/,
	'/run' => qr/"--" must follow the lock/,
	'/run --' => qr/no program is given/,
	'/run true' => qr/"--" must follow the lock/,
	'--no /run -- true' => qr/invalid option.*"--no"/,
	'--timeout' => qr/missing argument/,
	'--try --timeout=1s /run -- true' => qr/exclude each other/,
	'--grace=soon /run -- true' => qr/invalid time for --grace: "soon"/,
	'--at-most=-1 /run -- true' => qr/invalid time/,
	'--at-most=0 /run -- true' => qr/must be positive/,
	'--zone=UTC /run -- true' => qr/need --once/,
	'--once=1day --guarantee=never /run -- true' => qr/invalid guarantee: "never"/,
	'--once=soon /run -- true' => qr/invalid input syntax for type interval/,
	'--timeout=soon --quiet run -- true' => qr/invalid/,
	'--timeout=-1s /run -- true' => qr/--timeout must not be negative/,
	'--once=0 /run -- true' => qr/--once must be positive/,
	'--once=1day --zone=Nowhere /run -- true' => qr/time zone "Nowhere" not recognized/,
	'run -- true' => qr/invalid lock name/);
foreach my $args (sort keys %bad)
{
	($status, $out, $err) = run_it($one, split / /, $args);
	is($status, 64, "\"$args\": 64");
	like($err, $bad{$args}, "\"$args\": says why");
}
is($test->look($one, "SELECT count(*) FROM zk_locks WHERE state = 'kept'"),
	0, 'no reservation is left of them, either');
($status, $out, $err) = run_it($one, '-U', 'nobody', '/run', '--', 'true');
is($status, 69, 'no such role: nobody knows who has the lock');
like($err, qr/role "nobody" does not exist/, 'it says so');
$one->safe_psql('postgres', 'CREATE ROLE weak LOGIN');
($status, $out, $err) = run_it($one, '-U', 'weak', '/run', '--', 'true');
is($status, 77, 'no right to it');
my $grants = 'GRANT EXECUTE ON ROUTINE';
like($err, qr/^zklock-run: role weak may not call what it needs: $grants zk_await_reservation, zk_try_reserve TO weak$/m,
	'all that is missing');

# What is needed only later is missing from the start.
$one->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION zk_try_reserve TO weak');
($status, $out, $err) = run_it($one, '-U', 'weak', '/run', '--', 'true');
is($status, 77, 'no right to wait, though nobody has the lock');
like($err, qr/: $grants zk_await_reservation TO weak$/m, 'it says which right helps');
($status) = run_it($one, '-U', 'weak', '--try', '/run', '--', 'true');
is($status, 0, '--try needs none');
($status, $out, $err) = run_it($one, '-U', 'weak', '--try', '--once=1 day', '/run', '--', 'true');
is($status, 77, '--once does');
like($err, qr/: $grants zk_once, zk_time TO weak$/m, 'it says which');
$one->safe_psql('postgres', 'REVOKE EXECUTE ON FUNCTION zk_cancel_reservation FROM PUBLIC');
($status, $out, $err) = run_it($one, '-U', 'weak', '--try', '/run', '--', 'true');
like("$status $err", qr/^77 .*: $grants zk_cancel_reservation TO weak$/m, 'and those for the end');
$one->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION zk_cancel_reservation TO PUBLIC');
unlike(slurp_file($one->logfile), qr/permission denied/, 'none of that is an error in the log');
$one->safe_psql('postgres', 'CREATE DATABASE bare');
($status, $out, $err) = run_it($one, '-d', $one->connstr('bare'), '/run', '--', 'true');
is($status, 78, 'a database without the extension');
is($err, "zklock-run: database \"bare\" has no extension zklock: name another one with -d, or CREATE EXTENSION zklock there\n",
	'it says so');
($status, $out) = run_it($one, '--version');
like($out, qr/^zklock-run \(zklock\) \d/, '--version');
($status, $out) = run_command([ 'zklock-run', '--help' ]);
like($status, qr/^zklock-run runs a program/, '--help');

# ---- waiting

my $holder = $test->session($two);
$holder->query("SELECT zk_lock('/run')");
($status, $out, $err) = run_it($one, '--try', '/run', '--', 'true');
is($status, 75, '--try: the lock is not to be had');
like($err, qr/could not get "\/run", which another one has: server "server2", process \d+, user/, 'it says who has it');
($status, $out, $err) = run_it($one, '--try', '--quiet', '/run', '--', 'true');
is("$status|$out$err", '75|', '--quiet: and says nothing');
foreach my $args ('--timeout=soon', '--timeout=-1s', '--try --once=-1day', '--try --once=1day --zone=Nowhere')
{
	($status, $out, $err) = run_it($one, split(/ /, $args), '/run', '--', 'true');
	is($status, 64, "$args: 64, though another one has the lock");
	unlike($err, qr/another one/, "$args: which is not asked for");
}
foreach (
	[ '', '' ],
	[ 'EXECUTE ON FUNCTION zk_queue', ': server "server2"' ],
	[ 'pg_read_all_stats', ': server "server2", process \d+, user "\w+"' ])
{
	my ($grant, $who) = @$_;

	$one->safe_psql('postgres', "GRANT $grant TO weak") if $grant;
	($status, $out, $err) = run_it($one, '-U', 'weak', '--try', '/run', '--', 'true');
	like("$status $err", qr/^75 zklock-run: could not get "\/run", which another one has$who\n$/,
		($grant || 'without a right to it') . ': it says what the role may see, without blanks');
}
unlike(slurp_file($one->logfile), qr/ERROR:  .*(?:"\/run"|zk_queue)/, 'which is no error in the log');
($status, $out, $err) = run_it($one, '--timeout=300ms', '/run', '--', 'true');
is($status, 75, '--timeout: nor in that time');
like($err, qr/could not acquire distributed lock "\/run" within 300 ms/, 'it says so');
($status, $out, $err) = run_it($one, '--timeout=300ms', '--quiet', '/run', '--', 'true');
is("$status|$out$err", '75|', '--quiet: and says nothing');
my $waiter = start($one, '/run', '--', job('waiter', 0.1));
$test->wait_waiting($one, '/run', 1);
$test->look_until($one,
	"SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL zk_await_reservation%'"
	  . " AND state = 'active' AND backend_xmin IS NULL",
	1, 'its wait has no snapshot');
like($waiter->look->err, qr{waits for "/run", which another one has: server "server2", process \d+}, 'it says for whom it waits');
my $given_up = start($one, '--quiet', '/run', '--', 'true');
$test->wait_waiting($one, '/run', 2);
kill 'TERM', $given_up->pid;
is($given_up->status, 143, 'a signal ends the wait');
is($given_up->err, '', '--quiet');
$test->wait_waiting($one, '/run', 1);
my $killed = start($one, '/run', '--', 'true');
$test->wait_waiting($one, '/run', 2);
kill 'KILL', $killed->pid;
$killed->{harness}->finish;
$test->wait_waiting($one, '/run', 1);
$holder->query("SELECT zk_unlock('/run')");
is($waiter->status, 0, 'it has waited, and run');
my $own = start($one, '/run', '--', job('own', 60));
begins('own');
$waiter = start($one, '/run', '--', 'true');
$test->wait_waiting($one, '/run', 1);
kill 'TERM', $own->pid;
$own->status;
is($waiter->status, 0, 'it waits for a program of the same role and server, too');

# ---- signals, and the end of time

my $run = start($one, '/run', '--', job('signalled', 60));
begins('signalled');
kill 'TERM', $run->pid;
is($run->status, 143, 'a signal is passed on');
$run = start($one, '--at-most=300ms', '--grace=200ms', '/run', '--', job('stubborn', 60));
is($run->status, 137, '--at-most: SIGTERM, and SIGKILL after the grace');
like($run->err, qr/ended the program after --at-most/, 'it says so');
ok((grep { /stubborn term/ } $jobs->lines), 'SIGTERM came first');

# ---- once

($status) = run_it($one, '--once=1 day', '/once', '--', 'false');
is($status, 1, '--once: it runs');
($status, $out, $err) = run_it($two, '--once=1 day', '/once', '--', 'true');
is($status, 0, 'not again, anywhere, in that period');
like($err, qr{another run of "/once" has this period}, 'it says so');
($status, $out, $err) = run_it($two, '--once=1 day', '--quiet', '/once', '--', 'true');
is("$status|$out$err", '0|', '--quiet: and says nothing');
my @least = ('--once=1 day', '--guarantee=at_least_once', '/least', '--');
($status) = run_it($one, @least, 'sh', '-c', 'exit 3');
is($status, 3, 'at_least_once: a run that fails');
($status, $out) = run_it($two, @least, 'echo', 'again');
is("$status $out", "0 again\n", 'is repeated');
($status, $out) = run_it($one, @least, 'echo', 'no more');
is("$status $out", '0 ', 'until one succeeds');

# What zklock-run ends has not succeeded, also if it takes SIGTERM for a reason to exit with 0.
my $polite = 'trap "exit ${0#sh}" TERM; sleep 60 & wait';
@least = ('--once=1 day', '--guarantee=at_least_once', '--at-most=300ms', '/ended', '--');
($status, $out, $err) = run_it($one, @least, 'sh', '-c', $polite, 'sh0');
is($status, 143, 'a program that --at-most ends, and that exits with 0: as if SIGTERM had ended it');
like($err, qr/ended the program after --at-most/, 'it says so');
($status) = run_it($one, @least, 'sh', '-c', $polite, 'sh5');
is($status, 5, 'at_least_once: that run did not count; another exit status is passed on');
($status, $out) = run_it($one, @least, 'echo', 'again');
is("$status $out", "0 again\n", 'nor did that one');
($status) = run_it($one, '--once=1 day', '--at-most=300ms', '/ended_most', '--', 'sh', '-c', $polite, 'sh0');
is($status, 143, 'at_most_once: 143, too');
($status, $out) = run_it($one, '--once=1 day', '/ended_most', '--', 'echo', 'again');
is("$status $out", '0 ', 'and that run counts, as it began');

# Nor has what somebody tells to end, as at the shutdown of a machine.
@least = ('--once=1 day', '--guarantee=at_least_once', '/told', '--');
$run = start($one, @least, 'sh', '-c', "trap 'exit 0' TERM; touch $dir/told; sleep 60 & wait");
wait_for(sub { -e "$dir/told" }, 'the program waits for the signal');
kill 'TERM', $run->pid;
is($run->status, 143, 'at_least_once: a program that is told to end, and that exits with 0');
like($run->err, qr/"sh" was told to end, so its run does not count/, 'it says so');
($status, $out) = run_it($one, @least, 'echo', 'again');
is("$status $out", "0 again\n", 'the job runs again');
$run = start($one, '/told', '--', 'sh', '-c', "trap 'exit 0' TERM; touch $dir/told2; sleep 60 & wait");
wait_for(sub { -e "$dir/told2" }, 'another program waits for the signal');
kill 'TERM', $run->pid;
is($run->status, 0, 'without --once, its exit status is passed on');

# Who had succeeded by then was not told to end: SIGTERM of what it has left shows that.
@least = ('--once=1 day', '--guarantee=at_least_once', '--grace=1s', '/before', '--');
$run = start($one, @least, 'sh', '-c',
	"(trap 'touch $dir/told3' TERM; while :; do sleep 0.05; done) & exit 0");
wait_for(sub { -e "$dir/told3" }, 'what the program has left is told to end');
kill 'TERM', $run->pid;
is($run->status, 0, 'at_least_once: a program that had ended before zklock-run was told');
($status, $out) = run_it($one, @least, 'echo', 'no more');
is("$status $out", '0 ', 'that run counts');

# Who has finished by then has succeeded, whatever is ended that it has left.
my $left = "$dir/left";
@least = ('--once=1 day', '--guarantee=at_least_once', '/finished', '--');
$run = start($one, @least, 'sh', '-c',
	"sleep 60 & echo \$! >$left.new; mv $left.new $left; until [ -e $left.go ]; do sleep 0.01; done");
wait_for(sub { -e $left }, 'the program runs');
kill 'STOP', $run->pid;
append_to_file("$left.go", '');
my $left_pid = slurp_file($left) + 0;
wait_for(sub { !kill 0, $left_pid }, 'a guard ends what the program has left');
kill 'CONT', $run->pid;
is($run->status, 0, 'the program has ended before the lock was in doubt');
like($run->err, qr/ended what "sh" had left running/, 'it says what was ended');
($status, $out) = run_it($one, @least, 'echo', 'no more');
is("$status $out", '0 ', 'at_least_once: that run counts');

# ---- whatever ends, the next one begins later

my %ends = (
	'kill -9 of zklock-run' => sub { kill 'KILL', $_[0]->pid },
	'SIGSTOP of zklock-run' => sub { kill 'STOP', $_[0]->pid },
	'a server that is cut off' => sub {
		my ($worker, $session) = split /\|/, $test->status($one, 'worker_pid, session_pid');
		kill 'STOP', $worker;
		kill 'KILL', $session;
	},
	'kill -9 of ZooKeeper' => sub {
		$test->zk->kill9;
		$_[0]->status;
		$test->zk->start;
	},
	'SIGSTOP of ZooKeeper' => sub {
		$test->zk->pause;
		$_[0]->status;
		$test->zk->resume;
	},
	'kill -9 of the server' => sub { $one->kill9 });
my %why = (
	'SIGSTOP of zklock-run' => qr/(no renewal was confirmed|ZooKeeper did not confirm it) in time/,
	'a server that is cut off' => qr/the server does not answer/,
	'kill -9 of ZooKeeper' => qr/ZooKeeper did not confirm it in time/,
	'SIGSTOP of ZooKeeper' => qr/ZooKeeper did not confirm it in time/,
	'kill -9 of the server' => qr{.*(closed the connection|connection to server|terminating connection)});
foreach my $round (1 .. $ENV{ROUNDS} // 1)
{
	race($_, $round) foreach sort keys %ends;
}

sub race
{
	my ($end, $round) = @_;
	my ($first, $next) = ("stubborn $end $round", "after $end $round");

	$run = start($one, '--grace=1s', '/race', '--', job($first, 60));
	begins($first);
	my $other = start($two, '--quiet', '/race', '--', job($next, 0.05));
	$test->wait_waiting($two, '/race', 1);
	my $worker = $test->status($one, 'worker_pid');
	$test->stop_looking($one) if $end =~ /kill -9 of the server/;
	$ends{$end}->($run);
	is($other->status, 0, "$end: the next one runs");
	my $distance = $jobs->distance($first, $next);
	cmp_ok($distance, '>', 0, "$end: when the first one is dead");
	note sprintf('%s: %.2f s', $end, $distance);
	kill 'CONT', $run->pid, $worker;
	$run->{harness}->finish unless $end =~ /ZooKeeper/;
	like($run->err, qr{ended the program, as "/race" could not be kept: $why{$end}},
		"$end: it says which lock, and why")
	  if $why{$end};
	if ($end =~ /kill -9 of the server/)
	{
		delete $one->{_pid};
		wait_for(sub { $one->start(fail_ok => 1) }, 'the server starts again');
	}
	$test->wait_connected($_) foreach $one, $two;
	return;
}

# A backend that is ended, or stopped, is no reason to end the program.
foreach my $signal (qw(TERM STOP))
{
	$run = start($one, '/goes_on', '--', job("goes on $signal", 4));
	begins("goes on $signal");
	my $backend = $test->look($one,
		"SELECT pid FROM pg_stat_activity WHERE application_name = '$ENV{PGAPPNAME}' ORDER BY backend_start DESC LIMIT 1");
	kill $signal, $backend;
	is($run->status, 0, "SIG$signal of the backend: another session renews the lock");
	kill 'CONT', $backend;
}

# An operator who breaks the lock ends the program.
$run = start($one, '/broken', '--', job('broken', 60));
begins('broken');
$holder->query("SELECT zk_break_lock('/broken')");
is($run->status, 143, 'zk_break_lock() ends the program');
like($run->err, qr{the reservation of "/broken" is gone: .*An operator broke it}, 'it says why');
like($run->err, qr{ended the program, as "/broken" could not be kept: .*An operator broke it},
	'and of which lock that was');
@least = ('--once=1 day', '--guarantee=at_least_once', '/broken', '--');
$run = start($one, @least, 'sh', '-c', "trap 'exit 0' TERM; sleep 60 & : >$dir/polite; wait");
wait_for(sub { -e "$dir/polite" }, 'the program runs');
$holder->query("SELECT zk_break_lock('/broken')");
is($run->status, 143, 'also one that then exits with 0');
($status, $out) = run_it($one, @least, 'echo', 'again');
is("$status $out", "0 again\n", 'at_least_once: that run did not count');
# One that does not heed SIGTERM has the grace, once.
$run = start($one, '--grace=200ms', '/broken', '--', job('stubborn broken', 60));
begins('stubborn broken');
$holder->query("SELECT zk_break_lock('/broken')");
is($run->status, 137, 'and kills it after the grace');
my @said = $run->err =~ /is gone/g;
is(scalar @said, 1, 'the loss is told once');
$holder->close;
unlike(slurp_file($one->logfile), qr/no transaction in progress/, 'it ends no transaction that it has not begun');

$test->finish(crashes => '(server process|client backend|background worker) .* was terminated by signal 9|all server processes terminated|not properly shut down');
