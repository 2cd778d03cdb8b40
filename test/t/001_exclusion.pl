# Two servers, one lock.  Whoever holds it keeps the other server's clients
# out, in both directions.  Then many clients of both servers count up a
# number in a file by reading and writing it: with the lock no update is lost;
# without it some are, which shows that the test would see it.

use strict;
use warnings;

use POSIX ();
use Test::More;
use Time::HiRes qw(usleep);

use PostgreSQL::Test::Utils;
use Workload;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;

foreach my $pair ([ $one, $two ], [ $two, $one ], [ $one, $one ])
{
	my ($holder_node, $waiter_node) = @$pair;
	my $case = $holder_node->name . ' before ' . $waiter_node->name;
	my $holder = $test->session($holder_node);
	my $waiter = $test->session($waiter_node);

	my $token = $holder->query("SELECT zk_lock('/batch/nightly')");
	cmp_ok($token, '>', 0, "$case: granted at once");
	is($waiter->query("SELECT zk_try_lock('/batch/nightly')"),
		'f', "$case: a try says no");
	is($waiter->query("SELECT zk_try_lock_shared('/batch/nightly')"),
		'f', "$case: a shared try says no");
	is($waiter->query("SELECT zk_try_lock('/batch/other')"),
		't', "$case: another name is free");

	$test->enqueue($waiter, "SELECT zk_lock('/batch/nightly')",
		'/batch/nightly');
	ok($test->still_waits($waiter), "$case: the other one waits");
	is($holder->query("SELECT zk_unlock('/batch/nightly')"),
		't', "$case: released");
	cmp_ok($waiter->value, '>', $token,
		"$case: the other one is granted, with a larger token");
	is($holder->query("SELECT zk_try_lock('/batch/nightly')"),
		'f', "$case: now the first is kept out");
	$_->close foreach $holder, $waiter;
	$test->wait_queue('/batch/nightly', 0);
}

# Each client is a process; $protected: with the lock or without.
sub count_up
{
	my ($file, $clients, $rounds, $protected) = @_;
	my @nodes = $test->nodes;
	my @pids;

	append_to_file($file, "0\n");
	foreach my $client (0 .. $clients - 1)
	{
		my $pid = fork() // die "could not fork: $!";
		if ($pid) { push @pids, $pid; next; }
		my $good = eval {
			my $session = $test->session($nodes[ $client % @nodes ]);
			foreach (1 .. $rounds)
			{
				$session->query("SELECT zk_lock('/count')") if $protected;
				my ($number) = slurp_file($file) =~ /(\d+)/;
				usleep(500);
				open my $handle, '+<', $file or die;
				syswrite $handle, $number + 1 . "\n";
				close $handle;
				$session->query("SELECT zk_unlock('/count')") if $protected;
			}
			$session->close;
			1;
		};
		POSIX::_exit($good ? 0 : 1);
	}
	my $failed = 0;
	foreach my $pid (@pids)
	{
		waitpid $pid, 0;
		$failed++ if $?;
	}
	is($failed, 0, 'all counting clients ended well');
	return slurp_file($file) + 0;
}

my $dir = PostgreSQL::Test::Utils::tempdir;
is(count_up("$dir/with", 8, 40, 1), 320, 'with the lock no update is lost');
cmp_ok(count_up("$dir/without", 8, 40, 0),
	'<', 320, 'without the lock some are');

my %load = (sessions => 16, names => 3, rounds => 3000);
my $seen = Workload::run(
	$test, %load,
	lock => "SELECT zk_lock('%s')",
	unlock => "SELECT zk_unlock('%s')");
is_deeply($seen->{errors}, {}, 'traffic with the lock: no error');
cmp_ok($seen->{grants}, '>=', 3000, 'traffic with the lock: all granted');
is($seen->{overlaps}, 0, 'traffic with the lock: no two holders');
cmp_ok(Workload::run($test, %load)->{overlaps},
	'>', 0, 'traffic without the lock: the checker sees two holders');

# A holder's session is ended, and another one has the lock, before the checker
# reads about either.
my ($next_end, $ended) = (50, 0);

# The process ids of the sessions that hold a lock, or wait for one
sub sessions_with
{
	my ($state) = @_;

	return map {
		split /\n/, $test->look($_, 'SELECT pid FROM zk_locks'
			  . " WHERE path ^@ '/workload/' AND state = '$state'")
	} $one, $two;
}

sub holding { return sessions_with('granted'); }

sub end_holder
{
	my ($started) = @_;
	my @pids;

	# Sessions that were ended may not be back yet, and none comes back during this.
	return if $started < $next_end || sessions_with('waiting') < 3;
	$next_end += 50;
	wait_for(sub { @pids = holding() }, 'a session holds the lock');
	kill 'TERM', @pids;
	$ended++;
	wait_for(sub { grep { $_ != $pids[0] } holding() }, 'another one holds it');
	return;
}

$seen = Workload::run(
	$test,
	sessions => 8,
	names => 1,
	rounds => 1000,
	reconnect => 0.1,
	tick => \&end_holder,
	lock => "SELECT zk_lock('%s')",
	unlock => "SELECT zk_unlock('%s')");
is($seen->{overlaps}, 0, 'ended sessions: no two holders');
cmp_ok($ended, '>=', 10, 'ended sessions: some held the lock');

$test->finish;
