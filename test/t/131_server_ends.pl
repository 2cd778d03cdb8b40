# A PostgreSQL server ends with locks held: its postmaster is killed (row 7),
# or it is shut down while a commit is under way (row 8); and a copy of one is
# started beside it (row 30).

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	session_timeout => '6s',
	init => { allows_streaming => 1 },
	conf => "synchronous_commit = local\nsynchronous_standby_names = nobody\n");
my ($one, $two) = $test->nodes;
my $lock = "SELECT zk_lock('/s')";
my $rival = $test->session($two);

# The version of a server's heartbeat node, one more with each beat
sub beats
{
	my ($hex) = @_;
	my ($node) = grep { /\Q$hex\E\./ }
	  $test->zk->client->ls('/zklock/.servers');

	return $test->zk->client->stat("/zklock/.servers/$node")->{version};
}

sub expired
{
	my ($hex) = @_;

	return slurp_file($test->zk->logfile) =~ /Expiring session 0x$hex/;
}

# ---- a copy is another server: it has a session of its own and no locks
my $holder = $test->session($one);
my $token = $holder->query($lock);
$one->backup('copy');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($one, 'copy');
$copy->start;
push @{ $test->{nodes} }, $copy;
$test->wait_connected($copy);
isnt($test->status($copy, 'session_id'),
	$test->status($one, 'session_id'), 'copy: a session of its own');
my $stranger = $test->session($copy);
is($stranger->query('SELECT count(*) FROM zk_locks'), 0, 'copy: no locks');
is($stranger->query("SELECT zk_try_lock('/s')"),
	'f', 'copy: the original keeps its lock');
is($holder->query("SELECT zk_fencing_token('/s')"), $token, 'copy: unchanged');
$stranger->close;
$test->stop_looking($copy);
$copy->stop('immediate');
pop @{ $test->{nodes} };
is($test->status($one, 'state, sessions_lost'),
	'connected|0', 'copy: its end does not matter');
is($rival->query("SELECT zk_try_lock('/s')"), 'f', 'copy: not to the lock');
$holder->query("SELECT zk_unlock('/s')");

# ---- a fast shutdown while a commit waits for a synchronous standby: the
# worker keeps the session for as long as somebody holds, up to its timeout
my ($hex, $postmaster, $worker);

# Leaves a commit waiting, its backend stopped, and shuts the server down.
sub shut_down_in_commit
{
	my ($case) = @_;

	$holder = $test->session($one);
	$holder->query('BEGIN; SET LOCAL synchronous_commit = on');
	$token = $holder->query("SELECT zk_xact_lock('/s')");
	$holder->query("INSERT INTO done VALUES ($token)");
	$test->enqueue($rival, $lock, '/s');
	$holder->send('COMMIT');
	$test->look_until($one,
		'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $holder->pid,
		'SyncRep', "$case: a commit waits for its standby");
	$hex = $test->session_hex($one);
	$worker = $test->status($one, 'worker_pid');
	$postmaster = slurp_file($one->data_dir . '/postmaster.pid') + 0;
	kill 'STOP', $holder->pid;
	$test->stop_looking($one);
	kill 'INT', $postmaster;
	wait_for(
		sub { slurp_file($one->data_dir . '/postmaster.pid') =~ /stopping/ },
		"$case: shutting down");
	return;
}

sub start_again
{
	my ($case) = @_;

	$holder->abandon;
	$test->wait_gone($postmaster);
	$one->_update_pid(0);
	$one->start;
	$test->wait_connected($one);
	is($test->look($one, "SELECT token FROM done WHERE token = $token"),
		$token, "$case: the commit was done");
	$rival->query("SELECT zk_unlock('/s')");
	$test->wait_queue('/s', 0);
	return;
}

$holder->query('CREATE TABLE done (token bigint)');
$holder->close;
shut_down_in_commit('fast shutdown');
my $beats = beats($hex);
ok(wait_for(sub { beats($hex) >= $beats + 2 }, 'beats go on'),
	'fast shutdown: beats go on');
ok($rival->busy, 'fast shutdown: the lock is held until the commit is done');
kill 'CONT', $holder->pid;
cmp_ok($rival->value, '>', $token, 'fast shutdown: then the next one has it');
start_again('fast shutdown');
ok(!expired($hex), 'fast shutdown: the session was closed, not left to expire');

shut_down_in_commit('endless commit');
$test->wait_gone($worker);
ok($rival->busy, 'endless commit: the lock is not free when the worker ends');
is(scalar($test->queue('/s')), 2, 'endless commit: nothing was closed');
cmp_ok($rival->value, '>', $token, 'endless commit: it ends with the session');
ok(expired($hex), 'endless commit: which expires');
kill 'CONT', $holder->pid;
start_again('endless commit');

# ---- the postmaster is killed: backends may go on for a while, so nothing is
# closed, and what they do is bound to the lease
my $idle = $test->session($one);
my $busy = $test->session($one);
$idle->query("SELECT zk_lock('/s/idle')");
$busy->query("SET zklock.commit_wait = 0");
$busy->query("BEGIN; SELECT zk_xact_lock('/s')");
$test->enqueue($rival, $lock, '/s');
$hex = $test->session_hex($one);
my @pids = split /\|/, $test->status($one, 'worker_pid, session_pid');

# This backend notices nothing before its statement ends.
$busy->send(<<'EOS');
DO $$ BEGIN
	WHILE (SELECT lease_remaining > '0' FROM zk_status) LOOP END LOOP;
END $$; INSERT INTO done VALUES (0); COMMIT
EOS
$test->stop_looking($one);
$one->kill9;
$test->wait_gone($_) foreach @pids;
ok($rival->busy, 'postmaster killed: the lock is not free at once');
is(scalar($test->queue('/s')), 2, 'postmaster killed: nothing was closed');
$busy->result;
ok($busy->{answer}{closed} || $busy->sqlstate eq '40001',
	'postmaster killed: a backend that goes on does not commit');
cmp_ok($rival->value, '>', 0, 'postmaster killed: the next one has it');
ok(expired($hex), 'postmaster killed: by expiry');
ok($test->wait_queue('/s/idle', 0), 'postmaster killed: so are the others');
$_->abandon foreach $idle, $busy;
$test->wait_gone($_->pid) foreach $idle, $busy;
$one->start;
$test->wait_connected($one);
is($test->look($one, 'SELECT count(*) FROM done WHERE token = 0'),
	0, 'postmaster killed: nothing was committed without a lease');
is($test->session($one)->query("SELECT zk_try_lock('/s')"),
	'f', 'started again, it sees who holds the lock');

$rival->close;
$test->finish;
