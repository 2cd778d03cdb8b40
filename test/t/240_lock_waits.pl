# Who waits for whom: zk_lock_waits, and what "log_lock_waits" has a session log
# after "deadlock_timeout".

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	conf => "deadlock_timeout = '200ms'\nzklock.deadlock_detection = off\n"
	  . "dynamic_shared_memory_type = mmap\n");
my ($one, $two) = $test->nodes;
my ($s, $reader, $writer, $late) = map { $test->session($one) } 1 .. 4;
my $other = $test->session($two, application_name => 'holder');
my $other_reader = $test->session($two);

# Shared holders on two servers; a writer behind them, and a reader behind it
$other->query("SELECT zk_lock_shared('/w/x')");
$reader->query("SELECT zk_lock_shared('/w/x')");
$test->enqueue($writer, "SELECT zk_lock('/w/x')", '/w/x');
$test->enqueue($late, "SELECT zk_lock_shared('/w/x')", '/w/x');
$test->enqueue($other_reader, "SELECT zk_xact_lock_shared('/w/x')", '/w/x');
my @znodes = map { "/zklock/w/x/$_" } $test->queue('/w/x');
my $user = getpwuid($<);

my $rows = 'SELECT path, mode, waiting_pid, requested_at <= now(), blocking_server, blocking_pid,'
  . ' blocking_usename, blocking_application_name, blocking_znode, blocking_granted';
my @of_writer = (
	join('|', '/w/x', 'exclusive', $writer->pid, 't', 'server1', $reader->pid,
		$user, 'zklock test', $znodes[1], 't'),
	join('|', '/w/x', 'exclusive', $writer->pid, 't', 'server2', $other->pid,
		$user, 'holder', $znodes[0], 't'));
my $of_late = join('|', '/w/x', 'shared', $late->pid, 't', 'server1',
	$writer->pid, $user, 'zklock test', $znodes[2], 'f');
is($test->look($one,
		"$rows FROM zk_lock_waits WHERE mode = 'exclusive' ORDER BY blocking_server"),
	join("\n", @of_writer),
	'the writer waits for both readers');
is($test->look($one, "$rows FROM zk_lock_waits WHERE mode = 'shared'"),
	$of_late, 'the late reader waits for the writer, which waits itself');
is($test->look($one, 'SELECT count(*) FROM zk_lock_waits'),
	3, 'those are all on the first server');
is($test->look($two, 'SELECT waiting_pid, blocking_pid, blocking_granted FROM zk_lock_waits'),
	join('|', $other_reader->pid, $writer->pid, 'f'),
	'on the other server, a reader waits for the writer of the first one');

# What is nobody's business
$s->query('CREATE ROLE looker LOGIN; GRANT SELECT ON zk_lock_waits TO looker');
my $looker = $test->session($one, user => 'looker');
is($looker->query('SELECT count(*) > 0 FROM zk_lock_waits'), 't', 'SELECT on a view is enough');
is($looker->query("$rows FROM zk_lock_waits WHERE mode = 'shared'"),
	join('|', '', 'shared', '', 't', 'server1', '', '', '', '', 'f'),
	'other roles see neither the lock, nor who waits for it or has it');
$s->query('GRANT EXECUTE ON FUNCTION zk_lock TO looker');
$s->query("SELECT zk_lock('/w/mine')");
my $waiting = $test->session($one, user => 'looker');
$waiting->send("SELECT zk_lock('/w/mine')");
my $blocker = "SELECT waiting_pid, blocking_server, blocking_pid, blocking_usename,"
  . " blocking_application_name, blocking_znode FROM zk_lock_waits WHERE path = '/w/mine'";
wait_for(sub { $looker->query($blocker) ne '' }, 'a wait of its own');
is($looker->query($blocker), join('|', $waiting->pid, 'server1', $s->pid, '', '', ''),
	'of its own wait a role sees the process that is in the way');
$s->query("SELECT zk_unlock('/w/mine')");
$waiting->result;
$waiting->close;
$s->query('REVOKE EXECUTE ON FUNCTION zk_lock FROM looker');
$s->query('GRANT pg_read_all_stats TO looker');
is($looker->query("$rows FROM zk_lock_waits WHERE mode = 'shared'"),
	$of_late, 'those who read all statistics do');
$looker->close;

# The session's own znode is not in its way.
my $upgrade = $test->session($one);
$upgrade->query("SELECT zk_lock_shared('/w/u')");
$other->query("SELECT zk_lock_shared('/w/u')");
$test->enqueue($upgrade, "SELECT zk_lock('/w/u')", '/w/u');
is($test->look($one, 'SELECT blocking_pid, blocking_granted FROM zk_lock_waits WHERE waiting_pid = ' . $upgrade->pid),
	$other->pid . '|t',
	'who has a lock in shared mode and wants more waits for the others');
$other->query("SELECT zk_unlock_shared('/w/u')");
$upgrade->value;
$upgrade->close;

# Other clients, semaphores, leaders
my $foreign = $test->zk->new_client;
$foreign->lock('w', 'write', '/zklock/w/f', 'somebody');
wait_for(sub { $foreign->held('w') }, 'the foreign client has the lock');
$test->enqueue($s, "SELECT zk_lock('/w/f')", '/w/f');
is($test->look($one,
		'SELECT blocking_server, blocking_pid, blocking_znode, blocking_granted FROM zk_lock_waits WHERE waiting_pid = ' . $s->pid),
	join('|', 'somebody', '', '/zklock/w/f/' . ($test->queue('/w/f'))[0], 't'),
	'of another client there is its znode, and what it says of itself');
$foreign->unlock('w');
$s->value;
$s->query('SELECT zk_unlock_all()');
$other->query("SELECT zk_lead('/w/l', 'the leader'), zk_acquire_permits('/w/s', 2, max_permits => 2)");
$s->send("SELECT zk_lead('/w/l')");
$test->look_until($one,
	'SELECT mode, blocking_server, blocking_granted FROM zk_lock_waits WHERE waiting_pid = ' . $s->pid,
	'leader|the leader|t', 'a leader is waited for, who has the id that it chose');
$other->query("SELECT zk_resign('/w/l')");
$s->value;
$s->query("SELECT zk_resign('/w/l')");
$s->send("SELECT zk_acquire_permits('/w/s', max_permits => 2)");
$test->look_until($one,
	"SELECT DISTINCT path, mode, blocking_pid, blocking_granted FROM zk_lock_waits WHERE waiting_pid = " . $s->pid,
	join('|', '/w/s', 'permit', $other->pid, 't'), 'permits are waited for');
$other->query("SELECT zk_release_permits('/w/s', 2)");
$s->value;
$s->query("SELECT zk_release_permits('/w/s')");

$reader->query("SELECT zk_unlock_shared('/w/x')");
$other->query("SELECT zk_unlock_shared('/w/x')");
$writer->value;
$writer->query("SELECT zk_unlock('/w/x')");
$_->value foreach $late, $other_reader;
$late->query("SELECT zk_unlock_shared('/w/x')");
is($test->look($one, 'SELECT count(*) FROM zk_lock_waits'),
	0, 'no one waits any more');

# ---- log_lock_waits ----

# What a server has logged since the last call
my %read;
sub logged
{
	my ($node) = @_;
	my $text = substr slurp_file($node->logfile), $read{ $node->name } // 0;

	return $text;
}

sub forget_log
{
	my ($node) = @_;

	$read{ $node->name } = -s $node->logfile;
	return;
}

# Off, as it is by default in PostgreSQL before 19: nothing is asked or logged.
$s->query('SET log_lock_waits = off');
forget_log($one);
$other->query("SELECT zk_lock('/w/q')");
$test->enqueue($s, "SELECT zk_lock('/w/q')", '/w/q');
$late->query('SELECT pg_sleep(0.5)');
unlike(logged($one), qr/still waiting/, 'off: nothing is logged');
$other->query("SELECT zk_unlock('/w/q')");
$s->value;
$s->query('SELECT zk_unlock_all()');

my $ms = qr/\d+\.\d{3} ms/;
$_->query('SET log_lock_waits = on') foreach $s, $late, $writer;
forget_log($one);
$other->query("SELECT zk_lock('/w/q')");
$test->enqueue($s, "SELECT zk_lock('/w/q')", '/w/q');
wait_for(sub { logged($one) =~ /still waiting/ }, 'a line in the log');
my ($pid, $holder) = ($s->pid, $other->pid);
like(logged($one),
	qr{LOG:  process $pid still waiting for distributed lock "/w/q" after $ms\n.*DETAIL:  Distributed lock "/w/q" is held by process $holder of server "server2" \(user "$user", application "holder"\) since \d{4}-\d\d-\d\d [^.]*\.\n.*while waiting for distributed lock "/w/q"}s,
	'the log says for whom the session waits');
forget_log($one);
$test->enqueue($late, "SELECT zk_lock('/w/q')", '/w/q');
my $operations = $test->status($one, 'operations');
$pid = $late->pid;
wait_for(sub { logged($one) =~ /process $pid still waiting/ },
	'a line of the next one');
$holder = $s->pid;
like(logged($one),
	qr{DETAIL:  Distributed lock "/w/q" is held by process \d+ of server "server2" .*  The nearest request ahead is that of process $holder of server "server1" .*; 2 requests are ahead\.},
	'which waits for a session of its own server');
$other->query("SELECT zk_unlock('/w/q')");
$s->value;
wait_for(sub { logged($one) =~ /acquired/ }, 'a line in the log');
like(logged($one), qr{LOG:  process $holder acquired distributed lock "/w/q" after $ms\n},
	'the log says that the first has got the lock');
$late->cancel;
is($late->sqlstate, '57014', 'the other one is cancelled');
unlike(logged($one), qr/process $pid acquired/, 'it has not got the lock');
$s->query('SELECT zk_unlock_all()');

forget_log($one);
$other->query("SELECT zk_lead('/w/led', 'the leader')");
$s->query('REVOKE pg_read_all_stats FROM looker;'
	  . ' GRANT EXECUTE ON FUNCTION zk_lead TO looker; SET ROLE looker');
is($s->error("SELECT zk_lead('/w/led', timeout => '100ms')"), '55P03', 'a candidate gives up');
like($s->messages, qr{Distributed lock "/w/led" is held by another client\.},
	'and does not read what it may not see');
$s->query('RESET ROLE; REVOKE EXECUTE ON FUNCTION zk_lead FROM looker');
forget_log($one);
$s->send("SELECT zk_lead('/w/led')");
wait_for(sub { logged($one) =~ /still waiting/ }, 'a line of a candidate');
like(logged($one),
	qr{DETAIL:  Distributed lock "/w/led" is held by znode "[^"]*-latch-\d+", which says "the leader"\.},
	'the log says who leads');
$other->query("SELECT zk_resign('/w/led')");
$s->value;
$s->query("SELECT zk_resign('/w/led')");

# While ZooKeeper does not answer, the line comes all the same.
$other->query("SELECT zk_lock('/w/q')");
$test->enqueue($s, "SELECT zk_lock('/w/q')", '/w/q');
forget_log($one);
$pid = $s->pid;
$s->cancel;
$s->result;
$test->zk->pause;
$s->send("SELECT zk_lock('/w/z')");
wait_for(sub { logged($one) =~ m{process $pid still waiting for distributed lock "/w/z"} },
	'a line without ZooKeeper');
$test->zk->resume;
$s->value;
$test->wait_connected($one);
$test->wait_connected($two);

# A short wait is not logged.
$s->query("SELECT zk_unlock_all(); SET deadlock_timeout = '1min'");
forget_log($one);
$other->query("SELECT zk_unlock_all(); SELECT zk_lock('/w/q')");
$test->enqueue($s, "SELECT zk_lock('/w/q')", '/w/q');
$other->query("SELECT zk_unlock('/w/q')");
$s->value;
unlike(logged($one), qr/still waiting|acquired/, 'nothing of a short wait');

# A call for several locks waits twice for the first of them: until it is known to be
# held, and then for the lock.  That is one wait.
$s->query("SELECT zk_unlock_all(); SET deadlock_timeout = '200ms'");
$other->query("SELECT zk_lock('/w/q1')");
forget_log($one);
$pid = $s->pid;
$test->zk->pause;
$s->send("SELECT zk_multilock(ARRAY['/w/q1', '/w/q2'])");
wait_for(sub { logged($one) =~ m{process $pid still waiting for distributed lock "/w/q1"} },
	'a line without ZooKeeper');
$test->zk->resume;
$test->wait_queue('/w/q1', 2);
$late->query('SELECT pg_sleep(0.5)');
$other->query("SELECT zk_unlock('/w/q1')");
$s->value;
my @waits = logged($one) =~ m{process $pid (still waiting|acquired)[^\n]*"/w/q1"}g;
is("@waits", 'still waiting acquired', 'it is logged once, and so is the grant');
$s->query('SELECT zk_unlock_all()');

# Nor does a line fail the wait if there is no memory for the answer.
my $segments = $one->data_dir . '/pg_dynshmem';
$other->query("SELECT zk_lock('/w/q')");
forget_log($one);
chmod 0500, $segments;
$test->enqueue($s, "SELECT zk_lock('/w/q')", '/w/q');
wait_for(sub { logged($one) =~ m{process $pid still waiting for distributed lock "/w/q"} },
	'a line without an answer');
chmod 0700, $segments;
$other->query("SELECT zk_unlock('/w/q')");
is($s->sqlstate, '', 'the session gets the lock');
unlike(logged($one), qr/leak/, 'and leaves nothing behind');
$s->query('SELECT zk_unlock_all()');

$_->close foreach $s, $reader, $writer, $late, $other, $other_reader;

# While the worker is stopped, a session can ask it twice; later lines come without an
# answer.
my $worker = $test->status($one, 'worker_pid');
my $asks = $test->session($one);
$asks->query("SET log_lock_waits = on; SET deadlock_timeout = '100ms'; SET lock_timeout = '1500ms'");
forget_log($one);
kill 'STOP', $worker;
is($asks->error("SELECT zk_lock('/w/stopped')"), '08006', 'without the worker, a wait ends')
  foreach 1 .. 3;
kill 'CONT', $worker;
my @lines = logged($one) =~ /still waiting for distributed lock "\/w\/stopped"/g;
is(scalar @lines, 3, 'each of them has its line in the log');

$test->finish;
