# Tickets: requests that wait without a session.  Each is granted in its place in the
# queue, claimed once, as a reservation, by its role only; nobody's claim gives it back.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $admin = $test->session($one);
my $other = $test->session($two);

$one->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE stranger LOGIN');
$one->safe_psql('postgres',
	'GRANT EXECUTE ON FUNCTION zk_enqueue, zk_enqueue_all, zk_try_lock, zk_lock, zk_reserve TO app');
my $app = $test->session($one, user => 'app');
my $stranger = $test->session($one, user => 'stranger');

sub state_of { return $app->query("SELECT state FROM zk_tickets WHERE ticket = $_[0]"); }

# ---- a free lock

my $maker = $test->session($one, user => 'app');
$maker->query('BEGIN');
my $ticket = $maker->query("SELECT zk_enqueue('/t', '10 min')");
cmp_ok($ticket, '>', 1 << 32, 'a ticket');
$maker->query('ROLLBACK');
$maker->close;
$test->look_until($one, 'SELECT lifetime, state, pid, usename FROM zk_locks',
	'ticket|unclaimed||app', 'it is granted, and outlives its session and transaction');
is($other->query("SELECT zk_try_lock('/t')"), 'f', 'nobody else gets the lock');
is($other->query("SELECT granted, pid, usename FROM zk_queue('/t')"), 't||app', 'others see whose it is');
is(state_of($ticket), 'granted', 'zk_tickets shows that it is to be claimed');
is($app->query('SELECT claim_until BETWEEN now() AND now() + \'31 s\', token IS NULL FROM zk_tickets'),
	't|t', 'and until when');
is($stranger->query('SELECT count(*) FROM zk_tickets'), 0, 'to its role only');
is($stranger->error("SELECT zk_claim_ticket($ticket)"), '42501', 'another role cannot claim it');
is($stranger->error("SELECT zk_withdraw($ticket)"), '42501', 'nor withdraw it');
my $token = $app->query("SELECT zk_claim_ticket($ticket)");
cmp_ok($token, '>', 0, 'it is claimed');
is(state_of($ticket), 'claimed', 'which shows');
is($test->look($one, "SELECT lifetime, state, fencing_token = $token, held_until > now() + '9 min' FROM zk_locks"),
	'reservation|granted|t|t', 'it is a reservation');
is($app->query("SELECT zk_assert_lock('/t', $token) > '0'"), 't', 'which is sure');
is($app->query("SELECT zk_renew_reservation('/t', $token, '5 min')"), 't', 'and can be renewed');
is($app->error("SELECT zk_claim_ticket($ticket)"), '55000', 'it is claimed once');
like($app->messages, qr/already claimed\nYou reserved it with token $token, until /,
	'but an answer that was lost can be found');
is($app->query("SELECT zk_withdraw($ticket)"), 'f', 'it cannot be withdrawn any more');

# ---- the queue

$test->enqueue($other, "SELECT zk_lock('/t')", '/t');
my ($second, $third) = map { $app->query("SELECT zk_enqueue('/t', '10 min')") } 1 .. 2;
is(state_of($second), 'waiting', 'a second one of the same role waits');
is($app->query("SELECT zk_claim_ticket($second) IS NULL"), 't', 'and cannot be claimed so far');
$test->wait_queue('/t', 4);
is($test->look($one, "SELECT DISTINCT waiting_pid IS NULL FROM zk_lock_waits WHERE path = '/t'"),
	't', 'no session waits for it');
my $behind = $test->session($two);
my $blocker = "SELECT blocking_server, blocking_pid, blocking_usename, blocking_granted FROM zk_lock_waits"
  . " WHERE path = '/t'";
is($test->look($two, $blocker), 'server1||app|t', 'nor has a session what others wait for');
is($test->look($one, "$blocker AND blocking_granted LIMIT 1"), 'server1||app|t', 'on its own server neither');
$test->enqueue($behind, "SELECT zk_lock('/t')", '/t');
is($test->look($two, "$blocker AND waiting_pid = " . $behind->pid . ' AND NOT blocking_granted'), 'server1||app|f',
	'nor the ticket that is next to a session');
$behind->cancel;
is($behind->sqlstate, '57014', 'which gives up');
$test->wait_queue('/t', 4);
$admin->query("SELECT zk_lock('/q')");
my $queued = $app->query("SELECT zk_enqueue('/q', '10 min')");
$test->wait_queue('/q', 2);
$behind->query("SET lock_timeout = '500ms'");
is($behind->error("SELECT zk_lock('/q')"), '55P03', 'or is out of time');
like($behind->messages, qr/The nearest request ahead is that of a ticket of server "server1" \(user "app"/,
	'and hears of a ticket');
$behind->close;
is($app->query("SELECT zk_withdraw($queued)"), 't', 'a ticket that waits is withdrawn');
$admin->query("SELECT zk_unlock('/q')");
$app->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
like($test->look($one, "SELECT detail FROM zk_healthcheck() WHERE check_name = 'waits'"),
	qr/hold back VACUUM: 0,/, 'nor holds it back VACUUM, as does the session that made it');
$app->query('COMMIT');
is($app->query("SELECT zk_cancel_reservation('/t', $token)"), 't', 'the first one ends');
cmp_ok($other->value, '>', $token, 'the session that came next has the lock');
is(state_of($second), 'waiting', 'the ticket behind it still waits');
my $consumer = $test->session($one, user => 'app');
$consumer->send('SELECT * FROM zk_claim_next()');
$other->query("SELECT zk_unlock('/t')");
like($consumer->value, qr/^$second\|\/t\|\d+$/, 'then it is claimed by whoever waits for any');
is($app->error("SELECT zk_claim_ticket($ticket)"), '55000', 'the first ticket is over');
like($app->messages, qr/there is no ticket $ticket on this server\nIt has ended/, 'which is told');
is($app->query("SELECT zk_withdraw($third)"), 't', 'the last one is withdrawn');
is($app->query("SELECT zk_withdraw($third)"), 'f', 'once');
is($app->messages, '', 'without a warning');
is($app->error("SELECT zk_claim_ticket($third)"), '55000', 'and cannot be claimed');
$app->query("SELECT zk_cancel_reservation('/t', token) FROM zk_tickets");
ok($test->wait_queue('/t', 0), 'nothing is left of them');

# ---- nobody claims it

$ticket = $app->query("SELECT zk_enqueue('/l', '10 min', '500 ms')");
$app->send("SELECT zk_lock('/l')");
cmp_ok($app->value, '>', 0, 'what nobody claims is given back');
is($app->error("SELECT zk_claim_ticket($ticket)"), '55000', 'and cannot be claimed');
like($app->messages, qr/ticket $ticket for distributed lock "\/l" is over\nNobody claimed it in time/, 'why');
ok(wait_for(
		sub { slurp_file($one->logfile) =~ qr/LOG:  ticket $ticket for distributed lock "\/l" has ended\n.*Nobody claimed it/ },
		'the log'), 'the log says so');
is($app->error("SELECT zk_claim_ticket($ticket)"), '55000', 'it is told once');
like($app->messages, qr/there is no ticket $ticket .*\nIt has ended: .* or not claimed in time, or its end was told before\./,
	'then it may have ended in any way');
$app->query("SELECT zk_unlock('/l')");

my $late = $app->query("SELECT zk_enqueue('/late', '10 min', '1 s')");
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/late'", 'unclaimed', 'another one is granted');
my $lapsed = $test->status($one, 'tickets_lapsed');
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
wait_for(sub { state_of($late) ne 'granted' }, 'its time is over');
is(state_of($late), 'lapsed', 'this shows although the worker is stopped');
is($app->error("SELECT zk_claim_ticket($late)"), '55000', 'it is told at once');
like($app->messages, qr/ticket $late for distributed lock "\/late" is over\nNobody claimed it in time/, 'with the reason');
kill 'CONT', $worker;
$test->look_until($one, 'SELECT tickets_lapsed FROM zk_stat_server', $lapsed + 1, 'the worker counts it');
is($app->error("SELECT zk_claim_ticket($late)"), '55000', 'it is told once');
like($app->messages, qr/there is no ticket/, 'also if the worker has seen it later');

# ---- any of several

is($consumer->query("SELECT ticket IS NULL AND path IS NULL AND token IS NULL FROM zk_claim_next('0')"),
	't', 'no ticket at once');
is($consumer->query("SELECT ticket IS NULL FROM zk_claim_next('50 ms')"), 't', 'nor in time');
my $several = $app->query(q{SELECT zk_enqueue_all(ARRAY['/m/a', '/m/b', '/m/c', '/m/b'], '10 min')});
my @several = $several =~ /\d+/g;
is(scalar @several, 4, 'a ticket for each');
is($consumer->query(q{SELECT path FROM zk_claim_next('1 min', ARRAY['/m/c', '/m/d'])}), '/m/c', 'one of some locks');
is($consumer->query(q{SELECT path FROM zk_claim_next('1 min', ARRAY['/m/b'])}), '/m/b', 'or of one');
is($consumer->query(q{SELECT ticket IS NULL FROM zk_claim_next('0', ARRAY['/m/b'])}), 't',
	'of which the second ticket waits');
like($consumer->query('CALL zk_await_ticket()'), qr/^$several[0]\|\/m\/a\|\d+$/, 'by CALL');
is(state_of($several[3]), 'waiting', 'the last one');
$consumer->send('SELECT ticket FROM zk_claim_next()');
$app->query("SELECT zk_cancel_reservation('/m/b', token) FROM zk_tickets WHERE path = '/m/b' AND token IS NOT NULL");
is($consumer->value, $several[3], 'is claimed behind the first one of that lock');
$stranger->send('SELECT ticket FROM zk_claim_next()');
$test->look_until($one, q{SELECT count(*) FROM pg_stat_activity WHERE usename = 'stranger' AND wait_event_type = 'Extension'}, 1,
	'another role waits');
$ticket = $app->query("SELECT zk_enqueue('/n', '10 min')");
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/n'", 'unclaimed', 'a ticket is granted');
ok($test->still_waits($stranger), 'which is not the waiting role\'s');
$stranger->cancel;
is($stranger->sqlstate, '57014', 'the wait can be cancelled');
is($app->query('SELECT zk_withdraw(NULL)'), 't', 'all are withdrawn');
is($app->query('SELECT zk_withdraw(NULL)'), 'f', 'once');
$app->query('SELECT zk_cancel_reservation(path, token) FROM zk_tickets');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'nothing is left');
is($test->look($one, 'SELECT tickets_enqueued, tickets_claimed, tickets_lapsed FROM zk_stat_server'),
	'11|6|2', 'all are counted');

# ---- a wait that keeps its snapshot

$one->safe_psql('postgres', "ALTER ROLE app SET deadlock_timeout = '100ms'");
my $keeps = $test->session($one, user => 'app');
is($keeps->query("CALL zk_await_ticket('500 ms')"), '||', 'a CALL');
is($keeps->messages, '', 'holds back no VACUUM');
$keeps->query('BEGIN ISOLATION LEVEL REPEATABLE READ');
$keeps->send("CALL zk_await_ticket('10 min')");
ok(wait_for(sub { $keeps->busy && @{ $keeps->{answer}{notices} } }, 'a warning'), 'at this isolation level it warns');
$ticket = $app->query("SELECT zk_enqueue('/v', '10 min')");
like($keeps->value, qr/^$ticket\|/, 'and goes on');
like($keeps->messages,
	qr/^WARNING\n01000\nthe wait for a ticket holds back VACUUM and CREATE INDEX CONCURRENTLY\nAt this isolation level/m,
	'what it holds back, and why');
$keeps->query('COMMIT');
$keeps->close;
$app->query("SELECT zk_cancel_reservation('/v', token) FROM zk_tickets");
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'it ends');
$one->safe_psql('postgres', 'ALTER ROLE app RESET deadlock_timeout');

# ---- arguments and limits

my %bad = (
	"zk_enqueue('/b', '0')" => '22023',
	"zk_enqueue('/b', '-1 s')" => '22023',
	"zk_enqueue('/b', '2 hours')" => '22023',
	"zk_enqueue('/b', '1 min', '2 hours')" => '22023',
	"zk_enqueue('/b', '1 min', '0')" => '22023',
	"zk_enqueue('/b', NULL)" => '22004',
	"zk_enqueue('/b', '1 min', NULL)" => '22004',
	"zk_enqueue(NULL::text, '1 min')" => '22004',
	"zk_enqueue('b', '1 min')" => '22023',
	"zk_enqueue_all(ARRAY['/b', 'b'], '1 min')" => '22023',
	"zk_enqueue_all(ARRAY['/b', NULL], '1 min')" => '22004',
	"zk_enqueue_all('{}', '1 min')" => '22023',
	'zk_claim_ticket(NULL)' => '22004',
	'zk_claim_ticket(0)' => '55000',
	'zk_claim_ticket(17)' => '55000',
	"zk_claim_next('-1 s')" => '22023',
	"zk_claim_next('0', ARRAY['b'])" => '22023',
	"zk_claim_next('0', '{}')" => '22023',
	"zk_claim_next('0', array_fill('/b'::text, '{100000}'))" => '53400');
is($app->error("SELECT $_"), $bad{$_}, "$_: $bad{$_}") foreach sort keys %bad;
is($app->query('SELECT zk_withdraw(0)'), 'f', 'no such ticket');
like($app->messages, qr/^WARNING\n55000\nthere is no ticket 0 on this server\nAnother server made it, or /m,
	'a warning says so');
is($app->query('SELECT count(*) FROM zk_tickets'), 0, 'nothing came of it');
is($stranger->error("SELECT zk_enqueue('/b', '1 min')"), '42501', 'it takes the right');
$one->safe_psql('postgres', 'ALTER ROLE app SET zklock.max_requests_per_role = 3');
my $limited = $test->session($one, user => 'app');
$limited->query("SELECT zk_enqueue('/c', '1 min')");
is($limited->error("SELECT zk_enqueue_all(ARRAY['/d', '/e', '/f'], '1 min')"), '53400', 'a role has not too many');
like($limited->messages, qr/max_requests_per_role/, 'and is told of the setting');
is($limited->query('SELECT count(*) FROM zk_tickets'), 1, 'all or none');
$limited->query('SELECT zk_withdraw(NULL)');

# ---- restarts, and other servers

$ticket = $limited->query("SELECT zk_enqueue('/s', '10 min')");
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/s'", 'unclaimed', 'one is granted');
my $waits = $limited->query("SELECT zk_enqueue('/s', '10 min')");
$test->lose_session($one, '/s');
is($limited->error("SELECT zk_claim_ticket($ticket)"), '55000', 'with the ZooKeeper session a granted ticket is lost');
like($limited->messages, qr/is over\nThe ZooKeeper session that held it has expired/, 'and says why');
is($limited->query('SELECT ticket FROM zk_claim_next()'), $waits, 'one that waits is requested anew');
$limited->query("SELECT zk_cancel_reservation('/s', token) FROM zk_tickets");
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'they end');

$other->query("SELECT zk_lock('/s')");
$waits = $limited->query("SELECT zk_enqueue('/s', '10 min')");
$consumer->send('SELECT ticket FROM zk_claim_next()');
$test->restart_worker($one);
$other->query("SELECT zk_unlock('/s')");
is($consumer->value, $waits, 'a ticket and its claim outlive the worker');
$limited->query("SELECT zk_cancel_reservation('/s', token) FROM zk_tickets");

$other->query("SELECT zk_lock('/s')");
$waits = $limited->query("SELECT zk_enqueue('/s', '10 min')");
$test->wait_queue('/s', 2);
$_->close foreach $admin, $app, $stranger, $maker, $limited, $consumer;
$one->restart;
$test->wait_connected($one);
ok($test->wait_queue('/s', 1), 'a stop ends tickets at once');
$app = $test->session($one, user => 'app');
is($app->error("SELECT zk_claim_ticket($waits)"), '55000', 'a ticket of before a restart');
like($app->messages, qr/before it was restarted/, 'is none');
is($app->query("SELECT zk_withdraw($waits)"), 'f', 'nor is there one to withdraw');
like($app->messages, qr/^WARNING\n55000\nthere is no ticket $waits on this server\n.*before it was restarted/m, 'with a warning');

# ---- drain

$waits = $app->query("SELECT zk_enqueue('/s', '10 min')");
$admin = $test->session($one);
is($admin->query("SELECT count(*) FROM zk_drain('10 s')"), 0, 'a drain withdraws tickets');
$stranger = $test->session($one, user => 'stranger');
is($stranger->error("SELECT zk_assert_lock('/s', 0)"), '55000', 'other roles do not learn of it');
$stranger->close;
is($app->error("SELECT zk_claim_ticket($waits)"), '55000', 'which is told');
like($app->messages, qr/is over\nThe server takes no requests/, 'with the reason');
is($app->query('SELECT count(*) FROM zk_tickets'), 0, 'once');
is($app->error("SELECT zk_enqueue('/s', '10 min')"), '55000', 'no ticket is made meanwhile');


$admin->query('SELECT zk_undrain()');
$_->close foreach $app, $other, $admin;
$test->finish;
