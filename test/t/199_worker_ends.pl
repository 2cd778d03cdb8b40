# A worker ends alone, by a signal or by an error of its own, while somebody relies on its
# locks: sessions, one that commits, a reservation, a time that was told.  All of them are
# lost, and nobody else gets them before the old ZooKeeper session is over.  Who waits
# goes on to wait.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '4s', max_requests => 5000, init => { allows_streaming => 1 },
	conf => "zklock.max_requests_per_session = 5000\nzklock.max_requests_per_role = 5000\n"
	  . "synchronous_standby_names = 'nobody'\nsynchronous_commit = local\n");
my ($one, $two) = $test->nodes;
my $filler = $test->session($one);
$one->safe_psql('postgres', 'CREATE ROLE client LOGIN; CREATE TABLE work (what text)');
$one->safe_psql('postgres', 'GRANT INSERT, SELECT ON work TO client;'
	  . ' GRANT EXECUTE ON FUNCTION zk_lock, zk_xact_lock, zk_reserve TO client');

# Out of memory, in the middle of what it does for a session that takes many locks
sub fails
{
	my ($worker) = @_;
	my ($kb) = slurp_file("/proc/$worker/status") =~ /^VmSize:\s+(\d+) kB/m;

	system_or_bail('prlimit', "--pid=$worker", '--as=' . ($kb + 256) * 1024);
	$filler->send("SELECT count(zk_lock('/fill/' || i)) FROM generate_series(1, 4000) i");
	$test->wait_gone($worker);
	is($filler->sqlstate, '40001', 'who was about to hold all of that lost it');
	wait_for(sub { $filler->send('SELECT zk_unlock_all()')->sqlstate eq '' },
		'it has been told of each');
	return;
}

sub is_ended
{
	my ($worker) = @_;

	kill 'TERM', $worker;
	$test->wait_gone($worker);
	return;
}

my %rivals;

sub rival
{
	my ($path) = @_;

	$rivals{$path} = $test->session($two);
	$test->enqueue($rivals{$path}, "SELECT zk_lock('$path')", $path);
	return;
}

# The rival has the lock, and not before a time of this test's clock.
sub gets
{
	my ($path, $until, $case) = @_;

	cmp_ok($rivals{$path}->value, '>', 0, "$case: another server has the lock");
	cmp_ok(clock_gettime(CLOCK_MONOTONIC), '>=', $until,
		"$case: but not before the time that was told");
	$rivals{$path}->close;
	return;
}

foreach my $way ([ 'a signal', \&is_ended ], [ 'an error', \&fails ])
{
	my ($how, $end) = @$way;
	my %s = map { $_ => $test->session($one, user => 'client') }
	  qw(told commits works reserves waits);
	my $dir = "/e$how" =~ s/ //gr;
	my $id = $test->status($one, 'session_id');
	my $lost = $test->status($one, 'sessions_lost');
	my $worker = $test->status($one, 'worker_pid');
	my $log = -s $one->logfile;
	my $holder = $test->session($two);

	$holder->query("SELECT zk_lock('$dir/waits')");
	$test->enqueue($s{waits}, "SELECT zk_lock('$dir/waits')", "$dir/waits");
	$s{works}->query("BEGIN; SELECT zk_xact_lock('$dir/works'); INSERT INTO work VALUES ('$how lost')");
	$s{commits}->query("SET synchronous_commit = on; SELECT zk_lock('$dir/commits')");
	$s{commits}->send("INSERT INTO work VALUES ('$how done')");
	$test->look_until($one, 'SELECT wait_event FROM pg_stat_activity WHERE pid = ' . $s{commits}->pid,
		'SyncRep', "$how: a commit waits for a standby");
	my $token = $s{reserves}->query("SELECT zk_reserve('$dir/reserves', '10 min')");
	$s{told}->query("SELECT zk_lock('$dir/told')");
	rival("$dir/$_") foreach qw(told commits works reserves);
	my $asked = clock_gettime(CLOCK_MONOTONIC);
	my $held = $asked + $s{told}->query("SELECT extract(epoch FROM zk_assert_lock('$dir/told'))");
	my $reserved = $asked
	  + $s{reserves}->query("SELECT extract(epoch FROM zk_assert_lock('$dir/reserves', $token))");

	$end->($worker);
	$test->look_until($one, "SELECT worker_pid <> $worker FROM zk_status", 't', 'the next worker');
	is($s{works}->error('COMMIT'), '40001', "$how: a transaction cannot commit any more");
	is($s{told}->query("SELECT zk_unlock('$dir/told')"), 'f', "$how: there is nothing to release");
	$s{told}->close;
	ok($s{commits}->busy, "$how: a commit behind its check goes on");
	$rivals{"$dir/works"}->value;
	my $granted = $test->look($two, "SELECT granted_at FROM zk_locks WHERE path = '$dir/works'");
	gets("$dir/told", $held, "$how: a time that was told");
	gets("$dir/reserves", $reserved, "$how: a reservation");
	gets("$dir/commits", $held, "$how: commits");
	cmp_ok(clock_gettime(CLOCK_MONOTONIC), '>=', $held, "$how: works");
	$rivals{"$dir/works"}->close;
	$test->wait_connected($one);
	is($test->status($one, "connected_since > '$granted'"),
		't', "$how: the next session begins when the old one is over");
	isnt($test->status($one, 'session_id'), $id, "$how: there is a new session");
	is($test->status($one, 'sessions_lost'), $lost + 1, "$how: the old one is counted as lost");
	is($s{reserves}->error("SELECT zk_assert_lock('$dir/reserves', $token)"),
		'40001', "$how: the reservation is lost");
	$s{commits}->cancel;
	is($s{commits}->sqlstate, '', "$how: what was committed is");
	like($s{commits}->messages, qr{"$dir/commits" was lost}, "$how: and its client learns of the loss");
	is($one->safe_psql('postgres', "SELECT string_agg(what, ',') FROM work WHERE what ~ '$how'"),
		"$how done", "$how: and nothing else");
	like(slurp_file($one->logfile, $log), qr/the session 0x\S+ of a worker that has ended is left to expire/,
		"$how: the log tells it");
	ok($test->still_waits($s{waits}), "$how: who waited does so");
	$holder->query("SELECT zk_unlock('$dir/waits')");
	cmp_ok($s{waits}->value, '>', 0, "$how: and gets the lock");
	$s{waits}->query('SELECT zk_unlock_all()');
	$_->close foreach $holder, @s{qw(works commits reserves waits)};
}

# If nobody relies on it, the session is closed, and the next one begins at once.
my $hex = $test->session_hex($one);
my $client = $test->zk->client;
$test->restart_worker($one);
ok(wait_for(
		sub { !grep { /$hex/ } $client->ls('/zklock/.servers') },
		'the session is closed'),
	'without locks: the old session is closed');
unlike(slurp_file($test->zk->logfile), qr/Expiring session 0x$hex/, 'and does not expire');

# Workers that end one behind the other have a session ever later: in the end, later than
# the old one is over.
my $holder = $test->session($one);
my $longest = 0;
$holder->query("SELECT zk_lock('/again')");
foreach my $end (1 .. 9)
{
	my $worker = $test->status($one, 'worker_pid');

	is_ended($worker);
	$test->look_until($one, "SELECT worker_pid <> $worker FROM zk_status", 't', "another worker, $end");
	($longest) = $test->status($one, 'last_error') =~ /the next session begins in (\d+) ms/;
	last if $longest > 6000;
}
cmp_ok($longest, '>', 6000, 'after workers that ended soon, the next session waits');
$test->wait_connected($one);
is($holder->query('SELECT zk_unlock_all()'), '', 'the loss is acknowledged');
is($holder->query("SELECT zk_try_lock('/again', '1 min'), zk_unlock('/again')"), 't|t', 'and it locks again');
$holder->close;

$filler->close;
$test->finish(crashes => 'out of memory');
