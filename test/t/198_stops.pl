# A server ends while somebody relies on a reservation or on a time that a session was
# told: it is stopped, restarted or promoted, distributed locks are switched off, or its
# session timeout changes.  Nobody else gets the lock before that time, the stop takes no
# longer for it, and the next start waits for nothing.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '6s', init => { allows_streaming => 1 },
	conf => "restart_after_crash = on\n");
my ($one, $two) = $test->nodes;
my $rival = $test->session($two);
$one->safe_psql('postgres', 'CREATE ROLE client LOGIN');
$one->safe_psql('postgres',
	'GRANT EXECUTE ON FUNCTION zk_lock, zk_reserve, zk_try_lock, zk_enqueue, zk_claim_next TO client');

# A program that holds a reservation, maybe by a ticket, and does not speak to the server
# again.  By this test's clock: until when it is sure.
sub reserve
{
	my ($node, $name, $by_ticket) = @_;
	my $s = $test->session($node, user => 'client');
	my $token;

	if ($by_ticket)
	{
		$s->query("SELECT zk_enqueue('$name', '10 min')");
		$token = $s->query("SELECT token FROM zk_claim_next(paths => ARRAY['$name'])");
	}
	else
	{
		$token = $s->query("SELECT zk_reserve('$name', '10 min')");
	}
	my $asked = clock_gettime(CLOCK_MONOTONIC);
	my $left = $s->query("SELECT extract(epoch FROM zk_assert_lock('$name', $token))");

	$s->close;
	return $asked + $left;
}

# The same, of a session that does not end before its server
sub hold
{
	my ($node, $name) = @_;
	my $s = $test->session($node, user => 'client');

	$s->query("SELECT zk_lock('$name')");
	my $asked = clock_gettime(CLOCK_MONOTONIC);
	return ($asked + $s->query("SELECT extract(epoch FROM zk_assert_lock('$name'))"), $s);
}

sub not_before
{
	my ($until, $case) = @_;
	my $answer = $rival->result;
	my $now = clock_gettime(CLOCK_MONOTONIC);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($answer->{error}{message}, undef, "$case: the next one has the lock");
	cmp_ok($now, '>=', $until, "$case: but not before the time that was told");
	$rival->query('SELECT zk_unlock_all()');
	return;
}

sub expired
{
	my ($hex) = @_;

	return slurp_file($test->zk->logfile) =~ /Expiring session 0x$hex/;
}

# The server ends as "stop" does it, and begins again as "start" does.
sub ends
{
	my ($case, $stop, $start) = @_;
	my $planned = $case !~ /immediate|crash/;
	my $until = reserve($one, '/s/reserved');
	my $claimed_until = reserve($one, '/s/claimed', 1);
	my ($held_until, $holder) = hold($one, '/s/held');
	my $hex = $test->session_hex($one);
	my $log = -s $one->logfile;

	# What nobody was promised is no reason to wait.
	my $kept = $test->session($one);
	$kept->query("SELECT zk_lock('/s/kept', at_least => '10 min'), zk_unlock('/s/kept')");
	$kept->query("SELECT zk_enqueue('/s/unclaimed', '10 min')");
	$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/s/unclaimed'",
		'unclaimed', "$case: a ticket is granted");
	$kept->close;
	$test->enqueue($rival, "SELECT zk_lock('/s/reserved')", '/s/reserved');
	$test->stop_looking($one);
	$stop->($holder);
	if ($start)
	{
		is(scalar(map { $test->queue("/s/$_") } qw(kept unclaimed)), 0, "$case: what nobody relies on is gone")
		  if $planned;
		is(scalar($test->queue("/s/$_")), 1, "$case: what somebody relies on is not: $_") foreach qw(held claimed);
		$start->();
		$test->wait_connected($one);
		my $early = $test->session($one);
		is($early->query("SELECT zk_try_lock('/s/other', '1 min')"), 't', "$case: the next start has a lease");
		unlike(substr(slurp_file($one->logfile), $log), qr/has the same system identifier/,
			"$case: and waits for no clone")
		  if $planned;
		$early->close;
	}
	not_before($until, $case);
	$rival->query("SELECT zk_lock('/s/held'), zk_lock('/s/claimed')") if $start;
	my $now = clock_gettime(CLOCK_MONOTONIC);
	cmp_ok($now, '>=', $held_until, "$case: nor the lock of a session") if $start;
	cmp_ok($now, '>=', $claimed_until, "$case: nor that of a ticket") if $start;
	$rival->query('SELECT zk_unlock_all()');
	ok(expired($hex), "$case: the session was left to expire") if $start;
	$holder->abandon;
	return;
}

ends('fast', sub { $one->stop('fast') }, sub { $one->start });
ends('immediate', sub { $one->stop('immediate') }, sub { $one->start });
ends('restart', sub { $one->restart }, sub { });

# One of its sessions crashes, for which PostgreSQL starts all of its processes anew.
ends(
	'crash',
	sub {
		my ($holder) = @_;
		my $worker = $test->status($one, 'worker_pid');

		$test->stop_looking($one);
		kill 'KILL', $holder->pid;
		$test->wait_gone($worker);
	},
	sub {
		wait_for(sub { eval { $test->status($one, 'state') eq 'connected' } }, 'the crashed server is back');
	});

# ---- smart: no session is left by then, but a reservation is

my $until = reserve($one, '/s/reserved');
my $hex = $test->session_hex($one);
$test->enqueue($rival, "SELECT zk_lock('/s/reserved')", '/s/reserved');
$test->stop_looking($one);
$one->stop('smart');
is(scalar($test->queue('/s/reserved')), 2, 'smart: the reservation stays');
not_before($until, 'smart');
ok(expired($hex), 'smart: until the session has expired');
$one->start;
$test->wait_connected($one);

# ---- nothing is promised: the session is closed, and nobody waits for its end

my $s = $test->session($one);
$s->query("SELECT zk_lock('/s/unpromised')");
$hex = $test->session_hex($one);
$test->enqueue($rival, "SELECT zk_lock('/s/unpromised')", '/s/unpromised');
$test->stop_looking($one);
$one->stop('fast');
is($rival->result->{error}, undef, 'nothing is promised: the next one has the lock');
ok(!expired($hex), 'nothing is promised: the session was closed');
$rival->query('SELECT zk_unlock_all()');
$one->start;
$test->wait_connected($one);

# ---- ZooKeeper is away: the stop waits for nothing

$until = reserve($one, '/s/reserved');
$test->enqueue($rival, "SELECT zk_lock('/s/reserved')", '/s/reserved');
$test->stop_looking($one);
$test->zk->pause;
$one->stop('fast');
$test->zk->resume;
not_before($until, 'ZooKeeper is away');
$one->start;
$test->wait_connected($one);

# ---- distributed locks are switched off, and on again

$until = reserve($one, '/s/reserved');
$test->enqueue($rival, "SELECT zk_lock('/s/reserved')", '/s/reserved');
$test->set($one, enabled => 'off');
$test->look_until($one, 'SELECT state FROM zk_status', 'closing', 'off: it goes on for the reservation');
ok($test->still_waits($rival), 'off: which keeps the next one out');
my $token = $test->look($one, "SELECT fencing_token FROM zk_locks WHERE lifetime = 'reservation' AND state <> 'lost'");
is($test->look($one, "SELECT zk_cancel_reservation('/s/reserved', $token)"), 't', 'off: it is cancelled');
not_before($until, 'off');
$test->look_until($one, 'SELECT state FROM zk_status', 'disabled', 'off: then the session is closed');
$test->set($one, enabled => 'on');
$test->wait_connected($one);

# ---- another session timeout

$until = reserve($one, '/s/reserved');
$hex = $test->session_hex($one);
$test->set($one, session_timeout => '5s');
$test->enqueue($rival, "SELECT zk_lock('/s/reserved')", '/s/reserved');
is($test->session_hex($one), $hex, 'another timeout: the session stays for the reservation');
$token = $test->look($one, "SELECT fencing_token FROM zk_locks WHERE lifetime = 'reservation' AND state <> 'lost'");
is($test->look($one, "SELECT zk_cancel_reservation('/s/reserved', $token)"), 't', 'another timeout: it is cancelled');
not_before($until, 'another timeout');
$test->look_until($one, "SELECT session_timeout FROM zk_status", '00:00:05',
	'another timeout: then there is a new session');

# ---- a standby with a reservation is promoted: nothing of it ends

my $standby = $test->add_standby($one, "zklock.server_name = 'standby'\n");
$until = reserve($standby, '/s/promoted');
$test->enqueue($rival, "SELECT zk_lock('/s/promoted')", '/s/promoted');
$standby->promote;
$token = $test->look($standby, "SELECT fencing_token FROM zk_locks WHERE lifetime = 'reservation' AND state <> 'lost'");
is($test->look($standby, "SELECT zk_renew_reservation('/s/promoted', $token, '10 min')"), 't', 'promoted: it goes on');
is($test->look($standby, "SELECT zk_cancel_reservation('/s/promoted', $token)"), 't', 'promoted: it is cancelled');
not_before($until, 'promoted');
$test->stop_looking($standby);
$standby->stop('fast');
pop @{ $test->{nodes} };

$test->finish(crashes => '(server process|client backend) .* was terminated by signal 9'
	  . '|all server processes terminated');
