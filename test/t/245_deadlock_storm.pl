# A storm of deadlocks: 24 sessions of 3 servers take locks and change rows in random
# orders, without any timeout.  Every transaction ends, and no session fails without a
# cycle: at the time of the log's line each of those that it names waits for what it
# says, and gets that only later.
#
# MINUTES says for how long (0.5), SEED which random numbers.  "make deadlock-storm"
# runs ten minutes.

use strict;
use warnings;

use List::Util qw(max shuffle sum0);
use Test::More;
use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $minutes = $ENV{MINUTES} || 0.5;
my $seed = $ENV{SEED} || time % 1_000_000;
srand $seed;
diag "MINUTES=$minutes SEED=$seed";

my ($names, $rows) = (20, 6);
my $clock = 0.005;    # a time in the log is cut to milliseconds

# Times in the log are seconds since 1970.
my $test = ZklockTest->new(
	servers => 3,
	conf => "deadlock_timeout = '200ms'\nlock_timeout = 0\nlog_line_prefix = '%n [%p] '\n");
my @nodes = $test->nodes;
$_->safe_psql('postgres',
	"CREATE TABLE t (i int PRIMARY KEY, n int); INSERT INTO t SELECT i, 0 FROM generate_series(1, $rows) i")
  foreach @nodes;
my @clients = map {
	my $node = $nodes[ $_ % 3 ];
	{ server => $node->name, session => $test->session($node), plan => [], history => [] }
} 0 .. 23;
my %client = map { ($_->{server} . ' ' . $_->{session}->pid => $_) } @clients;
my %count = map { $_ => 0 } qw(transactions victims local);
my $longest_wait = 0;

# The steps of a transaction; each tells when it had what it is for.
sub random_steps
{
	my @steps = map { { for => "/storm/$_", shared => rand() < 0.25 } }
	  (shuffle(1 .. $names))[ 0 .. 1 + int rand 3 ];

	push @steps, { for => 'a row', row => 1 + int rand $rows } if rand() < 0.5;
	foreach my $step (@steps)
	{
		my $call = $step->{shared} ? 'zk_xact_lock_shared' : 'zk_xact_lock';

		$step->{sql} =
		  $step->{row}
		  ? "UPDATE t SET n = n + 1 WHERE i = $step->{row} RETURNING extract(epoch FROM clock_timestamp())"
		  : "SELECT extract(epoch FROM clock_timestamp()) FROM (SELECT $call('$step->{for}') OFFSET 0) AS got";
	}
	return [ { sql => 'BEGIN' }, shuffle(@steps), { sql => 'COMMIT' } ];
}

# Notes the answer to a step.
sub note_answer
{
	my ($c) = @_;
	my $step = $c->{step};
	my $state = $c->{session}->sqlstate;

	$longest_wait = max($longest_wait, time - $step->{from});
	$count{transactions}++ if $step->{sql} eq 'COMMIT';
	if ($state eq '')
	{
		my ($row) = @{ $c->{session}->result->{rows} };
		$step->{to} = $row->[0] if $row;
		return;
	}
	is($state, '40P01', "$step->{sql} fails") if $state ne '40P01';
	$count{ $c->{session}->messages =~ /of server/ ? 'victims' : 'local' }++;
	$step->{to} = time;
	$c->{plan} = [ { sql => 'ROLLBACK' } ];
	return;
}

# Begins the next step; false: there is none.
sub go_on
{
	my ($c, $more) = @_;

	note_answer($c) if $c->{step};
	$c->{plan} = random_steps() if !@{ $c->{plan} } && $more;
	$c->{step} = shift @{ $c->{plan} } or return 0;
	$c->{step}{from} = time;
	push @{ $c->{history} }, $c->{step} if $c->{step}{for};
	$c->{session}->send($c->{step}{sql});
	return 1;
}

my $end = time + 60 * $minutes;
my $last = $end + $PostgreSQL::Test::Utils::timeout_default;
my @busy = @clients;
while (@busy && time < $last)
{
	my @answered = grep { !$_->{step} || !$_->{session}->busy } @busy;

	foreach my $c (@answered)
	{
		@busy = grep { $_ != $c } @busy if !go_on($c, time < $end);
	}
	sleep 0.002 if !@answered;
}
is(scalar(@busy), 0, 'every transaction ends')
  or diag join "\n", map { "$_->{server} " . $_->{session}->pid . ": $_->{step}{sql}" } @busy;
cmp_ok($longest_wait, '<', 60, 'no wait lasts long');

# ---- what the logs say ----

# Whether a session waited for a lock at that time, or for a row if it is undefined
sub did_wait
{
	my ($c, $lock, $at) = @_;

	return scalar grep {
		$_->{for} eq ($lock // 'a row') && $_->{from} <= $at + $clock
		  && ($_->{to} // $last) >= $at - $clock
	} @{ $c->{history} };
}

# What is wrong with a line and its DETAIL; empty: nothing
sub wrong
{
	my ($server, $at, $pid, $detail) = @_;
	my @steps = map {
		[/^Process (\d+) of server "(\w+)" waits for (?:(?:Exclusive|Share)Lock on distributed lock "(\S+)"|a PostgreSQL lock); blocked by process (\d+) of server "(\w+)"\.$/]
	} split /\n\t?/, $detail;

	return 'it names no others' if @steps < 2;
	return 'it does not begin with the one that fails' if "$steps[0][1] $steps[0][0]" ne "$server $pid";
	foreach my $i (0 .. $#steps)
	{
		my ($waiter, $of, $lock, $blocker, $by) = @{ $steps[$i] };
		my $next = $steps[ ($i + 1) % @steps ];

		return 'a line is strange' if !defined $by;
		return 'it is no cycle' if "$by $blocker" ne "$next->[1] $next->[0]";
		return "$of $waiter did not wait" if !did_wait($client{"$of $waiter"}, $lock, $at);
	}
	$count{rows}++ if $detail =~ /a PostgreSQL lock/;
	$count{members} = max($count{members} // 0, scalar @steps);
	return;
}

my $lines = 0;
foreach my $node (@nodes)
{
	my $log = slurp_file($node->logfile);

	while ($log =~ /^([\d.]+) \[\d+\] LOG:  process (\d+) detected deadlock across servers.*\n[\d.]+ \[\d+\] DETAIL:  (.*(?:\n\t.*)*)/mg)
	{
		my ($at, $pid, $detail) = ($1, $2, $3);
		my $wrong = wrong($node->name, $at, $pid, $detail);

		$lines++;
		fail("a deadlock of process $pid at $at is none: $wrong") or diag $detail if $wrong;
	}
}
is($lines, $count{victims}, 'each victim is in a log, and each line has a victim');
is(sum0(map { $test->status($_, 'deadlocks') } @nodes), $count{victims}, 'zk_stat_server counts all of them');
is(sum0(map { $test->status($_, 'given_up_checks + unpublished_waits') } @nodes), 0, 'nothing is too much');
cmp_ok($count{transactions}, '>', 0, 'transactions commit');
cmp_ok($count{victims}, '>', 0, 'sessions fail');
diag sprintf '%d transactions, %d deadlocks across servers (%d through rows, %d sessions in the longest), %d of PostgreSQL alone, longest wait %.1f s, %d looks',
  $count{transactions}, $count{victims}, $count{rows} // 0, $count{members} // 0, $count{local},
  $longest_wait, sum0(map { $test->status($_, 'deadlock_checks') } @nodes);

$_->{session}->close foreach @clients;
$test->finish;
