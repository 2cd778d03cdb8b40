# Leadership: sessions of two servers and Curator's LeaderLatch lead one after
# the other, in the order in which they stood for it, and see each other's ids.

use strict;
use warnings;
use utf8;

use Test::More;

use CuratorClient;
use ZklockTest;

my $test = ZklockTest->new(conf => "restart_after_crash = on\n");
my ($one, $two) = $test->nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $s = $test->session($one);

# Stands for leader, and returns once its znode is in the queue.
sub stand
{
	my ($session, $name, $id) = @_;

	return $test->enqueue($session, "SELECT zk_lead('$name', id => '$id')", $name);
}

sub curator_stands
{
	my ($key, $name, $id) = @_;
	my $before = $test->queue($name);

	$curator->command('latch', 'start', $key, "/zklock$name", $id);
	return $test->wait_queue($name, $before + 1);
}

sub curator_leads
{
	my ($key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $curator->command('latch', 'leads', $key) }, $case), $case);
}

sub leader_is
{
	my ($name, $id, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($test->look($two, "SELECT id FROM zk_leader('$name')"), $id, "$case: zk_leader()");
	return is($curator->command('latch', 'leader', "/zklock$name"),
		$id, "$case: getLeader()");
}

sub nobody_leads_ok
{
	my ($name, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($two, "SELECT count(*) FROM zk_leader('$name')", 0, $case),
		$case);
}

# ---- nobody ----

is($s->query("SELECT * FROM zk_leader('/l/a')"), '', 'nobody leads');
is($s->query("SELECT zk_resign('/l/a')"), 'f', 'nobody resigns');
like($s->messages, qr/^WARNING\n.*\nyou are not the leader of "\/l\/a"/, 'with a warning');
is($s->error("SELECT $_(NULL)"), '22004', "$_: no name") foreach 'zk_lead', 'zk_resign';

# ---- one after the other: two servers, and Curator ----

my ($t, $last) = ($test->session($two), $test->session($one));
my $token = $s->query("SELECT zk_lead('/l/a', id => 'alpha')");
is($s->query("SELECT zk_fencing_token('/l/a')"), $token, 'its token');
is($s->query("SELECT mode, granted, server FROM zk_queue('/l/a')"),
	'leader|t|alpha', 'zk_queue() shows who leads');
cmp_ok($token, '>', 0, 'the first one leads');
stand($t, '/l/a', 'beta');
curator_stands('c', '/l/a', 'curator');
stand($last, '/l/a', 'gamma');
curator_stands('d', '/l/a', 'delta');
leader_is('/l/a', 'alpha', 'first');
is($curator->command('latch', 'participants', '/zklock/l/a'),
	'alpha,beta,curator,delta,gamma', 'getParticipants()');
is($s->query("SELECT session_id = (SELECT session_id FROM zk_status),"
		  . " znode ~ '^/zklock/l/a/_c_[0-9a-f-]+-latch-\\d{10}\$',"
		  . " requested_at BETWEEN now() - interval '1 hour' AND now() + interval '1 hour'"
		  . " FROM zk_leader('/l/a')"),
	't|t|t', 'where it is, and since when');
is($s->query("SELECT mode, lifetime, state, pid, fencing_token FROM zk_locks"
		  . " WHERE path = '/l/a' AND state = 'granted'"),
	'leader|session|granted|' . $s->pid . "|$token", 'zk_locks shows a leader');
is($test->look($two, "SELECT mode, state FROM zk_locks WHERE path = '/l/a'"),
	'leader|waiting', 'and one that waits');
is($s->query("SELECT zk_lead('/l/a', id => 'other')"), $token, 'it leads already');
leader_is('/l/a', 'alpha', 'by its first name');
ok(!$curator->command('latch', 'leads', 'c'), 'Curator waits');
ok($test->still_waits($t), 'so do we');

is($s->query("SELECT zk_resign('/l/a')"), 't', 'it resigns, once');
my $second = $t->value;
cmp_ok($second, '>', $token, 'the second one leads, with a greater token');
leader_is('/l/a', 'beta', 'second');
is($s->query("SELECT zk_resign('/l/a')"), 'f', 'only once');
$test->look($two, 'SELECT pg_terminate_backend(' . $t->pid . ')');
curator_leads('c', 'Curator comes after a backend that was ended');
leader_is('/l/a', 'curator', 'third');
ok($test->still_waits($last), 'we wait for Curator');
$curator->command('latch', 'close', 'c');
cmp_ok($last->value, '>', $second, 'and lead after it');
leader_is('/l/a', 'gamma', 'fourth');
ok(!$curator->command('latch', 'leads', 'd'), 'Curator waits for us');
$last->close;
curator_leads('d', 'Curator comes after a session that has ended');
$curator->command('latch', 'close', 'd');
nobody_leads_ok('/l/a', 'all are gone');

# ---- what else ends it ----

foreach my $end ('SELECT zk_unlock_all()', 'DISCARD ALL')
{
	$s->query("BEGIN; SELECT zk_lead('/l/b'); ROLLBACK");
	leader_is('/l/b', 'server1/' . $s->pid, "before $end");
	is($s->query("SELECT zk_unlock('/l/b')"), 'f', 'it is no lock of that name');
	$s->query($end);
	nobody_leads_ok('/l/b', "after $end");
}

# A backend that is killed takes its server along.
$s->query("SELECT zk_lead('/l/b', id => 'killed')");
$t = $test->session($two);
stand($t, '/l/b', 'survivor');
my $before = $test->status($one, 'worker_pid');
kill 'KILL', $s->pid;
cmp_ok($t->value, '>', 0, 'after a backend that was killed');
leader_is('/l/b', 'survivor', 'killed');
$test->stop_looking($one);
$test->look_until($one,
	"SELECT worker_pid <> $before AND state = 'connected' FROM zk_status",
	't', 'its server is back');
$s = $test->session($one);

# What waits can be given up.
$s->query("SET lock_timeout = '100ms'");
is($s->error("SELECT zk_lead('/l/b')"), '55P03', 'lock_timeout');
$s->query('RESET lock_timeout');
is($s->error("SELECT zk_lead('/l/b', timeout => '200ms')"), '55P03', 'its own timeout');
like($s->messages, qr{could not acquire distributed lock "/l/b" within 200 ms}, 'which says so');
$test->wait_queue('/l/b', 1);
$s->query('RESET lock_timeout');

# ---- a loss ----

$s->query("SELECT zk_lead('/l/lost', id => 'lost')");
$test->lose_session($one, '/l/lost');
is($s->error("SELECT zk_lead('/l/lost')"), '40001', 'lost with its session');
like($s->messages, qr/zk_resign/, 'and how to go on');
is($s->query("SELECT zk_resign('/l/lost')"), 'f', 'resigned by force');
cmp_ok($s->query("SELECT zk_lead('/l/lost')"), '>', 0, 'elected again');

$s->query("SELECT zk_lead('/l/cancel')");
my ($znode) = map { "/zklock/l/cancel/$_" } $test->queue('/l/cancel');
$test->look_until($one, "SELECT state FROM zk_status", 'connected', 'connected');
$s->send("SELECT pg_sleep(600)");
ok(wait_for(sub { $test->zk->watches->{$znode} }, 'the znode is watched'),
	'a leader watches its znode');
$test->zk->client->delete($znode);
is($s->sqlstate, '40001', 'zklock.lost_lock_action cancels its statement');
$s->query('SELECT zk_unlock_all()');

# ---- ids: what looks like a mark is none, and means nothing ----

my $json = '{"breaking":true,"revoke":"all","timeout":1}';
$s->query("SELECT zk_lead('/l/json', id => '$json'), zk_lead('/l/utf8', id => E'Z\\u00fcrich'), zk_lead('/l/empty', id => '')");
my ($marked) = map { "/zklock/l/json/$_" } $test->queue('/l/json');
ok(wait_for(sub { $test->zk->watches->{$marked} }, 'the znode is watched'),
	'a leader with a strange id has looked at its znode');
$test->still_waits($s);
is($s->query("SELECT state, release_requested FROM zk_locks WHERE path = '/l/json'"),
	'granted|f', 'and goes on to lead');
is($s->messages, '', 'without a word');
leader_is('/l/json', $json, 'a strange id');
leader_is('/l/empty', '', 'an empty id');
is($curator->command('latch', 'leader', '/zklock/l/utf8'), "Z\x{fc}rich", 'an id in UTF-8');
is($test->look($two, "SELECT id = E'Z\\u00fcrich' FROM zk_leader('/l/utf8')"),
	't', 'which we see as well');
is($s->error("SELECT zk_lead('/l/long', id => repeat('x', 256))"), '22023', 'a long id');
is($s->error("SELECT zk_lead('/l/long', id => repeat(E'\\u00fc', 128))"), '22023', 'in bytes');
cmp_ok($s->query("SELECT zk_lead('/l/long', id => repeat('x', 255))"), '>', 0, 'as long as can be');
leader_is('/l/long', 'x' x 255, 'a long id');

is($t->query("SELECT zk_resign('/l/b')"), 't', 'the survivor resigns');
$s->query('SELECT zk_unlock_all()');

$t->query('CREATE ROLE nobody');
$t->query('SET ROLE nobody');
is($t->error($_), '42501', "$_: not for everybody")
  foreach "SELECT zk_lead('/l/a')", "SELECT zk_leader('/l/a')";
is($t->query("SELECT zk_resign('/l/a')"), 'f', 'but everybody may resign');
$t->query('RESET ROLE');

$curator->quit;
$test->finish(crashes => 'was terminated by signal 9|all server processes terminated');
