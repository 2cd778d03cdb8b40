# zk_dump(): what the worker believes, lock by lock.  For superusers, and also
# while ZooKeeper is down.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(servers => 2);
my ($one, $two) = $test->nodes;
my $holder = $test->session($one);
my $waiter = $test->session($one);
my $other = $test->session($two);
my $foreign = $test->zk->new_client;

# What is told of a kind of item, for one lock or ('') for the server
sub told
{
	my ($node, $path, $item) = @_;

	return $test->look($node,
		'SELECT coalesce(pid::text, $$none$$), state FROM zk_dump()'
		  . " WHERE coalesce(path, '') = '$path' AND item = '$item'"
		  . ' ORDER BY state');
}

my $id = $test->look($one, 'SELECT session_id FROM zk_status');
like(
	told($one, '', 'session'),
	qr/^none\|connection=ready session=$id generation=\d+ timeout_ms=4000 lease_ms=/,
	'the session is shown, as in zk_status');

# A holder, one who waits for it on the same server, and one on the other
$holder->query("SELECT zk_lock('/d/a b')");
$test->enqueue($waiter, "SELECT zk_lock_shared('/d/a b')", '/d/a b');
$test->enqueue($other, "SELECT zk_lock('/d/a b')", '/d/a b');
$test->wait_waiting($_, '/d/a b', 1) foreach $one, $two;
like(
	told($one, '/d/a b', 'lock'),
	qr/^none\|curator_rw requests=2 held=1 next=\d+ base=1 /,
	'a lock is shown');
my $uuid = qr/[0-9a-f-]{36}/;
my ($holds, $waits) = split /\n/, told($one, '/d/a b', 'request');
my ($holder_pid, $waiter_pid) = ($holder->pid, $waiter->pid);
like(
	$holds,
	qr/^$holder_pid\|request=\d+ granted exclusive owner=\d+ node=exists number=0 uuid=$uuid .*token=\d+/,
	'its holder, too');
like(
	$waits,
	qr/^$waiter_pid\|request=\d+ waiting shared owner=\d+ node=exists number=1 uuid=$uuid/,
	'and who waits');
$test->look_until(
	$two,
	"SELECT count(*) FROM zk_dump() WHERE path = '/d/a b'"
	  . " AND item = 'contender'",
	2,
	'the other server knows both');
like(
	told($two, '/d/a b', 'contender'),
	qr/^none\|exclusive number=0 _c_$uuid-__WRIT__0000000000.*\n.*shared number=1 .* watch=armed/,
	'and watches the one ahead');

# For superusers only
$one->safe_psql('postgres', 'CREATE ROLE somebody LOGIN IN ROLE pg_monitor');
my $somebody = $test->session($one, user => 'somebody');
is($somebody->error('SELECT count(*) FROM zk_dump()'),
	'42501', 'others may not look');
$one->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION zk_dump() TO somebody');
is($somebody->error('SELECT count(*) FROM zk_dump()'),
	'42501', 'not even if it is granted to them');
$one->safe_psql('postgres',
	'REVOKE EXECUTE ON FUNCTION zk_dump() FROM somebody');
$somebody->close;

# An answer that the first segment has no room for
$holder->query("DO \$\$ BEGIN FOR n IN 1 .. 250 LOOP"
	  . " PERFORM zk_lock('/d/many/' || repeat('x', 230) || n);"
	  . " PERFORM zk_unlock('/d/many/' || repeat('x', 230) || n);"
	  . ' END LOOP; END $$')
  foreach 1, 2;    # what is used once is not remembered
is($test->look(
		$one,
		'SELECT count(*), sum(length(path || state)) > 65536 FROM zk_dump()'
		  . " WHERE path LIKE '/d/many/%' AND item = 'lock'"),
	'250|t',
	'many locks are shown');

# While ZooKeeper is down, and what is asked for then
$test->zk->stop;
$test->look_until($one, 'SELECT state FROM zk_status',
	'disconnected', 'ZooKeeper is away');
my $late = $test->session($one);
$late->send("SELECT zk_lock('/d/late')");
$test->wait_waiting($one, '/d/late', 1);
like(told($one, '', 'session'), qr/connection=down/, 'that is shown');
like(
	told($one, '/d/a b', 'request'),
	qr/granted exclusive/,
	'so are locks that are held');
like(
	told($one, '/d/late', 'request'),
	qr/waiting exclusive owner=\d+ node=new/,
	'and requests that wait for it');

$test->zk->start;
$test->wait_connected($_) foreach $one, $two;
cmp_ok($late->value, '>', 0, 'all goes on');
$_->close foreach $holder, $late, $waiter, $other;
$test->finish;
