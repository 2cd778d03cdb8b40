# zk_request_release(): zklock and Curator ask the holder of a lock to release it,
# and each kind of holder is told, as zklock.on_release_request says.  The lock stays
# held: it is a wish.

use strict;
use warnings;

use Test::More;

use CuratorClient;
use ZklockTest;

my $test = ZklockTest->new(conf => <<'EOC');
zklock.dialects = '/jobs=curator_mutex, /py=kazoo'
EOC
my ($one, $two) = $test->nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $zk = $test->zk->client;
my ($s, $t) = ($test->session($one), $test->session($two));
my $blocker = $test->session($one);
my $told = qr/^NOTICE\n\w+\nrelease of .* was requested$/m;

sub is_asked
{
	my ($node, $name, $count, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($node,
			"SELECT count(*) FROM zk_locks WHERE path = '$name' AND release_requested",
			$count, $case),
		$case);
}

# Until a znode is watched by its own server
sub wait_watched
{
	my ($node, $name) = @_;
	my $session = $test->session_hex($node);

	# The znode may be there before its server knows that.
	return wait_for(
		sub {
			my $znode = $test->look($node,
				"SELECT znode FROM zk_locks WHERE path = '$name'") // '';
			return grep { $_ eq $session } @{ $test->zk->watches->{$znode} // [] };
		},
		"$name is watched");
}

# What the statement that runs, or the next one, tells
sub told_ok
{
	my ($session, $asker, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->query('SELECT 1');
	like($session->messages, $told, "$case: it is told");
	return like($session->messages, $asker, "$case: and who asks");
}

sub silent_ok
{
	my ($session, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->query('SELECT 1');
	return is($session->messages, '', $case);
}

# Starts a statement that lasts until "go" is called.
sub occupy
{
	my ($session) = @_;

	$blocker->query('SELECT pg_advisory_lock(1)');
	$session->send('SELECT pg_advisory_lock(1)');
	$test->look_until($one,
		"SELECT wait_event FROM pg_stat_activity WHERE pid = " . $session->pid,
		'advisory', 'it runs');
	return;
}

sub go { return $blocker->query('SELECT pg_advisory_unlock(1)'); }

# ---- nobody holds ----

is($t->query("SELECT zk_request_release('/r/none')"), 0, 'nobody holds: nobody is asked');
is($t->query("SELECT zk_request_release(NULL) IS NULL"), 't', 'nothing asked');
is($t->error("SELECT zk_request_release('r')"), '22023', 'a bad name');
$t->query('CREATE ROLE nobody');
$t->query('SET ROLE nobody');
is($t->error("SELECT zk_request_release('/r/a')"), '42501', 'not for everybody');
$t->query('RESET ROLE');

# ---- zklock asks zklock: young holds, then old ones ----

my $t_is = 'process ' . $t->pid . ' of server2 (user "';

foreach my $age ('young', 'old')
{
	my $name = "/r/$age";

	my $token = $s->query("SELECT zk_lock('$name')");
	wait_watched($one, $name) if $age eq 'old';
	is($s->query("SELECT release_requested FROM zk_locks WHERE path = '$name'"), 'f', "$age: not asked");
	is($t->query("SELECT zk_request_release('$name')"), 1, "$age: one holder");
	is_asked($one, $name, 1, "$age: its server hears of it");
	told_ok($s, qr/\Q$t_is\E\w+", database "postgres"\)/, $age);
	silent_ok($s, "$age: once");
	is($s->query("SELECT zk_fencing_token('$name')"), $token, "$age: it still holds");
	is($t->query("SELECT zk_try_lock('$name')"), 'f', "$age: for all");
	is($t->query("SELECT pid, server, granted FROM zk_queue('$name')"),
		$s->pid . '|server1|t', "$age: zk_queue() still tells who");

	# The same session again, then another one: each wish counts.
	foreach my $asker ($t, $blocker)
	{
		is($asker->query("SELECT zk_request_release('$name')"), 1, "$age: asked again");
		ok(wait_for(
				sub {
					$s->query('SELECT 1');
					return $s->messages =~ $told;
				},
				'told again'),
			"$age: told again");
		like($s->messages, qr/process @{[ $asker->pid ]} of/, "$age: who it is now");
	}
	is($s->query("SELECT zk_unlock('$name')"), 't', "$age: nothing was lost");
	is($s->messages, '', "$age: without a word");
	is($t->query("SELECT zk_try_lock('$name', '1min')"), 't', "$age: it goes on");
	$t->query('SELECT zk_unlock_all()');
}

# ---- zklock.on_release_request ----

$s->query("SELECT zk_lock('/r/notice')");
occupy($s);
$t->query("SELECT zk_request_release('/r/notice')");
is_asked($one, '/r/notice', 1, 'notice: it hears of it');
ok($s->busy, 'notice: its statement goes on');
go();
like($s->messages, qr/$told.*\Q$t_is\E/s, 'notice: told at its end');
is($s->result->{error}, undef, 'notice: without an error');
$s->query('SELECT pg_advisory_unlock(1)');

$s->query("SET zklock.on_release_request = 'cancel'");
$s->query("SELECT zk_lock('/r/cancel')");
$t->query("SELECT zk_request_release('/r/notice')");
is_asked($one, '/r/notice', 1, 'as it was when the lock was taken');
occupy($s);
$t->query("SELECT zk_request_release('/r/cancel')");
is($s->sqlstate, '57014', 'cancel: its statement is cancelled');
like($s->messages, qr{"/r/cancel" was requested\n.*\Q$t_is\E}, 'cancel: and told why');
is($s->query("SELECT zk_unlock('/r/cancel')"), 't', 'cancel: still held');
$s->query('SELECT zk_unlock_all()');
go();

# in a transaction that is then aborted, and with a lock of its lifetime
$s->query("BEGIN; SELECT zk_xact_lock('/r/cancel')");
occupy($s);
$t->query("SELECT zk_request_release('/r/cancel')");
is($s->sqlstate, '57014', 'cancel: in a transaction');
like($s->messages, qr{"/r/cancel" was requested\n.*\Q$t_is\E}, 'cancel: which says why');
$s->query('ROLLBACK');
go();
is($t->query("SELECT zk_try_lock('/r/cancel', '1min')"), 't', 'the lock ends with it');
$t->query('SELECT zk_unlock_all()');

# what is idle cannot be cancelled
$s->query("SELECT zk_lock('/r/idle')");
$t->query("SELECT zk_request_release('/r/idle')");
is_asked($one, '/r/idle', 1, 'idle: it hears of it');
told_ok($s, qr/\Q$t_is\E/, 'idle');
$s->query('SELECT zk_unlock_all()');

$s->query("SET zklock.on_release_request = 'ignore'; SELECT zk_lock('/r/ignore')");
$t->query("SELECT zk_request_release('/r/ignore')");
is_asked($one, '/r/ignore', 1, 'ignore: it shows');
silent_ok($s, 'ignore: it is not told');
is($s->query("SELECT zk_unlock('/r/ignore')"), 't', 'ignore: still held');

$s->query("SET zklock.on_release_request = 'terminate'; SELECT zk_lock('/r/terminate')");
$test->enqueue($t, "SELECT zk_lock('/r/terminate')", '/r/terminate');
$blocker->query("SELECT zk_request_release('/r/terminate')");
cmp_ok($t->value, '>', 0, 'terminate: who waits gets the lock');
is($s->error('SELECT 1'), '57P01', 'terminate: the session is gone');
$t->query("SELECT zk_unlock('/r/terminate')");
$s = $test->session($one);
is($s->error("SET zklock.on_release_request = 'shrug'"), '22023', 'no such thing');

# Asked before it has seen its grant: it is told when it does.
$t->query("SELECT zk_lock('/r/late')");
$s->query("SET zklock.on_release_request = 'terminate'");
$test->enqueue($s, "SELECT zk_lock('/r/late')", '/r/late');
kill 'STOP', $s->pid;
$t->query("SELECT zk_unlock('/r/late')");
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE state = 'granted' AND"
	  . " path = '/r/late'", 1, 'late: it is granted');
$blocker->query("SELECT zk_request_release('/r/late')");
is_asked($one, '/r/late', 1, 'late: it is asked');
kill 'CONT', $s->pid;
is($s->sqlstate, '57P01', 'late: the session ends');
$test->wait_queue('/r/late', 0);
$s = $test->session($one);

# ---- shared holders: all of them, and nobody behind a writer ----

my @readers = ($s, $t, $test->session($one));
my $writer = $test->session($two);
my $late = $test->session($two);
$_->query("SELECT zk_lock_shared('/r/shared')") foreach @readers;
$test->enqueue($writer, "SELECT zk_lock('/r/shared')", '/r/shared');
$test->enqueue($late, "SELECT zk_lock_shared('/r/shared')", '/r/shared');
is($blocker->query("SELECT zk_request_release('/r/shared')"), 3, 'shared: three holders');
is_asked($one, '/r/shared', 2, 'shared: two here');
is_asked($two, '/r/shared', 1, 'shared: one there');
told_ok($_, qr/of server1/, 'shared') foreach @readers;
$_->query("SELECT zk_unlock_shared('/r/shared')") foreach @readers;
cmp_ok($writer->value, '>', 0, 'shared: the writer is next');
silent_ok($writer, 'shared: and was not asked');
$writer->query('SELECT zk_unlock_all()');
cmp_ok($late->value, '>', 0, 'shared: the late reader, too');
silent_ok($late, 'shared: nor was that');
$late->query('SELECT zk_unlock_all()');

# Who is asked may go on as a reader, beside others.
$s->query("SELECT zk_lock('/r/twice')");
$t->query("SELECT zk_request_release('/r/twice')");
is_asked($one, '/r/twice', 1, 'one hold is asked for');
told_ok($s, qr/\Q$t_is\E/, 'the first hold');
$s->query("SELECT zk_lock_shared('/r/twice'), zk_unlock('/r/twice')");
is_asked($one, '/r/twice', 0, 'the one that goes on as a reader came later');
$s->query('SELECT zk_unlock_all()');

# ---- zklock asks Curator ----

foreach my $case ([ 'mutex', '/jobs/c' ], [ 'write', '/r/c' ])
{
	my ($kind, $name) = @$case;

	$curator->command('revoker', 'hold', 'k', $kind, "/zklock$name");
	ok(wait_for(sub { $curator->command('revoker', 'held', 'k') }, 'held'), "$kind: holds");
	foreach my $times (1, 2)
	{
		is($s->query("SELECT zk_request_release('$name')"), 1, "$kind: asked");
		ok(wait_for(
				sub { $curator->command('revoker', 'asked', 'k') == $times }, 'its listener'),
			"$kind: its listener is called");
	}
	$test->enqueue($s, "SELECT zk_lock('$name')", $name);
	is($t->query("SELECT zk_request_release('$name')"), 1, "$kind: only the holder");
	$curator->command('revoker', 'release', 'k');
	cmp_ok($s->value, '>', 0, "$kind: it gives way");
	silent_ok($s, "$kind: who comes next is not asked");
	$s->query('SELECT zk_unlock_all()');
}

# ---- Curator asks zklock ----

foreach my $case ([ 'mutex', '/jobs/d' ], [ 'write', '/r/d' ])
{
	my ($kind, $name) = @$case;

	$s->query("SELECT zk_lock('$name')");
	$curator->command('revoker', 'attempt', $kind, "/zklock$name", 0);
	is_asked($one, $name, 1, "$kind asks us");
	told_ok($s, qr/a client other than zklock/, "$kind asks us");
	is($t->query("SELECT granted, pid FROM zk_queue('$name')"), 't|', "$kind asks us: we hold it");

	# Its message is in the place of what we wrote.
	is($t->query("SELECT zk_request_release('$name')"), 1, "$kind asks us: and zklock, too");
	ok(wait_for(sub { $s->query('SELECT 1'); $s->messages =~ $told }, 'told'),
		"$kind asks us: told again");
	like($s->messages, qr/\Q$t_is\E/, "$kind asks us: by zklock");
	is($s->query("SELECT zk_unlock('$name')"), 't', "$kind asks us: nothing was lost");
}

# One that waits, and then holds: it is asked for as well.
$t->query("SELECT zk_lock('/r/early')");
$test->enqueue($s, "SELECT zk_lock('/r/early')", '/r/early');
wait_watched($one, '/r/early');
$curator->command('revoker', 'attempt', 'write', '/zklock/r/early', 1);
ok($test->still_waits($s), 'asked while it waits');
$t->query("SELECT zk_unlock('/r/early')");
cmp_ok($s->value, '>', 0, 'and granted');
is_asked($one, '/r/early', 1, 'it is asked for then');
my $said = $s->messages;    # if it was that fast
$s->query('SELECT 1');
like($said . $s->messages, qr/$told.*a client other than zklock/s, 'early: it is told');
$s->query('SELECT zk_unlock_all()');

# What somebody else writes there is no more than a text.
$s->query("SELECT zk_lock('/r/text')");
my ($written) = $test->queue('/r/text');
$zk->set("/zklock/r/text/$written", '{"revoke":"me\\n\\u00fc\\nLOG: "}');
is_asked($one, '/r/text', 1, 'a strange asker');
told_ok($s, qr/requested by me\?\\xC3\\xBC\?LOG: \.$/m, 'a strange asker');
$s->query('SELECT zk_unlock_all()');

# ---- kazoo, which does not look ----

my $kazoo = $test->zk->new_client;
$kazoo->command('lock', 'k', 'Lock', '/zklock/py/k', 'somebody');
ok(wait_for(sub { $kazoo->command('held', 'k') }, 'held'), 'kazoo holds');
is($s->query("SELECT zk_request_release('/py/k')"), 1, 'kazoo: asked');
is_deeply($kazoo->contenders('Lock', '/zklock/py/k'), ['__REVOKE__'], 'kazoo: exactly so');
$kazoo->command('unlock', 'k');

# ---- what it is not: a break ----

$s->query("SELECT zk_lock('/r/restart')");
$t->send("SELECT zk_break_lock('/r/restart')");
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/r/restart'",
	'lost', 'it can be broken then');
$s->query('SELECT zk_unlock_all()');
is($t->value, 't', 'broken');
$test->wait_queue('/r/restart', 0);

$curator->quit;
$test->finish;
