# The traces of real servers obey the specification (test/spec), merged with each other
# and with ZooKeeper's transaction log: locks that are shared, handed over, cached, kept
# and lost, lost connections, a lost session, a worker and a server that end.  And the
# reader is able to refuse: a trace with one line changed breaks a rule.

use strict;
use warnings;

use Test::More;

use Specification;
use TcpProxy;
use ZklockTest;

my $spec = Specification->new;
my $net = TcpProxy->new;
my $test = ZklockTest->new(
	net => $net,
	session_timeout => '3s',
	conf => "zklock.trace = on\n");
my ($one, $two) = $test->nodes;
my ($a, $b, $c) = map { $test->session($_) } $one, $one, $two;

# One has the lock, another session of the server and one of the other server wait; then
# each gets its turn.
sub pass_on
{
	my ($name) = @_;

	$a->query("SELECT zk_lock('$name')");
	$test->enqueue($b, "SELECT zk_lock('$name')", $name);
	$test->enqueue($c, "SELECT zk_lock('$name')", $name);
	$a->query("SELECT zk_unlock('$name')");
	cmp_ok($b->value, '>', 0, "$name: the next one gets it");
	$b->query("SELECT zk_unlock('$name')");
	cmp_ok($c->value, '>', 0, "$name: and the one of the other server");
	$c->query("SELECT zk_unlock('$name')");
	return;
}

pass_on('/t/first');
$a->query("SELECT zk_lock_shared('/t/shared')");
$c->query("SELECT zk_lock_shared('/t/shared')");
is($b->query("SELECT zk_try_lock('/t/shared')"), 'f', 'a try is denied');
$_->query("SELECT zk_unlock_all()") foreach $a, $c;

# Again and again, so that it is cached; then the other server wants it.
$a->query("SELECT zk_lock('/t/hot'); SELECT zk_unlock('/t/hot')") foreach 1 .. 20;
$c->query("SELECT zk_lock('/t/hot'); SELECT zk_unlock('/t/hot')");

# A connection that breaks amid a create, while a lock is held
my $connects = $test->status($one, 'connects');
$a->query("SELECT zk_lock('/t/held')");
$net->reset('server1-zk');
pass_on('/t/second');
$test->look_until($one, "SELECT connects > $connects FROM zk_stat_server", 't', 'connected again');
is($a->query("SELECT zk_unlock('/t/held')"), 't', 'what was held is still held');

# A session that ends
$a->query("SELECT zk_lock('/t/lost')");
$net->drop('server1-zk');
$test->enqueue($c, "SELECT zk_lock('/t/lost')", '/t/lost');
cmp_ok($c->value, '>', 0, 'the other server gets a lock whose session has ended');
$net->pass('server1-zk');
$test->wait_connected($one);
$a->query('SELECT zk_unlock_all()');
$c->query('SELECT zk_unlock_all()');

# A worker that ends with a hold, and a server that is started again
$a->query("SELECT zk_lock('/t/worker')");
kill 'TERM', $test->status($one, 'worker_pid');
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/t/worker'", 'lost', 'lost');
$test->wait_connected($one);
$a->query('SELECT zk_unlock_all()');
pass_on('/t/third');
$_->close foreach $a, $b, $c;
$one->restart;
$test->wait_connected($one);
($a, $b, $c) = map { $test->session($_) } $one, $one, $two;
pass_on('/t/fourth');

my @files = map { $spec->trace($_) } $one, $two;
push @files, $spec->log($test->zk);
my ($status, $said) = $spec->validate(@files);

is($status, 0, 'the rules allow all that both servers did') or diag $said;
like($said, qr/^\d+ lines, 0 of them of workers whose beginning is not there/,
	'and all of it was read');
cmp_ok(($said =~ /, (\d+) grants/)[0] // 0, '>', 12, 'grants among them');

# Reads them again with a change in one of them, the log being the last.
sub refuses
{
	my ($which, $change, $rule, $what) = @_;
	my @changed = @files;

	$changed[$which] = $spec->change($files[$which], $change);
	ok($changed[$which], "$what: there is such a line") or return;
	($status, $said) = $spec->validate(@changed);
	is($status, 1, "$what: refused");
	like($said, $rule, "$what: by its rule");
	return;
}

refuses(0, sub { s/out grant request=\d+ .* token=\K\d+/4096/ }, qr/its token is/,
	'another token');
refuses(0, sub { s/^.*in release request=\d+ \/zklock\/t\/first .*\n//m },
	qr/no demand stands on the znode|no conflicting one of this server is ahead/,
	'a hand-over without a release');
refuses(0, sub { s/out lease until=\K(\d+)/$1 + 5_000_000/e }, qr/it ends by min/,
	'a longer lease');
refuses(0, sub { s/^.*out lose request=\d+ .*\n//m }, qr/is not told \(S7\)/, 'a loss untold');
refuses(0, sub { s/^.*in result operation=\d+ rc=0 \/zklock\/t\/second\/.*\n//m },
	qr/its number is the znode's/, 'a number without an answer');
refuses(2, sub { s/^.*zk delete \/zklock\/t\/first\/.*\n//m }, qr/stands ahead in ZooKeeper's log/,
	'a znode ahead that stays');

# ---- turned on by a reload, amid a worker's life

$test->set($two, trace => 'off');
$c->close;
$two->restart;
$test->wait_connected($two);
unlink glob $two->data_dir . '/zklock.trace*';
$test->set($two, trace => 'on');
ok(wait_for(sub { -e $two->data_dir . '/zklock.trace' }, 'the trace'), 'a reload turns the trace on');
$c = $test->session($two);
pass_on('/t/fifth');
($status, $said) = $spec->validate($spec->trace($two), $files[2]);
is($status, 2, 'a trace without the beginning of a worker is not praised');
like($said, qr/^nothing was checked.*restart a server, or end its worker/s, 'and what to do is told');

kill 'TERM', my $worker = $test->status($two, 'worker_pid');
ok(wait_for(sub { !kill 0, $worker }, 'its end'), 'its worker ends');
$test->wait_connected($two);
pass_on('/t/sixth');
($status, $said) = $spec->validate($spec->trace($two), $spec->log($test->zk));
is($status, 0, 'then the rules allow what the next one did') or diag $said;
like($said, qr/^\d+ lines, [1-9]\d* of them of workers.*, [1-9]\d* grants/, 'which was checked');

$_->close foreach $a, $b, $c;
$test->finish;
