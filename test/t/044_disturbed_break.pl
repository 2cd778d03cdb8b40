# zk_break_lock() is disturbed while it waits for a holder whose server hears of
# nothing: by a timeout, a cancel, a second operator, a lost connection, a worker that
# ends.  The mark stays, and the next call goes on from there; exactly one head goes.
# And the call does not take another znode for the one that it has marked.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(sleep time);

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $line = $one->name . '-zk';
my $zk = $test->zk->client;
my @operators = map { $test->session($one) } 1 .. 2;
my ($operator) = @operators;
my $stopped;

# A holder on the second server, whose worker is stopped, and one who waits behind
# it on the first: the znode of the holder, and both sessions
sub begin
{
	my ($path) = @_;
	my $holder = $test->session($two);
	my $next = $test->session($one);

	$holder->query("SET zklock.lost_lock_action = 'none'; SELECT zk_lock('$path')");
	$test->enqueue($next, "SELECT zk_lock('$path')", $path);
	$stopped = $test->status($two, 'worker_pid');
	kill 'STOP', $stopped;
	return ("/zklock$path/" . ($test->queue($path))[0], $holder, $next);
}

# The holder was broken, and the next one is left alone.
sub end
{
	my ($path, $holder, $next) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	cmp_ok($next->value, '>', 0, "$path: the next one has the lock");
	kill 'CONT', $stopped;
	$test->wait_connected($two);
	is($holder->query("SELECT zk_unlock('$path')"), 'f', "$path: the holder has lost it");
	is($next->query("SELECT zk_unlock('$path')"), 't', "$path: the next one kept it");
	$_->close foreach $holder, $next;
	ok($test->wait_queue($path, 0), "$path: no znode is left");
	return;
}

sub is_marked { return ($zk->stat($_[0]) ? $zk->get($_[0]) : '') =~ /"breaking":true/; }

sub marks
{
	my ($znode) = @_;

	return scalar(() = slurp_file($one->logfile) =~
		  /znode "\Q$znode\E" of distributed lock "[^"]*" is marked to be broken by process/g);
}

# ---- it is given up, and begun again ----

{
	my $path = '/b/again';
	my ($znode, @sessions) = begin($path);

	$operator->query("SET lock_timeout = '300ms'");
	my $answer = $operator->send("SELECT zk_break_lock('$path')")->result;
	is($answer->{error}{sqlstate}, '55P03', 'lock_timeout ends it');
	unlike($operator->messages, qr/The wait was for/, 'while it waited for the holder');
	like($answer->{error}{context},
		qr/while breaking distributed lock "\Q$path\E", which is not done until/,
		'and the context tells what that means');
	$operator->query("RESET lock_timeout; SET statement_timeout = '300ms'");
	is($operator->error("SELECT zk_break_lock('$path')"), '57014', 'and so does a cancel');
	$operator->query('RESET statement_timeout');
	ok(is_marked($znode), 'the mark stays');
	ok($test->still_waits($sessions[1]), 'and the next one waits');

	# Two at once, and the connection breaks, and the worker ends
	my $begin = time;

	$operator->query('SET client_min_messages = log');
	$_->send("SELECT zk_break_lock('$path')") foreach @operators;
	sleep 0.4;
	is($net->reset($line) > 0, 1, 'the connection breaks');
	$test->wait_connected($one);
	my $worker = $test->status($one, 'worker_pid');
	kill 'TERM', $worker;
	$test->wait_gone($worker);
	is($_->value, 't', 'it goes on, and breaks the lock') foreach @operators;
	cmp_ok(time - $begin, '>=', 2, 'after all of the time that the holder has');
	is(marks($znode), 1, 'it was marked once');
	unlike($operator->messages, qr/by process/, 'the log alone tells by whom');
	my $log = slurp_file($one->logfile);
	like($log, qr/znode "\Q$znode\E" of [^\n]* is gone, broken by process/, 'the log tells its end');
	ok($log !~ / is (?:marked to be|gone,) [^\n]*\n[^\n]*CONTEXT:/,
		'and not that this is not done');
	end($path, @sessions);
	$operator->query('RESET client_min_messages');
}

# ---- another client writes over the mark ----

{
	my $path = '/b/over';
	my ($znode, @sessions) = begin($path);

	$operator->send("SELECT zk_break_lock('$path')");
	wait_for(sub { is_marked($znode) }, 'it is marked');
	sleep 1;
	$zk->set($znode, '{}');
	my $begin = time;

	wait_for(sub { is_marked($znode) }, 'it is marked again');
	is($operator->value, 't', 'it is broken');
	cmp_ok(time - $begin, '>=', 2, 'and the holder had all of its time again');
	is(marks($znode), 2, 'it was marked twice');
	end($path, @sessions);
}

# ---- what became of it is not known ----

{
	my $path = '/b/unknown';
	my ($znode, @sessions) = begin($path);

	$operator->send("SELECT zk_break_lock('$path')");
	wait_for(sub { is_marked($znode) }, 'it is marked');
	$net->answer($line, 'multi', "$path/", -4, times => 0);
	is($operator->sqlstate, '40003', 'ZooKeeper does not tell what became of it');
	like($operator->messages, qr/ZooKeeper answered CONNECTIONLOSS/, 'with its answer');
	$net->pass($line);
	is($operator->query("SELECT zk_break_lock('$path')"), 't', 'the next call goes on');
	end($path, @sessions);
}

# ---- another znode of the same name and version ----

# The call has seen the mark for the last time, and is stopped.  When it goes on, the
# connection is another one, and the mark is no longer there: as if ZooKeeper had lost
# it, and the holder's server had written something else.
{
	my $path = '/b/other';
	my ($znode, @sessions) = begin($path);

	$operator->send("SELECT zk_break_lock('$path')");
	wait_for(sub { is_marked($znode) }, 'it is marked');
	my $version = $zk->stat($znode)->{version};
	my $connects = $test->status($one, 'connects');
	$net->hold($line, 'down');
	sleep 0.3;
	kill 'STOP', $operator->pid;
	$net->pass($line);
	sleep 0.3;
	$net->reset($line);
	$test->look_until($one,
		"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
		't', 'another connection');
	$zk->delete($znode);
	$zk->create($znode, '{}', ['ephemeral']);
	$zk->set($znode, '{}') foreach 1 .. $version;
	is($zk->stat($znode)->{version}, $version, 'it has the version of the mark');
	sleep 2;
	kill 'CONT', $operator->pid;
	wait_for(sub { is_marked($znode) || !$zk->stat($znode) }, 'the call goes on');
	my $begin = time;
	ok(is_marked($znode), 'it is not deleted, but marked');
	is($operator->value, 't', 'it is broken');
	cmp_ok(time - $begin, '>=', 1.5, 'after a session timeout');
	end($path, @sessions);
}

# ---- ZooKeeper refuses the sync ahead of a listing ----

# Then an empty listing does not show that there is nothing to be broken.
$net->answer($line, 'sync', 'b/empty', -1, times => 0);
isnt($operator->error("SELECT zk_break_lock('/b/empty')"),
	'', 'what ZooKeeper said without a sync does not count');
cmp_ok($net->stats($line)->{answered}, '>', 1, 'it was asked again');
$net->pass($line);
is($operator->query("SELECT zk_break_lock('/b/empty')"), 'f', 'there is nothing to be broken');

$_->close foreach @operators;
$test->finish;
