# What the worker promises of errands, seen through barriers: a wait for a change
# goes on over broken connections, other workers, other sessions and a ZooKeeper
# that was away, and sees what changed meanwhile; whoever gives one up leaves
# neither a slot nor memory behind; and barriers under all that lose nobody.

use strict;
use warnings;
no warnings 'portable';    # session ids have 64 bits

use POSIX ();
use Test::More;

use PgSession;
use ZklockTest;

# In files, the segments of dynamic shared memory can be counted.
my $test = ZklockTest->new(max_requests => 12, conf => <<'EOC');
client_connection_check_interval = 100ms
dynamic_shared_memory_type = mmap
EOC
my @nodes = $test->nodes;
my ($one, $two) = @nodes;
my ($s, $t) = map { $test->session($_) } @nodes;
my %segments = map { $_->name => segments($_) } @nodes;

sub children { return $test->zk->client->ls("/zklock$_[0]"); }
sub members { return grep { $_ ne 'ready' } children($_[0]); }
sub enter { return "SELECT zk_barrier_enter('$_[0]', 2)"; }
sub leave { return "SELECT zk_barrier_leave('$_[0]')"; }

sub wait_members
{
	my ($path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for(sub { scalar(members($path)) == $count },
		"$count in barrier $path");
}

sub begin
{
	my ($session, $path) = @_;

	$session->send(enter($path));
	return wait_members($path, 1) && $test->still_waits($session);
}

sub segments
{
	my ($node) = @_;

	return scalar(() = glob($node->data_dir . '/pg_dynshmem/*'));
}

# ---- while it waits, something ends; and the change comes then, or after ----

my %ends = (
	'the session process' => sub {
		my ($meanwhile) = @_;
		my ($worker, $session, $connects) = split /\|/,
		  $test->status($one, 'worker_pid, session_pid, connects');

		kill 'STOP', $worker;
		kill 'KILL', $session;
		$meanwhile->();
		kill 'CONT', $worker;
		$test->look_until($one,
			"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
			't', 'another connection');
	},
	'the answers of ZooKeeper' => sub {
		my ($meanwhile) = @_;

		$test->zk->pause;
		wait_for(sub { $test->status($_, 'state') ne 'connected' },
			'ZooKeeper does not answer')
		  foreach @nodes;
		$test->zk->resume;
		$meanwhile->();
		$test->wait_connected($_) foreach @nodes;
	},
	'ZooKeeper' => sub {
		my ($meanwhile) = @_;

		$test->zk->kill9;
		$test->zk->start;
		$meanwhile->();
		$test->wait_connected($_) foreach @nodes;
	});

foreach my $end (sort keys %ends)
{
	foreach my $when ('then', 'after')
	{
		my $case = "$end ends, and the other comes $when";

		ok(begin($s, '/w'), "$case: one waits");
		$ends{$end}->(sub { $t->send(enter('/w')) if $when eq 'then'; });
		$t->send(enter('/w')) if $when eq 'after';
		is($_->value, 't', "$case: both start") foreach $s, $t;

		# Who goes first is no member any more while it waits.
		my ($first) = sort(members('/w'));
		my ($goes, $stays) = $test->look($one,
			"SELECT znode FROM zk_locks") =~ /\Q$first\E/ ? ($t, $s) : ($s, $t);
		$goes->send(leave('/w'));
		wait_members('/w', 1);
		ok($test->still_waits($goes), "$case: one waits to end");
		$ends{$end}->(sub { $stays->send(leave('/w')) if $when eq 'then'; });
		$stays->send(leave('/w')) if $when eq 'after';
		is($_->value, 't', "$case: both end") foreach $s, $t;
		is_deeply([ children('/w') ], [], "$case: nothing is left");
	}
}

# The members of a barrier on a server whose worker ends are lost.
ok(begin($s, '/w'), 'one waits');
$test->restart_worker($one);
is($s->sqlstate, '40001', 'a worker ends: its member is lost');
ok(begin($s, '/w'), 'it comes again');
$t->send(enter('/w'));
is($_->value, 't', 'and both start') foreach $s, $t;
$_->send(leave('/w')) foreach $s, $t;
is($_->value, 't', 'and both end') foreach $s, $t;

# Nobody's membership is at stake while one waits to end: it goes on in the
# next session.
foreach my $round (1 .. 2)
{
	ok(begin($s, '/x'), 'one waits');
	is($t->query(enter('/x')), 't', 'both start');
	is($s->value, 't', 'both start');
	my ($first) = sort(members('/x'));
	my $stays_on = $test->look($one, 'SELECT znode FROM zk_locks') =~ /\Q$first\E/;
	my ($goes, $stays, $node) = $stays_on ? ($t, $s, $two) : ($s, $t, $one);

	$goes->send(leave('/x'));
	wait_members('/x', 1);
	my $hex = $test->session_hex($node);
	my $worker = $test->status($node, 'worker_pid');
	kill 'STOP', $worker;
	kill 'KILL', $test->status($node, 'session_pid');
	wait_for(sub { !grep { $_ eq $hex } $test->zk->sessions },
		'its session expires');
	kill 'CONT', $worker;
	$test->wait_connected($node);
	ok($test->still_waits($goes), 'who waits to end goes on waiting');
	is($stays->query(leave('/x')), 't', 'the other leaves');
	is($goes->value, 't', 'and it is through');
}

# Asked all the time while sessions are closed under it, reads go on, and only a
# membership is lost.
my @asking = map { $test->session($one) } 1 .. 4;
my %states;
my $next = sub { $_[0]->send("SELECT zk_barrier_enter('/q/' || pg_backend_pid(), 2, '2ms')") };
$next->($_) foreach @asking;
my $lost = $test->status($one, 'sessions_lost');
my $thief = $test->zk->new_client;

# The worker may take its session back before it is closed.
wait_for(
	sub {
		eval { $thief->end_session(hex $test->session_hex($one)); };
		$test->wait_connected($one);
		foreach my $session (grep { !$_->busy } @asking)
		{
			$states{ $session->sqlstate }++;
			$next->($session);
		}
		return $test->status($one, 'sessions_lost') >= $lost + 20;
	},
	'twenty sessions are closed');
$states{ $_->sqlstate }++ foreach @asking;
is(join(' ', grep { $_ ne '' && $_ ne '40001' } sort keys %states), '',
	'reads go on in the next session')
  or diag(explain(\%states));
cmp_ok($states{''}, '>', 20, "while $states{''} of them had answers");
$_->close foreach @asking;

# ---- settings are reloaded while it waits ----

ok(begin($s, '/y'), 'one waits');
$one->reload foreach 1 .. 3;
$test->status($one, 'state');
is($t->query(enter('/y')), 't', 'settings were reloaded: the other comes');
is($s->value, 't', 'both start');
$s->query('SELECT zk_unlock_all()');
is($t->query(leave('/y')), 't', 'and leave');

# ---- given up, more often than there are slots: while it waits for a change,
# while it waits for ZooKeeper, and with a write that is under way ----

my %ways = (
	'cancelled' => sub { $_[0]->cancel; is($_[0]->sqlstate, '57014', 'cancelled'); },
	'terminated' => sub {
		$test->look($one, 'SELECT pg_terminate_backend(' . $_[0]->pid . ')');
		is($_[0]->sqlstate, '57P01', 'terminated');
	},
	'client gone' => sub { $_[0]->abandon; });

my $asking = "FROM pg_stat_activity WHERE query LIKE '%zk_barrier%'"
  . " AND backend_type = 'client backend' AND pid <> pg_backend_pid()";
my $alone = "SELECT zk_barrier_enter('/v', 99)";

foreach my $way (sort keys %ways)
{
	foreach (1 .. 8)
	{
		my $g = $test->session($one);

		$g->send($alone);
		wait_members('/v', 1);
		$ways{$way}->($g);
		wait_members('/v', 0);
		$g->close;
	}
	$test->zk->pause;
	my @waiting = map { $test->session($one)->send($alone) } 1 .. 4;
	$test->look_until($one,
		"SELECT count(*) $asking AND wait_event_type = 'Extension'",
		4, 'four wait for ZooKeeper');
	$ways{$way}->($_) foreach @waiting;
	$test->zk->resume;
	$test->wait_connected($_) foreach @nodes;
	$_->close foreach @waiting;
	$test->look_until($one, "SELECT count(*) $asking", 0, 'they are gone');
}

# One is enough: a write is under way most of the time.
foreach (1 .. 15)
{
	my $g = $test->session($one);

	$g->send("SELECT zk_barrier('/u', 1)");
	$g->cancel;
	like($g->sqlstate, qr/^(|57014)$/, 'in the middle of a short one');
	$g->close;
}
wait_members('/u', 0);

foreach my $node (@nodes)
{
	ok(wait_for(
			sub { segments($node) == $segments{ $node->name } },
			'segments are freed'),
		$node->name . ': no memory is left behind')
	  or diag(segments($node));
}

# ---- rounds under faults: session processes are killed all the time ----

my $rounds = 60;

sub go_round
{
	my ($node) = @_;
	my $pid = fork // die $!;

	return $pid if $pid;
	my $session = PgSession->new($node);
	foreach (1 .. $rounds)
	{
		POSIX::_exit(1) if $session->query(enter('/r')) ne 't';
		POSIX::_exit(2) if $session->query(leave('/r')) ne 't';
	}
	$session->close;
	POSIX::_exit(0);
}

my %running = map { go_round($_) => 1 } @nodes;
my ($killed, %last) = (0);
wait_for(
	sub {
		foreach my $pid (keys %running)
		{
			next unless waitpid $pid, POSIX::WNOHANG();
			is($? >> 8, 0, "$rounds rounds under faults");
			delete $running{$pid};
		}
		foreach my $node (@nodes)
		{
			my ($pid, $state) = split /\|/,
			  $test->status($node, 'session_pid, state');
			next if $state ne 'connected' || $pid == ($last{$node} // 0);
			kill 'KILL', $last{$node} = $pid;
			$killed++;
		}
		return !%running;
	},
	'all are through');
cmp_ok($killed, '>=', 10, "while $killed session processes were killed");
$test->wait_connected($_) foreach @nodes;
is_deeply([ members('/r') ], [], 'nobody is left');

$_->close foreach $s, $t;
$test->finish;
