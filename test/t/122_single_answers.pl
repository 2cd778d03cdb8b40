# Single requests get an error for an answer, on a connection that goes on (row
# 52): NOAUTH, MARSHALLINGERROR, SYSTEMERROR or CONNECTIONLOSS, for a read or a
# write, which was carried out or not (NOAUTH says that it was not).  Each call works, because the worker asks
# again, or fails with an error that says so; and nothing is left behind: no
# lock that nobody holds, no znode, no slot, no memory.  A server that answers
# so all the time is not asked all the time.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

# In files, the segments of dynamic shared memory can be counted.
my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, conf => <<'EOC');
dynamic_shared_memory_type = mmap
EOC
my ($one, $two) = $test->nodes;
my $line = $one->name . '-zk';
my $zk = $test->zk->client;
my $s = $test->session($one);
my $t = $test->session($two);
my $worker = $test->status($one, 'worker_pid');
my $segments = segments();

my %codes = (
	NOAUTH => -102,
	MARSHALLINGERROR => -5,
	SYSTEMERROR => -1,
	CONNECTIONLOSS => -4);

sub segments { return scalar(() = glob($one->data_dir . '/pg_dynshmem/*')); }

# Arms the proxy, runs a query, and returns whether it worked.  It must either
# have that value or be refused with ZooKeeper's own words.
sub ask
{
	my ($case, $what, $sql, $value) = @_;
	my ($kind, $regex, $code, %options) = @$what;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$net->answer($line, $kind, $regex, $codes{$code}, %options);
	my $answer = $s->send($sql)->result;
	is($net->stats($line)->{answered}, $options{times} // 1,
		"$case: was answered $code");
	$net->pass($line);
	if ($answer->{error})
	{
		like(
			$answer->{error}{detail} // $answer->{error}{message},
			qr/ZooKeeper answered $code/,
			"$case: is refused with $code");
		return 0;
	}
	is($answer->{rows}[0][0], $value, "$case: works");
	return 1;
}

# Errors that may pass are asked about again, so the call works.
sub passes { return $_[0] =~ /SYSTEMERROR|CONNECTIONLOSS/; }

foreach my $code (sort keys %codes)
{
	# ---- zk_queue() ----

	$t->query("SELECT zk_lock('/s/q')");
	my $queue = "SELECT count(*) FROM zk_queue('/s/q') WHERE granted";

	ok(ask("queue, $code", [ 'list', 's/q', $code ], $queue, 1) ||
		  !passes($code),
		"queue, $code: the directory");
	ok(ask("queue, $code", [ 'get', 's/q/_c', $code ], $queue, 1),
		"queue, $code: a znode");
	is($s->query($queue), 1, "queue, $code: goes on");
	$t->query("SELECT zk_unlock('/s/q')");

	# ---- zk_break_lock() ----

	foreach my $kind ('get', 'list', 'multi')
	{
		foreach my $done (0, 1)
		{
			next if $done && ($kind ne 'multi' || $code eq 'NOAUTH');
			my $case = "break, $kind, $code" . ($done ? ', done' : '');

			$zk->create("/zklock/s/b/x-__READ__", 'x',
				[ 'ephemeral', 'sequence' ]);
			ask($case, [ $kind, '/s/b', $code, done => $done ],
				"SELECT zk_break_lock('/s/b')", 't')
			  or $s->query("SELECT zk_break_lock('/s/b')");
			is_deeply([ $test->queue('/s/b') ], [], "$case: is gone");
		}
	}

	# A holder of ours, who is asked by a mark
	foreach my $done ($code eq 'NOAUTH' ? 0 : (0, 1))
	{
		my $case = "break, mark, $code" . ($done ? ', done' : '');

		$t->query("SET zklock.lost_lock_action = 'none'");
		$t->query("SELECT zk_lock('/s/m')");
		$net->answer($line, 'multi', 's/m/.*breaking', $codes{$code},
			done => $done);
		$s->send("SELECT zk_break_lock('/s/m')");
		wait_for(sub { $net->stats($line)->{answered} == 1 }, $case);
		if ($code eq 'NOAUTH')
		{
			is($s->sqlstate, '42501', "$case: is refused");
			$s->send("SELECT zk_break_lock('/s/m')");
		}
		$test->look_until($two,
			"SELECT state FROM zk_locks WHERE path = '/s/m'",
			'lost', "$case: the holder loses it");
		$t->query("SELECT zk_unlock('/s/m')");
		is($s->value, 't', "$case: it is broken");
	}

	# ---- zk_once(): errands, before and behind the commit ----

	foreach my $request ([ 'multi', 's/j/.history' ], [ 'get', 's/j/.history' ],
		[ 'multi', '.once/.clock' ])
	{
		foreach my $done (0, 1)
		{
			next
			  if $done && ($request->[0] eq 'get' || $code eq 'NOAUTH');
			my $case = "once, @$request, $code" . ($done ? ', done' : '');
			my $key = $case =~ s/\W+/-/gr;
			my $once = "SELECT zk_once('/s/j', key => '$key')";

			ask($case, [ @$request, $code, done => $done ], $once, 't');
			is($t->query("SELECT zk_once('/s/j', key => '$key-2')"),
				't', "$case: the job goes on");
		}
	}

	foreach my $request ([ 'get', 0 ], [ 'multi', 0 ], [ 'multi', 1 ])
	{
		my ($kind, $done) = @$request;
		next if $done && $code eq 'NOAUTH';
		my $case = "behind the commit, $kind, $code" . ($done ? ', done' : '');
		my $key = $case =~ s/\W+/-/gr;

		$s->query("BEGIN; SELECT zk_once('/s/k', key => '$key', guarantee => 'at_least_once')");
		$net->answer($line, $kind, 's/k/.history', $codes{$code},
			done => $done);
		$s->query('COMMIT');
		wait_for(sub { $net->stats($line)->{answered} == 1 }, $case);
		is($t->query("SELECT zk_once('/s/k', key => '$key-2')"),
			't', "$case: the job goes on");
		is($t->query("SELECT zk_once('/s/k', key => '$key')"),
			$code eq 'NOAUTH' ? 't' : 'f',
			"$case: its turn");
	}

	# ---- other errands ----

	ask("request, $code", [ 'multi', 's/v/', $code ],
		"SELECT zk_request_release('/s/v')", 1)
	  if $t->query("SELECT zk_lock('/s/v')");
	$t->query("SELECT zk_unlock('/s/v')");
	foreach my $kind ('list', 'multi')
	{
		my $case = "barrier, $kind, $code";

		ask($case, [ $kind, 's/w', $code ], "SELECT zk_barrier('/s/w', 1)", 't')
		  or is($s->query("SELECT zk_barrier('/s/w', 1)"), 't',
			"$case: works the next time");
		wait_for(sub { !$zk->ls('/zklock/s/w') }, "$case: nothing is left");
	}
	ask("semaphore, list, $code", [ 'list', 's/x/leases', $code ],
		"SELECT zk_try_acquire_permits('/s/x', max_permits => 1)", 't');
	$s->query("SELECT zk_unlock_all()");

	# ---- locks ----

	foreach my $request ([ 'multi', 's/l/', 0 ], [ 'multi', 's/l/', 1 ],
		[ 'list', 's/l', 0 ], [ 'container', 's/l', 0 ])
	{
		my ($kind, $regex, $done) = @$request;
		next if $done && $code eq 'NOAUTH';
		my $case = "lock, $kind, $code" . ($done ? ', done' : '');
		my $path = '/s/l' . ($case =~ s/\W+/-/gr);

		# What is to be done needs its directory; and in one where somebody
		# was before, there is a listing.
		$zk->create("/zklock$path") if $done;
		$t->query("SELECT zk_lock('$path'); SELECT zk_unlock('$path')")
		  if $kind eq 'list';
		$net->answer($line, $kind, $regex =~ s{s/l}{s/l[^/]*}r, $codes{$code},
			done => $done);
		like($s->error("SELECT zk_lock('$path')"),
			qr/^(|42501|58000|08006)$/, "$case: works, or is refused");
		is($net->stats($line)->{answered}, 1, "$case: was answered");
		$net->pass($line);
		$s->query("SELECT zk_unlock_all()");
		cmp_ok($t->query("SELECT zk_lock('$path')"), '>', 0,
			"$case: nobody is left in the way");
		$t->query("SELECT zk_unlock('$path')");

		# Its release
		$s->query("SELECT zk_lock('$path')");
		$net->answer($line, 'multi', $path, $codes{$code}, done => $done);
		$s->query("SELECT zk_unlock('$path')");
		cmp_ok($t->query("SELECT zk_lock('$path')"), '>', 0,
			"$case: nor after a release");
		$net->pass($line);
		$t->query("SELECT zk_unlock('$path')");
	}

	# A try, whose listing is only as good as the sync ahead of it,
	# in a directory that this server does not know.
	$t->query("SELECT zk_lock('/s/t-$code')");
	$net->answer($line, 'sync', 's/t-', $codes{$code});
	is($s->query("SELECT zk_try_lock('/s/t-$code')"), 'f', "try, sync, $code");
	is($net->stats($line)->{answered}, 1, "try, sync, $code: was answered");
	$net->pass($line);
	$t->query("SELECT zk_unlock('/s/t-$code')");

	# A hold's own znode is looked at.  The lock stays, unless this server is no
	# longer allowed to look; and nobody is kept out by what is left of it.
	$s->query("SET zklock.lost_lock_action = 'none'");
	$s->query("SELECT zk_lock('/s/o')");
	$net->answer($line, 'get', 's/o/_c', $codes{$code});
	wait_for(sub { $net->stats($line)->{answered} == 1 }, "own, $code");
	$net->pass($line);
	my $lost = $code eq 'NOAUTH';
	$test->look_until($one,
		"SELECT state FROM zk_locks WHERE path = '/s/o'",
		'lost', "own, $code: it is lost")
	  if $lost;
	is($s->error('BEGIN; SELECT pg_current_xact_id(); COMMIT'),
		$lost ? '40001' : '', "own, $code: a commit");
	$s->query('ROLLBACK') if $lost;
	is($s->query("SELECT zk_unlock('/s/o')"),
		$lost ? 'f' : 't', "own, $code: it is given back");
	cmp_ok($t->query("SELECT zk_lock('/s/o')"), '>', 0,
		"own, $code: and somebody else has it");
	$t->query("SELECT zk_unlock('/s/o')");
}

# ---- it does not end ----

# The worker gives up after a few times; it does not ask as fast as it can.
$zk->create('/zklock/s/e');
$s->query("SET zklock.answer_timeout = '1min'");
$t->query("SELECT zk_lock('$_')") foreach '/s/g', '/s/h';
my %calls = (
	"SELECT zk_lock('/s/g')" => [ 'list', 's/g' ],
	"SELECT zk_lock('/s/h')" => [ 'get', 's/h/_c' ],
	"SELECT zk_queue('/s/e')" => [ 'list', 's/e' ],
	"SELECT zk_break_lock('/s/e')" => [ 'list', 's/e' ],
	"SELECT zk_once('/s/e', key => 'k')" => [ 'multi', 's/e/.history' ]);

foreach my $call (sort keys %calls)
{
	$net->answer($line, @{ $calls{$call} }, -4, times => 0);
	is($s->error($call), '08006', "$call: is given up");
	cmp_ok($net->stats($line)->{answered}, '<', 100,
		"$call: was not asked over and over");
	$net->pass($line);
}

is($t->query("SELECT zk_unlock('$_')"), 't', "$_ is still held by another")
  foreach '/s/g', '/s/h';

# One that waits for a change
$s->send("SELECT zk_barrier_enter('/s/f', 3)");
wait_for(sub { $zk->ls('/zklock/s/f') == 1 }, 'a member');
ok($test->still_waits($s), 'it waits');
$net->answer($line, 'list', 's/f', -4, times => 0);
$zk->create('/zklock/s/f/other');
is($s->sqlstate, '08006', 'and gives up');
cmp_ok($net->stats($line)->{answered}, '<', 100, 'without asking over and over');
$net->pass($line);
$zk->delete('/zklock/s/f/other');

# What is to be written behind a commit is given up as well, in the log; then
# the lock goes on.
$s->query("BEGIN; SELECT zk_once('/s/e', key => 'k2', guarantee => 'at_least_once')");
$net->answer($line, 'multi', 's/e/.history', -4, times => 0);
$s->query('COMMIT');
is($t->query("SELECT zk_once('/s/e', key => 'k3')"), 't', 'the job goes on');
cmp_ok($net->stats($line)->{answered}, '<', 100, 'and ZooKeeper is not flooded');
$net->pass($line);
like(slurp_file($one->logfile),
	qr{could not write to znode "/zklock/.once/s/e/.history"}, 'it is logged');

# ---- a segment that the worker cannot map ----

foreach my $call ("SELECT count(*) FROM zk_queue('/s/d')",
	"SELECT zk_once('/s/d', key => 'k')")
{
	my %before = map { $_ => 1 } glob($one->data_dir . '/pg_dynshmem/*');
	my @new;

	kill 'STOP', $worker;
	$s->send($call);
	wait_for(
		sub {
			@new = grep { !$before{$_} } glob($one->data_dir . '/pg_dynshmem/*');
		},
		'its segment');
	$test->look_until($one,
		"SELECT wait_event_type FROM pg_stat_activity WHERE pid = " . $s->pid,
		'Extension', 'it waits');
	chmod 0, @new;
	kill 'CONT', $worker;
	is($s->sqlstate, '58000', "$call: is told what was wrong");
	is($s->query("SELECT count(*) FROM zk_queue('/s/d')"), 0,
		"$call: the worker goes on");
}
# ---- a segment whose lengths change after the worker has read them ----

my %known = map { $_ => 1 } glob($one->data_dir . '/pg_dynshmem/*');
$zk->create('/zklock/s/z/x-__READ__', 'x', [ 'ephemeral', 'sequence' ]) foreach 1 .. 3;
$net->catch($line, 's/z/x-');
$s->send("SELECT count(*) FROM zk_queue('/s/z')");
wait_for(sub { $net->stats($line)->{caught} == 1 }, 'the reads of three znodes');
foreach my $file (grep { !$known{$_} } glob($one->data_dir . '/pg_dynshmem/*'))
{
	open my $segment, '+<:raw', $file or die "$file: $!";
	seek $segment, 8, 0;
	print $segment pack('Q', 1 << 40);    # the room for each answer
	close $segment;
}
$net->pass($line);
ok($s->result, 'the call ends');
is($s->query('SELECT 1'), 1, 'and the server does not crash');
is($s->query("SELECT count(*) FROM zk_queue('/s/z')"), 3, 'the worker goes on');
$zk->delete("/zklock/s/z/$_") foreach $zk->ls('/zklock/s/z');
ok(wait_for(sub { segments() == $segments }, 'segments are freed'),
	'no memory is left behind')
  or diag(segments() . " instead of $segments");

is($test->status($one, 'worker_pid'), $worker, 'still the same worker');
is($test->status($one, 'sessions_lost'), 0, 'and the same session');
$_->close foreach $s, $t;
$test->finish;
