# What zklock needs when nothing happens, and when much is held.

package ScenarioFacts;

use strict;
use warnings;

use Time::HiRes qw(time);

use PgSession;

my $locks = 10_000;
my $idle_seconds = 30;

sub measure
{
	my ($scenario, $contestant, $cluster) = @_;
	my $node = $cluster->node(2);
	my $session = PgSession->new($node);
	my %result;

	# The third server has done next to nothing so far.
	$session->query("SELECT zk_lock('/facts'), zk_unlock('/facts')");
	sleep 5;
	my %pids = (worker => $cluster->worker_pid(2),
		session => $cluster->session_pid(2));
	my %before = map { $_ => BenchCluster::sleeps($pids{$_}) } keys %pids;
	sleep $idle_seconds;
	$result{"${_}_wakeups"} =
	  (BenchCluster::sleeps($pids{$_}) - $before{$_}) / $idle_seconds
	  foreach keys %pids;

	my $begin = time;
	$session->query("SELECT count(zk_lock('/facts/' || n))"
		  . " FROM generate_series(1, $locks) n");
	$result{rate} = $locks / (time - $begin);
	$result{worker_kb} = BenchCluster::private_kb($pids{worker});
	$result{slot_bytes} = $session->query('SELECT round(sum(allocated_size)'
		  . " / (current_setting('zklock.max_requests')::int"
		  . "    + 2 * current_setting('max_connections')::int))"
		  . " FROM pg_shmem_allocations WHERE name ILIKE '%zklock%'");
	$session->query('SELECT zk_unlock_all()');
	$session->close;
	$cluster->test->look_until($node, 'SELECT count(*) FROM zk_locks', 0,
		'all locks released');
	return \%result;
}

1;
