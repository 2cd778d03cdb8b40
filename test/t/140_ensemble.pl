# An ensemble of three loses its leader by kill -9, has it stopped, is
# restarted one server after the other (row 14), and loses its quorum (row 15).
# Elections cost no lock and let no two hold one; without a quorum nobody gets
# a lock, and nobody commits on one.

use strict;
use warnings;

use Test::More;

use Workload;
use ZklockTest;
use ZooKeeperEnsemble;

# ZooKeeper 3.8 needs several rounds for some elections: then the lease must not end.
my $zk = ZooKeeperEnsemble->new('zk', tick_time => 300, max_session_timeout => 12_000);
my $test = ZklockTest->new(zk => $zk, session_timeout => '12s');
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/e')";

sub quorum_ok
{
	my ($case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$test->wait_connected($_) foreach $one, $two;
	is($test->status($_, 'sessions_lost'),
		0, "$case: no session lost on " . $_->name)
	  foreach $one, $two;
	return;
}

# Each fault is a list of steps, each of them polled until it is true.
my ($victim, @others);
my $choose = sub {
	$victim = $zk->leader;
	@others = grep { $_ != $victim } $zk->servers;
	return 1;
};
my $elected =
  sub { return scalar grep { ($zk->role($_) // '') eq 'leader' } @others; };
my $all_serve = sub { return !grep { !$zk->role($_) } $zk->servers; };
my %faults = (
	'leader killed' => [
		$choose, sub { $victim->kill9; 1 },
		$elected, sub { $victim->launch; 1 },
		$all_serve
	],
	'leader stopped' => [
		$choose, sub { $victim->pause; 1 },
		$elected, sub { $victim->resume; 1 },
		$all_serve
	],
	'rolling restart' => [
		map {
			my $server = $_;
			(sub { $server->stop; $server->launch; 1 }, $all_serve)
		} $zk->servers
	]);

foreach my $case (sort keys %faults)
{
	# Locks that are held, and awaited, all the time
	my $holder = $test->session($one);
	my $reader = $test->session($two);
	my $waiter = $test->session($two);
	my $token = $holder->query($lock);
	$holder->query("BEGIN; SELECT zk_xact_lock('/e2')");
	$reader->query("SELECT zk_lock_shared('/e3')");
	$test->enqueue($waiter, $lock, '/e');

	my @steps = @{ $faults{$case} };
	my ($at_end, $rounds) = (0, 0);
	my $seen = Workload::run(
		$test,
		sessions => 8,
		names => 3,
		rounds => 1_000_000,
		tick => sub {
			($rounds) = @_;
			shift @steps while @steps && $steps[0]->();
			$at_end ||= $rounds if !@steps;
		},
		until => sub { !@steps && $rounds > $at_end + 200 },
		lock => "SELECT zk_lock('%s')",
		unlock => "SELECT zk_unlock('%s')");
	note explain $seen;
	is($seen->{overlaps}, 0, "$case: no two holders");
	is_deeply($seen->{errors}, {}, "$case: no error");
	cmp_ok($seen->{grants}, '>', 0, "$case: traffic went on");
	quorum_ok($case);

	ok($test->still_waits($waiter), "$case: the waiter waits");
	is($holder->query('COMMIT'), '', "$case: the holder commits");
	is($holder->query("SELECT zk_unlock('/e')"), 't', "$case: and unlocks");
	cmp_ok($waiter->value, '>', $token, "$case: the next one is granted");
	is($reader->query("SELECT zk_unlock_shared('/e3')"),
		't', "$case: the reader unlocks");
	$_->close foreach $holder, $reader, $waiter;
	$test->wait_queue($_, 0) foreach '/e', '/e2', '/e3';
}

# ---- no quorum
my $holder = $test->session($one);
my $patient = $test->session($one);
my $waiter = $test->session($two);
my $newcomer = $test->session($two);
$holder->query("BEGIN; CREATE TABLE lost (); SELECT zk_xact_lock('/e')");
$holder->query("SET zklock.commit_wait = '50ms'");
$patient->query("BEGIN; CREATE TABLE kept (); SELECT zk_xact_lock('/e2')");
$patient->query("SET zklock.commit_wait = '10min'");
my $token = $holder->query("SELECT zk_fencing_token('/e')");
$test->enqueue($waiter, $lock, '/e');
my @followers = $zk->followers;
$_->kill9 foreach @followers;

$test->look_until($_,
	"SELECT lease_remaining <= '0' AND state <> 'connected' FROM zk_status",
	't', 'no quorum: the lease passes on ' . $_->name)
  foreach $one, $two;
$newcomer->query("SET zklock.answer_timeout = '50ms'");
is($newcomer->error("SELECT zk_try_lock('/e4')"),
	'08006', 'no quorum: a try is an error');
$newcomer->send("SELECT zk_lock('/e4')");
$patient->send('COMMIT');
is($holder->error('COMMIT'), '40001', 'no quorum: no commit under a lock');
ok($waiter->busy, 'no quorum: who waits is not granted');
ok($newcomer->busy, 'no quorum: nor who comes new');
ok($patient->busy, 'no quorum: a patient commit waits');

# With the quorum the sessions are back: ZooKeeper has not timed them out.
$zk->start;
quorum_ok('quorum again');
is($patient->sqlstate, '', 'quorum again: the patient one commits');
is($patient->query("SELECT to_regclass('kept') IS NOT NULL"
		  . " AND to_regclass('lost') IS NULL"),
	't', 'it alone');
cmp_ok($waiter->value, '>', $token, 'quorum again: the next one is granted');
cmp_ok($newcomer->value, '>', $token, 'quorum again: and the new one');

$_->close foreach $holder, $patient, $waiter, $newcomer;
$test->finish;
