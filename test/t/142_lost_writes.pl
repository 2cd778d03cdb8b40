# An ensemble loses writes that it had acknowledged, as ZooKeeper does when a
# leader fails at a bad moment (ZOOKEEPER-4643, -4646, -4925): the znode of
# a lock that was released is back, and its session lives.  The server notices,
# deletes the znode, and loses nothing that it holds.

use strict;
use warnings;

use Test::More;

use ZklockTest;
use ZooKeeperEnsemble;

my $zk = ZooKeeperEnsemble->new('zk', tick_time => 1000);
my $test = ZklockTest->new(
	zk => $zk,
	session_timeout => '20s',
	conf => "zklock.cache_time = 0\n");
my ($one, $two) = $test->nodes;
my $holder = $test->session($one);
my $released = $test->session($one);
my $waiter = $test->session($two);

$holder->query("BEGIN; SELECT zk_xact_lock('/kept')");
$released->query("SELECT zk_lock('/released')");
my %data = map { $_->id => $_->copy_data } $zk->servers;
$released->query("SELECT zk_unlock('/released')");
$test->look_until($one,
	"SELECT count(*) FROM zk_dump() WHERE path = '/released' AND item = 'request'",
	0, 'the release is acknowledged');
is_deeply([ $zk->client->ls('/zklock/released') ], [], 'and the znode gone');
delete $zk->{client};

$_->kill9 foreach $zk->servers;
$_->go_back($data{ $_->id }) foreach $zk->servers;
$zk->start;
cmp_ok($waiter->query("SELECT zk_lock('/released')"),
	'>', 0, 'another server gets the lock nevertheless');
ok($one->log_contains('WARNING:  ZooKeeper has lost writes that it had acknowledged'),
	'the server log tells why it was not free at first');
is($test->status($_, 'sessions_lost'), 0, 'no session is lost')
  foreach $test->nodes;
is($holder->query('COMMIT'), '', 'and the holder of another lock commits');
$_->close foreach $holder, $released, $waiter;
$test->wait_queue($_, 0) foreach '/kept', '/released';
$test->finish;
