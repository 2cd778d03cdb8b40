# All servers of a root have one list of dialects, which stands in ZooKeeper.  A
# server with another list refuses new requests for the locks that differ, and
# nothing else.  zk_set_dialects() changes the list for all of them, unless a lock
# concerned is held or awaited; whatever happens meanwhile, no two clients hold a
# lock in two dialects.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $test = ZklockTest->new(
	net => TcpProxy->new,
	conf => "zklock.dialects = ' /py = kazoo, /jobs=curator_mutex'\n");
my ($one, $two) = $test->nodes;
my $zk = $test->zk->client;
my $settings = '/zklock/.settings';

sub znode
{
	my ($dialects, $changing) = @_;

	return qq({"zklock":"settings","protocol":1,"dialects":"$dialects")
	  . (defined $changing ? qq(,"changing":"$changing") : '') . '}';
}

# Gives a server another list of its own.
sub restart_with
{
	my ($node, $dialects) = @_;

	$test->stop_looking($node);
	$node->append_conf('postgresql.conf', "zklock.dialects = '$dialects'");
	$node->restart;
	return $test->wait_connected($node);
}

sub refused
{
	my ($session, $sql, $words, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->error($sql), '55000', $what);
	like($session->messages, $words, "$what: why");
	return;
}

sub health
{
	my ($node) = @_;

	return $test->look($node,
		q(SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'dialects'));
}

# Starts a change, and returns once it is marked.
sub begin_change
{
	my ($session, $list) = @_;

	$session->send("SELECT zk_set_dialects('$list')");
	return wait_for(sub { $zk->get($settings) =~ /"changing":"\Q$list\E"/ },
		'the mark');
}

my $differs = qr/has another dialect on this server.*it is curator_mutex.*it is kazoo/s;
my $changing = qr/is being changed.*It is curator_mutex, and is to become kazoo/s;

# ---- the same lists

is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'),
	'the first server has made the settings');
is($zk->stat($settings)->{version}, 0, 'nobody has changed them');
like(health($_), qr/^t\|/, $_->name . ' agrees') foreach $one, $two;
my ($s, $t) = map { $test->session($_) } $one, $two;
is($s->query("SELECT zk_try_lock('/jobs/a')"), 't', 'one server has a lock');
is($t->query("SELECT zk_try_lock('/jobs/a')"), 'f', 'the other one has not');

is(scalar(@{ $test->zk->watches->{$settings} // [] }), 2, 'one watch for each server');

# ---- another list

$t->close;
restart_with($two, '/py=kazoo, /jobs=curator_mutex, /jobs/k=kazoo, /new=kazoo');
$t = $test->session($two);
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'), 'the settings stay');
my $other = qr/has another dialect on this server.*it is kazoo.*it is curator_mutex/s;
refused($t, "SELECT zk_lock('/jobs/k')", $other, 'another list: a lock that differs');
refused($t, "SELECT zk_try_lock('/jobs/k/1')", $other, 'one below');
refused($t, "SELECT zk_multilock(ARRAY['/a', '/jobs/k'])", $other, 'one of several');
refused($t, "SELECT zk_xact_lock_shared('/new')",
	qr/it is kazoo.*it is curator_rw/s, 'one that nobody else has in the list');
is($t->query("SELECT zk_try_lock('/jobs/a')"), 'f', 'other locks are as before');
is($t->query("SELECT zk_try_lock('/jobs/b'), zk_try_lock('/py/b'), zk_try_lock('/b')"),
	't|t|t', 'and to be had');
is($t->query("SELECT zk_lead('/jobs/k/l') > 0, zk_resign('/jobs/k/l')"),
	't|t', 'what has no dialect of the list is not concerned');
is($t->query("SELECT zk_once('/jobs/k', key => 'a')"), 't', 'nor a job');
is($s->query("SELECT zk_try_lock('/jobs/k'), zk_unlock('/jobs/k')"),
	't|t', 'the server that agrees refuses nothing');
like(health($two), qr{^f\|.*"/jobs=curator_mutex,/jobs/k=kazoo,.*"/jobs=curator_mutex,/py=kazoo"},
	'health tells both lists');
like(health($one), qr/^t\|/, 'and all is well on the other server');
$t->query('SELECT zk_unlock_all()');

# ---- holders go on when the settings differ all at once

$s->query('CREATE TABLE done ()');
$s->query("BEGIN; SELECT zk_xact_lock('/jobs/x'); INSERT INTO done DEFAULT VALUES");
my $waiter = $test->session($one);
$test->enqueue($waiter, "SELECT zk_lock('/jobs/x')", '/jobs/x');
$zk->set($settings, znode('/jobs=kazoo'));
is($waiter->sqlstate, '55000', 'who waits for a lock that now differs gets an error');
like($waiter->messages, $differs, 'which says why');
is($s->query("SELECT zk_xact_lock('/jobs/x') > 0, zk_lock('/jobs/x') > 0"),
	't|t', 'its holder counts it again');
is($s->query("SELECT zk_extend('/jobs/a', '1 min')"), 't', 'extends another one');
is($s->query('COMMIT; SELECT count(*) FROM done'), 1, 'commits');
is($s->query("SELECT zk_unlock('/jobs/x'), zk_unlock('/jobs/a')"), 't|t', 'and unlocks');
refused($s, "SELECT zk_lock('/jobs/a')", $differs, 'then it gets nothing new');
$zk->set($settings, 'gibberish');
ok($test->look_until($one,
		q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'dialects' AND detail ~ 'cannot be read'),
		'f', 'gibberish'),
	'settings that nobody can read');
refused($s, "SELECT zk_lock('/b')", qr/could not read the settings of the root/, 'refuse all');
$zk->delete($settings);
ok(wait_for(sub { ($zk->try_get($settings) // '') eq znode('/jobs=kazoo') }, 'again'),
	'settings that vanish are made again as they were known');
$zk->set($settings, znode('/jobs=curator_mutex,/py=kazoo'));
$test->look_until($one, q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'dialects'), 't');
is($s->query("SELECT zk_try_lock('/jobs/a'), zk_unlock('/jobs/a')"), 't|t', 'all is well again');
$t->close;
restart_with($two, '/jobs=curator_mutex, /py=kazoo');
$t = $test->session($two);

# ---- a change with nobody there

my $admin = $test->session($one);
$admin->query("SELECT zk_set_dialects('/py=kazoo, /jobs = curator_mutex')");
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'), 'no change');
is($t->query("SELECT zk_try_lock('/py/held')"), 't', 'a lock that is not concerned');
begin_change($admin, '/jobs=kazoo,/py=kazoo');
refused($s, "SELECT zk_try_lock('/jobs/a')", $changing, 'while it is changed');
refused($t, "SELECT zk_try_lock('/jobs/a')", $changing, 'on both servers');
is($s->query("SELECT zk_try_lock('/py/a'), zk_unlock('/py/a')"), 't|t', 'other locks go on');
like(health($two), qr/^f\|.*are being changed from/, 'health tells');
is($admin->sqlstate, '', 'it is done');
is($zk->get($settings), znode('/jobs=kazoo,/py=kazoo'), 'for all');
refused($s, "SELECT zk_lock('/jobs/a')", $differs, 'old lists are refused');
is($t->query("SELECT zk_unlock('/py/held')"), 't', 'other holders went on');

# The rolling change, the other way round: the servers come first.
$_->close foreach $s, $t, $waiter, $admin;
restart_with($_, '/jobs=curator_mutex, /py=kazoo') foreach $one, $two;
($s, $t, $waiter, $admin) = map { $test->session($_) } $one, $two, $one, $one;
refused($s, "SELECT zk_lock('/jobs/a')", $differs, 'servers with the new list wait for the call');
$admin->query("SELECT zk_set_dialects('/jobs=curator_mutex, /py=kazoo')");
is($s->query("SELECT zk_try_lock('/jobs/a'), zk_unlock('/jobs/a')"), 't|t', 'which they get');

# ---- somebody is there

$test->look_until($two, q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'dialects'), 't',
	'the other server knows');
is($t->query("SELECT zk_try_lock('/jobs/a/b')"), 't', 'a holder');
my $foreign = $test->zk->new_client;
$foreign->command('lock', 'f', 'kazoo_mutex', '/zklock/jobs/f');
wait_for(sub { $foreign->command('held', 'f') }, 'another client has a lock');
is($admin->error("SELECT zk_set_dialects('/jobs=kazoo, /py=kazoo')"), '55006',
	'no change under a holder and another client');
like($admin->messages, qr{Server "server2", process @{[ $t->pid ]}: lock "/jobs/a/b"},
	'the holder is named');
like($admin->messages, qr{Another client, session 0x[0-9a-f]+: lock "/jobs/f"}, 'the client, too');
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'), 'the mark is taken back');
is($s->query("SELECT zk_try_lock('/jobs/c'), zk_unlock('/jobs/c')"), 't|t', 'and forgotten');
is($t->query("SELECT zk_unlock('/jobs/a/b')"), 't', 'the holder goes on');
$foreign->command('unlock', 'f');
$test->wait_queue('/jobs/f', 0);

# A contender that is listed and then gone may have left another one.
# The other server may not have heard yet that the mark was taken back.
wait_for(sub { $t->error("SELECT zk_try_lock('/jobs/gone')") eq '' },
	'a holder on the other server');
my ($gone) = $test->queue('/jobs/gone');
my $answered = $test->net->stats('server1-zk')->{answered};
$test->net->answer('server1-*', 'get', "/zklock/jobs/gone/\Q$gone\E", -101);
is($admin->error("SELECT zk_set_dialects('/jobs=kazoo, /py=kazoo')"), '55006',
	'a contender that seems to go');
is($test->net->stats('server1-zk')->{answered} - $answered, 1, 'was looked at');
like($admin->messages, qr{Server "server2", process \d+: lock "/jobs/gone"}, 'and found again');
$t->query("SELECT zk_unlock('/jobs/gone')");
wait_for(sub { $t->error("SELECT zk_try_lock('/jobs/c'), zk_unlock('/jobs/c')") eq '' },
	'the other server knows that the change is off');

# ---- a waiter, whose turn comes during a change

$s->query("SELECT zk_lock('/jobs/w')");
$test->enqueue($t, "SELECT zk_lock('/jobs/w')", '/jobs/w');
begin_change($admin, '/jobs=kazoo,/py=kazoo');
is($t->sqlstate, '55000', 'who waits when a change begins gets an error');
like($t->messages, $changing, 'which says why');
$s->query("SELECT zk_unlock('/jobs/w')");
is($admin->sqlstate, '', 'the change goes on, for they are gone in time');
$admin->query("SELECT zk_set_dialects('/jobs=curator_mutex, /py=kazoo')");

# ---- a lock that is cached for longer than the change takes

$one->safe_psql('postgres', "ALTER SYSTEM SET zklock.cache_time = '60s'");
$one->reload;
ok($test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/jobs/cached'",
		'cached', 'cached',
		before => sub { $s->query("SELECT zk_lock('/jobs/cached'), zk_unlock('/jobs/cached')") }),
	'a lock is cached');
begin_change($admin, '/jobs=kazoo,/py=kazoo');
is($admin->sqlstate, '', 'it is given back for the change');
$admin->query("SELECT zk_set_dialects('/jobs=curator_mutex, /py=kazoo')");
$one->safe_psql('postgres', 'ALTER SYSTEM RESET zklock.cache_time');
$one->reload;

# ---- cancelled, and crashed

begin_change($admin, '/jobs=kazoo,/py=kazoo');
$admin->cancel;
is($admin->sqlstate, '57014', 'a change is cancelled');
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'), 'and the mark taken back');

# Before it knows of its own mark.
my $line = $one->name . '-zk';
$test->net->lose_reply($line, '"changing"', 1);
begin_change($admin, '/jobs=kazoo,/py=kazoo');
$admin->cancel;
$s->query("SELECT pg_cancel_backend(@{[ $admin->pid ]})") foreach 1 .. 50;
ok($test->net->pass_once_lost($line), 'the answer about the mark is lost');
is($admin->sqlstate, '57014', 'cancelled often while the mark is written');
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'), 'and the mark taken back, too');
begin_change($admin, '/jobs=kazoo,/py=kazoo');
$s->query("SELECT pg_terminate_backend(@{[ $admin->pid ]})");
ok(wait_for(sub { $admin->sqlstate ne '' }, 'gone'), 'the caller ends');
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo', '/jobs=kazoo,/py=kazoo'),
	'then the mark stays');
refused($t, "SELECT zk_lock('/jobs/a')", $changing, 'and works');
$admin->close;
$admin = $test->session($two);
$admin->query("SELECT zk_set_dialects('/py=kazoo, /jobs=curator_mutex')");
is($zk->get($settings), znode('/jobs=curator_mutex,/py=kazoo'), 'another call takes it back');
$zk->set($settings, znode('/jobs=curator_mutex,/py=kazoo', '/other=kazoo'));
begin_change($admin, '/jobs=kazoo,/py=kazoo');
is($admin->sqlstate, '', 'or replaces it');
is($zk->get($settings), znode('/jobs=kazoo,/py=kazoo'), 'with its own list');
begin_change($admin, '/jobs=curator_mutex,/py=kazoo');
$s->query("SELECT zk_set_dialects('/jobs=kazoo, /py=kazoo')");
is($admin->sqlstate, '55006', 'of two calls, the first one fails');
like($admin->messages,
	qr/Another call of zk_set_dialects\(\) has changed them meanwhile.*zk_healthcheck\(\) tells/s,
	'and says where to look');
is($zk->get($settings), znode('/jobs=kazoo,/py=kazoo'), 'the second one counts');
$admin->query("SELECT zk_set_dialects('/jobs=curator_mutex, /py=kazoo')");

# ---- a server that is cut off during a change

$s->query("SELECT zk_lock('/x/held')");
my $id = $test->status($one, 'session_id');
$test->net->refuse('server1-*');
$test->look_until($one, 'SELECT state FROM zk_status', 'disconnected', 'cut off');
$waiter->send("SELECT zk_lock('/jobs/late')");
$test->wait_waiting($one, '/jobs/late', 1);
$admin->query("SELECT zk_set_dialects('/jobs=kazoo, /py=kazoo')");
$test->wait_queue('/x/held', 0);
$test->net->pass('server1-*');
is($waiter->sqlstate, '55000', 'cut off: a request is refused when the server is back');
like($waiter->messages, $differs, 'and the error says why');
$test->wait_connected($one);
isnt($test->status($one, 'session_id'), $id, 'in a new session');
$s->query('SELECT zk_unlock_all()');
$admin->query("SELECT zk_set_dialects('/jobs=curator_mutex, /py=kazoo')");

# ---- a server that loses its watch: nothing is granted until it is set again

$s->query("SELECT zk_lock('/x/held')");
$id = $test->status($one, 'session_id');
$test->net->answer('server1-*', 'get', '/zklock/.settings', -7, times => 0);
kill 'KILL', $test->status($one, 'session_pid');
ok(wait_for(sub { $test->net->stats('server1-zk')->{answered} > 0 }, 'asked'),
	'a new session process asks again');
$waiter->send("SELECT zk_lock('/jobs/a')");
ok($test->wait_queue('/jobs/a', 1), 'a request has its znode');
ok($test->still_waits($waiter), 'but is not granted while the settings are not known');
is($s->query("BEGIN; SELECT zk_lock('/x/held') > 0; COMMIT"), 't', 'holders go on');
$zk->set($settings, znode('/jobs=kazoo,/py=kazoo'));
$test->net->pass('server1-*');
is($waiter->sqlstate, '55000', 'it is refused if they have changed');
is($test->status($one, 'session_id'), $id, 'the session was there all the time');
$zk->set($settings, znode('/jobs=curator_mutex,/py=kazoo'));
$s->query('SELECT zk_unlock_all()');

# ---- who may

$one->safe_psql('postgres', 'CREATE ROLE plain LOGIN;'
	  . ' GRANT EXECUTE ON FUNCTION zk_set_dialects(text) TO plain');
my $plain = $test->session($one, user => 'plain');
is($plain->error("SELECT zk_set_dialects('')"), '42501', 'only superusers');
$_->close foreach $plain, $s, $t, $waiter, $admin;

$test->finish;
