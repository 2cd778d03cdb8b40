# The session process is replaced after so many requests, long before its
# client's numbers for them run out: under load, nobody notices.  So many that
# a test could wait for it they are not: it builds zklock with a smaller limit.  Only
# the file with the limit is compiled, where the sources have been built already.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $source = dirname(abs_path(__FILE__)) . '/../..';
my $copy = abs_path(PostgreSQL::Test::Utils::tempdir('zklock_copy'));
my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
system_or_bail('sh', '-c',
	"cd '$source' && tar -cf - --exclude='*.o' --exclude='*.bc'"
	  . " Makefile zklock*.control sql/zklock*--*.sql src | tar -C '$copy' -xf -");
system_or_bail('make', '-s', '-C', $copy, "PG_CONFIG=$pg_config",
	'with_llvm=no', 'COPT=-DZKL_SESSION_REQUESTS=500', 'all');

my $test = ZklockTest->new(servers => 0);
my $one = $test->new_node('server1',
	conf => "dynamic_library_path = '$copy:\$libdir'\nzklock.cache_time = 0\n");
$one->start;

# The install script, with the functions of the copy
my $script = slurp_file("$copy/sql/zklock--1.0.sql");
$script =~ s/^\\echo.*$//m;
$script =~ s/^SELECT pg_catalog\.pg_extension_config_dump\(.*?;$//gms;
$script =~ s/'MODULE_PATHNAME'/'zklock'/g;
$one->safe_psql('postgres', $script);
$test->wait_connected($one);

my $session_id = $test->status($one, 'session_id');
my $holder = $test->session($one);
my $waiter = $test->session($one);
$holder->query("SELECT zk_lock('/n/held')");
$test->enqueue($waiter, "SELECT zk_lock('/n/held')", '/n/held');
my @busy = map { $test->session($one) } 1 .. 4;
foreach my $n (0 .. $#busy)
{
	$busy[$n]->send("DO \$\$ BEGIN WHILE (SELECT connects FROM zk_stat_server) <= 5 LOOP"
		  . " PERFORM zk_lock('/n/$n'); PERFORM zk_unlock('/n/$n');"
		  . " END LOOP; END \$\$");
}
is($_->sqlstate, '', 'a client under load sees nothing') foreach @busy;

cmp_ok($test->status($one, 'connects'), '>', 5, 'the session process was replaced');
is($test->status($one, 'session_id'), $session_id, 'the session is the same');
is($test->status($one, 'sessions_lost'), 0, 'and was never lost');
is($holder->query("SELECT zk_unlock('/n/held')"), 't', 'nor was a lock');
cmp_ok($waiter->value, '>', 0, 'and who waited has it');
$_->close foreach $holder, $waiter, @busy;
$test->finish;
