# zk_once(): of all servers that fire at the same moment exactly one has the
# turn, per run key or per period of ZooKeeper's time; an abort gives it back, a
# commit uses it up.

use strict;
use warnings;

use POSIX qw(floor);
use Test::More;

use ZklockTest;

my $test = ZklockTest->new(servers => 3, init => { allows_streaming => 1 });
my ($one, $two, $three) = $test->nodes;
my ($s1, $s2, $s3) = my @sessions = map { $test->session($_) } $test->nodes;
my $zk = $test->zk->client;

$_->query('CREATE TABLE runs (turn text)') foreach @sessions;

# How often a turn was had, across all servers
sub runs
{
	my ($turn) = @_;
	my $sum = 0;

	$sum += $_->query("SELECT count(*) FROM runs WHERE turn = '$turn'")
	  foreach @sessions;
	return $sum;
}

# A number in the history of a job
sub noted
{
	my ($name, $member) = @_;

	return $zk->get("/zklock/.once$name/.history") =~ /"$member":(\d+)/ ? $1 : undef;
}

# When the latest call was, by ZooKeeper's clock
sub zookeeper_time { return $zk->stat('/zklock/.once/.clock')->{mtime}; }

# A turn, as zk_once() takes it: a period, or a key
sub named { return $_[0] =~ /^(?:interval|period|key)\b/ ? $_[0] : "key => $_[0]"; }

sub once
{
	my ($session, $path, $what, $guarantee) = @_;

	return $session->query("SELECT zk_once($path, " . named($what)
		  . ($guarantee ? ", guarantee => $guarantee)" : ')'));
}

# All servers do a job at the same moment, each in a transaction of its own;
# returns how many had the turn.
sub fire
{
	my ($path, $what, $turn) = @_;
	my $before = runs($turn);
	my $turn_of = named($what);

	$_->send("DO \$\$ BEGIN IF zk_once('$path', $turn_of) THEN"
		  . " INSERT INTO runs VALUES ('$turn'); END IF; END \$\$")
	  foreach @sessions;
	$_->value foreach @sessions;
	return runs($turn) - $before;
}

# ---- the end of a transaction is the end of its turn ----

$s1->query('BEGIN');
is(once($s1, "'/a'", "'k1'"), 't', 'the first one has the turn');
is(once($s1, "'/a'", "'k1'"), 't', 'and has it still');
is($s1->error("SELECT zk_once('/a', key => 'k2')"), '0A000', 'but one turn at a time');
like($s1->messages, qr{two turns of "/a"}, 'of the job that it named');
$s1->query('ROLLBACK');
is(once($s2, "'/a'", "'k1'"), 't', 'an abort gives it back');
is(once($s1, "'/a'", "'k1'"), 'f', 'a commit uses it up');
is(once($s2, "'/a'", "'k1'"), 'f', 'also for who had it');
is(once($s3, "'/a'", "'k2'"), 't', 'another key is another turn');
is(once($s3, "'/a/b'", "'k2'"), 't', 'and another name another job');

# Who comes later waits until it is known; who has no turn keeps nobody out.
foreach my $end ([ 'COMMIT', 'f' ], [ 'ROLLBACK', 't' ])
{
	foreach my $guarantee ('at_most_once', 'at_least_once')
	{
		my $key = "'$end->[0] $guarantee'";

		$s1->query('BEGIN');
		is(once($s1, "'/w'", $key, "'$guarantee'"), 't', "$key: one has the turn");
		$test->enqueue($s2, "SELECT zk_once('/w', key => $key)", '/.once/w');
		is($s1->query("SELECT count(*) FROM zk_queue('/.once/w')"),
			2, 'zk_queue() shows both');
		ok($test->still_waits($s2), "$key: another waits");
		$s1->query($end->[0]);
		is($s2->value, $end->[1], "$key: and has it, or not");
	}
}
$s1->query('BEGIN');
is(once($s1, "'/w'", "'COMMIT at_most_once'"), 'f', 'no turn');
is(once($s1, "'/w'", "'kept'"), 't', 'but another one');
is($s1->query("SELECT count(*) FROM zk_locks WHERE path = '/.once/w'"), 1,
	'which its lock is for');
$s1->query('ROLLBACK; BEGIN');
is(once($s1, "'/w'", "'COMMIT at_most_once'"), 'f', 'no turn');
is(once($s2, "'/w'", "'kept'"), 't', 'and no lock: nobody waits for the end');
$s1->query('COMMIT');

# Savepoints
$s1->query('BEGIN; SAVEPOINT a');
is(once($s1, "'/s'", "'k1'"), 't', 'a turn within a savepoint');
$s1->query('ROLLBACK TO a');
is(once($s2, "'/s'", "'k1'"), 't', 'is given back with it');
is(once($s1, "'/s'", "'k2'"), 't', 'then another one can be had');
$s1->query('RELEASE a; SAVEPOINT b');
is(once($s1, "'/s'", "'k2'"), 't', 'which is still ours');
$s1->query('ROLLBACK TO b; COMMIT');
is(once($s2, "'/s'", "'k2'"), 'f', 'and is used up with the transaction');
$s1->query(<<'EOS');
DO $$ BEGIN
	BEGIN
		PERFORM zk_once('/s', key => 'k3');
		RAISE division_by_zero;
	EXCEPTION WHEN division_by_zero THEN NULL;
	END;
END $$
EOS
is(once($s2, "'/s'", "'k3'"), 't', 'an exception block gives it back as well');
is($s1->error("BEGIN; SELECT zk_once('/s', key => 'k4'); PREPARE TRANSACTION 'p'"),
	'0A000', 'no PREPARE TRANSACTION');
$s1->query('ROLLBACK');
$s1->query("SET zklock.reentrant = off; BEGIN");
is(once($s1, "'/s'", "'k4'") . once($s1, "'/s'", "'k4'"), 'tt',
	'whether locks are reentrant does not matter');
$s1->query('COMMIT; RESET zklock.reentrant');

# ---- keys ----

is(once($s1, "'/k'", "'key $_'"), 't', "key $_") foreach 1 .. 32;
is(once($s2, "'/k'", "'key 1'"), 'f', '32 keys are remembered');
is(once($s2, "'/k'", "'key 33'"), 't', 'one more');
is(once($s2, "'/k'", "'key 1'"), 't', 'the oldest is forgotten for it');
is(once($s2, "'/k'", "'key 33'"), 'f', 'but not the others');
foreach my $key ("repeat('x', 200)", "repeat(chr(228), 100)",
	"repeat(chr(34), 200)", "'a\"\\b'")
{
	is(once($s1, "'/k'", $key), 't', "key $key");
	is(once($s2, "'/k'", $key), 'f', "key $key again");
}

# ---- periods ----

is(once($s1, "'/p'", "interval '1000 weeks'"), 't', 'a period');
is(noted('/p', 'period_at'), zookeeper_time(), 'at the time that ZooKeeper says');
is(once($s2, "'/p'", "interval '1000 weeks'"), 'f', 'once');
is(once($s2, "'/p'", "period => '1000 weeks'"), 'f', 'by name');
is(once($s2, "'/p'", "key => 'k'"), 't', 'a key is another turn of the job');
is(once($s2, "'/p'", "interval '1000 weeks'"), 'f', 'but changes nothing');


# A period begins half a minute before a multiple of it since a Monday, or half
# of it, if that is shorter.
my $epoch = 946857600000;
my $early = 30_000;
my $week = 7 * 24 * 3600 * 1000;
my $monday = $epoch - $early +
  $week * floor((noted('/p', 'at') - $epoch + $early) / $week);
foreach my $case ([ $monday - 1, 't', 'the last moment of the week before' ],
	[ $monday, 'f', 'the first moment of this week' ],
	[ $monday + $week, 'f', 'a moment in the future' ])
{
	$zk->set('/zklock/.once/p/.history',
		"{\"zklock\":\"once\",\"period_at\":$case->[0],\"keys\":[]}");
	# Who looks right when a week begins would see another week.
	is(once($s1, "'/p'", "interval '1 week'"), $case->[1], $case->[2]);
}
$zk->set('/zklock/.once/p/.history',
	"{\"zklock\":\"once\",\"period_at\":$monday}");
is(once($s1, "'/p'", "interval '1 microsecond'"), 't', 'the shortest period');

# The time that counts is that of the call: who waits while another does the job
# until the next period has not asked for that.
$s1->query('BEGIN');
is(once($s1, "'/l'", "'k'"), 't', 'somebody is at work');
$test->enqueue($s2, "SELECT zk_once('/l', interval '1 second')", '/.once/l');
my $called = zookeeper_time();
$zk->set('/zklock/.once/l/.history', "{\"zklock\":\"once\",\"period_at\":$called}");
wait_for(
	sub {
		$zk->set('/zklock/.once/.clock', '');
		return floor(zookeeper_time() / 1000 + 0.5) > floor($called / 1000 + 0.5);
	},
	'the next period');
$s1->query('ROLLBACK');
is($s2->value, 'f', 'the period of the call was used up');
is(once($s2, "'/l'", "interval '1 second'"), 't', 'the next one is not');

# ---- who fires at the same moment ----

is(fire('/f', "'round $_'", "round $_"), 1, "round $_: one of all")
  foreach 1 .. 70;
my (@times, $turns);
my $period = 250;
while (($turns // 0) < 30)
{
	my $n = fire('/f', "interval '$period ms'", 'period');

	next if $n == 0;
	push @times, noted('/f', 'period_at');
	$turns += $n;
}
my @buckets = map { floor(($_ - $epoch) / $period + 0.5) } @times;
is(scalar(grep { $buckets[$_] <= $buckets[ $_ - 1 ] } 1 .. $#buckets),
	0, 'short periods: each turn is of a later one');
cmp_ok($turns, '<=', $buckets[-1] - $buckets[0] + 2,
	'not more turns than periods');

# ---- as a script of psql ----

my $script = <<'EOS';
\set ON_ERROR_STOP on
BEGIN;
SELECT zk_once('/batch/nightly', interval '1000 weeks') AS mine \gset
\if :mine
	INSERT INTO runs VALUES ('psql');
\endif
COMMIT;
EOS
$_->safe_psql('postgres', $script) foreach $one, $two, $three;
is(runs('psql'), 1, 'psql: one of all');

# ---- what must not be ----

$zk->set('/zklock/.once/p/.history', 'nothing of ours');
is($s1->error("SELECT zk_once('/p', key => 'k')"), 'XX001', 'what is no history is an error');
like($s1->messages, qr{znode "/zklock/.once/p/.history".*zk_once_reset\(\)}s,
	'that tells where and what to do');
$zk->set('/zklock/.once/p/.history', 'x' x 2000);
is($s1->error("SELECT zk_once('/p', key => 'k')"), 'XX001', 'nor one that is too long');
$zk->delete('/zklock/.once/p/.history');
is(once($s1, "'/p'", "'k'"), 't', 'without a history it begins anew');

# Two that believe to have the lock: only one can use the turn up.
$s1->query('BEGIN');
is(once($s1, "'/p'", "'k2'"), 't', 'a turn');
$zk->set('/zklock/.once/p/.history', '');
is($s1->error('COMMIT'), '40001', 'which somebody else has used up meanwhile');

# Turns of several jobs are all used up or none.
$s1->query('BEGIN');
is(once($s1, "'/p1'", "'k'") . once($s1, "'/p2'", "'k'"), 'tt', 'two turns');
$zk->set('/zklock/.once/p2/.history', '');
is($s1->error('COMMIT'), '40001', 'one of which cannot be used up');
is(once($s2, "'/p1'", "'k'"), 't', 'the other one is given back');
is(once($s2, "'/p2'", "'k'"), 't', 'the one is free as well');
$s1->query('BEGIN');
is(once($s1, "'/p1'", "'k2'") . once($s1, "'/p2'", "'k2'"), 'tt', 'two turns');
$s1->query('COMMIT');
is(once($s2, "'/p1'", "'k2'") . once($s2, "'/p2'", "'k2'"), 'ff', 'both used up');

# ---- a turn is had again ----

sub forget { return "SELECT zk_once_reset('$_[0]')"; }

is(once($s1, "'/again'", "'k'") . once($s1, "'/again'", "interval '1000 weeks'"),
	'tt', 'two turns, each in its transaction');
is($s2->query(forget('/again')), 't', 'are forgotten');
is($s2->query(forget('/again')), 'f', 'once');
is(once($s1, "'/again'", "'k'") . once($s2, "'/again'", "interval '1000 weeks'"),
	'tt', 'and had again');
is(once($s2, "'/again'", "'k'") . once($s1, "'/again'", "interval '1000 weeks'"),
	'ff', 'once');
$s1->query('BEGIN;' . forget('/again') . '; ROLLBACK');
is(once($s1, "'/again'", "'k'"), 't', 'a rollback does not bring them back');

# Whoever has a turn ends first.
foreach my $end ([ 'COMMIT', 't' ], [ 'ROLLBACK', 'f' ])
{
	foreach my $guarantee ('at_most_once', 'at_least_once')
	{
		my $case = "$end->[0] $guarantee";

		$s2->query(forget('/again'));
		$s1->query('BEGIN');
		is(once($s1, "'/again'", "'k'", "'$guarantee'"), 't', "$case: a turn");
		$test->enqueue($s2, forget('/again'), '/.once/again');
		ok($test->still_waits($s2), "$case: zk_once_reset() waits");
		$s1->query($end->[0]);
		is($s2->value, $end->[1], "$case: then it forgets the turn, if it was used up");
		is(once($s3, "'/again'", "'k'"), 't', "$case: it can be had");
	}
}
$s1->query('BEGIN');
is(once($s1, "'/again'", "'k2'"), 't', 'a turn');
is($s2->error("SET lock_timeout = '300ms';" . forget('/again')), '55P03',
	'zk_once_reset() waits as for a lock');
$s2->query('RESET lock_timeout');
is($s1->error(forget('/again')), '55006', 'but not for its own transaction');
$s1->query('ROLLBACK');

is($s1->query(forget('/never')), 'f', 'a job that nobody has asked for');
is(scalar(grep { $_ eq 'never' } $zk->ls('/zklock/.once')), 0, 'leaves no trace');
$zk->set('/zklock/.once/again/.history', 'nothing of ours');
is($s1->query(forget('/again')), 't', 'what cannot be read is forgotten, too');
is(once($s1, "'/again'", "'k'"), 't', 'then turns can be had');

# ---- a transaction that asks again and again does not grow ----

$s1->query("SELECT zk_once('/m', key => 'k')");
$zk->create('/zklock/.once/bad');
$zk->create('/zklock/.once/bad/.history', 'nothing of ours');
foreach my $case (
	[ "zk_once('/m', key => 'k')", 'no turn' ],
	[ "zk_once('/m', key => 'another')", 'a turn, given back' ],
	[ "zk_once('/bad', key => 'k')", 'an error' ])
{
	my ($call, $what) = @$case;
	my $bytes = "SELECT sum(total_bytes) FROM pg_backend_memory_contexts"
	  . " WHERE name IN ('TopMemoryContext', 'TopTransactionContext')";

	$s1->query("BEGIN; SELECT zk_once('/another', key => 'ours')");
	my $before = $s1->query($bytes);
	$s1->query(<<"EOS");
DO \$\$ BEGIN
	FOR i IN 1 .. 300 LOOP
		BEGIN
			PERFORM $call;
			RAISE division_by_zero;
		EXCEPTION WHEN division_by_zero OR data_corrupted THEN NULL;
		END;
	END LOOP;
END \$\$
EOS
	cmp_ok($s1->query($bytes) - $before, '<', 100_000, "memory of 300 calls: $what");
	$s1->query('ROLLBACK');
}

# ---- the period of an earlier call ----

my $early = "'/early', '1 day', called_at => zk_time() - interval '1 day'";
is($s1->query("SELECT zk_once($early)"), 't', 'a run of yesterday is recorded');
is($s2->query("SELECT zk_once($early)"), 'f', 'for all servers');
is($s2->query("SELECT zk_once('/early', '1 day')"), 't', 'and is none of today');
is($s1->query("SELECT zk_once($early)"), 'f', 'nor is yesterday open again');
foreach my $time ("zk_time() + interval '1 min'", "'infinity'", "'1960-01-01'")
{
	is($s1->error("SELECT zk_once('/early', '1 day', called_at => $time)"), '22023', $time);
}

# ---- one that hangs ----

$s1->query('BEGIN');
is(once($s1, "'/h'", "'k1'"), 't', 'a turn');
is($s2->query("SELECT zk_break_lock('/.once/h')"), 't', 'it is broken');
is($s1->error('COMMIT'), '40001', 'who had it cannot commit');
is(once($s2, "'/h'", "'k1'"), 't', 'and another has it');

# ---- read only: a standby ----

my $standby = $test->add_standby($one);
my $r = $test->session($standby);
is(once($r, "'/r'", "'k1'"), 't', 'a standby can have a turn');
is(once($s1, "'/r'", "'k1'"), 'f', 'and uses it up');
is(once($s1, "'/r'", "'k2'", "'at_least_once'"), 't', 'the primary');
is(once($r, "'/r'", "'k2'", "'at_least_once'"), 'f', 'uses it up for the standby');
is(once($r, "'/r'", "'k3'", "'at_least_once'"), 't', 'at least once');
is(once($s1, "'/r'", "'k3'", "'at_least_once'"), 'f', 'the same');
$_->close foreach @sessions, $r;

$test->finish;
