# zk_once_history() tells what ran when, where, the same on all servers;
# zk_once_purge() removes what has not run for so long, but nothing of a job that
# runs or that somebody waits for, and nothing that it cannot read.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my ($s1, $s2) = map { $test->session($_) } $one, $two;
my $zk = $test->zk->client;
my $paths = "SELECT string_agg(path, ' ' ORDER BY path COLLATE \"C\") FROM zk_once_history()";

is($test->look($one, 'SELECT count(*) FROM zk_once_history()'), 0, 'no job yet');
is($s1->query("SELECT zk_once_purge('0')"), 0, 'and nothing to purge');

# ---- what ran when, where

$s1->query("SELECT zk_once('/a', key => 'k1')");
$s2->query("SELECT zk_once('/a', key => 'k\"2')");
$s2->query("SELECT zk_once('/a/b', interval '1 day')");
$s1->query("SELECT zk_once('/r', key => 'k')");
$s2->query("SELECT zk_once_reset('/r')");

my $row = 'path, server, pid, run_keys, called_at = last_period_at,'
  . " called_at BETWEEN now() - interval '10 min' AND now() + interval '1 min',"
  . " recorded_at - called_at < interval '1 min'";
foreach my $node ($one, $two)
{
	is($test->look($node, "SELECT $row FROM zk_once_history() ORDER BY 1"),
		join("\n",
			'/a|server2|' . $s2->pid . "|{\"k\\\"2\",k1}||t|t",
			'/a/b|server2|' . $s2->pid . '|{}|t|t|t',
			'/r|||{}|||'),
		'all jobs on ' . $node->name);
}
is($test->look($one, "SELECT path, pid FROM zk_once_history('/a/b')"),
	'/a/b|' . $s2->pid, 'one job');
is($test->look($one, "SELECT count(*) FROM zk_once_history('/none')"), 0, 'none');
is($s1->error("SELECT * FROM zk_once_history('bad')"), '22023', 'a bad name');

# a transaction that aborts, and one under way, leave nothing to see
$s1->query('BEGIN');
$s1->query("SELECT zk_once('/a', key => 'k3')");
is($test->look($two, "SELECT run_keys[1] FROM zk_once_history('/a')"),
	"k\"2", 'a turn is seen when it is used up');

# ---- what is kept, and what is removed

is($s2->query("SELECT zk_once_purge('1 hour')"), 0, 'all of them are younger');
is($s2->query("SELECT zk_once_purge('infinity'::text::interval)"), 0, 'or than any time')
  if $one->pg_version >= 17;
$zk->set('/zklock/.once/a/b/.history', 'no json');
is($test->look($one, "SELECT recorded_at IS NOT NULL, run_keys IS NULL, server IS NULL"
		  . " FROM zk_once_history('/a/b')"), 't|t|t', 'one that cannot be read');
is($s2->query("SELECT zk_once_purge('0')"), 1, 'the one that nobody uses');
is($test->look($one, $paths), '/a /a/b', 'is gone');
ok($test->queue('/.once/a') == 1, 'the other one still runs');
$s1->query('COMMIT');
is($test->look($two, "SELECT run_keys[1] FROM zk_once_history('/a')"),
	'k3', 'and ends as it should');

# in the transaction that has the turn
$s1->query('BEGIN');
$s1->query("SELECT zk_once('/a', key => 'k4')");
is($s1->query("SELECT zk_once_purge('0')"), 0, 'nor is the own turn purged');
$s1->query('COMMIT');
is($s2->query("SELECT zk_once('/a', key => 'k4')"), 'f', 'it was used up');

# many, deeper than one, and more than one listing has room for at first
$s1->query("SELECT zk_once('/many/' || repeat('x', 90) || i, key => 'k') FROM generate_series(1, 1) i");
$s1->query("DO \$\$ BEGIN FOR i IN 1 .. 100 LOOP"
	  . " PERFORM zk_once('/many/' || repeat('x', 90) || i, key => 'k'); COMMIT; END LOOP; END \$\$");
is($test->look($two, "SELECT count(*) FROM zk_once_history() WHERE path LIKE '/many/%'"),
	100, 'a hundred jobs');
is($s2->query("SELECT zk_once_purge('0')"), 101, 'are purged at once');
is($test->look($one, $paths), '/a/b', 'all but what is not readable');
is($s2->query("SELECT zk_once('/a', key => 'k1')"), 't', 'a run key can be used again');
is($s2->query("SELECT zk_once_reset('/a/b')"), 't', 'a reset makes it readable');
is($s2->query("SELECT zk_once_purge('0')"), 2, 'and then it goes, too');

# ---- who may

$one->safe_psql('postgres', 'CREATE ROLE ops LOGIN IN ROLE pg_monitor; CREATE ROLE job LOGIN;'
	  . ' GRANT EXECUTE ON FUNCTION zk_once TO job, ops');
my ($ops, $job) = map { $test->session($one, user => $_) } 'ops', 'job';
is($ops->query('SELECT count(*) FROM zk_once_history()'), 0, 'pg_monitor looks');
$job->query("SELECT zk_once('/job/own', key => 'k')");
$job->query("BEGIN; SELECT zk_once('/job/undone', key => 'k'); ROLLBACK");
$ops->query("SELECT zk_once('/job/other', key => 'k')");
$s1->query("SELECT zk_once('/job/own', key => 'k2')");
$s1->query("SELECT zk_once_reset('/job/other')");
is($test->look($one, "SELECT string_agg(path || ' ' || usename, ', ' ORDER BY path) FROM zk_once_history()"),
	'/job/other ops, /job/own job, /job/undone job',
	'a record belongs to the role that made it, whoever runs the job later');
is($job->query("SELECT zk_once_purge('0')"), 2, 'which may remove it');
is($test->look($one, $paths), '/job/other', 'but no other role\'s');
is($s1->query("SELECT zk_once_purge('0')"), 1, 'a superuser removes all');

# ---- how many

$ops->query("SELECT zk_once('/full/ops1', key => 'k')");
$job->query("SELECT zk_once('/full/job1', key => 'k')");
my ($record) = $zk->get('/zklock/.once/full/job1/.history');
foreach my $n (2 .. 1000)
{
	$zk->create("/zklock/.once/full/job$n", '');
	$zk->create("/zklock/.once/full/job$n/.history", $record);
}
is($job->error("SELECT zk_once('/full/job1001', key => 'k')"), '53400', 'a role has so many records');
like($job->messages, qr/too many jobs are recorded for role "job".*zk_once_purge\(\)/s, 'which is told');
is($job->query("SELECT zk_once('/full/job1', key => 'k2')"), 't', 'its jobs go on');
is($job->query("SELECT zk_once('/full/ops1', key => 'k2')"), 't', 'and so do those of others');
is($ops->query("SELECT zk_once('/full/ops11', key => 'k')"), 't', 'other roles make more');
is($s1->query("SELECT zk_once('/full/super', key => 'k')"), 't', 'and superusers');
is($job->query("SELECT zk_once_purge('0')"), 1000, 'the role makes room');
is($job->query("SELECT zk_once('/full/job1001', key => 'k')"), 't', 'and has it');
is($s1->error("SELECT zk_once_purge('-1 s')"), '22023', 'a negative time');
is($s1->query('SELECT zk_once_purge(NULL)'), '', 'NULL does nothing');
$test->finish;
