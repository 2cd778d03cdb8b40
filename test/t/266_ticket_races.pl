# Tickets that two want at once, or that end in that moment: a claim that is cancelled,
# doubled, withdrawn, or late; ZooKeeper that does not answer; operators.  Nobody's claim
# is lost with its caller, and no ticket is given twice.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(usleep);

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, max_requests => 60, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my ($app, $rival, $third) = map { $test->session($one) } 1 .. 3;
my $other = $test->session($two);

sub ticket
{
	my ($path, $within) = @_;

	return $app->query("SELECT zk_enqueue('$path', '10 min', '" . ($within // '10 min') . "')");
}

sub wait_state
{
	my ($ticket, $state) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($one,
		"SELECT coalesce((SELECT state FROM zk_tickets WHERE ticket = $ticket), 'none')", $state,
		"ticket $ticket is $state");
}

sub granted
{
	my ($path, $within) = @_;
	my $ticket = ticket($path, $within);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_state($ticket, 'granted');
	return $ticket;
}

sub end_all
{
	$app->query('SELECT zk_withdraw(NULL); SELECT zk_cancel_reservation(path, token)'
		  . " FROM zk_tickets WHERE state = 'claimed'");
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, 'all has ended');
}

sub over_ok
{
	my ($ticket, $why, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($app->error("SELECT zk_claim_ticket($ticket)"), '55000', $what);
	like($app->messages, qr/ticket $ticket for distributed lock "\S+" is over\n$why/, "$what: why");
	is($app->error("SELECT zk_claim_ticket($ticket)"), '55000', "$what: that was told");
	return like($app->messages, qr/there is no ticket/, "$what: once");
}

# ---- a claim that is cancelled

# When the claim counts, but its session still waits until that is confirmed
my $ticket = granted('/cancelled');
foreach my $call ("zk_claim_ticket($ticket)", 'zk_claim_next()')
{
	$net->hold('server1-*', 'up');
	$test->look_until($one, "SELECT lease_remaining < '5.8 s' FROM zk_status", 't', 'the last beat is some time ago');
	$rival->send("SELECT $call");
	wait_state($ticket, 'claimed');
	$rival->cancel(running => 1);
	is($rival->sqlstate, '57014', "$call is cancelled");
	wait_state($ticket, 'granted');
	is($test->look($one, 'SELECT claim_until > now() FROM zk_tickets'), 't', 'it can be claimed once more');
	$net->pass('server1-*');
	$test->look_until($one, "SELECT lease_remaining > '6 s' FROM zk_status", 't', 'all is well again');
}
like($rival->query("SELECT * FROM zk_claim_next('0')"), qr/^$ticket\|/, 'as it is');
end_all();

# Unless somebody was told a time with the token that the view shows
$ticket = granted('/relied');
$net->hold('server1-*', 'up');
$test->look_until($one, "SELECT lease_remaining < '5.8 s' FROM zk_status", 't', 'the last beat is some time ago');
$rival->send("SELECT zk_claim_ticket($ticket)");
wait_state($ticket, 'claimed');
is($app->query("SELECT zk_assert_lock('/relied', token) > '0' FROM zk_tickets"), 't', 'another session relies on it');
$rival->cancel(running => 1);
is($rival->sqlstate, '57014', 'the claim is cancelled');
$net->pass('server1-*');
is($third->query("SELECT ticket IS NULL FROM zk_claim_next('0')"), 't', 'but the ticket is not given to others');
is($app->query("SELECT zk_withdraw($ticket)"), 'f', 'nor withdrawn');
is($app->query("SELECT zk_assert_lock('/relied', token) > '0' FROM zk_tickets"), 't', 'it stays reserved');
end_all();

# At any moment around the grant.  Who is told that it was cancelled while claiming has
# claimed nothing; later only the answer is lost, and the view has it.
my %seen;
foreach my $round (1 .. 100)
{
	$other->query("SELECT zk_lock('/timed')");
	my $waits = ticket('/timed');
	$test->wait_queue('/timed', 2);
	$rival->query('SET statement_timeout = ' . (int(rand 8) + 1));
	$rival->send('SELECT ticket FROM zk_claim_next()');
	$other->query("SELECT zk_unlock('/timed')");
	my $end = $rival->sqlstate eq '' ? 'claimed' :
	  $rival->messages =~ /while claiming a ticket/ ? 'cancelled' : 'answer lost';
	$seen{$end}++;
	1 until $rival->error('RESET statement_timeout') eq '';
	my $good = $end eq 'cancelled' ?
	  $rival->query("SELECT ticket FROM zk_claim_next('20 s')") eq $waits :
	  $rival->query('SELECT state FROM zk_tickets') eq 'claimed';
	if (!$good)
	{
		fail("round $round: the ticket is to be had if its claim was cancelled");
		diag "$end: ", $test->look($one, 'SELECT * FROM zk_tickets');
		last;
	}
	$app->query("SELECT zk_cancel_reservation(path, token) FROM zk_tickets");
}
note join ', ', map { "$_: $seen{$_}" } sort keys %seen;
end_all();

# ---- two at once

%seen = ();
foreach my $round (1 .. 50)
{
	my $both = granted('/both');
	$_->send("SELECT zk_claim_ticket($both) > 0") foreach $rival, $third;
	my @answers = sort map { $_->sqlstate || $_->value } $rival, $third;
	$seen{"@answers"}++;
	$app->query("SELECT zk_cancel_reservation('/both', token) FROM zk_tickets");
}
is(join(', ', keys %seen), '55000 t', 'of two who claim a ticket, one has it');
%seen = ();
foreach my $round (1 .. 100)
{
	my $both = granted('/both');
	my @calls = ("SELECT zk_claim_ticket($both) > 0", "SELECT zk_withdraw($both)");
	@calls = reverse @calls if $round % 2;
	$rival->send($calls[0]);
	$third->send($calls[1]);
	my @answers = map { $_->sqlstate || $_->value } $round % 2 ? ($third, $rival) : ($rival, $third);
	$seen{"@answers"}++;
	$app->query("SELECT zk_cancel_reservation('/both', token) FROM zk_tickets");
}
is_deeply([ grep { !/^(?:t f|55000 t)$/ } keys %seen ], [], 'a ticket is claimed or withdrawn, not both');
note join ', ', map { "$_: $seen{$_}" } sort keys %seen;
end_all();

# ---- at the end of its time

%seen = ();
foreach my $round (1 .. 100)
{
	my $within = int(rand 4) + 1;
	my $late = ticket('/late', "$within ms");
	my ($sqlstate, $token) = ('', '');
	if ($round % 2)
	{
		usleep(rand(1000 * $within));
		$token = $rival->query("SELECT token FROM zk_claim_next('0', ARRAY['/late'])");
		$sqlstate = '55000' if $token eq '';
	}
	while ($sqlstate eq '' && $token eq '')
	{
		$sqlstate = $rival->error("SELECT zk_claim_ticket($late)");
		$token = $rival->value if $sqlstate eq '';
	}
	$seen{ $sqlstate || 'claimed' }++;
	$seen{'no reservation'}++
	  if $token ne ''
	  && $rival->query("SELECT zk_assert_lock('/late', $token) > '0', zk_cancel_reservation('/late', $token)") ne 't|t';
	if ($other->query("SELECT zk_try_lock('/late', '20 s')") ne 't')
	{
		fail("round $round: the lock is free behind a ticket");
		diag $test->look($one, 'SELECT * FROM zk_locks'), $test->look($one, 'SELECT * FROM zk_tickets');
		last;
	}
	$other->query("SELECT zk_unlock('/late')");
}
is_deeply([ grep { !/^(?:claimed|55000)$/ } keys %seen ], [], 'a claim comes in time or is refused');
note join ', ', map { "$_: $seen{$_}" } sort keys %seen;
end_all();

# Its time is over, but its znode is there still.
my $lapsed = $test->status($one, 'tickets_lapsed');
$ticket = granted('/lapsing', '500 ms');
$net->hold('server1-*', 'up');
wait_state($ticket, 'lapsed');
over_ok($ticket, 'Nobody claimed it in time', 'a ticket whose znode is yet to go');
$net->pass('server1-*');
end_all();
is($test->status($one, 'tickets_lapsed'), $lapsed + 1, 'it is counted');
like(slurp_file($one->logfile), qr/LOG:  ticket $ticket for distributed lock "\/lapsing" has ended\n.*Nobody claimed it in time/, 'and logged');
is($app->query('SELECT count(*) FROM zk_tickets'), 0, 'nothing is known of it');

# ---- several who wait for any

$other->query("SELECT zk_lock('/turns')");
my @tickets = map { ticket('/turns') } 1 .. 6;
sub wait_claimers
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->look_until($one, 'SELECT count(*) FROM pg_stat_activity'
		  . " WHERE query ~ '^SELECT .* zk_claim_next' AND state = 'active' AND wait_event_type = 'Extension'",
		$_[0], "$_[0] wait for a ticket");
}
$rival->send('SELECT * FROM zk_claim_next()');
wait_claimers(1);
$third->send('SELECT * FROM zk_claim_next()');
wait_claimers(2);
$other->query("SELECT zk_unlock('/turns')");
my @claimers = ($rival, $third);
foreach my $expected (@tickets)
{
	my $claimer = shift @claimers;
	my ($got, $path, $token) = split /\|/, $claimer->value;

	is($got, $expected, 'the one who waits longer has the next ticket');
	ok($claimers[0]->busy, 'the other one waits');
	$claimer->send('SELECT * FROM zk_claim_next()');
	push @claimers, $claimer;
	wait_claimers(2);
	$app->query("SELECT zk_cancel_reservation('/turns', $token)");
}
$_->cancel foreach @claimers;
is($_->sqlstate, '57014', 'there is none for them') foreach @claimers;
end_all();

# ---- ZooKeeper does not answer

$ticket = granted('/paused');
$rival->send("SELECT ticket FROM zk_claim_next(paths => ARRAY['/later'])");
$test->zk->pause;
$test->look_until($one, "SELECT lease_remaining = '0' FROM zk_status", 't', 'the lease ends');
foreach my $call ("zk_claim_ticket($ticket)", "zk_claim_next('0')", "zk_claim_next('100 ms')")
{
	is($app->error("SELECT $call"), '08006', "$call: without a lease nobody knows whose turn it is");
	like($app->messages, qr/could not reach ZooKeeper\nWithout a lease, no ticket is granted or claimed\./, 'which is told');
}
$third->send('SELECT ticket FROM zk_claim_next()');
$test->zk->resume;
is($third->value, $ticket, 'it is claimed once there is a lease');
my $later = ticket('/later');
is($rival->value, $later, 'and so is one that was made since');
end_all();

# ---- operators

$ticket = granted('/broken');
my $waits = ticket('/broken');
is($app->query("SELECT zk_break_lock('/broken')"), 't', 'an operator breaks the lock of a ticket');
over_ok($ticket, 'An operator broke it', 'the ticket');
is($app->query("SELECT ticket FROM zk_claim_next('1 min')"), $waits, 'the next one is granted');
end_all();

sub make_three
{
	my $claimed = granted('/gone');
	my $token = $app->query("SELECT zk_claim_ticket($claimed)");

	return ($token, granted('/gone/granted'), ticket('/gone'));
}
my ($token, $unclaimed);
($token, $unclaimed, $waits) = make_three();
my $operator = $test->session($one);
is($operator->query("SELECT path, lifetime FROM zk_drain('1 s')"), '/gone|reservation',
	'a drain waits for what is claimed only');
over_ok($unclaimed, 'The server takes no requests', 'drain: a granted ticket');
over_ok($waits, 'The server takes no requests', 'drain: one that waits');
is($app->query("SELECT zk_renew_reservation('/gone', $token, '10 min')"), 't', 'drain: the reservation goes on');
is($app->query("SELECT ticket IS NULL FROM zk_claim_next('0')"), 't', 'drain: there is nothing to claim');
is($app->query("SELECT zk_cancel_reservation('/gone', $token)"), 't', 'drain: until it ends');
is($operator->query("SELECT count(*) FROM zk_drain('20 s')"), 0, 'drain: then nothing is left');
$operator->query('SELECT zk_undrain()');

($token, $unclaimed, $waits) = make_three();
$rival->send("SELECT ticket FROM zk_claim_next(paths => ARRAY['/gone'])");
$test->set($one, enabled => 'off');
wait_state($waits, 'withdrawn');
over_ok($unclaimed, 'The server takes no requests', 'switched off: a granted ticket');
over_ok($waits, 'The server takes no requests', 'switched off: one that waits');
is($app->error("SELECT zk_enqueue('/gone', '1 min')"), '55000', 'switched off: there are no new ones');
is($app->error("SELECT zk_claim_next('0')"), '55000', 'switched off: nor any to claim');
is($app->query("SELECT zk_cancel_reservation('/gone', $token)"), 't', 'switched off: the reservation ends');
$test->set($one, enabled => 'on');
$test->wait_connected($one);
$waits = ticket('/gone');
is($rival->value, $waits, 'who waited for any has the first of afterwards');
end_all();

# ---- all slots are taken

$test->set($one, max_requests_per_role => 60, max_requests_per_session => 60);
$test->look_until($one, 'SHOW zklock.max_requests_per_role', 60, 'no limits for roles');
$app->query("SELECT zk_enqueue_all(array_agg('/full/' || n), '10 min', '10 min') FROM generate_series(1, 58) n");
my $enqueued = $test->status($one, 'tickets_enqueued');
is($app->error("SELECT zk_enqueue_all(ARRAY['/full/a', '/full/b', '/full/c'], '10 min')"), '53400', 'there is no room for three');
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 58, 'which leaves nothing');
is($app->query("SELECT cardinality(zk_enqueue_all(ARRAY['/full/a', '/full/b'], '10 min', '10 min'))"), 2, 'but for two');
is($app->error("SELECT zk_enqueue('/full/d', '10 min')"), '53400', 'then for none');
is($test->status($one, 'tickets_enqueued'), $enqueued + 4, 'one that was not made is not counted');
is($app->query("SELECT count(*) FROM generate_series(1, 60), zk_claim_next('1 min') WHERE ticket > 0"), 60,
	'all can be claimed');
end_all();

# ---- the order

my $first = granted('/order');
$rival->send("SELECT zk_lock('/order')");
$test->wait_queue('/order', 2);
my $second = ticket('/order');
$app->query("SELECT zk_claim_ticket($first)");
ok($test->still_waits($rival), 'a session of the same role waits behind a ticket');
$app->query("SELECT zk_cancel_reservation('/order', token) FROM zk_tickets WHERE ticket = $first");
cmp_ok($rival->value, '>', 0, 'then it has the lock');
is($app->query("SELECT zk_claim_ticket($second) IS NULL"), 't', 'and a second ticket waits behind it');
$rival->query("SELECT zk_unlock('/order')");
is($app->query("SELECT ticket FROM zk_claim_next('1 min')"), $second, 'which is next');
end_all();

# A session may rely on the place of a ticket that it has made: on new names, and on one
# that its server may have cached.
my ($overtaken, $denied) = (0, 0);
foreach my $round (1 .. 200)
{
	my $path = $round % 2 ? "/order/$round" : '/order/same';
	if ($round % 2 == 0)
	{
		$app->query("SELECT zk_lock('$path'), zk_unlock('$path')") foreach 1 .. 5;
	}
	my $made = $app->query("SELECT zk_enqueue('$path', '10 min')");
	if ($round % 4 < 2)
	{
		$denied++ if $app->query("SELECT zk_try_lock('$path')") eq 'f';
	}
	else
	{
		$app->send("SELECT zk_lock('$path')");
	}
	$overtaken++ if $rival->query("SELECT ticket FROM zk_claim_next('5 s')") ne $made;
	last if $overtaken;
	$rival->query("SELECT zk_cancel_reservation('$path', token) FROM zk_tickets");
	$app->value if $round % 4 >= 2;
	$app->query('SELECT zk_unlock_all()');
}
$app->cancel if $app->busy;
is($overtaken, 0, 'a ticket comes before what its session asks for next');
is($denied, 100, 'a try is denied');

# A cached lock is taken without the worker, which has yet to see the ticket.
$one->append_conf('postgresql.conf', "zklock.cache_time = '10s'");
$one->reload;
my $round = 0;
foreach my $call ("zk_try_lock('/cached')", "zk_lock('/cached', '1 ms')")
{
	$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/cached'", 'cached', 'a lock is cached',
		before => sub { $app->query("SELECT zk_lock('/cached'), zk_unlock('/cached')") });
	my $sqlstate = $app->error("SELECT zk_enqueue('/cached', '10 min'); SELECT $call");
	is($sqlstate || $app->value =~ s/^\d+\n//r, $call =~ /try/ ? 'f' : '55P03', "$call behind a ticket");
	$app->query('SELECT zk_unlock_all()');
	end_all();
}

$_->close foreach $app, $rival, $third, $other, $operator;
$test->finish;
