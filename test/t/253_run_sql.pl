# zk_run_once() and zk_run_exclusive(): who runs, who is skipped and why; SQL that
# commits; and errors, after which nothing stays.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
$_->safe_psql('postgres', <<'EOS') foreach $one, $two;
CREATE TABLE gate (); CREATE TABLE done (step int);
CREATE PROCEDURE in_steps() LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO done VALUES (1);
	COMMIT;
	LOCK TABLE gate;
	INSERT INTO done VALUES (2);
END $$;
CREATE PROCEDURE begins_anew() LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO done VALUES (1);
	ROLLBACK;
	INSERT INTO done VALUES (2);
END $$;
CREATE PROCEDURE fails_at_its_end() LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO done VALUES (1);
	COMMIT;
	RAISE division_by_zero;
END $$;
EOS
my ($s, $other, $keeper, $root) =
  ($test->session($one), $test->session($two), $test->session($one), $test->session($one));
my $steps = 'SELECT coalesce(array_agg(step ORDER BY step), ARRAY[]::int[]) FROM done';
my $waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'gate'::regclass";
my $slots = 'SELECT count(*) FROM zk_locks';

sub answer_like
{
	my ($session, $call, $expected, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return like(eval { $session->query("CALL $call") } // $@, $expected, $name);
}

# Starts a call that stops at the gate.
sub start
{
	my ($call) = @_;

	$keeper->query('BEGIN; LOCK TABLE gate');
	$s->send("CALL $call");
	ok($test->look_until($one, $waits, 1), "$call is under way");
	return;
}

# ---- once ----

my $insert = 'INSERT INTO done VALUES (0)';
my $time = qr/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/;
answer_like($s, "zk_run_once('/o/a', '1 day', '$insert')", qr/^t\|run by server "server1"$/, 'the first call');
like($s->messages, qr/^NOTICE\n00000\n"\/o\/a": run by server "server1"$/, 'says so');
answer_like($_, "zk_run_once('/o/a', '1 day', '$insert')",
	qr/^f\|skipped: server "server1" ran it at $time/, 'another one in that period')
  foreach $s, $other;
is($test->look($one, $steps), '{0}', 'it ran once');
is($other->query("SELECT zk_once('/o/a', '1 day')"), 'f', 'zk_once() has the same turns');

# By key
my $by_key = "zk_run_once('/o/k', sql => '$insert', key => '%s')";
answer_like($s, sprintf($by_key, $_), qr/^t\|/, "key $_") foreach 'a', 'b';
answer_like($other, sprintf($by_key, 'b'), qr/^f\|skipped: server "server1" ran it at $time/, 'the last key again');
answer_like($other, sprintf($by_key, 'a'), qr/^f\|skipped: it has been run$/, 'an earlier one');
is($other->query("SELECT zk_once('/o/k', key => 'a')"), 'f', 'zk_once() has the same keys');
answer_like($other, "zk_run_once('/o/k', '1 day', '$insert')", qr/^t\|/, 'a period is another turn');
$_->query('TRUNCATE done') foreach $s, $other;

# While it runs: one waits and holds no snapshot, one does not wait.
my $impatient = $test->session($two);
start("zk_run_once('/o/b', '1 day', 'LOCK TABLE gate')");
$other->send("CALL zk_run_once('/o/b', '1 day', '$insert')");
$test->wait_queue('/.once/o/b', 2);
is($test->look($two, 'SELECT backend_xmin FROM pg_stat_activity WHERE pid = ' . $other->pid),
	'', 'a wait holds no snapshot');
answer_like($impatient, "zk_run_once('/o/b', '1 day', '$insert', timeout => '0')",
	qr/^f\|skipped: server "server1" has the lock since $time/, 'no wait: skipped');
$s->cancel;
is($s->sqlstate, '57014', 'the run fails');
like($other->value, qr/^t\|run by server "server2"$/, 'and the next one runs');
$keeper->query('ROLLBACK');

# ---- SQL that commits ----

foreach my $guarantee ('at_most_once', 'at_least_once')
{
	my $call = "zk_run_once('/c/$guarantee', '1 day', 'CALL in_steps()', guarantee => '$guarantee')";

	$root->query('TRUNCATE done');
	start($call);
	is($test->look($one, $steps), '{1}', "$guarantee: its first transaction has committed");
	answer_like($impatient, "$call" =~ s/\)$/, timeout => '0')/r,
		qr/^f\|skipped: server "server1" has the lock/, "$guarantee: the lock stays");
	$root->query('SELECT pg_terminate_backend(' . $s->pid . ')');
	ok(wait_for(sub { !$s->is_open }, 'the end of the session'), "$guarantee: its session ends");
	$keeper->query('ROLLBACK');
	$s = $test->session($one);
	my $once_more = $guarantee eq 'at_least_once';
	answer_like($other, $call, $once_more ? qr/^t\|/ : qr/^f\|skipped: server "server1" ran it/,
		"$guarantee: " . ($once_more ? 'it runs again' : 'it does not run again'));
	answer_like($s, $call, qr/^f\|skipped/, "$guarantee: the run is recorded");
	is($s->error("CALL zk_run_once('/f/$guarantee', '1 day', 'CALL fails_at_its_end()', guarantee => '$guarantee')"),
		'22012', "$guarantee: an error in a later transaction");
	is($other->query("SELECT zk_once('/f/$guarantee', '1 day')"), $once_more ? 't' : 'f',
		"$guarantee: the turn is " . ($once_more ? 'free' : 'used up'));
}
foreach my $guarantee ('at_most_once', 'at_least_once')
{
	my $call = "zk_run_once('/r/$guarantee', '1 day', 'CALL begins_anew()', guarantee => '$guarantee')";

	answer_like($s, $call, qr/^t\|/, "$guarantee: SQL that rolls back");
	answer_like($other, $call, qr/^f\|skipped/, "$guarantee: uses the turn up, too");
}

# Whatever a run does with transactions before it fails: what it has committed counts as
# a run, in the first transaction that commits and not before.
my $work = 'INSERT INTO done VALUES (7);';
my %bodies = (
	'ROLLBACK; %s COMMIT;' => 1,
	'%s ROLLBACK; ROLLBACK; %s COMMIT; ROLLBACK;' => 1,
	'ROLLBACK AND CHAIN; %s COMMIT AND CHAIN;' => 1,
	'ROLLBACK; BEGIN %s RAISE unique_violation; EXCEPTION WHEN unique_violation THEN END; ROLLBACK; %s COMMIT;' => 1,
	'COMMIT; ROLLBACK; %s COMMIT;' => 1,
	'%s ROLLBACK;' => 0,
	'BEGIN %s RAISE unique_violation; EXCEPTION WHEN unique_violation THEN END; %s ROLLBACK AND CHAIN; %s' => 0);
my $n = 0;
foreach my $body (sort keys %bodies)
{
	my ($commits, $sql) = ($bodies{$body}, $body =~ s/%s/$work/gr);

	$n++;
	$root->query("CREATE PROCEDURE fails_$n() LANGUAGE plpgsql AS"
		  . " \$\$BEGIN $sql RAISE division_by_zero; END\$\$");
	foreach my $guarantee ('at_most_once', 'at_least_once')
	{
		my $call = "CALL zk_run_once('/t/$n/$guarantee', '1 day', 'CALL fails_$n()', guarantee => '$guarantee')";
		my $again = !$commits || $guarantee eq 'at_least_once';

		$root->query('TRUNCATE done');
		is($s->error($call), '22012', "$body $guarantee: fails");
		is($s->error($call), $again ? '22012' : '', ($again ? 'runs' : 'does not run') . ' again');
		is($test->look($one, $steps), $commits ? $again ? '{7,7}' : '{7}' : '{}', 'and commits as often');
	}
}
$root->query(<<'EOS');
CREATE PROCEDURE around(job text) LANGUAGE plpgsql AS $$
DECLARE
	ran boolean;
	message text;
BEGIN
	CALL zk_run_once(job, '1 day', 'CALL begins_anew(); CALL in_steps()', ran => ran, message => message);
	ROLLBACK;
END $$;
EOS
foreach my $time (1, 2)
{
	$root->query('TRUNCATE done');
	$s->query("CALL around('/r/around')");
	is($test->look($one, $steps), $time == 1 ? '{1,2}' : '{}', "a rollback around a run that committed: call $time");
}

$root->query('TRUNCATE done');
answer_like($s, "zk_run_exclusive('/e/c', 'CALL in_steps(); INSERT INTO done VALUES (3); DO ''BEGIN COMMIT; END''')",
	qr/^t\|/, 'several statements');
is($test->look($one, $steps), '{1,2,3}', 'all were run');

# ---- under a lock ----

start("zk_run_exclusive('/e/a', 'LOCK TABLE gate; $insert')");
answer_like($other, "zk_run_exclusive('/e/a', '$insert', '50ms')",
	qr/^f\|skipped: server "server1" has the lock since $time/, 'not in time: skipped');
$other->send("CALL zk_run_exclusive('/e/a', '$insert')");
$test->wait_queue('/e/a', 2);
is($test->look($two, $steps) =~ tr/0//, 1, 'meanwhile nobody else runs');
$keeper->query('ROLLBACK');
like($_->value, qr/^t\|/, 'one after the other') foreach $s, $other;

$s->query("BEGIN; CALL zk_run_exclusive('/e/a', '$insert')");
is($other->query("SELECT zk_try_lock('/e/a')"), 'f', 'in a transaction: until its end');
$s->query('COMMIT');
ok(wait_for(sub { $other->query("SELECT zk_try_lock('/e/a')") eq 't' }, 'the release'), 'and no longer');
$other->query("SELECT zk_unlock('/e/a')");

# A lock that is lost
start("zk_run_exclusive('/e/b', 'CALL in_steps()')");
my $before = $test->look($one, $steps);
$root->query("SELECT zk_break_lock('/e/b')");
is($s->sqlstate, '40001', 'a lost lock ends the run');
unlike($s->messages, qr/zk_unlock/, 'and there is nothing to acknowledge');
is($test->look($one, $steps), $before, 'nothing more is committed');
is($s->query("SELECT zk_try_lock('/e/b'), zk_unlock('/e/b')"), 't|t', 'the session goes on');
$keeper->query('ROLLBACK');

# What sessions do inside
answer_like($s, "zk_run_exclusive('/e/u', 'SELECT zk_unlock_all(); CALL in_steps()')", qr/^t\|/,
	'zk_unlock_all() inside');
unlike($s->messages, qr/WARNING/, 'does not release its lock');
$s->query('SET zklock.reentrant = off');
answer_like($s, "zk_run_exclusive('/e/r', '$insert')", qr/^t\|/, 'reentrant = off');
answer_like($s, "zk_run_once('/o/r', '1 day', '$insert')", qr/^t\|/, 'reentrant = off, once');
is($s->error("CALL zk_run_exclusive('/e/r', 'CALL zk_run_exclusive(''/e/r'', ''SELECT 1'')')"),
	'55006', 'inside itself: refused');
$s->query('RESET zklock.reentrant');
is($s->error("CALL zk_run_once('/o/n', '1 day', 'CALL zk_run_once(''/o/n'', ''1 day'', ''SELECT 1'')')"),
	'55006', 'once inside itself: refused');
$s->query('SET zklock.session_locks = off');
answer_like($s, "zk_run_exclusive('/e/s', 'CALL in_steps()')", qr/^t\|/, 'session_locks = off');
$s->query('RESET zklock.session_locks');
$s->query("SELECT zk_lock('/e/own')");
is($s->error("CALL zk_run_exclusive('/e/own', 'SELECT 1/0')"), '22012', 'a lock that the session has');
is($s->query("SELECT zk_unlock('/e/own')"), 't', 'is kept');

# ---- errors ----

my @errors = (
	[ "zk_run_exclusive('/x', 'SELECT 1/0')", '22012' ],
	[ "zk_run_exclusive('/x', 'SELEC 1')", '42601' ],
	[ "zk_run_exclusive('/x', '')", '22023' ],
	[ "zk_run_exclusive('/x', ' ; ')", '22023' ],
	[ "zk_run_exclusive('/x', NULL)", '22004' ],
	[ "zk_run_exclusive(NULL, 'SELECT 1')", '22004' ],
	[ "zk_run_exclusive('x', 'SELECT 1')", '22023' ],
	[ "zk_run_exclusive('/x', 'SELECT 1', '-1s')", '22023' ],
	[ "zk_run_exclusive('/x', 'COMMIT')", '2D000' ],
	[ "zk_run_exclusive('/x', 'COPY gate TO STDOUT')", '0A000' ],
	[ "zk_run_exclusive('/x', 'VACUUM gate')", '25001' ],
	[ "zk_run_once('/x', NULL, 'SELECT 1')", '22004' ],
	[ "zk_run_once('/x', '1 day', NULL)", '22004' ],
	[ "zk_run_once('/x', '1 day', 'SELECT 1', NULL)", '22004' ],
	[ "zk_run_once('/x', '1 day', 'SELECT 1', 'UTC', NULL)", '22004' ],
	[ "zk_run_once('/x', '-1 day', 'SELECT 1')", '22023' ],
	[ "zk_run_once('/x', '1 day', 'SELECT 1', 'nowhere')", '22023' ],
	[ "zk_run_once('/x', '1 day', 'SELECT 1', guarantee => 'x')", '22023' ],
	[ "zk_run_once('/x', '1 day', 'SELECT 1/0')", '22012' ],
	[ "zk_run_once('/x', '1 day', 'SELECT 1/0', guarantee => 'at_least_once')", '22012' ]);
foreach (@errors)
{
	my ($call, $sqlstate) = @$_;
	is($s->error("CALL $call"), $sqlstate, "$call: $sqlstate") or diag $s->messages;
}

# An error points into the SQL, as that of PL/pgSQL's EXECUTE does.
foreach my $case ([ 'SELECT 1; SELEC 1', 'SELECT 1; SELEC 1', 11 ], [ 'SELECT 1; SELECT nothing', 'SELECT nothing', 8 ])
{
	my ($sql, $query, $position) = @$case;

	foreach my $call ("zk_run_once('/x', '1 day', '$sql')", "zk_run_exclusive('/x', '$sql')")
	{
		my $error = $s->send("CALL $call")->result->{error};

		is($error->{position}, undef, "$call: no position in the CALL");
		is("$error->{internal_query}: $error->{internal_position}", "$query: $position", 'but one in the SQL');
	}
}
foreach my $call ("zk_run_exclusive('/x', 'VACUUM gate')", "zk_run_once('/x', '1 day', 'SELECT 1; CREATE DATABASE x')")
{
	like($s->send("CALL $call")->result->{error}{hint}, qr/zk_await_lock/, "$call: a hint at what can do it");
}
ok($test->look_until($one, $slots, 0), 'after errors nothing is held');
answer_like($s, "zk_run_once('/x', '1 day', '$insert')", qr/^t\|/, 'and the turn is free');

$root->query('CREATE ROLE worker LOGIN; GRANT EXECUTE ON ALL PROCEDURES IN SCHEMA public TO worker');
$root->query("SELECT zk_grant('/', 'worker', 'once')");
my $worker = $test->session($one, user => 'worker');
is($worker->error("CALL zk_run_exclusive('/w', 'SELECT 1')"), '42501', 'rights by prefix');
answer_like($worker, "zk_run_once('/w', '1 day', 'SELECT current_user')", qr/^t\|/, 'that for once');
is($worker->error("CALL zk_run_once('/w2', '1 day', '$insert')"), '42501', 'its SQL is run as the caller');

$_->close foreach $s, $other, $impatient, $keeper, $root, $worker;
$test->finish;
