# A changed zklock.session_timeout applies to the next ZooKeeper session.  An
# idle server begins one at once; a server that holds a lock keeps its session,
# with all that it holds, until it is idle.  What is asked for meanwhile waits.
# A timeout that ZooKeeper does not grant is asked for once, not again and
# again; and if ZooKeeper does not acknowledge that the old session is closed,
# the new one begins when the old one has expired.  A timeout of less than four
# ticks is warned about.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test =
  ZklockTest->new(net => $net, servers => 1, session_timeout => '4s');
my ($node) = $test->nodes;
my $line = 'server1-zk';

sub change
{
	my ($name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$name = '$value'");
	$node->reload;
	return;
}

sub log_count
{
	my ($pattern) = @_;

	return scalar(() = slurp_file($node->logfile) =~ /$pattern/g);
}

# Another session than that, connected, with that timeout
sub renewed_ok
{
	my ($id, $timeout, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($node,
			"SELECT state = 'connected' AND session_id <> '$id'"
			  . " AND session_timeout = '$timeout' FROM zk_status",
			't', $what),
		$what);
}

# ---- idle

my $id = $test->status($node, 'session_id');
my $hex = $test->session_hex($node);
change('session_timeout', '6s');
renewed_ok($id, '6s', 'an idle server begins a session with the new timeout');
is($test->status($node, 'sessions_lost'), 0, 'which loses nothing');
is(log_count('"zklock.session_timeout" was changed from 4000 ms to 6000 ms'),
	1, 'the log says so');
is(log_count('holds or awaits a distributed lock, or when the server restarts'),
	1, 'and what a busy server does');

# If ZooKeeper is too slow to answer, the session ends by itself.
sub is_there
{
	return scalar(grep { /\/\.servers\/0*$hex\./ } $test->zk->client->tree('/zklock'));
}
wait_for(sub { !is_there() }, 'its end') if log_count('did not acknowledge that the session is closed');
is(is_there(), 0, 'the old session is closed');

# ---- busy

my $holder = $test->session($node);
my $token = $holder->query("SELECT zk_lock('/t/held')");
$id = $test->status($node, 'session_id');
change('session_timeout', '7s');
ok(wait_for(sub { log_count('from 6000 ms to 7000 ms') }, 'taken note of'),
	'a busy server takes note');
my $other = $test->session($node);
is($other->query("SELECT zk_try_lock('/t/held')"), 'f', 'and goes on');
is($test->status($node, 'session_id'), $id, 'in the same session');
is($holder->query("SELECT zk_fencing_token('/t/held')"),
	$token, 'with what it holds');

# A reload that changes nothing says nothing; one that takes it back ends it.
change('tick_time', '400ms');
change('session_timeout', '6s');
ok(wait_for(sub { log_count('"zklock.session_timeout" changed to "6s"') == 2 }, 'taken back'),
	'taken back');

# What another session shows may be from the file.  Only once the postmaster goes on, all
# have its signal, and the worker heeds that ahead of the release.
$node->safe_psql('postgres', 'SELECT 1');
is($holder->query("SELECT zk_unlock('/t/held')"), 't', 'idle again');
is($other->query("SELECT zk_try_lock('/t/held', '1min')"), 't', 'and busy');
is($test->status($node, 'session_id'), $id, 'still the same session');
is(log_count('from 6000 ms to 7000 ms'), 1, 'said once');
change('session_timeout', '8s');
ok(wait_for(sub { log_count('from 6000 ms to 8000 ms') }, 'changed again'),
	'changed again');
$other->query("SELECT zk_unlock('/t/held')");
renewed_ok($id, '8s', 'once it is idle, the new one begins');
is($test->status($node, 'sessions_lost'), 0, 'nothing is lost');

# ---- more than ZooKeeper grants: 20 ticks of 500 ms

$id = $test->status($node, 'session_id');
change('session_timeout', '60s');
renewed_ok($id, '10s', 'ZooKeeper grants less than asked for');
$id = $test->status($node, 'session_id');
change('tick_time', '500ms');
is($other->query("SELECT zk_try_lock('/t/x', '1min'), zk_unlock('/t/x')"),
	't|t', 'locks work');
is($test->status($node, 'session_id'), $id, 'and it does not ask again');

# ---- the close is not acknowledged

change('session_timeout', '6s');
renewed_ok($id, '6s', 'less again');
$id = $test->status($node, 'session_id');
my $begin = time;
$net->hold($line);
change('session_timeout', '4s');
ok(wait_for(
		sub { log_count('did not acknowledge that the session is closed') },
		'no answer'),
	'ZooKeeper does not acknowledge the close');
$holder->send("SELECT zk_lock('/t/later')");
$net->drop($line);
$net->pass($line);
ok($holder->busy, 'what is asked for waits');
isnt($test->status($node, 'state'), 'connected', 'for the next session');
cmp_ok($holder->value, '>', 0, 'and is granted in it');
cmp_ok(time - $begin, '>=', 6, 'not before the old one can have expired');
renewed_ok($id, '4s', 'which has the new timeout');
is($test->status($node, 'sessions_lost'), 0, 'and no loss is counted');
$holder->query("SELECT zk_unlock('/t/later')");

# ---- four ticks

is(log_count('less than 4 ticks'), 0, 'no warning so far');
$id = $test->status($node, 'session_id');
change('tick_time', '2s');
change('session_timeout', '5s');
renewed_ok($id, '5s', 'a session of less than four ticks of 2 s');
ok(wait_for(sub { log_count('session timeout of 5000 ms is less than 4 ticks') },
		'the warning'),
	'is warned about');
my $connects = $test->status($node, 'connects');
$net->reset($line);
$test->look_until($node,
	"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
	't', 'connected again');
is(log_count('less than 4 ticks'), 1, 'once');

$_->close foreach $holder, $other;
$test->finish;
