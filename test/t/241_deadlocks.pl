# Deadlocks across servers end with one error: cycles of two, three and four servers,
# readers and writers, several locks at once, leaders, turns of zk_once(), savepoints; and what the
# error and the log say.

use strict;
use warnings;

use Test::More;

use DeadlockTest;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(servers => 4, conf => $deadlock_conf);
my @nodes = $test->nodes;
my @s = map { $test->session($_) } @nodes;

sub deadlocks
{
	my $sum = 0;
	$sum += $test->status($_, 'deadlocks') foreach @nodes;
	return $sum;
}

# Which of two is the victim, and the other one.  The error has ended the transaction,
# or what came behind the savepoint, so the other one may have its lock by now.
sub loser
{
	my (@two) = @_;
	my ($loser, @more);

	wait_for(
		sub { ($loser, @more) = grep { !$_->busy && $_->sqlstate eq '40P01' } @two },
		'one of two gets an error');
	return ($loser, grep { $_ != $loser } @two);
}

# Cycles.  Each way of beginning to wait for two and three, some for four.
foreach my $n (2, 3, 4)
{
	my @ways = ways(0 .. $n - 1);

	@ways = @ways[ 0, 9, 23 ] if $n == 4;
	foreach my $way (@ways)
	{
		my $name = 'a cycle of ' . join(' ', map { $_ + 1 } @$way);
		my $before = deadlocks();

		cycle($test, "/cycle/$n", [ @s[@$way] ]);
		one_victim($test, [ @s[ 0 .. $n - 1 ] ], $name);
		is(deadlocks() - $before, 1, "$name: counted once");
	}
}

# Sessions of one server among them
my @more = map { $test->session($_) } @nodes[ 0, 0, 1 ];
cycle($test, '/cycle/same', [ @more[ 0, 1 ] ]);
one_victim($test, [ @more[ 0, 1 ] ], 'two sessions of one server');
cycle($test, '/cycle/mixed', [ $more[0], $s[1], $more[1], $more[2] ]);
one_victim($test, [ @more, $s[1] ], 'four sessions of two servers');

# What the error says, and what the log.  The victim of a cycle of three holds one of
# its locks and waits for a second one; it does not see the third name.
my @from = map { -s $_->logfile } @nodes;
cycle($test, '/cycle/words', [ @s[ 0 .. 2 ] ]);
my $victim = one_victim($test, [ @s[ 0 .. 2 ] ], 'a cycle of three');
my ($i) = grep { $s[$_] == $victim->{session} } 0 .. 2;
my ($j, $k) = (($i + 1) % 3, ($i + 2) % 3);
my $process = sub { 'rocess ' . $s[ $_[0] ]->pid . ' of server "server' . ($_[0] + 1) . '"' };
my $line = sub {
	my ($waiter, $blocker, $lock) = @_;
	return 'P' . $process->($waiter) . " waits for ExclusiveLock on $lock; blocked by p"
	  . $process->($blocker) . '.';
};
is($victim->{messages},
	join("\n",
		'ERROR', '40P01', 'deadlock detected',
		$line->($i, $j, qq{distributed lock "/cycle/words/$j"}),
		$line->($j, $k, 'a distributed lock'),
		$line->($k, $i, qq{distributed lock "/cycle/words/$i"}),
		'See server log for the names of all locks.'),
	'the error names what the session itself has to do with')
  or diag $victim->{messages};
my $log = substr slurp_file($nodes[$i]->logfile), $from[$i];
my ($pid, $lines) = ($s[$i]->pid,
	join '\s+',
	map { quotemeta } $line->($i, $j, qq{distributed lock "/cycle/words/$j"}),
	$line->($j, $k, qq{distributed lock "/cycle/words/$k"}),
	$line->($k, $i, qq{distributed lock "/cycle/words/$i"}));
like($log,
	qr{LOG:  process $pid detected deadlock across servers while waiting for distributed lock "/cycle/words/$j"\n.*DETAIL:  $lines}s,
	'the log names all');
is($test->look($nodes[$i], "SELECT deadlocks FROM zk_stat_locks WHERE path = '/cycle/words/$j'"),
	1, 'zk_stat_locks counts it');

# Readers and writers
cycle($test, '/rw/1', [ @s[ 0, 1 ] ], held => '_shared');
one_victim($test, [ @s[ 0, 1 ] ], 'writers wait for readers');
cycle($test, '/rw/2', [ @s[ 0, 1 ] ], mode => '_shared');
one_victim($test, [ @s[ 0, 1 ] ], 'readers wait for writers');

# A reader waits for a writer that waits itself, and holds nothing else.
$s[0]->query("BEGIN; SELECT zk_xact_lock_shared('/rw/3')");
$s[2]->query("BEGIN; SELECT zk_xact_lock('/rw/4')");
$test->enqueue($s[1], "BEGIN; SELECT zk_xact_lock('/rw/3')", '/rw/3');
$test->enqueue($s[2], "SELECT zk_xact_lock_shared('/rw/3')", '/rw/3');
$test->enqueue($s[0], "SELECT zk_xact_lock('/rw/4')", '/rw/4');
one_victim($test, [ @s[ 0 .. 2 ] ], 'a reader behind a waiting writer');

# Two of many readers
my @readers = map { $test->session($nodes[ $_ % 4 ]) } 0 .. 7;
$_->query("BEGIN; SELECT zk_xact_lock_shared('/rw/5')") foreach @readers;
$s[0]->query("BEGIN; SELECT zk_xact_lock('/rw/6')");
$test->enqueue($s[0], "SELECT zk_xact_lock('/rw/5')", '/rw/5');
$test->enqueue($readers[5], "SELECT zk_xact_lock('/rw/6')", '/rw/6');
my ($loser, $winner) = loser($s[0], $readers[5]);
$loser->query('ROLLBACK');
$_->query('COMMIT') foreach grep { $_ != $readers[5] } @readers;
ok($winner->value, 'one of the readers wants what the writer has');
$winner->query('COMMIT');
$_->close foreach @readers;

# Both want more than they have in shared mode: that is known at once, as before.
$s[0]->query("BEGIN; SELECT zk_xact_lock_shared('/up')");
$s[1]->query("BEGIN; SELECT zk_xact_lock_shared('/up')");
$test->enqueue($s[0], "SELECT zk_xact_lock('/up')", '/up');
is($s[1]->error("SELECT zk_xact_lock('/up')"), '40P01', 'upgrade against upgrade');
like($s[1]->messages, qr/holds distributed lock "\/up" in shared mode/, 'and says so');
$s[1]->query('ROLLBACK');
$s[0]->value;
$s[0]->query('COMMIT');

# Upgrades of two locks
$_->query("BEGIN; SELECT zk_xact_lock_shared('/up/1'), zk_xact_lock_shared('/up/2')")
  foreach @s[ 0, 1 ];
$test->enqueue($s[0], "SELECT zk_xact_lock('/up/1')", '/up/1');
$test->enqueue($s[1], "SELECT zk_xact_lock('/up/2')", '/up/2');
one_victim($test, [ @s[ 0, 1 ] ], 'upgrades of two locks');

# Several at once: a session waits for one of several locks, and holds those before it.
$s[0]->query("BEGIN; SELECT zk_xact_lock('/array/b')");
$s[1]->query("BEGIN; SELECT zk_xact_lock('/array/c')");
$test->enqueue($s[0], "SELECT zk_xact_multilock(ARRAY['/array/a', '/array/c', '/array/d'])", '/array/c');
$test->enqueue($s[1], "SELECT zk_xact_multilock(ARRAY['/array/a', '/array/d'])", '/array/a');
one_victim($test, [ @s[ 0, 1 ] ], 'several at once');

# Leaders.  Their locks outlive the transaction.
$s[$_]->query("SELECT zk_lead('/lead/$_')") foreach 0, 1;
$s[0]->send("SELECT zk_lead('/lead/1')");
$test->wait_queue('/lead/1', 2);
$s[1]->send("SELECT zk_lead('/lead/0')");
($loser, $winner) = loser(@s[ 0, 1 ]);
like($loser->messages, qr/waits for leadership "\/lead\/[01]"; blocked by process/,
	'and the error says that it is a leadership');
$loser->query('SELECT zk_unlock_all()');
$winner->value;
$winner->query('SELECT zk_unlock_all()');

# Turns of jobs
$s[$_]->query("BEGIN; SELECT zk_once('/job/$_', interval '1 day')") foreach 0, 1;
$test->enqueue($s[0], "SELECT zk_once('/job/1', interval '1 day')", '/.once/job/1');
$test->enqueue($s[1], "SELECT zk_once('/job/0', interval '1 day')", '/.once/job/0');
one_victim($test, [ @s[ 0, 1 ] ], 'turns');

# A savepoint: the locks taken since are given back, and only those.
foreach (0, 1)
{
	$s[$_]->query("BEGIN; SELECT zk_xact_lock('/save/keep/$_'); SAVEPOINT p;"
		  . " SELECT zk_xact_lock('/save/$_')");
}
$test->enqueue($s[0], "SELECT zk_xact_lock('/save/1')", '/save/1');
$test->enqueue($s[1], "SELECT zk_xact_lock('/save/0')", '/save/0');
($loser, $winner) = loser(@s[ 0, 1 ]);
ok($winner->value, 'the other one goes on');
$loser->query('ROLLBACK TO p');
my $kept = $loser == $s[0] ? 0 : 1;
is($loser->query("SELECT path FROM zk_locks WHERE state = 'granted' AND pid = pg_backend_pid()"),
	"/save/keep/$kept", 'the locks from before the savepoint stay');
$_->query('COMMIT') foreach $winner, $loser;

# The same with an exception that is caught, by the one that begins to wait last
$s[$_]->query("BEGIN; SELECT zk_xact_lock('/catch/$_')") foreach 0, 1;
$test->enqueue($s[0], "SELECT zk_xact_lock('/catch/1')", '/catch/1');
$test->enqueue($s[1], <<'SQL', '/catch/0');
DO $$
BEGIN
	PERFORM zk_xact_lock('/catch/0');
EXCEPTION WHEN deadlock_detected THEN
	RAISE NOTICE 'caught';
END $$
SQL
my $caught = 0;
wait_for(
	sub {
		$caught = !$s[1]->busy && $s[1]->messages =~ /caught/;
		return $caught || !$s[0]->busy;
	},
	'one of two is the victim');
$s[1]->query('COMMIT') if $caught;
is($s[0]->sqlstate, $caught ? '' : '40P01', 'it catches the error, or the other one fails');
$s[1]->query('COMMIT') if !$caught;
$s[0]->query('ROLLBACK');

is($test->status($_, 'given_up_checks + unpublished_waits'), 0, $_->name . ': nothing was too much')
  foreach @nodes;
$_->close foreach @s, @more;
$test->finish;
