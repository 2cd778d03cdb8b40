# Measures how fast locks go on, with the session timeout T = 10 s and a tick of
# 2 s, and prints a table in Markdown.  Nothing here passes or fails by a time:
# what it demands is only that no lock is lost where none may be.
#
#	HANDOVERS	how many to measure (3000)
#	ROUNDS		of each fault (5)

use strict;
use warnings;

use IO::Select;
use Test::More;
use Time::HiRes qw(usleep);

use ChaosClient;
use ChaosProcesses;
use ChaosTable qw(row fact);
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;
use ZooKeeperEnsemble;

my $handovers = $ENV{HANDOVERS} || 3000;
my $rounds = $ENV{ROUNDS} || 5;
my $timeout = 10;
my $tick = 2;

$| = 1;
# Whoever ends this program ends its servers too.
$SIG{$_} = sub { die "interrupted\n" } foreach qw(INT TERM);

sub now { return ChaosClient::now(); }

sub cluster
{
	my (%params) = @_;
	my $zk = ZooKeeperEnsemble->new($params{zk}, tick_time => $tick * 1000);
	my $test = ZklockTest->new(
		servers => 3,
		zk => $zk,
		net => $params{net},
		prefix => $params{prefix},
		session_timeout => "${timeout}s",
		max_requests => 3000,
		conf => "restart_after_crash = on\n"
		  . "zklock.max_requests_per_session = 3000\n");

	return $test;
}

sub batches { return $_[0]->status($_[1], 'batches'); }

sub wait_until
{
	my ($condition, $what, $limit) = @_;
	my $deadline = now() + ($limit // $PostgreSQL::Test::Utils::timeout_default);

	until ($condition->())
	{
		die "not in time: $what\n" if now() > $deadline;
		usleep(5_000);
	}
	return now();
}

# ---- an undisturbed ensemble ----

# Three servers take turns at one lock.  Whoever is next has been in the queue
# for a whole turn of another.
sub measure_handovers
{
	my ($test) = @_;
	my @sessions = map { $test->session($_) } $test->nodes;
	my @times;

	$sessions[0]->query("SELECT zk_lock('/turns')");
	foreach my $session (@sessions[ 1, 2 ])
	{
		$test->enqueue($session, "SELECT zk_lock('/turns')", '/turns');
	}
	foreach my $turn (0 .. $handovers - 1)
	{
		my ($holder, $next) = @sessions[ $turn % 3, ($turn + 1) % 3 ];
		my $begin = now();

		$holder->send("SELECT zk_unlock('/turns')");
		$next->value;
		push @times, now() - $begin;
		$holder->value;
		$holder->send("SELECT zk_lock('/turns')");
		usleep(5_000);
	}
	my $last = $handovers % 3;
	$sessions[$last]->query("SELECT zk_unlock('/turns')");
	$sessions[ ($last + 1) % 3 ]->value;
	$_->abandon foreach @sessions;
	row('release → next grant on another server', 'p99 ≤ 50 ms', @times);
	return;
}

sub measure_beats
{
	my ($test) = @_;
	my ($one) = $test->nodes;
	my $seconds = 6 * $timeout;
	my $session = $test->session($one);

	$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'idle');
	my $idle = batches($test, $one);
	sleep 3 * $timeout;
	$idle = batches($test, $one) - $idle;
	fact('beats of an idle server', 'none', 3 * $timeout . ' s', $idle);

	$session->query("SELECT zk_lock('/held')");
	my $held = batches($test, $one);
	sleep $seconds;
	$held = batches($test, $one) - $held;
	fact('beats per T/6 of a server that holds a lock',
		'≤ 1', "$seconds s",
		sprintf '%.2f', $held / ($seconds / ($timeout / 6)));
	$session->close;
	return;
}

sub measure_worker
{
	my ($test) = @_;
	my ($one, $two) = $test->nodes;
	my $worker = $test->status($one, 'worker_pid');
	my @busy = map { $test->session($one) } 1 .. 40;
	my $many = $test->session($one);
	my $rival = $test->session($two);

	my $loaded = ChaosProcesses::longest_turn($worker, sub {
			my $end = now() + 20;
			my $select = IO::Select->new(map { $_->{socket} } @busy);
			my %of = map { $_->{socket} => $_ } @busy;
			my $sql = "SELECT zk_lock('/w/' || n), zk_unlock('/w/' || n)"
			  . ' FROM generate_series(%d, %d) n';

			foreach my $i (0 .. $#busy)
			{
				$busy[$i]->send(sprintf $sql, $i * 50, $i * 50 + 49);
			}
			while ($select->count)
			{
				foreach my $socket ($select->can_read(1))
				{
					my $session = $of{$socket};
					next if $session->busy;
					$session->value;
					my $from = int rand 2000;
					if (now() > $end) { $select->remove($socket); }
					else { $session->send(sprintf $sql, $from, $from + 20); }
				}
			}
	});
	row('one turn of the worker\'s loop, 40 clients at full speed',
		'≤ 100 ms', $loaded);

	$rival->query(
		"SELECT zk_lock('/m/' || n) FROM generate_series(2001, 2200) n");
	my $reconnects = ChaosProcesses::longest_turn($worker, sub {
			$many->query(
				"SELECT zk_lock('/m/' || n) FROM generate_series(1, 2000) n");
			foreach my $i (0 .. $#busy)
			{
				my $lock = sprintf '/m/%d', 2001 + $i;
				$test->enqueue($busy[$i], "SELECT zk_lock('$lock')", $lock);
			}
			foreach (1 .. $rounds)
			{
				my $connects = $test->status($one, 'connects');
				kill 'KILL', $test->status($one, 'session_pid');
				wait_until(sub { $test->look($one, 'SELECT connects > '
							  . "$connects AND state = 'connected' FROM zk_status, zk_stat_server") eq 't' },
					'reconnect');
			}
			$many->query('SELECT zk_unlock_all()');
	});
	row('the same, with 2 000 holds and 40 waiters, at reconnects',
		'≤ 100 ms', $reconnects);
	$rival->query('SELECT zk_unlock_all()');
	$_->value foreach @busy;
	$_->close foreach @busy, $many, $rival;
	return;
}

# ---- faults ----

# Two hosts at a time die, or are paused, in any phase of their heartbeats.
sub measure_dead_hosts
{
	my ($test, $how) = @_;
	my ($one, $two, $three) = $test->nodes;
	my @times;

	foreach my $round (1 .. $rounds)
	{
		my (%waiter, %died, @paused, @holders);
		foreach my $node ($one, $two)
		{
			my $lock = '/dead/' . $node->name;
			push @holders, $test->session($node);
			$holders[-1]->query("SELECT zk_lock('$lock')");
			my $session = $waiter{ $node->name } = $test->session($three);
			$test->enqueue($session, "SELECT zk_lock('$lock')", $lock);
		}
		usleep(rand($timeout / 3) * 1_000_000);
		foreach my $node ($one, $two)
		{
			my $postmaster = $node->{_pid};
			$test->stop_looking($node);
			$died{ $node->name } = now();
			if ($how eq 'killed')
			{
				ChaosProcesses::kill9_all($postmaster);
				$node->kill9;
				next;
			}
			my @pids = ($postmaster, ChaosProcesses::descendants($postmaster));
			kill 'STOP', @pids;
			push @paused, @pids;
		}
		my %of = map { $waiter{$_}{socket} => $_ } keys %waiter;
		my $select = IO::Select->new(map { $_->{socket} } values %waiter);
		while ($select->count)
		{
			foreach my $socket ($select->can_read(60))
			{
				my $name = $of{$socket};
				next if $waiter{$name}->busy;
				$waiter{$name}->value;
				push @times, now() - $died{$name};
				$select->remove($socket);
			}
		}
		kill 'CONT', @paused;
		$_->close foreach values %waiter;
		$_->abandon foreach @holders;
		foreach my $node ($one, $two)
		{
			ChaosProcesses::start_again($node) unless defined $node->{_pid};
			$test->wait_connected($node);
		}
	}
	row("holder's host $how → next grant", '≤ 12.5 s', @times);
	return;
}

# The lease is renewed, then nothing gets through any more: how long until no
# commit passes?
sub measure_local_loss
{
	my ($test) = @_;
	my ($one) = $test->nodes;
	my (@times, @commits);

	foreach my $round (1 .. $rounds)
	{
		my $session = $test->session($one);
		$session->query('SET zklock.commit_wait = 0');
		$session->query("SET zklock.lost_lock_action = 'none'");
		$session->query("SELECT zk_lock('/loss')");
		$session->query('SELECT 1');

		my $before = batches($test, $one);
		my $beat = wait_until(sub { batches($test, $one) > $before }, 'a beat');
		$test->net->hold('server1-*');
		push @times, wait_until(
			sub { $test->look($one, 'SELECT lease_remaining > interval $$0$$'
					  . ' FROM zk_status') ne 't' },
			'the lease passes') - $beat;
		is($session->error('BEGIN; SELECT 1; COMMIT'),
			'40001', 'then no commit passes');
		$session->query('ROLLBACK');
		$test->net->pass('*');
		$test->wait_connected($one);
		$session->error('SELECT zk_unlock_all()');
		$session->close;
	}
	row('loss known locally, after the last good heartbeat',
		'≤ 6.67 s', @times);
	return;
}

# Faults that must not lose a lock.  Each server holds one of each lifetime.
sub measure_kept_locks
{
	my ($test, $what, $inject, $heal) = @_;
	my @nodes = $test->nodes;
	my (@times, $least);
	my $lost = 0;
	my $look = sub {
		my $lease = $test->look($_[0],
			'SELECT extract(epoch FROM lease_remaining) FROM zk_status');
		$least = $lease if !defined $least || $lease < $least;
	};

	foreach my $round (1 .. $rounds)
	{
		my (@sessions, @tokens, @before);
		foreach my $node (@nodes)
		{
			my $name = $node->name;
			my $session = $test->session($node);
			push @tokens, $session->query("SELECT zk_lock('/kept/$name-s')");
			$session->query("BEGIN; SELECT zk_xact_lock('/kept/$name-t')");
			push @sessions, $session;
			push @before, $test->status($node, 'sessions_lost');
		}

		# An outage right behind another finds a shorter lease.
		foreach my $node (@nodes)
		{
			wait_until(
				sub { $test->look($node, 'SELECT extract(epoch FROM'
						  . ' lease_remaining) FROM zk_status') > $timeout * 0.6 },
				'the lease has its usual length');
		}
		usleep(rand($timeout / 6) * 1_000_000);
		my @probes = map { $test->session($_) } @nodes;
		$_->query("SET zklock.answer_timeout = '60s'") foreach @probes;
		my $begin = now();
		$inject->();
		$look->($_) foreach @nodes;
		$_->send("SELECT count(*) FROM zk_queue('/probe')") foreach @probes;
		my %end;
		wait_until(sub {
				foreach my $i (0 .. $#nodes)
				{
					$end{$i} //= now() unless $probes[$i]->busy;
					$look->($nodes[$i]);
				}
				return keys %end == @nodes;
		}, "$what: an answer of ZooKeeper's");
		push @times, map { $_ - $begin } values %end;
		$_->value foreach @probes;
		$_->close foreach @probes;
		$heal->() if $heal;
		foreach my $i (0 .. $#nodes)
		{
			my $name = $nodes[$i]->name;
			my $token =
			  $sessions[$i]->query("SELECT zk_fencing_token('/kept/$name-s')");
			my $error = $sessions[$i]->error('COMMIT');
			$lost++ if $token ne $tokens[$i] || $error
			  || $test->status($nodes[$i], 'sessions_lost') != $before[$i];
			$sessions[$i]->close;
		}
	}
	is($lost, 0, "$what: no lock lost");
	fact("locks lost: $what", 0, 2 * $rounds * @nodes, $lost);
	row(sprintf('… until ZooKeeper answers again (least lease left: %.1f s)',
			$least), '', @times);
	return;
}

sub measure_recovery
{
	my ($test, $what, $break, $mend) = @_;
	my @nodes = $test->nodes;
	my @times;

	foreach my $round (1 .. $rounds)
	{
		$break->();
		usleep(1_500_000 * $timeout);
		my $healed = $mend->();
		my @sessions = map { $test->session($_) } @nodes;
		foreach my $i (0 .. $#nodes)
		{
			$sessions[$i]->query("SET zklock.answer_timeout = '60s'");
			$sessions[$i]->send("SELECT zk_lock('/recovery/$i')");
		}
		my $select = IO::Select->new(map { $_->{socket} } @sessions);
		my %of = map { $_->{socket} => $_ } @sessions;
		while ($select->count)
		{
			foreach my $socket ($select->can_read(60))
			{
				next if $of{$socket}->busy;
				$of{$socket}->value;
				push @times, now() - $healed;
				$select->remove($socket);
			}
		}
		$_->close foreach @sessions;
	}
	row("recovery after $what", '≤ 5 s', @times);
	return;
}

# ---- all of it ----

my $quiet = cluster(zk => 'quiet_zk', prefix => 'quiet');
measure_beats($quiet);
measure_handovers($quiet);
measure_worker($quiet);
$quiet->stop_looking($_) foreach $quiet->nodes;
$_->stop('fast') foreach $quiet->nodes;
$quiet->zk->stop;

my $net = TcpProxy->new;
my $test = cluster(zk => 'zk', prefix => 'server', net => $net);
my $zk = $test->zk;
my @nodes = $test->nodes;

measure_dead_hosts($test, 'killed');
measure_dead_hosts($test, 'paused');
measure_local_loss($test);
measure_kept_locks($test, "ZooKeeper out of reach for T/3", sub {
		$net->hold('server*-zk*');
		usleep($timeout / 3 * 1_000_000);
		$net->pass('server*-zk*');
});
measure_kept_locks($test, 'one ZooKeeper host dead', sub {
		my ($follower) = $zk->followers;
		$follower->kill9;
}, sub { $zk->start });
measure_kept_locks($test, 'leader killed, election', sub { $zk->leader->kill9 },
	sub { $zk->start });
measure_kept_locks($test, 'session process killed', sub {
		kill 'KILL', ChaosProcesses::session_process($_->{_pid}) foreach @nodes;
});
measure_recovery($test, 'the network is back',
	sub { $net->hold('server*-zk*') },
	sub { $net->pass('server*-zk*'); return now() });
measure_recovery($test, 'the ensemble serves again (all were killed)',
	sub { $_->kill9 foreach $zk->servers },
	sub { $zk->start; return now() });

note '';
note $_ foreach ChaosTable::lines();
$test->stop_looking($_) foreach @nodes;
$_->stop('fast') foreach @nodes;
$zk->stop;
done_testing();
