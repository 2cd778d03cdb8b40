# A server is cut off from ZooKeeper for longer than its session lives, in
# either direction (row 9), its holders stopped meanwhile or not (row 5); or
# its session is closed by somebody else (row 17).  The lease ends before the
# next holder is granted, nobody commits on it, and nothing is held afterwards.

use strict;
use warnings;

use Test::More;

use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $line = 'server1-zk';

# Polls the lease until it has passed, and returns when it ended, as far as
# was told.
sub wait_for_end_of_lease
{
	my ($case) = @_;
	my $ends = '';

	$test->look_until(
		$one,
		"SELECT lease_remaining <= '0' FROM zk_status",
		't', "$case: the lease passes",
		before => sub {
			my $end = $test->look($one,
				'SELECT extract(epoch FROM clock_timestamp() + lease_remaining)'
				  . " FROM zk_status WHERE lease_remaining > '0'");
			$ends = $end if $end ne '';
		});
	return $ends;
}

foreach my $direction ('both', 'up', 'down')
{
	my $case = "cut off, $direction";
	my $lost = $test->status($one, 'sessions_lost');
	my %holder;

	# What each does when the lease has passed
	foreach my $name ('hasty', 'patient', 'stopped', 'late', 'session')
	{
		my $s = $holder{$name} = $test->session($one);
		$s->query("SET zklock.lost_lock_action = 'none'");
		$s->query("SET zklock.commit_wait = '"
			  . ($name =~ /hasty|stopped/ ? '50ms' : '10min') . "'");
		$s->query($name eq 'session' ? "SELECT zk_lock('/c/$name')"
			: "BEGIN; CREATE TABLE $name (); SELECT zk_xact_lock('/c/$name')");
	}
	my $waiter = $test->session($one);
	my $rival = $test->session($two);
	my $other = $test->session($two);
	$other->query("SELECT zk_lock('/c/other')");
	$test->enqueue($waiter, "SELECT zk_lock('/c/other')", '/c/other');
	$test->enqueue($rival, "SELECT zk_lock('/c/hasty')", '/c/hasty');

	$net->hold($line, $direction);
	kill 'STOP', map { $holder{$_}->pid } 'stopped', 'late';
	$holder{$_}->send('COMMIT') foreach 'stopped', 'late';
	my $ends = wait_for_end_of_lease($case);
	$holder{patient}->send('COMMIT');
	$holder{session}->send('CREATE TABLE session ()');
	is($holder{hasty}->error('COMMIT'), '40001', "$case: no commit");
	$rival->value;
	cmp_ok(
		$test->look($two, 'SELECT extract(epoch FROM granted_at) FROM zk_locks'
			  . " WHERE path = '/c/hasty' AND state IN ('granted', 'unconfirmed')"),
		'>', $ends, "$case: the next holder comes after the lease has ended");
	kill 'CONT', $holder{stopped}->pid;
	is($holder{stopped}->sqlstate,
		'40001', "$case: nor one that was stopped before its commit");
	like($holder{stopped}->messages, qr{lease}, "$case: which says why");
	ok($holder{patient}->busy, "$case: a patient one waits");
	$net->pass($line);

	$test->look_until($one,
		"SELECT sessions_lost = $lost + 1 AND state = 'connected'"
		  . ' FROM zk_status, zk_stat_server',
		't', "$case: a new session");
	kill 'CONT', $holder{late}->pid;
	is($holder{$_}->sqlstate, '40001', "$case: nor does $_")
	  foreach 'late', 'patient', 'session';
	like($holder{$_}->messages, qr{was lost}, "$case: $_ is told of the loss")
	  foreach 'late', 'patient', 'session';
	is($test->look($one,
			"SELECT count(*) FROM pg_class WHERE relname IN ("
			  . join(',', map { "'$_'" } keys %holder) . ')'),
		0, "$case: nothing of it was committed");
	ok($test->wait_queue("/c/$_", 0), "$case: the znode of $_ is gone")
	  foreach 'patient', 'stopped', 'late', 'session';
	is($test->wait_queue('/c/hasty', 1), 1, "$case: one new holder");

	$test->wait_queue('/c/other', 2);
	ok($test->still_waits($waiter), "$case: who waited waits again");
	$other->query("SELECT zk_unlock('/c/other')");
	cmp_ok($waiter->value, '>', 0, "$case: and is granted");
	$holder{session}->error("SELECT zk_unlock('/c/session')");
	is($holder{session}->query("BEGIN; SELECT 1; COMMIT"),
		1, "$case: a loss acknowledged, work goes on");
	$_->close foreach values %holder, $waiter, $rival, $other;
	$test->wait_queue("/c/$_", 0) foreach 'hasty', 'other';
}

# ---- the session is closed by somebody who computes its password
my $lost = $test->status($one, 'sessions_lost');
my $holder = $test->session($one);
my $running = $test->session($one);
my $waiter = $test->session($one);
my $rival = $test->session($two);
$holder->query("BEGIN; SELECT zk_xact_lock('/c/closed')");
$running->query("BEGIN; SELECT zk_xact_lock('/c/running')");
$running->send('SELECT pg_sleep(1000)');
my $token = $rival->query("SELECT zk_lock('/c/awaited')");
$test->enqueue($waiter, "SELECT zk_lock('/c/awaited')", '/c/awaited');
$net->hold($line);
ok($test->zk->client->end_session(hex $test->session_hex($one)),
	'the session is closed elsewhere');
is(scalar($test->queue('/c/closed')), 0, 'closed: its znodes are gone');
$net->pass($line);
is($running->sqlstate, '40001', 'closed: who runs is cancelled');
like($running->messages, qr{/c/running}, 'closed: and told');
is($test->status($one, 'sessions_lost'), $lost + 1, 'closed: zk_status knows');
is($holder->error('COMMIT'), '40001', 'closed: no commit');
$running->query('ROLLBACK');
$test->wait_queue('/c/awaited', 2);
ok($test->still_waits($waiter), 'closed: who waits, waits again');
$rival->query("SELECT zk_unlock('/c/awaited')");
cmp_ok($waiter->value, '>', $token, 'closed: and is granted');

$_->close foreach $holder, $running, $waiter, $rival;
$test->finish;
