# Several calls of zk_queue() on one server.  The worker reads for one view at a
# time, so that many calls do not delay the locks.  But a call that gets errors
# pauses between its tries, and others are through meanwhile.

use strict;
use warnings;

use Test::More;

use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test =
  ZklockTest->new(servers => 1, session_timeout => '8s', net => $net);
my ($node) = $test->nodes;
my $line = $node->name . '-zk';
my ($first, $second, $holder) = map { $test->session($node) } 1 .. 3;

# The answers do not come.  What the worker sends passes the proxy in that order:
# so once the lock's request is there, so is all that was sent before it.
$net->hold($line, 'down');
$net->answer($line, 'list', 'q/first', -102);
$first->send("SELECT count(*) FROM zk_queue('/q/first')");
ok(wait_for(sub { $net->stats($line)->{answered} == 1 }, 'a queue is read'),
	'a queue is read');
$net->answer($line, 'list', 'q/second', -102);
$second->send("SELECT count(*) FROM zk_queue('/q/second')");
$test->look_until($node,
	'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $second->pid,
	'Extension', 'a second call waits');
$test->look($node, 'SELECT count(*) FROM zk_dump()');    # the worker has it
$net->catch($line, 'q/lock');
$holder->send("SELECT zk_lock('/q/lock')");
ok(wait_for(sub { $net->stats($line)->{caught} == 1 }, 'a lock'),
	'a lock is requested behind it');
is($net->stats($line)->{answered}, 0, 'the second queue is not read yet');
$net->pass($line);
cmp_ok($holder->value, '>', 0, 'the lock is granted');
is($first->sqlstate, '42501', 'the first call has its answer');
is($second->value, 0, 'and the second one has its own');

# One that gets errors, until the worker gives up
$net->answer($line, 'list', 'q/first', -4, times => 0);
$first->send("SELECT count(*) FROM zk_queue('/q/first')");
wait_for(sub { $net->stats($line)->{answered} > 2 }, 'errors');
is($second->query("SELECT count(*) FROM zk_queue('/q/second')"),
	0, 'another call is through');
ok($first->busy, 'while the first one is tried again and again');
$net->pass($line);
is($first->value, 0, 'until that works');

$_->close foreach $first, $second, $holder;
$test->finish;
