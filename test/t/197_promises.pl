# What zk_assert_lock() tells is a promise: until then nobody else gets the lock, by
# whatever hand its holder ends.  The client is told a time, its connection, process or
# server ends, and another server gets the lock, but not before.  Only the client's own
# hand ends a promise.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '6s');
my ($one, $two) = $test->nodes;
my $rival = $test->session($two);
my $super = $test->session($one);
$one->safe_psql('postgres', 'CREATE ROLE client LOGIN');
$one->safe_psql('postgres',
	'GRANT EXECUTE ON FUNCTION zk_lock, zk_lock_shared, zk_xact_lock, zk_lead, zk_acquire_permits,'
	  . ' zk_reserve, zk_break_lock, zk_enqueue, zk_claim_next TO client');

# By this test's clock: the time that a session is told, counted from before it asks.
sub promised
{
	my ($session, $name, $token) = @_;
	my $asked = clock_gettime(CLOCK_MONOTONIC);
	my $arguments = "'$name'" . (defined $token ? ", $token" : '');

	return $asked + $session->query("SELECT extract(epoch FROM zk_assert_lock($arguments))");
}

# The session gets the lock that it waits for, and not before that time.
sub not_before
{
	my ($session, $until, $case) = @_;
	my $answer = $session->result;
	my $now = clock_gettime(CLOCK_MONOTONIC);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($answer->{error}{message}, undef, "$case: the next one has the lock");
	return cmp_ok($now, '>=', $until, "$case: but not before the time that was told");
}

sub client { return $test->session($one, user => 'client', @_); }

sub nothing_is_kept
{
	my ($case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$test->look($one,
			"SELECT count(*) FROM zk_locks WHERE state = 'kept' OR promised_until IS NOT NULL"),
		0, "$case: nothing is kept");
}

# ---- what a session can hold, when it is terminated

my %holds = (
	'a lock' => [ "SELECT zk_lock('/p')", "SELECT zk_lock('/p')" ],
	'a shared lock' => [ "SELECT zk_lock_shared('/p')", "SELECT zk_lock('/p')" ],
	'a lock twice' =>
	  [ "SELECT zk_lock_shared('/p'), zk_lock('/p')", "SELECT zk_lock_shared('/p')" ],
	'a transaction\'s lock' => [ "BEGIN; SELECT zk_xact_lock('/p')", "SELECT zk_lock('/p')" ],
	'a savepoint\'s lock' =>
	  [ "BEGIN; SAVEPOINT s; SELECT zk_xact_lock('/p')", "SELECT zk_lock('/p')" ],
	'a leadership' => [ "SELECT zk_lead('/p')", "SELECT zk_lead('/p')" ],
	'a permit' => [
		"SELECT zk_acquire_permits('/p', max_permits => 1)",
		"SELECT zk_acquire_permits('/p', max_permits => 1)"
	]);
my $release = "SELECT zk_unlock_all()";
foreach my $case (sort keys %holds)
{
	my ($take, $want) = @{ $holds{$case} };
	my $s = client();

	$s->query($take);
	my $until = promised($s, '/p');
	is($super->query("SELECT promised_until > now() FROM zk_locks WHERE promised_until IS NOT NULL LIMIT 1"),
		't', "$case: zk_locks tells until when");
	$rival->send($want);
	$test->look_until($two, "SELECT count(*) FROM zk_locks WHERE state = 'waiting'", 1,
		"$case: the rival waits");
	kill 'TERM', $s->pid;
	not_before($rival, $until, $case);
	$rival->query($release);
	$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, "$case: nothing is left");
}

# ---- shared: a reader need not wait

my $s = client();
$s->query("SELECT zk_lock_shared('/p/shared')");
my $until = promised($s, '/p/shared');
kill 'TERM', $s->pid;
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE state = 'kept'", 1, 'it is kept');
is($rival->query("SELECT zk_try_lock_shared('/p/shared')"), 't', 'readers need not wait');
$rival->query($release);

# ---- other ends that nobody asked for

my %ends = (
	'a lost connection' => sub { $_[0]->abandon; },
	'idle_session_timeout' => sub { $_[0]->query("SET idle_session_timeout = '10ms'"); },
	'idle_in_transaction_session_timeout' =>
	  sub { $_[0]->query("SET idle_in_transaction_session_timeout = '10ms'; BEGIN"); },
	'on_release_request' => sub {
		$_[0]->query("SET zklock.on_release_request = 'terminate'");
	});
foreach my $case (sort keys %ends)
{
	$s = client();
	$s->query("SET zklock.on_release_request = 'terminate'") if $case eq 'on_release_request';
	$s->query("SELECT zk_lock('/p/end')");
	$until = promised($s, '/p/end');
	$test->enqueue($rival, "SELECT zk_lock('/p/end')", '/p/end');
	if ($case eq 'on_release_request')
	{
		$super->query("SELECT zk_request_release('/p/end')");
	}
	else
	{
		$ends{$case}->($s);
	}
	not_before($rival, $until, $case);
	$rival->query($release);
}

# COPY takes the loss of its client for an error of its own.
$s = client();
$super->query('CREATE TABLE loaded (i int); GRANT INSERT ON loaded TO client');
$s->query("BEGIN; SELECT zk_xact_lock('/p/copy')");
$until = promised($s, '/p/copy');
$test->enqueue($rival, "SELECT zk_lock('/p/copy')", '/p/copy');
$s->send('COPY loaded FROM STDIN');
$test->look_until($one, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'COPY%' AND wait_event = 'ClientRead'",
	1, 'COPY waits for its client');
$s->abandon;
not_before($rival, $until, 'a lost connection in COPY');
$rival->query($release);

# A pooler whose client has gone says good-bye in the middle of a transaction.
$s = client();
$s->query("BEGIN; SELECT zk_xact_lock('/p/pooler')");
$until = promised($s, '/p/pooler');
$test->enqueue($rival, "SELECT zk_lock('/p/pooler')", '/p/pooler');
$s->close;
not_before($rival, $until, 'a good-bye within a transaction');
$rival->query($release);

# ---- a session of the same server waits, too, and is told why

$s = client();
$s->query("SELECT zk_lock('/p/own')");
$until = promised($s, '/p/own');
my $waiter = $test->session($one);
$test->enqueue($waiter, "SELECT zk_lock('/p/own')", '/p/own');
kill 'TERM', $s->pid;
$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE state = 'kept'", 1, 'it is kept');
is($super->error("SELECT zk_lock('/p/own', '200 ms')"), '55P03', 'a session of that server');
like(
	$super->messages,
	qr{held by server "server1" until .*, because its holder, process @{[ $s->pid ]} .*was promised that and has lost its connection},
	'is told for how long, and why');
not_before($waiter, $until, 'a session of the same server');
$waiter->query($release);

# ---- by the client's own hand it ends at once

my %own = (
	'good-bye' => sub { $_[0]->close; },
	'unlock' => sub { $_[0]->query("SELECT zk_unlock('/p/hand')"); },
	'discard' => sub { $_[0]->query('DISCARD ALL'); });
foreach my $case (sort keys %own)
{
	$s = client();
	$s->query("SELECT zk_lock('/p/hand')");
	promised($s, '/p/hand');
	my $pid = $s->pid;
	$own{$case}->($s);
	$test->wait_gone($pid) if $case eq 'good-bye';
	nothing_is_kept($case);
	is($rival->query("SELECT zk_try_lock('/p/hand', '1 min')"), 't', "$case: the next one has it");
	$rival->query($release);
	$s->close if $case ne 'good-bye';
}
$s = client();
$s->query("BEGIN; SELECT zk_xact_lock('/p/hand')");
promised($s, '/p/hand');
is($s->error('SELECT 1/0'), '22012', 'an error');
$s->query('ROLLBACK');
nothing_is_kept('an error');

# ---- not longer than at_most

$s->query("SELECT zk_lock('/p/most', at_most => '1 s')");
$until = promised($s, '/p/most');
$test->enqueue($rival, "SELECT zk_lock('/p/most')", '/p/most');
not_before($rival, $until, 'at_most');
$rival->query($release);
is($s->error("SELECT zk_assert_lock('/p/most')"), '40001', 'then nothing more is promised');
$s->query($release);

# ---- an operator breaks the lock, and the holder is terminated

$s->query("SELECT zk_lock('/p/broken')");
$until = promised($s, '/p/broken');
$test->enqueue($rival, "SELECT zk_lock('/p/broken')", '/p/broken');
$super->send("SELECT zk_break_lock('/p/broken')");
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/p/broken'", 'lost', 'it is broken');
kill 'TERM', $s->pid;
not_before($rival, $until, 'broken');
is($super->result->{error}, undef, 'broken: and that is done');
$rival->query($release);

# ---- a drain: a leader leads for as long as it was told

$s = client();
$s->query("SELECT zk_lead('/p/drain')");
$until = promised($s, '/p/drain');
$rival->send("SELECT zk_lead('/p/drain')");
$test->look_until($two, "SELECT count(*) FROM zk_locks WHERE state = 'waiting'", 1, 'the rival waits');
$super->send("SELECT count(*) FROM zk_drain('1 min')");
not_before($rival, $until, 'drain');
is($super->result->{error}, undef, 'drain: it ends');
$super->query('SELECT zk_undrain()');
$rival->query($release);
$s->close;

# ---- reservations: by whose hand they end

# Its token, of one that was made at once, or is a ticket that was claimed
sub reserve
{
	my ($session, $kind) = @_;

	return $session->query("SELECT zk_reserve('/p/reserved', '10 min')") if $kind eq 'reservation';
	$session->query("SELECT zk_enqueue('/p/reserved', '10 min')");
	return $session->query('SELECT token FROM zk_claim_next()');
}

$s = client();
foreach my $kind (qw(reservation ticket))
{
	my $token = reserve($s, $kind);
	$until = promised($s, '/p/reserved', $token);
	$test->enqueue($rival, "SELECT zk_lock('/p/reserved')", '/p/reserved');
	is($super->query("SELECT zk_cancel_reservation('/p/reserved', $token)"), 't', 'a superuser cancels it');
	is($s->error("SELECT zk_assert_lock('/p/reserved', $token)"), '40001', 'then it is not sure');
	like($s->messages, qr/A superuser cancelled the reservation/, 'which says why');
	is($s->query("SELECT zk_renew_reservation('/p/reserved', $token, '10 min')"), 'f', 'nor is it renewed');
	not_before($rival, $until, "a superuser: $kind");
	$rival->query($release);

	$token = reserve($s, $kind);
	$until = promised($s, '/p/reserved', $token);
	$test->enqueue($rival, "SELECT zk_lock('/p/reserved')", '/p/reserved');
	is($super->query("SELECT zk_renew_reservation('/p/reserved', $token, '1 ms')"), 't', 'a superuser shortens it');
	not_before($rival, $until, "a superuser who shortens it: $kind");
	$rival->query($release);

	$token = reserve($s, $kind);
	promised($s, '/p/reserved', $token);
	is($s->query("SELECT zk_cancel_reservation('/p/reserved', $token)"), 't', 'its role cancels it');
	nothing_is_kept("its role: $kind");

	# An operator breaks it: the token is of no use from then on, and the lock stays for the time.
	$token = reserve($s, $kind);
	$until = promised($s, '/p/reserved', $token);
	$test->enqueue($rival, "SELECT zk_lock('/p/reserved')", '/p/reserved');
	$super->send("SELECT zk_break_lock('/p/reserved')");
	not_before($rival, $until, "a broken reservation: $kind");
	is($s->query("SELECT zk_renew_reservation('/p/reserved', $token, '10 min')"), 'f', 'broken: not renewed');
	like($s->messages,
		qr{^WARNING\n40001\nthe reservation of distributed lock "/p/reserved" was lost\nAn operator broke it},
		'broken: which says why');
	$super->result;
	$rival->query($release);
}
$s->close;

$test->finish;
