# What a crash, a lost answer, a restarted worker or a lost lock does to a turn
# of zk_once(), at each point of its way: as docs/jobs.md says for at_most_once
# and for at_least_once.  A foreign table whose remote side waits, or fails, in
# a deferred trigger holds a commit up right behind the note in ZooKeeper.
# At last, session processes are killed at random while all servers fire.
# ONCE_SEED repeats that.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(usleep);

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(
	servers => 3,
	session_timeout => '6s',
	net => $net,
	conf => "max_prepared_transactions = 5\n");
my ($one, $two, $three) = $test->nodes;
my ($s2, $s3) = map { $test->session($_) } $two, $three;
my $zk = $test->zk->client;
my $line = $one->name . '-zk';
my $job = 0;

# ---- a commit that can be held up ----

my $user = $one->safe_psql('postgres', 'SELECT current_user');
my ($host, $port) = ($two->host, $two->port);
$two->safe_psql('postgres', <<'EOS');
CREATE TABLE remote (what text);
CREATE FUNCTION gate() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN
		IF NEW.what = ''fail'' THEN RAISE ''refused''; END IF;
		PERFORM pg_advisory_xact_lock(1);
		RETURN NULL;
	END';
CREATE CONSTRAINT TRIGGER gate AFTER INSERT ON remote
	DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION gate();
EOS
$one->safe_psql('postgres', <<"EOS");
CREATE TABLE runs (turn text);
CREATE EXTENSION postgres_fdw;
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres');
CREATE USER MAPPING FOR CURRENT_USER SERVER remote
	OPTIONS (user '$user', password_required 'false');
CREATE FOREIGN TABLE remote (what text) SERVER remote;
EOS
$_->safe_psql('postgres', 'CREATE TABLE runs (turn text)') foreach $two, $three;

my $gate = $test->session($two);
my $s1;

# Has a turn of a new job on the first server; "what" goes to the remote table.
sub begin
{
	my ($guarantee, $what) = @_;

	$job++;
	$s1 = $test->session($one);
	$s1->query('BEGIN');
	is($s1->query("SELECT zk_once('/j$job', key => 'k', guarantee => '$guarantee')"), 't',
		"job $job: $guarantee: the turn is had");
	$s1->query("INSERT INTO runs VALUES ('$job')");
	$s1->query("INSERT INTO remote VALUES ('$what')") if $what;
	return;
}

# Sends the COMMIT, and returns once it waits for the remote one.
sub stop_in_commit
{
	$gate->query('SELECT pg_advisory_lock(1)');
	$s1->send('COMMIT');
	return $test->look_until($two,
		"SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted",
		1, 'the commit is held up');
}

sub history { return $zk->get("/zklock/.once/j$job/.history"); }

sub used_ok
{
	my ($expected, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($s2->query("SELECT zk_once('/j$job', key => 'k')"),
		$expected ? 'f' : 't',
		"job $job: $case: the turn is " . ($expected ? 'used up' : 'free'));
}

sub ran
{
	return $test->look($one, "SELECT count(*) FROM runs WHERE turn = '$job'");
}

sub crash
{
	$test->stop_looking($one);
	$one->stop('immediate');
	$s1->abandon;
	return;
}

sub restart
{
	$one->start;
	return $test->wait_connected($one);
}

# Ends a stopped worker, so that the next one finds what it left.
sub replace_worker
{
	my ($worker) = @_;

	kill 'TERM', $worker;
	kill 'CONT', $worker;
	ok($test->wait_gone($worker), 'the worker ends');
	return $test->wait_connected($one);
}

# ---- an abort behind the note ----

begin('at_most_once', 'fail');
is($s1->error('COMMIT'), 'P0001', 'another extension fails in the commit');
used_ok(0, 'noted, then aborted');
is(ran(), 0, 'and it did not run');

# The same, and the next worker takes the note back.
begin('at_most_once', 'wait');
stop_in_commit();
like(history(), qr/"keys":\["k"\]/, 'the note is made before the commit');
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$s1->cancel;
is($s1->sqlstate, '57014', 'cancelled in the commit');
$gate->query('SELECT pg_advisory_unlock(1)');
like(history(), qr/"keys":\["k"\]/, 'the note is still there');
replace_worker($worker);
wait_for(sub { history() !~ /"k"/ }, 'the next session takes the note back');
used_ok(0, 'noted, aborted, worker restarted');

# The same, and it was a FATAL error.
begin('at_most_once', 'wait');
stop_in_commit();
$test->look($one, "SELECT pg_terminate_backend($s1->{pid})");
is($s1->sqlstate, '57P01', 'terminated in the commit');
$gate->query('SELECT pg_advisory_unlock(1)');
used_ok(0, 'noted, terminated');

# ---- a crash between the note and the commit, and before both ----

foreach my $guarantee ('at_most_once', 'at_least_once')
{
	begin($guarantee, 'wait');
	stop_in_commit();
	crash();
	$gate->query('SELECT pg_advisory_unlock(1)');
	used_ok($guarantee eq 'at_most_once', "$guarantee: crash before the commit");
	restart();
	is(ran(), 0, 'it did not run');

	begin($guarantee);
	crash();
	used_ok(0, "$guarantee: crash within the transaction");
	restart();
}

# ---- a crash between the commit and the note ----

begin('at_least_once');
$s1->query('SET LOCAL synchronous_commit = off');
$worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$s1->query('COMMIT');
unlike(history(), qr/"at":/, 'the note is made behind the commit');
crash();
used_ok(0, 'at_least_once: crash behind the commit');
restart();
is(ran(), 1, 'although it ran');

# A worker that is restarted there makes the note.
begin('at_least_once');
$worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$s1->query('COMMIT');
replace_worker($worker);
used_ok(1, 'at_least_once: worker restarted behind the commit');

# The same, and the session has expired meanwhile.
begin('at_least_once');
$worker = $test->status($one, 'worker_pid');
my $session = $test->status($one, 'session_pid');
kill 'STOP', $worker;
$s1->query('COMMIT');
kill 'KILL', $session;
$test->wait_queue("/.once/j$job", 0);
replace_worker($worker);
ok(wait_for(sub { history() =~ /"at":/ }, 'the note'), 'the note is made late');
used_ok(1, 'at_least_once: worker restarted and session lost behind the commit');

# Not if the turns were forgotten meanwhile, and not late over that either.
begin('at_least_once');
$worker = $test->status($one, 'worker_pid');
$session = $test->status($one, 'session_pid');
kill 'STOP', $worker;
$s1->query('COMMIT');
kill 'KILL', $session;
$test->wait_queue("/.once/j$job", 0);
is($s2->query("SELECT zk_once_reset('/j$job')"), 'f', 'nothing is noted yet');
my $offset = -s $one->logfile;
replace_worker($worker);
ok(wait_for(
		sub {
			slurp_file($one->logfile, $offset) =~
			  m{did not write to znode "/zklock/.once/j$job/.history"};
		},
		'the late note'),
	'a late note is not made');
used_ok(0, 'at_least_once: lock lost behind the commit, then reset');

# A reset that comes before the note waits for it.
begin('at_least_once');
$worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$s1->query('COMMIT');
$test->enqueue($s2, "SELECT zk_once_reset('/j$job')", "/.once/j$job");
ok($test->still_waits($s2), 'a reset waits for the note');
kill 'CONT', $worker;
is($s2->value, 't', 'and forgets it');
used_ok(0, 'at_least_once: note made, then reset');
$s1->close;

# So does one that is to stop with its server.
begin('at_least_once');
$worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
$s1->query('COMMIT');
$s1->close;
$test->stop_looking($one);
my $postmaster = $one->{_pid};
kill 'INT', $postmaster;
ok(wait_for(
		sub { slurp_file($one->data_dir . '/postmaster.pid') =~ /stopping/ },
		'the server is stopping'),
	'a shutdown behind the commit');
kill 'CONT', $worker;
ok($test->wait_gone($postmaster), 'the server is down');
used_ok(1, 'at_least_once: shut down behind the commit');
$one->_update_pid(0);
restart();

# ---- answers that are lost ----

my $note = '(?s)\.history.*"run"';
foreach my $guarantee ('at_most_once', 'at_least_once')
{
	begin($guarantee);
	my $lost = $net->stats($line)->{lost};
	$net->lose_reply($line, $note);
	$s1->query('COMMIT');
	used_ok(1, "$guarantee: the answer to the note is lost");
	is($net->stats($line)->{lost}, $lost + 1, 'it was');
	like(history(), qr/"server":"[^"]*","pid":$s1->{pid},/, 'the note is ours');
	$s1->close;
}

# ... and ZooKeeper stays away: the transaction fails, and once it is back the
# note, which nobody knew of, is taken back.
begin('at_most_once');
$s1->query("SET zklock.answer_timeout = '1s'");
$net->lose_reply($line, $note, 1);
is($s1->error('COMMIT'), '08006', 'the answer to the note never comes');
like(history(), qr/"run"/, 'the note is there');
$net->pass($line);
used_ok(0, 'at_most_once: noted, not known, aborted');
$s1->close;

# ... to a reset
begin('at_most_once');
$s1->query('COMMIT');
my $lost = $net->stats($two->name . '-zk')->{lost};
$net->lose_reply($two->name . '-zk', '(?s)\.history.*"reset"');
is($s2->query("SELECT zk_once_reset('/j$job')"), 't', 'the answer to a reset is lost');
is($net->stats($two->name . '-zk')->{lost}, $lost + 1, 'it was');
used_ok(0, 'noted, then reset');
$s1->close;

# ... to the looks at the time and at the history
foreach my $look ('\.clock', '\.history')
{
	$job++;
	$s1 = $test->session($one);
	$net->lose_reply($line, $look);
	is($s1->query("SELECT zk_once('/j$job', key => 'k')"), 't', 'looked again');
	used_ok(1, "the answer to a look at $look is lost");
	$s1->close;
}

# ---- a lock that is lost ----

foreach my $guarantee ('at_most_once', 'at_least_once')
{
	begin($guarantee);
	$s1->query("SET zklock.lost_lock_action = 'none'");
	$test->lose_session($one, "/.once/j$job");
	used_ok(0, "$guarantee: the lock is lost");
	is($s1->error('COMMIT'), '40001', 'then it cannot commit');
	$s1->close;
}

# A note is never taken back over somebody else's.
begin('at_most_once', 'wait');
stop_in_commit();
$test->lose_session($one, "/.once/j$job");
is($s2->query("SELECT zk_once('/j$job', key => 'k2')"), 't', 'another turn is had');
$s1->cancel;
is($s1->sqlstate, '57014', 'then the first one is aborted');
$gate->query('SELECT pg_advisory_unlock(1)');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'and its lock gone');
is($s2->query("SELECT zk_once('/j$job', key => 'k2')"), 'f', 'the other turn is used up');
used_ok(1, 'at_most_once: noted, lock lost, others noted, aborted');
$s1->close;

# ---- a run whose commit fails, and which goes on ----

# PL/pgSQL cannot do that.  What is noted for that commit is as good as any note: the next
# commit of the run uses the turn up, and if there is none, it is taken back.
SKIP:
{
	skip 'no PL/Perl', 1
	  if $one->safe_psql('postgres', "SELECT count(*) FROM pg_available_extensions WHERE name = 'plperl'") == 0;
	my $fail = q{spi_exec_query("INSERT INTO remote VALUES ('fail')"); eval { spi_commit() };};
	my $work = q{spi_exec_query("INSERT INTO runs VALUES ('perl')");};
	my %bodies = (
		"$fail $work spi_commit(); die;" => [ '38000', 1, 't' ],
		"$fail $fail spi_rollback(); $work spi_commit(); spi_commit(); die;" => [ '38000', 1, 't' ],
		"$fail $work" => [ '', 1, 'f' ],
		"$fail spi_rollback(); $work" => [ '', 1, 'f' ],
		"$fail $work die;" => [ '38000', 0, 't' ]);

	$one->safe_psql('postgres', 'CREATE EXTENSION plperl');
	$s1 = $test->session($one);
	foreach my $body (sort keys %bodies)
	{
		my ($sqlstate, $commits, $free_at_least) = @{ $bodies{$body} };

		$s1->query("CREATE OR REPLACE PROCEDURE perl() LANGUAGE plperl AS \$\$ $body \$\$");
		foreach my $guarantee ('at_most_once', 'at_least_once')
		{
			$job++;
			$s1->query('TRUNCATE runs');
			is($s1->error("CALL zk_run_once('/j$job', '1 day', 'CALL perl()', guarantee => '$guarantee')"),
				$sqlstate, "$guarantee: $body");
			is($test->look($one, 'SELECT count(*) FROM runs'), $commits, 'what it committed');
			is($s2->query("SELECT zk_once('/j$job', '1 day')"),
				$guarantee eq 'at_least_once' ? $free_at_least : $commits ? 'f' : 't', 'the turn');
		}
	}
	$s1->close;
}

# ---- all at once, and nothing holds ----

my $seed = $ENV{ONCE_SEED} // int(rand(1_000_000));
note "ONCE_SEED=$seed";
srand $seed;
my @sessions = map { $test->session($_) } $one, $two, $three;
my ($errors, $killed) = (0, 0);

# Each server asks until it is told.  Some abort after they had the turn.
foreach my $round (1 .. 40)
{
	my $guarantee = $round % 2 ? 'at_most_once' : 'at_least_once';
	my %told;
	while (keys %told < @sessions)
	{
		my @asking = grep { !$told{$_} } 0 .. $#sessions;
		$sessions[$_]->send("DO \$\$ BEGIN"
			  . " IF zk_once('/storm', key => 'round $round', guarantee => '$guarantee') THEN"
			  . " INSERT INTO runs VALUES ('round $round'); END IF;"
			  . (rand() < 0.3 ? " RAISE 'not yet';" : '') . ' END $$')
		  foreach @asking;
		my $victim = ($one, $two, $three)[ rand 3 ];
		my $pid = $test->status($victim, 'session_pid');
		usleep(rand 30_000);
		$killed += kill 'KILL', $pid if $pid && rand() < 0.4;
		foreach my $i (@asking)
		{
			my $state = $sessions[$i]->sqlstate;
			$told{$i} = 1 if $state eq '';
			$errors++ if $state ne '';
		}
	}
	my $sum = 0;
	$sum += $_->query("SELECT count(*) FROM runs WHERE turn = 'round $round'")
	  foreach @sessions;
	is($sum, 1, "round $round: $guarantee: exactly one");
}
note "$errors transactions failed, $killed session processes were killed";
$_->close foreach @sessions, $s2, $s3, $gate;

$test->finish(crashes => qr/terminated by signal 9: Killed/);
