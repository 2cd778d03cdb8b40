# Whoever is slow to clean up behind a round of a barrier does not touch the next
# one: its "ready" stays while anybody is in who may not have seen it.  A proxy
# holds the delete of "ready" on its way to ZooKeeper, of a member that leaves and
# of one that finds a "ready" left behind, while the others go on.  The last of the
# next round looks only when its worker does, after that.

use strict;
use warnings;

use Test::More;

use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(
	servers => 3,
	session_timeout => '20s',
	net => $net,
	zk => { container_check_ms => 600_000 });
my ($one, $two, $three) = $test->nodes;
my ($s, $t, $u) = map { $test->session($_) } $one, $two, $three;
my $zk = $test->zk->client;
my $line = $one->name . '-zk';

sub children { return $zk->ls("/zklock$_[0]"); }
sub members { return grep { $_ ne 'ready' } children($_[0]); }
sub is_ready { return scalar grep { $_ eq 'ready' } children($_[0]); }

sub wait_members
{
	my ($path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for(sub { scalar(members($path)) == $count },
		"$count in barrier $path");
}

# Sends a call on the first server, and returns once its delete of "ready" is held.
sub hold_delete
{
	my ($path, $sql, $case) = @_;
	my $caught = $net->stats($line)->{caught};

	# Type 14, a multi; its first operation of type 2, a delete of this path
	$net->catch($line,
		"^.{8}\\x00\\x00\\x00\\x0e\\x00\\x00\\x00\\x02.{9}/zklock$path/ready");
	$s->send($sql);
	return ok(
		wait_for(sub { $net->stats($line)->{caught} > $caught }, 'a delete'),
		"$case: a delete of \"ready\" is on its way");
}

# A round of the second and the third server.  The second does not look until the
# third has started and left, and what was held has arrived.
sub next_round_ok
{
	my ($path, $case, $end) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$t->send("SELECT zk_barrier('$path', 2, '20s')");
	wait_members($path, 1);
	ok($test->still_waits($t), "$case: one of the next round waits");
	my $worker = $test->status($two, 'worker_pid');
	kill 'STOP', $worker;
	is($u->query("SELECT zk_barrier('$path', 2)"), 't',
		"$case: the other one starts and leaves");
	is(is_ready($path), 1, "$case: \"ready\" is there for the first");
	$net->pass($line);
	is($s->value, 't', "$case: what was held has arrived");
	is(is_ready($path), 1, "$case: \"ready\" is still there");
	kill 'CONT', $worker;
	is($t->value, 't', "$case: the first one starts, too");
	is($s->query($end), 't', "$case: and leaves") if $end;
	is_deeply([ children($path) ], [], "$case: nothing is left");
	return;
}

# ---- a member that leaves ----

is($s->query("SELECT zk_barrier_enter('/l', 1)"), 't', 'in alone');
hold_delete('/l', "SELECT zk_barrier_leave('/l')", 'leaves');
next_round_ok('/l', 'leaves');

# ---- one that finds "ready" left behind, and enters ----

my $gone = $test->session($one);
is($gone->query("SELECT zk_barrier_enter('/f', 1)"), 't', 'in alone');
$gone->close;
wait_members('/f', 0);
is(is_ready('/f'), 1, 'who just ends leaves "ready" behind');
hold_delete('/f', "SELECT zk_barrier_enter('/f', 9, '20s')", 'enters');
next_round_ok('/f', 'enters', "SELECT zk_barrier_leave('/f')");

# ---- the directory of a barrier goes with its last round ----

is($s->query("SELECT zk_barrier('/e', 1)"), 't', 'alone');
is($zk->stat('/zklock/e'), undef, 'nothing is left');

# ... unless it is somebody's: then "ready" goes by its name.
$zk->create('/zklock/e', 'mine');
$zk->create('/zklock/e/ready');
is($s->query("SELECT zk_barrier('/e', 1)"), 't', 'in a znode with data');
is_deeply([ children('/e') ], [], '"ready" is gone');
is($zk->get('/zklock/e'), 'mine', 'the znode stays');

# ---- and a hundred times, one and all ----

my $sql = <<'EOS';
DO $$ BEGIN
	FOR i IN 1 .. 100 LOOP
		IF NOT zk_barrier('/again', 3, '1min') THEN
			RAISE EXCEPTION 'alone in round %', i;
		END IF;
	END LOOP;
END $$
EOS
$_->send($sql) foreach $s, $t, $u;
is($_->sqlstate, '', 'a hundred rounds side by side') foreach $s, $t, $u;
wait_members('/again', 0);

$_->close foreach $s, $t, $u;
$test->finish;
