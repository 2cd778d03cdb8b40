# An operator breaks locks: of a holder that loses it in good order, and of
# another kind of client; and the break is disturbed.  The session timeout is
# longer than a slow machine takes here: 098_stopped_holder has breaks that wait
# for it.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '5s');
my ($one, $two) = $test->nodes;
my $operator = $test->session($one);
my $client = $test->zk->new_client;

sub granted
{
	my ($node, $name) = @_;

	return $test->look($node,
		"SELECT count(*) FROM zk_locks WHERE state = 'granted' AND path = '$name'");
}

is($operator->query("SELECT zk_break_lock('/o/none')"),
	'f', 'there is nothing to break');

# A holder on another server, and one on the operator's own: both are told,
# and those who wait come next.
foreach my $node ($two, $one)
{
	my $name = '/o/' . $node->name;
	my $holder = $test->session($node);
	my $next = $test->session($one);

	$holder->query("SET zklock.lost_lock_action = 'none'");
	$holder->query("BEGIN; CREATE TABLE t (); SELECT zk_xact_lock('$name')");
	$test->enqueue($next, "SELECT zk_lock('$name')", $name);
	$operator->send("SELECT zk_break_lock('$name')");
	$test->look_until(
		$node,
		"SELECT count(*) FROM zk_locks WHERE state = 'lost' AND path = '$name'",
		1,
		"$name: the holder loses it");
	ok($operator->busy, 'its znode stays until the holder is through');
	ok($test->still_waits($next), 'nobody else has it yet');
	my $answer = $holder->send('COMMIT')->result;
	is($answer->{error}{sqlstate}, '40001', 'the holder cannot commit');
	like($holder->messages, qr{broke it with zk_break_lock}, 'and is told why');
	is($operator->value, 't', 'then the lock is broken');
	cmp_ok($next->value, '>', 0, 'and the next has it');
	$_->close foreach $holder, $next;
}

# Another kind of client: nobody to be asked.
my $uuid = '12345678-1234-4234-9234-123456789012';
$client->create("/zklock/o/foreign/_c_$uuid-__WRIT__",
	'10.0.0.1', [ 'ephemeral', 'sequence' ]);
my $behind = $test->session($two);
$test->enqueue($behind, "SELECT zk_lock('/o/foreign')", '/o/foreign');
is($operator->query("SELECT zk_break_lock('/o/foreign')"),
	't', 'a foreign contender is removed');
cmp_ok($behind->value, '>', 0, 'and the next has the lock');

# The answer to one that was given up is not taken for that to the next one.
$client->create("/zklock/o/second/_c_$uuid-__WRIT__",
	'10.0.0.1', [ 'ephemeral', 'sequence' ])
  if $operator->query("SELECT zk_lock('/o/second')")
  && $operator->query("SELECT zk_unlock('/o/second')")
  && $test->wait_queue('/o/second', 0);
$test->zk->pause;
$operator->query("SET statement_timeout = '100ms'");
is($operator->error("SELECT zk_break_lock('/o/nobody')"),
	'57014', 'a break is given up while ZooKeeper is slow');
$operator->query('RESET statement_timeout');
$operator->send("SELECT zk_break_lock('/o/second')");
$test->look_until($one, 'SELECT count(*) FROM pg_stat_activity'
	  . " WHERE wait_event_type = 'Extension' AND query LIKE '%/o/second%'"
	  . ' AND pid <> pg_backend_pid()', 1, 'the next one waits');
$test->zk->resume;
is($operator->value, 't', 'the next one is not answered by it');
ok($test->wait_queue('/o/second', 0), 'and has done its work');

# The worker ends after the mark: the call goes on, and does not take the next head.
my $ours = $test->session($two);
$ours->query("SET zklock.lost_lock_action = 'none'");
$ours->query("SELECT zk_lock('/o/third')");
my $behind_ours = $test->session($two);
$test->enqueue($behind_ours, "SELECT zk_lock('/o/third')", '/o/third');
$operator->send("SELECT zk_break_lock('/o/third')");
$test->look_until($two,
	"SELECT count(*) FROM zk_locks WHERE state = 'lost' AND path = '/o/third'",
	1, 'it is marked');
is($ours->error("SELECT zk_lock_shared('/o/third')"),
	'40001', 'its session cannot get in line behind those that wait for it');
my $worker = $test->status($one, 'worker_pid');
kill 'TERM', $worker;
$test->wait_gone($worker);
$ours->query("SELECT zk_unlock('/o/third')");
cmp_ok($behind_ours->value, '>', 0, 'the next one has the lock');
is($operator->value, 't', 'the break goes on with the next worker');
is($behind_ours->query("SELECT zk_unlock('/o/third')"),
	't', 'and the next one keeps it');

# A znode that its own server may not read any more: somebody may have marked
# it unseen, so that hold is lost, and no other.
my $shut = $test->session($two);
$shut->query("SET zklock.lost_lock_action = 'none'");
$shut->query("SELECT zk_lock('/o/shut'), zk_lock('/o/open')");
$client->shut_out('/zklock/o/shut/' . ($test->queue('/o/shut'))[0]);
kill 'KILL', $test->status($two, 'session_pid');
$test->look_until($two,
	"SELECT state FROM zk_locks WHERE path = '/o/shut'",
	'lost', 'a hold whose znode cannot be read is lost');
is($test->look($two, "SELECT state FROM zk_locks WHERE path = '/o/open'"),
	'granted', 'and no other');
is($shut->error('BEGIN; CREATE TABLE unreadable (); COMMIT'),
	'40001', 'its holder cannot commit');
like($shut->messages, qr{no longer lets this server read its znode or list its directory},
	'and is told why');
$shut->query('ROLLBACK');
is($shut->query("SELECT zk_unlock('/o/shut')"), 'f', 'it acknowledges that');
ok($test->wait_queue('/o/shut', 0), 'and the znode goes');

# Not for everybody, and not in silence.
$operator->query('CREATE USER somebody; GRANT EXECUTE ON FUNCTION'
	  . ' zk_break_lock(text), zk_accept_lower_tokens(), zk_reconnect() TO somebody');
my $user = $test->session($one, user => 'somebody');
is($user->error("SELECT zk_break_lock('/o/foreign')"),
	'42501', 'only superusers break locks');
is($user->error('SELECT zk_accept_lower_tokens()'),
	'42501', 'or accept lower tokens');
is($user->error('SELECT zk_reconnect()'), '42501', 'or reconnect');
is($operator->error("SELECT zk_break_lock('no name')"), '22023', 'bad name');
like(
	slurp_file($one->logfile),
	qr{znode "/zklock/o/foreign/\S+" of distributed lock "/o/foreign" is gone, broken by process},
	'it is logged');

$_->close foreach $operator, $behind, $ours, $behind_ours, $shut, $user;
$client->quit;
$test->finish;
