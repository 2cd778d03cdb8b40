# What each call does while ZooKeeper is away for long: the table of docs/outages.md,
# each of its calls, from the end of the lease on.  A session without locks notices
# nothing, and afterwards the locks are held as before.

use strict;
use warnings;

use Test::More;

use Document;
use ZklockTest;

my $test = ZklockTest->new(servers => 1, session_timeout => '10s');
my ($node) = $test->nodes;

# Each call: by a session that holds the lock /held and leads /led, or by another one
my $held = '/held';
my %by_holder = (
	zk_assert_lock => "SELECT zk_assert_lock('$held')",
	zk_extend => "SELECT zk_extend('$held', '1 h')",
	zk_resign => "SELECT zk_resign('/led')",
	zk_unlock => "SELECT zk_unlock('/unlocked')");
my %by_other = (
	zk_lock => "SELECT zk_lock('/1', TIMEOUT)",
	zk_await_lock => "CALL zk_await_lock('/2', TIMEOUT)",
	zk_reserve => "SELECT zk_reserve('/3', '1 min', TIMEOUT)",
	zk_lead => "SELECT zk_lead('/4', 'me', TIMEOUT)",
	zk_acquire_permits => "SELECT zk_acquire_permits('/5', 1, 2, TIMEOUT)",
	zk_barrier => "SELECT zk_barrier('/6', 2, TIMEOUT)",
	zk_run_exclusive => "CALL zk_run_exclusive('/7', 'SELECT 1', TIMEOUT)",
	zk_run_once => "CALL zk_run_once('/8', '1 day', 'SELECT 1')",
	zk_break_lock => "SELECT zk_break_lock('$held')",
	zk_once => "SELECT zk_once('/9', '1 day')",
	zk_try_lock => "SELECT zk_try_lock('/10')",
	zk_queue => "SELECT count(*) FROM zk_queue('$held')",
	zk_leader => "SELECT count(*) FROM zk_leader('/led')",
	zk_healthcheck => 'SELECT count(*) FROM zk_healthcheck()',
	zk_dump => 'SELECT count(*) FROM zk_dump()',
	zk_fence => "SELECT zk_fence('/fence', 1)",
	zk_enqueue => "SELECT zk_enqueue('/11', '1 min')",
	zk_claim_next => 'SELECT ticket FROM zk_claim_next(TIMEOUT)',
	zk_await_ticket => 'CALL zk_await_ticket(TIMEOUT)',
	zk_withdraw => 'SELECT zk_withdraw(0)');
$by_other{$_} = "SELECT count(*) FROM $_" foreach 'zk_jobs', 'zk_servers', 'zk_locks', 'zk_status', 'zk_tickets';

sub session
{
	my $session = $test->session($node);

	$session->query("SET zklock.answer_timeout = '100ms'; SET zklock.commit_wait = '100ms'");
	return $session;
}

my $holder = session();
my $other = session();
$holder->query("SELECT zk_lock('$_')") foreach $held, '/unlocked';
$holder->query("SELECT zk_lead('/led')");
my $token = $other->query("SELECT zk_reserve('/reserved', '10 min')");
$by_other{zk_renew_reservation} = "SELECT zk_renew_reservation('/reserved', $token, '20 min')";
my $ticket = $other->query("SELECT zk_enqueue('/ticket', '10 min', '10 min')");
$test->look_until($node, "SELECT state FROM zk_locks WHERE path = '/ticket'", 'unclaimed', 'a ticket is granted');
$by_other{zk_claim_ticket} = "SELECT zk_claim_ticket($ticket)";

$test->zk->stop;
$test->look_until($node, "SELECT bool_and(state = 'unconfirmed') FROM zk_locks",
	't', 'the lease ends');

# What the page says of a call, and what it does
my %outcomes = (
	'08006' => sub { is($_[0]->error($_[1]), '08006', "$_[2]: 08006") },
	'40001' => sub { is($_[0]->error($_[1]), '40001', "$_[2]: 40001") },
	'as always' => sub { is($_[0]->error($_[1]), '', "$_[2]: as always") },
	'waits, with a NOTICE' => \&waits,
	'waits, with a NOTICE; a timeout raises 08006' => sub {
		is($_[0]->error($_[1] =~ s/TIMEOUT/timeout => '200 ms'/r), '08006', "$_[2]: a timeout");
		waits(@_);
	},
	'`false`, with a WARNING; released when ZooKeeper is back' => sub {
		is($_[0]->query($_[1]), 'f', "$_[2]: false");
		like($_[0]->messages, qr/^WARNING/m, "$_[2]: with a WARNING");
	});
my @waiting;

sub waits
{
	my (undef, $sql, $name) = @_;
	my $session = session();

	$session->query("SET statement_timeout = '5s'");
	$session->send($sql =~ s/TIMEOUT/timeout => NULL/r);
	push @waiting, [ $session, $name ];
	return;
}

my ($table) = Document->new('docs/outages.md')->section('If ZooKeeper is down for an hour')->text
  =~ /^\|---\|---\|\n((?:\|.*\n)+)/m;
my %left = (%by_holder, %by_other);
foreach my $row (split /\n/, $table)
{
	my ($names, $says) = $row =~ /^\| (.*?) \| (.*?) \|$/;

	next if $names =~ /^`zklock-run`|^`COMMIT`/;
	ok($outcomes{$says}, "a known outcome: $says") or next;
	foreach my $name ($names =~ /`(\w+)`/g)
	{
		my $sql = delete $left{$name};

		ok(defined $sql, "$name is tried") or next;
		$outcomes{$says}->($by_holder{$name} ? $holder : $other, $sql, $name);
	}
}
is(join(' ', sort keys %left), '', 'the page has all of them');
like($table, qr/^\| `COMMIT` under a lock \| waits for `zklock.commit_wait`, then fails \(40001\) \|$/m, 'COMMIT');
is($holder->error('CREATE TABLE under_a_lock ()'), '40001', 'fails under a lock');
is($other->error('CREATE TABLE without_a_lock ()'), '', 'and goes on without');

foreach (@waiting)
{
	my ($session, $name) = @$_;
	my $for = $name =~ /claim_next|await_ticket/ ? qr/a ticket's grant/ : qr/another holder/;

	is($session->sqlstate, '57014', "$name: waits until statement_timeout");
	like($session->messages, qr/still waiting for ZooKeeper, not for $for/,
		"$name: says what it waits for");
	$session->close;
}

$test->zk->start;
$test->wait_connected($node);
is($holder->error('CREATE TABLE under_a_lock ()'), '', 'then a commit under the lock works again');
$test->look_until($node,
	"SELECT string_agg(path, ' ' ORDER BY path) FROM zk_locks WHERE state NOT IN ('cached', 'releasing')",
	"/11 $held /reserved /ticket", 'what was released has gone, all else is held, and the ticket has its lock');
cmp_ok($other->query("SELECT zk_claim_ticket($ticket)"), '>', 0, 'which can be claimed');
is($other->query('SELECT zk_withdraw(NULL)'), 't', 'or withdrawn');
$other->query('SELECT zk_cancel_reservation(path, token) FROM zk_tickets WHERE token IS NOT NULL');
is($holder->query("SELECT zk_unlock('$held')"), 't', 'and is there to be released');
$other->query("SELECT zk_cancel_reservation('/reserved', $token)");
$_->close foreach $holder, $other;
$test->finish;
