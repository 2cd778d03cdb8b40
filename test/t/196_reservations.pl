# Reservations: locks that belong to a token.  They outlast the session that made them,
# transactions and workers, and end when their time is over, when they are cancelled, or
# with the server's ZooKeeper session.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my ($s, $other) = map { $test->session($_) } $one, $two;

# ---- it belongs to no session

my $maker = $test->session($one);
$maker->query('BEGIN');
my $token = $maker->query("SELECT zk_reserve('/r', '10 min')");
cmp_ok($token, '>', 0, 'a token');
$maker->query('ROLLBACK');
$maker->query($_) foreach 'DISCARD ALL', 'SELECT zk_unlock_all()';
my $pid = $maker->pid;
$maker->close;
is($test->look($one,
		"SELECT lifetime, state, usename IS NOT NULL, fencing_token = $token, pid FROM zk_locks"),
	'reservation|granted|t|t|', 'zk_locks shows it');
is($test->look($one,
		"SELECT held_until BETWEEN now() + '9 min' AND now() + '11 min' FROM zk_locks"),
	't', 'and its end');
is($test->look($one, 'SELECT locks_held FROM zk_status'), 1, 'it counts as held');
is($test->look($one,
		"SELECT granted, pid, usename IS NOT NULL, application_name, held_until IS NOT NULL FROM zk_queue('/r')"),
	't||t|zklock test|t', 'zk_queue shows whose it is, and no process');
is($other->query("SELECT granted, pid, usename IS NOT NULL, application_name FROM zk_queue('/r')"),
	't||t|zklock test', 'as other servers see it, too');
is($other->query("SELECT zk_try_lock('/r')"), 'f', 'another server does not get the lock');
is($s->query("SELECT zk_try_lock('/r')"), 'f', 'nor does this one');

# Who waits is told of the reservation, not of a session that has ended.
my $user = $s->query('SELECT session_user');
my $time = qr/\d{4}-\d\d-\d\d [^"]+/;
$one->safe_psql('postgres', 'CREATE ROLE watcher LOGIN IN ROLE pg_read_all_stats; CREATE ROLE stranger LOGIN; '
	  . 'GRANT EXECUTE ON FUNCTION zk_lock TO watcher, stranger');
my ($watcher, $stranger) = map { $test->session($one, user => $_) } qw(watcher stranger);
is($watcher->error("SELECT zk_lock('/r', '100 ms')"), '55P03', 'a timeout of this server');
like($watcher->messages,
	qr{^Distributed lock "/r" is reserved until $time on server "server1" \(user "\Q$user\E", application "zklock test"\)\.$}m,
	'says until when, where, and for whom');
unlike($watcher->messages, qr/process/, 'and no process');
is($stranger->error("SELECT zk_lock('/r', '100 ms')"), '55P03', 'the same of a role that may see less');
like($stranger->messages, qr{^Distributed lock "/r" is reserved until $time on server "server1"\.$}m,
	'does not say for whom');
is($other->error("SELECT zk_lock('/r', '100 ms')"), '55P03', 'a timeout of another server');
like($other->messages,
	qr{^Distributed lock "/r" is reserved on server "server1" \(user "\Q$user\E", application "zklock test"\) since $time\.\nSee SELECT granted, server, pid, usename, requested_at, held_until FROM zk_queue\('/r'\)\.$}m,
	'which does not know its end, and says where to look');
$_->close foreach $watcher, $stranger;
$test->enqueue($other, "SELECT zk_lock('/r')", '/r');

my $left = $s->query("SELECT zk_assert_lock('/r', $token)");
ok($s->query("SELECT '$left'::interval BETWEEN '1 ms' AND '4 s'") eq 't',
	'it is sure as long as the lease');
is($s->query("SELECT zk_renew_reservation('/r', $token, '5 min')"), 't', 'another session renews it');
is($s->query("SELECT zk_renew_reservation('/r', $token + 1, '5 min')"), 'f', 'not with another token');
is($s->query("SELECT zk_renew_reservation('/q', $token, '5 min')"), 'f', 'nor for another name');
my $unknown = qr{^WARNING\n55000\ndistributed lock "/r" is not reserved with token $token on this server
The reservation is over, or belongs to another server\.
A reservation can be renewed and cancelled only on the server where it was made\.$}m;
my $elsewhere = $test->session($two);
foreach my $call ("zk_renew_reservation('/r', $token, '5 min')", "zk_cancel_reservation('/r', $token)")
{
	is($elsewhere->query("SELECT $call"), 'f', "$call: another server does not know it");
	like($elsewhere->messages, $unknown, "$call: and says so");
	is($s->query("SELECT $call"), 't', "$call: its own does") if $call =~ /renew/;
	is($s->messages, '', "$call: without a word") if $call =~ /renew/;
}
$elsewhere->close;
is($s->query("SELECT zk_cancel_reservation('/r', $token - 1)"), 'f', 'nor is it cancelled by that');
is($s->error("SELECT zk_assert_lock('/r', $token + 1)"), '55000', 'nor asserted');
is($s->error("SELECT zk_reserve('/r', '1 min')"), '55P03', 'a second one of the same role');
like($s->messages, qr/You reserved it with token $token, until /, 'which is told the token');
is($s->error("SELECT zk_lock('/r', '100 ms')"), '55P03', 'nor does the role get the lock itself');
like($s->messages, qr/within 100 ms\nYou reserved it with token $token, until .*\nUse that token in zk_renew_reservation/, 'as it has it');

my $errors = () = slurp_file($one->logfile) =~ /ERROR/g;
my $third = $test->session($two);
is($_->query("SELECT zk_try_reserve('/r', '1 min') IS NULL, zk_try_reserve('/r', '1 min', '50 ms') IS NULL"),
	't|t', 'a try gets nothing, and is no error') foreach $s, $third;
$third->close;
is(scalar(() = slurp_file($one->logfile) =~ /ERROR/g), $errors, 'in the log, either');

# ---- whoever ends

kill 'KILL', $test->status($one, 'session_pid');
$one->safe_psql('postgres', 'ALTER SYSTEM SET zklock.enabled = off');
$one->reload;
$test->look_until($one, "SELECT state <> 'connected' FROM zk_status", 't', 'no lock can be taken');
is($s->query("SELECT zk_renew_reservation('/r', $token, '5 min')"),
	't', 'it can be renewed all the same');
$one->safe_psql('postgres', 'ALTER SYSTEM RESET zklock.enabled');
$one->reload;

# ---- its time

ok($test->still_waits($other), 'nobody else has got it so far');
is($s->query("SELECT zk_renew_reservation('/r', $token, '100 ms')"), 't', 'it is to end soon');
cmp_ok($other->value, '>', $token, 'then the next in line has the lock, with a higher token');
is($s->query("SELECT zk_renew_reservation('/r', $token, '5 min')"), 'f', 'and it cannot be renewed');
like($s->messages, $unknown, 'which is said');
is($s->query("SELECT zk_cancel_reservation('/r', $token)"), 'f', 'nor cancelled');
$other->query("SELECT zk_unlock('/r')");
$token = $s->query("SELECT zk_reserve('/r', '10 min', '1 min')");
$s->send("SELECT zk_try_reserve('/r', '10 min', '1 min')");
$test->wait_queue('/r', 2);
is($test->look($one, "SELECT zk_cancel_reservation('/r', $token)"), 't', 'it ends');
$token = $s->value;
cmp_ok($token, '>', 0, 'and a try that waits gets it');
$test->enqueue($other, "SELECT zk_lock('/r')", '/r');
is($s->query("SELECT zk_cancel_reservation('/r', $token)"), 't', 'it is cancelled');
cmp_ok($other->value, '>', $token, 'and the next in line has the lock');
is($s->error("SELECT zk_reserve('/r', '1 min', '200 ms')"), '55P03', 'a timeout');
is($s->error("SELECT zk_reserve('/r', '1 min', '0')"), '55P03', 'at once');
$s->send("SELECT zk_reserve('/r', '1 min')");
$test->wait_waiting($one, '/r', 1);
$s->cancel;
is($s->sqlstate, '57014', 'a cancel');
$other->query("SELECT zk_unlock('/r')");
ok($test->wait_queue('/r', 0), 'nothing is left of them');

# ---- whose

$one->safe_psql('postgres',
	'CREATE ROLE maker LOGIN; CREATE ROLE taker LOGIN; GRANT EXECUTE ON FUNCTION zk_reserve, zk_try_lock TO maker, taker');
my ($mine, $theirs) = map { $test->session($one, user => $_) } qw(maker taker);
$token = $mine->query("SELECT zk_reserve('/r', '10 min')");
is($theirs->error("SELECT zk_renew_reservation('/r', $token, '1 min')"), '42501', 'another role');
is($theirs->error("SELECT zk_cancel_reservation('/r', $token)"), '42501', 'cannot cancel it either');
is($theirs->error("SELECT zk_assert_lock('/r', $token)"), '42501', 'nor ask for it');
is($s->query("SELECT zk_renew_reservation('/r', $token, '1 min')"), 't', 'a superuser can');
is($theirs->error("SELECT zk_reserve('/r', '1 min', '100 ms')"), '55P03', 'the other role waits');
unlike($theirs->messages, qr/token/, 'and learns no token');
unlike($theirs->messages, qr/zk_queue/, 'nor is it sent to what it may not call');
$one->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION zk_queue TO taker');
is($theirs->error("SELECT zk_reserve('/r', '1 min', '100 ms')"), '55P03', 'with the right to look');
like($theirs->messages, qr/^See SELECT .* FROM zk_queue\('\/r'\)\.$/m, 'it is told where');
$one->safe_psql('postgres', "SELECT zk_grant('/r', 'taker', 'lock, keep')");
is($theirs->error("SELECT zk_reserve('/r', '1 min', '100 ms')"), '55P03', 'without the right to look at that name');
unlike($theirs->messages, qr/zk_queue/, 'it is not');
$one->safe_psql('postgres', "SELECT zk_revoke('/r', 'taker')");
$one->safe_psql('postgres', 'ALTER ROLE maker SET zklock.max_requests_per_session = 2');
$mine->close;
$mine = $test->session($one, user => 'maker');
my $second = $mine->query("SELECT zk_reserve('/r2', '10 min')");
is($mine->error("SELECT zk_reserve('/r3', '10 min')"), '53400', 'a role has not too many');
like($mine->messages, qr/max_requests_per_session/, 'and is told of the setting');
is($mine->query("SELECT zk_try_lock('/r3')"), 't', 'which leaves its own locks alone');
is($mine->error("SELECT zk_reserve('/r3', '10 min')"), '55006', 'a lock that the session holds');
is($mine->query("SELECT zk_cancel_reservation('/r2', $second)"), 't', 'one is cancelled');
is($mine->error("SELECT zk_reserve('/r3', '10 min')"), '55006', 'still that lock');
$mine->query("SELECT zk_unlock('/r3')");

# Rights by prefix: it takes a lock, and keeps it.
$s->query("SELECT zk_grant('/team', 'maker', 'lock')");
is($mine->error("SELECT zk_reserve('/team/x', '10 min')"), '42501', 'without the right to keep');
$s->query("SELECT zk_grant('/team', 'maker', 'keep')");
cmp_ok($mine->query("SELECT zk_reserve('/team/x', '500 ms')"), '>', 0, 'with it');
$s->query("SELECT zk_revoke('/team', 'maker')");

# ---- arguments

my %bad = (
	"zk_reserve('/b', '0')" => '22023',
	"zk_reserve('/b', '-1 s')" => '22023',
	"zk_reserve('/b', '2 hours')" => '22023',
	"zk_reserve('/b', NULL)" => '22004',
	"zk_reserve(NULL, '1 min')" => '22004',
	"zk_reserve('b', '1 min')" => '22023',
	"zk_reserve('/b', '1 min', '-1 s')" => '22023',
	"zk_renew_reservation('/b', NULL, '1 min')" => '22004',
	"zk_renew_reservation('/b', 1, NULL)" => '22004',
	"zk_renew_reservation('/b', 1, '0')" => '22023',
	"zk_renew_reservation('/b', 1, '2 hours')" => '22023',
	"zk_cancel_reservation('/b', NULL)" => '22004');
is($s->error("SELECT $_"), $bad{$_}, "$_: $bad{$_}") foreach sort keys %bad;

# ---- ZooKeeper is away

is($s->query("SELECT zk_renew_reservation('/r', $token, '10 min')"), 't', 'it is there');
$test->zk->pause;
$test->look_until($one, "SELECT lease_remaining = '0' FROM zk_status", 't', 'the lease ends');
is($s->error("SELECT zk_assert_lock('/r', $token)"), '40001', 'it is not sure any more');
is($s->error("SELECT zk_renew_reservation('/r', $token, '10 min')"), '40001', 'nor when it is renewed');
$test->zk->resume;
$test->look_until($one, "SELECT lease_remaining > '0' FROM zk_status", 't', 'it is back');
is($s->query("SELECT zk_renew_reservation('/r', $token, '10 min')"), 't', 'and so is the reservation');
my $lapses = $test->status($one, 'lapses');
my $losses = $test->status($one, 'locks_lost');
$test->lose_session($one, '/r');
is($other->query("SELECT zk_try_lock('/r')"), 't', 'it ends with the session, and others get the lock');
$other->query("SELECT zk_unlock('/r')");
cmp_ok($test->status($one, 'lapses'), '>', $lapses, 'the end of the lease is counted');
is($test->look($one, "SELECT state, usename IS NOT NULL, held_until IS NOT NULL FROM zk_locks"),
	'lost|t|t', 'zk_locks shows that it is lost');
like(slurp_file($one->logfile),
	qr/LOG:  the reservation of distributed lock "\/r" was lost\n.*expired.*Role "/,
	'the log says so');

# The role that made it is told when it asks, once; what others ask changes nothing: then nothing is known of it, and its slot is free.
is($s->error("SELECT zk_assert_lock('/r', $token)"), '40001', 'a superuser is told');
is($mine->error("SELECT zk_assert_lock('/r', $token)"), '40001', 'and the role that made it still is');
like($mine->messages, qr/was lost\n.*session that held it has expired/, 'and why');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'nothing is left of it');
is($test->status($one, 'locks_lost'), $losses + 1, 'the loss is counted');
is($mine->error("SELECT zk_assert_lock('/r', $token)"), '55000', 'from then on it is none');
is($mine->query("SELECT zk_renew_reservation('/r', $token, '10 min')"), 'f', 'nor is it renewed');

# Nobody asks: it is left until its time would have been over, and is counted among
# those of its role; a new one can be made meanwhile.
$token = $mine->query("SELECT zk_reserve('/r', '6 s')");
$test->lose_session($one, '/r');
is($test->look($one, 'SELECT state FROM zk_locks'), 'lost', 'it is left');
my $next = $mine->query("SELECT zk_reserve('/r', '10 min')");
cmp_ok($next, '>', $token, 'the next one');
is($mine->query("SELECT zk_cancel_reservation('/r', $next)"), 't', 'is another one');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'the lost one goes when its time is over');

# ---- the server stops

$s->query("SELECT zk_reserve('/stop', '10 min')");
$_->close foreach $s, $mine, $theirs;
$test->stop_looking($one);
my $offset = -s $one->logfile;
$one->restart;
like(slurp_file($one->logfile, $offset),
	qr/the reservation of distributed lock "\/stop" ends with the ZooKeeper session, as the server stops/,
	'the log says what was cut');
$test->wait_connected($one);
is($other->query("SELECT zk_try_lock('/stop', '30 s')"), 't', 'and others get it when the session has expired');
$other->close;

$test->finish;
