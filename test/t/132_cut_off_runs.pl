# A server is cut off from ZooKeeper in the midst of zk_run_exclusive() and zk_run_once().
# Another one runs the jobs when the session of the first one has ended.  The calls of the
# first one fail with 40001, without waiting until the network is back, and commit nothing.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, session_timeout => '4s');
my ($one, $two) = $test->nodes;
my %calls = (
	exclusive => "CALL zk_run_exclusive('/c/exclusive', 'CALL job(''exclusive'')')",
	once => "CALL zk_run_once('/c/once', NULL, 'CALL job(''once'')', key => 'k')");
my %runs;

foreach my $node ($one, $two)
{
	$test->look($node, 'CREATE TABLE run (job text)');
	$test->look($node, "CREATE PROCEDURE job(name text) LANGUAGE plpgsql AS 'BEGIN"
		  . " INSERT INTO run VALUES (name); PERFORM pg_advisory_xact_lock_shared(1); END'");
}

# In their midst they wait for it.
my $gate = $test->session($one);
$gate->query('SELECT pg_advisory_lock(1)');
foreach my $job (sort keys %calls)
{
	$runs{$job} = $test->session($one)->send($calls{$job});
}
wait_for(sub { $test->look($one, 'SELECT count(*) FROM pg_locks WHERE NOT granted') == 2 },
	'both jobs');
$net->hold($one->name . '-zk');

my $other = $test->session($two);
is($other->error($calls{$_}), '', "$_: another server runs the job") foreach sort keys %calls;
$gate->query('SELECT pg_advisory_unlock(1)');
foreach my $job (sort keys %calls)
{
	is($runs{$job}->sqlstate, '40001', "$job: the run of the first one fails");
	is($runs{$job}->query('SELECT count(*) FROM run'), 0, "$job: and has committed nothing");
}
is($other->query('SELECT string_agg(job, $$,$$ ORDER BY job) FROM run'), 'exclusive,once',
	'each job has run once');
isnt($test->status($one, 'state'), 'connected', 'the first one is still cut off');
$net->pass($one->name . '-zk');
$test->wait_connected($one);
is($runs{once}->error($calls{once}), '', 'later it calls again');
like($runs{once}->messages, qr/skipped/, 'and the turn is used up');
$_->close foreach $gate, $other, values %runs;
$test->finish;
