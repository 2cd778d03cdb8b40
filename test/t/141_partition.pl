# ZooKeeper servers that are cut off from each other, but not from us.  One
# that has lost its leader, or that leads nobody any more, still answers pings
# and reads, and knows less than the others.  A lease does not live on that
# (row 10), nothing that it says is believed (row 13), and there are never two
# holders.

use strict;
use warnings;

use Test::More;

use TcpProxy;
use ZklockTest;
use ZooKeeperEnsemble;

# A server takes 180 s to notice that the others are silent: longer than all of
# this, on a busy machine, too.  And sessions outlive an election, which takes 6 s there:
# one that began behind it would be unknown to the leader that was deposed.
my $net = TcpProxy->new;
my $zk = ZooKeeperEnsemble->new(
	'zk',
	net => $net,
	tick_time => 300,
	sync_limit => 600,
	max_session_timeout => 15_000);
my $test =
  ZklockTest->new(zk => $zk, net => $net, session_timeout => '15s');
my ($one, $two) = $test->nodes;

# Lets a PostgreSQL server reach these ZooKeeper servers only, and waits until
# it is connected to one.
sub reach_only
{
	my ($node, @allowed) = @_;
	my $name = $node->name;
	my @ports;

	foreach my $server ($zk->servers)
	{
		my $route = "$name-" . $server->name;
		my $allowed = grep { $_ == $server } @allowed;

		if ($allowed) { $net->pass($route); }
		else { $net->refuse($route); }
		push @ports, $net->stats($route)->{port} if $allowed;
	}
	my $list = join ', ', map { "'127.0.0.1:$_'" } @ports;
	return $test->look_until($node,
		"SELECT state = 'connected' AND zookeeper_server IN ($list) FROM zk_status",
		't', "$name is connected where it should be");
}

sub route_of
{
	my ($node, $server) = @_;

	return $node->name . '-' . $server->name;
}

# ---- row 10: a follower is cut off from its leader, with us connected to it

my ($leader, $follower, $other) = ($zk->leader, $zk->followers);
reach_only($one, $follower);
reach_only($two, $leader, $other);
my $holder = $test->session($one);
my $rival = $test->session($two);
$holder->query("BEGIN; CREATE TABLE lost (); SELECT zk_xact_lock('/x')");
$test->enqueue($rival, "SELECT zk_lock('/x')", '/x');

my $connects = $test->status($one, 'connects');
$zk->isolate($follower);
is($test->status($one, "state = 'connected' AND lease_remaining > '0'"),
	't', 'follower cut off: still connected');

# The moment that the lease ends at: the last one that is told
my $ends = '';
$test->look_until(
	$one,
	"SELECT lease_remaining <= '0' FROM zk_status",
	't',
	'follower cut off: the lease passes',
	before => sub {
		my $end = $test->look($one,
			'SELECT extract(epoch FROM clock_timestamp() + lease_remaining)'
			  . " FROM zk_status WHERE lease_remaining > '0'");
		$ends = $end if $end ne '';
	});
is($test->status($one, 'connects'), $connects,
	'follower cut off: on a connection that never broke');
$holder->query("SET zklock.commit_wait = '50ms'");
cmp_ok($rival->value, '>', 0, 'follower cut off: the next holder is elsewhere');
cmp_ok(
	$test->look($two, 'SELECT extract(epoch FROM granted_at) FROM zk_locks'
		  . " WHERE path = '/x' AND state IN ('granted', 'unconfirmed')"),
	'>', $ends, 'follower cut off: granted after the lease has ended');
is($holder->error('COMMIT'), '40001', 'follower cut off: no commit');
$zk->heal;
reach_only($one, $zk->servers);
is($test->status($one, 'sessions_lost'), 1, 'the session was lost');
is($holder->query("SELECT zk_try_lock('/x')"), 'f', 'and so is the lock');
$rival->query("SELECT zk_unlock('/x')");
ok($test->wait_queue('/x', 0), 'follower cut off: no znode is left');

# ---- row 13: a reply is lost, and the server comes back to a leader that has
# been deposed and does not know of it

$follower->wait_until_serving;
($leader, my @others) = ($zk->leader, $zk->followers);
reach_only($_, $others[0]) foreach $one, $two;
my ($old, $new) = map { $_->name } $leader, $others[0];
$net->sever("zk?-$old-quorum");
$net->hold("zk?-$old-election");
$net->hold("$old-zk?-*");
$zk->wait_leader(@others);
is($zk->role($leader), 'leader', 'a deposed leader believes that it leads');
reach_only($_, $others[0]) foreach $one, $two;

my $lost = $test->session($one);
my $second = $test->session($one);
$rival->query("SELECT zk_lock('/x2')");
$net->lose_reply(route_of($one, $others[0]),
	'/zklock/x/[^/]*__WRIT__(?![0-9])', 1);
$lost->send("SELECT zk_lock('/x')");
ok(wait_for(
		sub { $net->stats(route_of($one, $others[0]))->{lost} == 1 },
		'the reply is lost'),
	'deposed leader: the reply to a create is lost');
is($rival->query("SELECT zk_try_lock('/x')"),
	'f', 'deposed leader: the others know of it');
$connects = $test->status($one, 'connects');
$net->refuse(route_of($one, $others[0]));
$net->pass(route_of($one, $leader));
$test->look_until($one, "SELECT connects > $connects FROM zk_stat_server",
	't', 'deposed leader: attached to it');
my $known = $leader->four_letter('dump');
like($known, qr{/zklock/\.servers/}, 'deposed leader: it tells what it knows');
unlike($known, qr{/zklock/x2?/}, 'deposed leader: nothing of the two locks');
$second->send("SELECT zk_lock('/x2')");
my $tryer = $test->session($one);
$tryer->query("SET zklock.answer_timeout = '50ms'");
is($tryer->error("SELECT zk_try_lock('/x2')"),
	'08006', 'deposed leader: a try is an error');
is($tryer->error("SELECT count(*) FROM zk_queue('/x2')"),
	'08006', 'deposed leader: so is a look at the queue');
isnt($test->status($one, 'state'), 'connected',
	'deposed leader: attached is not connected');
ok($lost->busy, 'deposed leader: nobody is granted what it does not know');
ok($second->busy, 'deposed leader: nor what it does not know to be taken');
is($zk->role($leader), 'leader', 'deposed leader: it still believed in itself');

$net->pass('*');
reach_only($one, @others);
my $token = $lost->value;
cmp_ok($token, '>', 0, 'mended: granted');

# whatever server is asked: each hears of it in time
ok($test->wait_queue('/x', 1), 'mended: with one znode');
my @queue = $test->queue('/x');
is($token >> 12, $zk->client->stat("/zklock/x/$queue[0]")->{czxid},
	'mended: whose number is in the token');
ok($test->still_waits($second), 'mended: the other one waits for its holder');
$rival->query("SELECT zk_unlock('/x2')");
cmp_ok($second->value, '>', 0, 'mended: and comes next');

$_->close foreach $holder, $rival, $lost, $second, $tryer;
$test->finish;
