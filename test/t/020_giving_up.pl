# Clients that stop waiting, or stop holding, in every way there is: cancel,
# statement_timeout, lock_timeout, pg_terminate_backend, a client that is
# gone.  Each time the znode disappears and the next in line goes on.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(conf => "client_connection_check_interval = 100ms\n");
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/g')";

my %ways = (
	'cancel' => sub { $_[0]->cancel; return '57014'; },
	'pg_cancel_backend' => sub {
		$test->look($_[0]->{node}, 'SELECT pg_cancel_backend(' . $_[0]->pid . ')');
		return '57014';
	},
	'pg_terminate_backend' => sub {
		$test->look($_[0]->{node},
			'SELECT pg_terminate_backend(' . $_[0]->pid . ')');
		return '57P01';
	},
	'client gone' => sub { $_[0]->abandon; return ''; },
	'statement_timeout' => sub { return '57014'; },
	'lock_timeout' => sub { return '55P03'; });

foreach my $way (sort keys %ways)
{
	foreach my $node ($one, $two)
	{
		my $case = "$way of a waiter on " . $node->name;
		my $holder = $test->session($one);
		my $waiter = $test->session($node);
		my $next = $test->session($two);

		$holder->query($lock);
		$waiter->query("SET $way = '400ms'") if $way =~ /timeout/;
		if ($way =~ /timeout/)
		{
			$waiter->send($lock);
		}
		else
		{
			$test->enqueue($waiter, $lock, '/g');
			$test->enqueue($next, $lock, '/g');
		}
		my $expected = $ways{$way}->($waiter);
		is($waiter->sqlstate, $expected, "$case: SQLSTATE")
		  if $way ne 'client gone';
		$test->enqueue($next, $lock, '/g') if $way =~ /timeout/;
		ok($test->wait_queue('/g', 2), "$case: its znode is gone");
		ok($test->still_waits($next), "$case: the holder is not disturbed");
		if ($way =~ /cancel|timeout/)
		{
			is($waiter->query('RESET ALL; SELECT 1'), 1, "$case: its session goes on");
			is($waiter->query("SELECT zk_unlock('/g')"),
				'f', "$case: and holds nothing");
		}
		$holder->query("SELECT zk_unlock('/g')");
		cmp_ok($next->value, '>', 0, "$case: the next in line goes on");
		$_->close foreach $holder, $waiter, $next;
		$test->wait_queue('/g', 0);
	}
}

# Holders that end
foreach my $way ('pg_terminate_backend', 'client gone')
{
	my $holder = $test->session($one);
	my $waiter = $test->session($two);
	$holder->query("$lock; SELECT zk_lock('/g2')");
	$holder->query("BEGIN; SELECT zk_xact_lock('/g3')");
	$test->enqueue($waiter, $lock, '/g');
	$ways{$way}->($holder);
	cmp_ok($waiter->value, '>', 0, "$way of a holder: the next in line goes on");
	is($waiter->query("SELECT zk_try_lock('$_', '1min')"),
		't', "$way of a holder: $_ is free too")
	  foreach '/g2', '/g3';
	$_->close foreach $holder, $waiter;
	$test->wait_queue($_, 0) foreach '/g', '/g2', '/g3';
}

# A transaction lock outlives a statement that is cancelled in a savepoint.
my $holder = $test->session($one);
$holder->query("BEGIN; SELECT zk_xact_lock('/g'); SAVEPOINT s");
$holder->send('SELECT pg_sleep(1000)');
$test->look_until($one,
	'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $holder->pid,
	'PgSleep', 'a holder sleeps');
$holder->cancel;
is($holder->sqlstate, '57014', 'a holder is cancelled');
my $waiter = $test->enqueue($test->session($two), $lock, '/g');
$holder->query('ROLLBACK TO s');
ok($test->still_waits($waiter), 'its lock is still held');
$holder->query('COMMIT');
cmp_ok($waiter->value, '>', 0, 'until it commits');
$waiter->query("SELECT zk_unlock('/g')");

# A try with a time limit
$holder->query($lock);
is($waiter->query("SELECT zk_try_lock('/g', '200ms')"),
	'f', 'a try gives up by itself');
$test->wait_queue('/g', 1);
$waiter->send("SELECT zk_try_lock('/g', '1h')");
$test->wait_queue('/g', 2);
$holder->query("SELECT zk_unlock('/g')");
is($waiter->value, 't', 'or is granted within its time');
$waiter->query("SELECT zk_unlock('/g')");

my $user = $waiter->query('SELECT current_user');

my $of_holder = 'process ' . $holder->pid . ' of server "server1"';
my $held = qr{Distributed lock "/g" is held by $of_holder \(user "$user", application "[^"]+"\) since \d{4}-[^.]*\.\n.*zk_queue\('/g'\)}s;

# The error of a wait that ends after the time in $query.  The time is doubled until it
# was enough to read who has the lock.
sub error_of_wait
{
	my ($query) = @_;
	my $sqlstate;

	for (my $ms = 200; $ms < 60_000; $ms *= 2)
	{
		$sqlstate = $waiter->error($query =~ s/TIME/'${ms}ms'/gr);
		last if $waiter->messages =~ $held;
	}
	return $sqlstate;
}

# The same time for both: the wait was for the holder, not for the worker.
$holder->query($lock);
is(error_of_wait("SET lock_timeout = TIME; SELECT zk_try_lock('/g', TIME)"),
	'55P03', 'lock_timeout ends a try, too');
like($waiter->messages, $held, 'and says who has the lock');
$waiter->query('RESET lock_timeout');

# Neither statement_timeout nor a cancel is an error of zklock, but both say it.
is(error_of_wait("SET statement_timeout = TIME; SELECT zk_lock('/g')"), '57014', 'statement_timeout');
like($waiter->messages, qr{due to statement timeout\n$held}, 'says who has the lock');
$waiter->query('RESET statement_timeout');
$waiter->send("SELECT zk_lock('/g')");
$test->look_until($two, 'SELECT blocking_pid FROM zk_lock_waits', $holder->pid,
	'its server has read who holds it');
$waiter->cancel;
is($waiter->sqlstate, '57014', 'a cancel');
like($waiter->messages, qr{due to user request\n$held}, 'says who has the lock');
is($waiter->error("SET statement_timeout = '200ms'; SELECT pg_sleep(60)"), '57014', 'another wait');
unlike($waiter->messages, qr{is held by}, 'has nothing to say');
$waiter->query('RESET statement_timeout');
$one->safe_psql('postgres', 'CREATE ROLE stranger LOGIN;'
	  . ' GRANT EXECUTE ON FUNCTION zk_lock(text, interval, interval, interval) TO stranger');
my $stranger = $test->session($one, user => 'stranger');
is($stranger->error("SELECT zk_lock('/g', '200ms')"), '55P03', 'another role');
like($stranger->messages, qr{is held by $of_holder since \d{4}-[^.]*\.\n}, 'is not told the user');
$stranger->close;
$holder->query("SELECT zk_unlock('/g')");

# A backend that is stopped past all of its deadlines
$holder->query($lock);
$waiter->query("SET zklock.answer_timeout = '200ms'");
$waiter->send("SELECT zk_try_lock('/g', '300ms')");
$test->wait_queue('/g', 2);
kill 'STOP', $waiter->pid;
my $stopped = time;
wait_for(sub { time > $stopped + 1 }, 'a second');
kill 'CONT', $waiter->pid;
my $answer = $waiter->result;
is($answer->{error} ? $answer->{error}{message} : $answer->{rows}[0][0],
	'f', 'a try that was stopped says no');
$waiter->query('RESET zklock.answer_timeout');
$holder->query("SELECT zk_unlock('/g')");

# The same of a function that raises an error instead
my $late = 'could not acquire distributed lock "/g" within';
$holder->query($lock);
foreach my $call ("zk_lock('/g', '200ms')", "zk_lock_shared('/g', timeout => '200ms')",
	"zk_xact_lock('/g', '200ms')", "zk_xact_lock_shared('/g', '200ms', at_most => '1h')")
{
	$test->times_out($waiter, $call, qr{$late 200 ms.*$held}s);
}
$test->times_out($waiter, "zk_lock('/g', '0')",
	qr{$late 0 ms.*Other clients are ahead of this session}s);
$test->zk->pause;
is($waiter->error("SELECT zk_xact_lock('/g', '500ms')"), '08006', 'ZooKeeper is slow');
like($waiter->messages, qr{$late 500 ms.*The wait was for ZooKeeper}s,
	'which is another reason');
is($waiter->error("SET statement_timeout = '500ms'; SELECT zk_lock('/g')"), '57014', 'statement_timeout');
like($waiter->messages, qr{due to statement timeout\nThe wait was for ZooKeeper}, 'gives that reason');
$waiter->query('RESET statement_timeout');
$test->zk->resume;
$test->wait_queue('/g', 1);
is($waiter->error("SET lock_timeout = '200ms'; SELECT zk_lock('/g', '1h')"),
	'55P03', 'lock_timeout is the shorter one');
like($waiter->messages, qr/canceling statement due to lock timeout/, 'and counts');
is($waiter->error("SET lock_timeout = '1h'; SELECT zk_lock('/g', '200ms')"),
	'55P03', 'lock_timeout is the longer one');
like($waiter->messages, qr/within 200 ms/, 'and does not count');
$waiter->query('RESET lock_timeout');
foreach my $call ("zk_lock('/g', NULL)", "zk_lock('/g', '1h')", "zk_lock('/g', 'infinity')",
	"zk_try_lock('/g', NULL)")
{
	next if $call =~ /infinity/ && $one->pg_version < 17;
	$waiter->send("SELECT $call");
	$test->wait_queue('/g', 2);
	ok($test->still_waits($waiter), "$call: waits");
	$holder->query("SELECT zk_unlock('/g')");
	like($waiter->value, qr/^(t|\d+)$/, "$call: is granted within its time");
	$waiter->query("SELECT zk_unlock('/g')");
	cmp_ok($waiter->query("SELECT zk_lock('/g', '0')"), '>', 0, 'what is free needs no time');
	$waiter->query("SELECT zk_unlock('/g')");
	$holder->query($lock);
}
$holder->query("SELECT zk_unlock('/g')");
$_->close foreach $holder, $waiter;

# A backend that is killed takes its server down for a moment.  What it held
# is free once the ZooKeeper session of before has expired.
$one->append_conf('postgresql.conf', 'restart_after_crash = on');
$one->reload;
$holder = $test->session($one);
$holder->query($lock);
$waiter = $test->enqueue($test->session($two), $lock, '/g');
kill 'KILL', $holder->pid;
cmp_ok($waiter->value, '>', 0, 'a crashed server loses its locks');
$test->stop_looking($one);
ok(wait_for(
		sub { eval { $test->status($one, 'state') eq 'connected' } },
		'the crashed server is back'),
	'and comes back');
$holder->abandon;
$holder = $test->session($one);
is($holder->query("SELECT zk_try_lock('/g')"), 'f', 'and sees who holds it');
$waiter->close;
is($holder->query("SELECT zk_try_lock('/g', '1min')"), 't', 'and locks again');
$holder->close;

$test->finish(crashes => '(server process|client backend) .* was terminated by signal 9'
	  . '|all server processes terminated');
