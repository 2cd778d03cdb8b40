# Requests that are given up while no worker is there, and requests from then
# on: the next worker frees each slot once, and no two sessions share one.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new(servers => 1, max_requests => 20);
my ($one) = $test->nodes;
my @clients = map { $test->session($one) } 1 .. 6;
my @holders = splice @clients, 0, 3;

$_->query("SELECT zk_lock('/x$_->{pid}')") foreach @holders;
$_->query("SET statement_timeout = '50ms'") foreach @clients;
my $worker = $test->status($one, 'worker_pid');
kill 'TERM', $worker;
ok($test->wait_gone($worker), 'no worker');
$_->send("SELECT zk_lock('/y$_->{pid}')") foreach @clients;
is($_->sqlstate, '57014', 'given up while there was no worker')
  foreach @clients;
$_->query("SELECT zk_unlock('/x$_->{pid}')") foreach @holders;
$test->wait_connected($one);
$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0,
	'released by the next one');

# All slots at once, each by a session of its own
my @all = map { $test->session($one) } 1 .. 20;
my %token;
$token{ $_->query("SELECT zk_lock('/z$_->{pid}')") } = 1 foreach @all;
is(scalar(keys %token), 20, 'as many locks as slots');
is($test->look(
		$one,
		"SELECT count(*) FROM zk_locks WHERE state = 'granted' AND path = '/z' || pid"),
	20,
	'each is of its own session');
is($_->query("SELECT zk_unlock('/z$_->{pid}')"), 't', 'held until the end')
  foreach @all;
$_->close foreach @clients, @holders, @all;

$test->finish;
