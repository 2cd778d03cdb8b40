# Who gives back an exclusive lock and still holds it shared lets readers in,
# and no writer, whoever else waits: another server, Curator or kazoo.

use strict;
use warnings;

use Test::More;

use CuratorClient;
use ZklockTest;

my $test = ZklockTest->new(conf => "zklock.dialects = '/py=kazoo'\n");
my ($one, $two) = $test->nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $kazoo = $test->zk->new_client;
my $s = $test->session($one);
my ($reader, $writer) = ($test->session($two), $test->session($two));
my $local = $test->session($one);

sub held_ok
{
	my ($client, $key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $client->command('held', $key) }, $case), $case);
}

# ---- among zklock's own servers ----

foreach my $name ('/d', '/py/d')
{
	my ($mark, $changed) =
	  $name eq '/d' ? qw(__WRIT__ __READ__) : qw(__lock__ __rlock__);
	my ($token, $number);

	$token = $s->query("SELECT zk_lock('$name')");
	is($s->query("SELECT zk_lock_shared('$name')"),
		$token, "$name: shared on top has the same token");
	($number) = $test->queue($name);
	like($number, qr/$mark\d+$/, "$name: a writer's znode");
	$number =~ s/.*_//;
	$test->enqueue($reader, "SELECT zk_lock_shared('$name')", $name);
	$test->enqueue($writer, "SELECT zk_lock('$name')", $name);
	ok($test->still_waits($reader), "$name: the reader waits");
	is($s->query("SELECT zk_unlock('$name')"), 't', "$name: given back");
	cmp_ok($reader->value, '>', $token, "$name: the reader gets in");
	ok($test->still_waits($writer), "$name: the writer does not");
	is($s->query("SELECT zk_fencing_token('$name')"),
		$token, "$name: the token stays");
	like(($test->queue($name))[0],
		qr/$changed$number$/, "$name: a reader's znode of the same number");
	is($s->query("SELECT mode || state FROM zk_locks WHERE path = '$name'"),
		'sharedgranted', "$name: zk_locks shows it");
	is($s->query("SELECT string_agg(mode || ' ' || granted, ', '"
			  . " ORDER BY position) FROM zk_queue('$name')"),
		'shared true, shared true, exclusive false',
		"$name: zk_queue() shows it");

	# Exclusive again: the writer stands in between.
	is($s->error("SELECT zk_lock('$name')"),
		'40P01', "$name: it cannot go back to exclusive past the writer");
	$reader->query("SELECT zk_unlock_shared('$name')");
	ok($test->still_waits($writer), "$name: the writer waits for both");
	$s->query("SELECT zk_unlock_shared('$name')");
	cmp_ok($writer->value, '>', $token, "$name: then it comes");
	$writer->query("SELECT zk_unlock('$name')");
	$test->wait_queue($name, 0);

	# Locally, and back to exclusive where nobody is in between
	$s->query("SELECT zk_lock('$name'), zk_lock_shared('$name')");
	$test->enqueue($local, "SELECT zk_lock_shared('$name')", $name);
	$s->query("SELECT zk_unlock('$name')");
	cmp_ok($local->value, '>', 0, "$name: a reader of the same server");
	$local->query("SELECT zk_unlock_shared('$name')");
	$token = $s->query("SELECT zk_lock('$name')");
	is($writer->query("SELECT zk_try_lock_shared('$name')"),
		'f', "$name: exclusive again");
	$s->query('SELECT zk_unlock_all()');
	$test->wait_queue($name, 0);

	# A transaction's lock ends with it, the session's reader stays.
	$s->query("BEGIN; SELECT zk_xact_lock('$name'), zk_lock_shared('$name')");
	is($reader->query("SELECT zk_try_lock_shared('$name')"),
		'f', "$name: in the transaction");
	$s->query('COMMIT');
	is($reader->query("SELECT zk_try_lock_shared('$name', '1min')"),
		't', "$name: after it");
	is($writer->query("SELECT zk_try_lock('$name')"),
		'f', "$name: but no writer");
	$reader->query("SELECT zk_unlock_shared('$name')");
	$s->query('SELECT zk_unlock_all()');
	$test->wait_queue($name, 0);
}

# ---- other clients that wait ----

foreach my $case ([ '/e', $curator, 'read', 'write' ],
	[ '/e', $kazoo, 'kazoo_read', 'kazoo' ],
	[ '/py/e', $kazoo, 'ReadLock', 'WriteLock' ])
{
	my ($name, $client, $read, $write) = @$case;

	$s->query("SELECT zk_lock('$name'), zk_lock_shared('$name')");
	$client->command('lock', 'r', $read, "/zklock$name");
	$test->wait_queue($name, 2);
	ok(!$client->command('held', 'r'), "$read waits");
	$s->query("SELECT zk_unlock('$name')");
	held_ok($client, 'r', "$read gets in");
	$client->command('lock', 'w', $write, "/zklock$name");
	$test->wait_queue($name, 3);
	$client->command('unlock', 'r');
	$test->wait_queue($name, 2);
	ok(!$client->command('held', 'w'), "$write waits for our reader");
	$s->query("SELECT zk_unlock_shared('$name')");
	held_ok($client, 'w', "$write comes then");
	$client->command('unlock', 'w');

	# One that waited before
	$s->query("SELECT zk_lock('$name'), zk_lock_shared('$name')");
	$client->command('lock', 'w', $write, "/zklock$name");
	$test->wait_queue($name, 2);
	$s->query("SELECT zk_unlock('$name')");
	wait_for(sub { !grep { /__WRIT__|__lock__/ } ($test->queue($name))[0] },
		'a reader');
	is($reader->query("SELECT zk_try_lock_shared('$name')"),
		'f', "$write is next in turn");
	ok(!$client->command('held', 'w'), "$write: not beside our reader");
	$s->query("SELECT zk_unlock_shared('$name')");
	held_ok($client, 'w', "$write: after it");
	$client->command('unlock', 'w');
	$test->wait_queue($name, 0);
}

# ---- while things break ----

# The session process is killed: whatever has arrived of it, the hold goes on as a
# reader's, and ends.
foreach my $round (1 .. 10)
{
	$s->query("SELECT zk_lock('/f'), zk_lock_shared('/f')");
	$test->enqueue($writer, "SELECT zk_lock('/f')", '/f');
	my $victim = $test->status($one, 'session_pid');
	$s->send("SELECT zk_unlock('/f')");
	kill 'KILL', $victim;
	is($s->value, 't', "round $round: given back");
	ok(wait_for(sub { ($test->queue('/f'))[0] =~ /__READ__/ },
			"round $round: a reader"),
		"round $round: it goes on as a reader");
	is(scalar($test->queue('/f')), 2, "round $round: one znode each");
	ok($test->still_waits($writer), "round $round: the writer waits");
	$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE path = '/f' AND state = 'granted'",
		1, "round $round: it is held");
	$s->query("SELECT zk_unlock_shared('/f')");
	cmp_ok($writer->value, '>', 0, "round $round: then it comes");
	$writer->query("SELECT zk_unlock('/f')");
	$test->wait_queue('/f', 0);
}

$curator->quit;
$_->close foreach $s, $reader, $writer, $local;
$test->finish;
