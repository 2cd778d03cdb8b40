# Who holds, who waits, for what and since when: in zk_locks on one server, in
# zk_queue for all servers and foreign clients, in zk_status and in
# pg_stat_activity.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $holder = $test->session($one, application_name => 'h"o\\ld');
my $waiter = $test->session($two, application_name => "w\x{e4}it");
my $reader = $test->session($one);
my $foreign = $test->zk->new_client;

my $token = $holder->query("SELECT zk_lock('/v/x')");
$test->enqueue($waiter, "SELECT zk_xact_lock('/v/x')", '/v/x');
$foreign->lock('w', 'write', '/zklock/v/x', 'somebody');
$test->wait_queue('/v/x', 3);
$test->enqueue($reader, "SELECT zk_lock_shared('/v/x')", '/v/x');
my @znodes = map { "/zklock/v/x/$_" } $test->queue('/v/x');

# zk_locks
my $columns = 'path, mode, lifetime, state, pid, fencing_token, holds,'
  . ' requested_at <= now(), granted_at <= now(), znode';
is($test->look($one,
		"SELECT $columns FROM zk_locks WHERE state = 'granted' AND path = '/v/x'"),
	join('|', '/v/x', 'exclusive', 'session', 'granted', $holder->pid,
		$token, 1, 't', 't', $znodes[0]),
	'zk_locks: the holder');
is($test->look($two,
		"SELECT $columns FROM zk_locks WHERE state = 'waiting' AND path = '/v/x'"),
	join('|', '/v/x', 'exclusive', 'transaction', 'waiting',
		$waiter->pid, '', 0, 't', '', $znodes[1]),
	'zk_locks: the waiter on its own server');
is($test->look($one, 'SELECT datname, usename, application_name FROM zk_locks WHERE state = \'granted\''),
	join('|', 'postgres', scalar getpwuid($<), 'h"o\\ld'),
	'zk_locks: whose session it is');
is($test->look($one,
		"SELECT pid, mode FROM zk_locks WHERE state = 'waiting' AND path = '/v/x'"),
	$reader->pid . '|shared', 'zk_locks: the reader');

# zk_queue: the same from both servers
my $queue = "SELECT position, mode, granted, pid, usename, datname,"
  . " application_name, znode FROM zk_queue('/v/x') ORDER BY position";
my $user = getpwuid($<);
my @expected = (
	join('|', 1, 'exclusive', 't', $holder->pid, $user, 'postgres', 'h"o\\ld',
		$znodes[0]),
	join('|', 2, 'exclusive', 'f', $waiter->pid, $user, 'postgres',
		$test->look($two, 'SELECT application_name FROM pg_stat_activity'
			  . ' WHERE pid = ' . $waiter->pid),
		$znodes[1]),
	join('|', 3, 'exclusive', 'f', '', '', '', '', $znodes[2]),
	join('|', 4, 'shared', 'f', $reader->pid, $user, 'postgres',
		'zklock test', $znodes[3]));
is($test->look($_, $queue), join("\n", @expected),
	'zk_queue on ' . $_->name)
  foreach $one, $two;
is($test->look($one,
		"SELECT count(DISTINCT server) FROM zk_queue('/v/x')"
		  . ' WHERE pid IS NOT NULL'),
	2, 'zk_queue names two servers');
is($test->look($one, "SELECT server FROM zk_queue('/v/x') WHERE position = 3"),
	'somebody', 'and shows what a foreign client says of itself');
is($test->look($one,
		"SELECT count(DISTINCT session_id) FROM zk_queue('/v/x')"),
	3, 'zk_queue names three ZooKeeper sessions');
is($test->look($one,
		'SELECT bool_and(requested_at BETWEEN now() - interval \'10 min\''
		  . " AND now() + interval '1 min') FROM zk_queue('/v/x')"),
	't', 'zk_queue: since when');
is($test->look($two, "SELECT count(*) FROM zk_queue('/v/nobody')"),
	0, 'zk_queue of a lock that nobody wants is empty');
is($test->look($two, "SELECT count(*) FROM zk_queue('/v')"),
	0, 'and so is that of a directory above one');

# pg_stat_activity
is($test->look($two,
		'SELECT wait_event_type, wait_event <> \'\' FROM pg_stat_activity'
		  . ' WHERE pid = ' . $waiter->pid),
	'Extension|t', 'a waiter shows a wait event');

# zk_status
is($test->look($one,
		'SELECT state, zookeeper_server, session_timeout, worker_pid > 0, session_pid > 0,'
		  . ' locks_held, waiting, connects > 0, sessions_lost, batches > 0,'
		  . ' operations >= batches FROM zk_status, zk_stat_server'),
	join('|', 'connected', $test->zk->connect_string, '00:00:04', 't', 't', 1,
		1, 't', 0, 't', 't'),
	'zk_status and zk_stat_server');
# ZooKeeper moves a session between two lists, and may show it in neither.
foreach my $node ($one, $two)
{
	my $id = $test->session_hex($node);

	ok(wait_for(sub { grep { $_ eq $id } $test->zk->sessions }, "session $id"),
		'zk_status: a session that ZooKeeper knows');
}

# With its timestamps it fills a wide screen, and no more.
my @lines = split /\n/, (run_command(
		[ 'psql', '-X', '-d', $one->connstr('postgres'), '-c', 'SELECT * FROM zk_status' ]))[0];
is($test->status($one, 'last_error IS NULL'), 't', 'zk_status: no error');
is(scalar(split /\|/, $lines[0]), 14, 'zk_status: fourteen columns');
cmp_ok(length $lines[2], '<=', 220, 'zk_status: what psql shows fits a wide screen');

# Order of the queue once the holder is gone
$holder->query("SELECT zk_unlock('/v/x')");
cmp_ok($waiter->value, '>', $token, 'the waiter is granted');
wait_for(sub { $foreign->held('w') }, 'the foreign client');
is($test->look($two, "SELECT position, granted, znode FROM zk_queue('/v/x')"),
	"1|t|$znodes[2]\n2|f|$znodes[3]",
	'zk_queue moves on to the foreign client');
$foreign->unlock('w');
cmp_ok($reader->value, '>', $token, 'then to the reader');

# zk_queue while ZooKeeper is paused can be cancelled.
$test->zk->pause;
$holder->send("SELECT * FROM zk_queue('/v/x')");
$holder->cancel;
is($holder->sqlstate, '57014', 'zk_queue can be cancelled');
$test->zk->resume;
is($holder->query("SELECT count(*) FROM zk_queue('/v/x')"),
	1, 'and works afterwards');

$_->close foreach $holder, $waiter, $reader;
$foreign->quit;
$test->finish;
