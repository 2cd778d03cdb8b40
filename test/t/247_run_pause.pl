# While ZooKeeper does not answer, zklock-run renews the lock without a pause: a renewal
# always waits in the server, so that the program learns at once when ZooKeeper is back.
# If the program ends meanwhile, its run is recorded behind that renewal.

use strict;
use warnings;

use List::Util qw(min);
use Test::More;

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	servers => 1,
	session_timeout => '60s',
	conf => "log_statement = all\nlog_line_prefix = '%n '\n",
	zk => { config => "maxSessionTimeout=60000\n" });
my ($node) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $run = LockedProgram->new("$dir/log")->start($node, '--once=1 day', '--guarantee=at_least_once', '/pause',
	'--', 'sh', '-c', "echo \$\$ >$dir/pid; until test -e $dir/end; do sleep 0.1; done");

wait_for(sub { $run->deadline > 0 }, 'the program begins');

# Seconds between two renewals
sub distances
{
	my @times = slurp_file($node->logfile) =~ /^(\S+) LOG:  execute .*zk_renew_reservation/mg;

	return map { $times[$_] - $times[ $_ - 1 ] } 1 .. $#times;
}
wait_for(sub { distances() >= 2 }, 'renewals');
cmp_ok(min(distances()), '>=', 5, 'one for each twelfth of the session timeout');
$test->zk->pause;
ok(wait_for(sub { min(distances()) < 5 }, 'the next renewal follows the last one', 25), 'without a pause');
append_to_file("$dir/end", '');
my $pid = slurp_file("$dir/pid") + 0;
wait_for(sub { !kill 0, $pid }, 'the program ends');
$test->zk->resume;
$test->wait_connected($node);
is($run->status, 0, 'it has not noticed');
is($node->safe_psql('postgres', "SELECT zk_once('/pause', '1 day')"), 'f', 'and its run is recorded');
$test->finish;
