# Backends that are stopped while they read what the worker writes, the statistics
# or its status, do not stop the worker: other sessions acquire and release locks
# meanwhile.  The moment cannot be chosen, so many are tried.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

use constant TIMES => 60;

my $test = ZklockTest->new;
my ($one) = $test->nodes;
my $other = $test->session($one);
my @readers = map { $test->session($one) } 1 .. 10;
my @pids = map { $_->pid } @readers;

$other->query("SELECT zk_lock('/s/' || n), zk_unlock('/s/' || n) FROM generate_series(1, 500) n");
$test->look_until($one, 'SELECT count(*) >= 500 FROM zk_stat_locks', 't', 'many names');

sub all_stopped
{
	return !grep { slurp_file("/proc/$_/stat") !~ /\) T / } @pids;
}

# The second pair needs the worker to have counted the first one.
sub goes_on
{
	$other->query("SELECT zk_lock('/x'), zk_unlock('/x')") foreach 1 .. 2;
	return 1;
}

foreach my $n (0 .. $#readers)
{
	my $view = $n < 8 ? 'zk_stat_locks' : 'zk_status';

	$readers[$n]->send("DO \$\$ BEGIN LOOP PERFORM count(*) FROM $view; END LOOP; END \$\$");
}
$_->wait_running foreach @readers;

my $good = 0;
foreach (1 .. TIMES)
{
	kill 'STOP', @pids;
	wait_for(\&all_stopped, 'the readers are stopped');
	$good += eval { goes_on() } // 0;
	kill 'CONT', @pids;
	last if $@;
}
is($good, TIMES, 'the worker goes on');

$_->cancel(running => 1) foreach @readers;
is($_->sqlstate, '57014', 'the readers go on, too') foreach @readers;
$_->close foreach @readers, $other;
$test->finish;
