# zk_jobs tells what ran last, when, where, the same on all servers, and to each role
# what it may look at.  While ZooKeeper is away it raises an error in time, also if that
# begins in the middle of its reads, and the exporter's query, which takes a thousand
# jobs, returns nothing.  zk_once_purge() removes what has not run for so long, but
# nothing of a job that runs or that somebody waits for, and nothing that it cannot read.

use strict;
use warnings;

use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net);
my ($one, $two) = $test->nodes;
my ($s1, $s2) = map { $test->session($_) } $one, $two;
my $zk = $test->zk->client;
my $paths = "SELECT string_agg(path, ' ' ORDER BY path COLLATE \"C\") FROM zk_jobs";

is($test->look($one, 'SELECT count(*) FROM zk_jobs'), 0, 'no job yet');
is($s1->query("SELECT zk_once_purge('0')"), 0, 'and nothing to purge');

# ---- what ran when, where

$s1->query("SELECT zk_once('/a', key => 'k1')");
$s2->query("SELECT zk_once('/a', key => 'k\"2')");
$s2->query("SELECT zk_once('/a/b', interval '1 day')");
$s1->query("SELECT zk_once('/r', key => 'k')");
$s2->query("SELECT zk_once_reset('/r')");
$s1->query("SELECT zk_once('/both', key => 'k1')");
$s1->query("SELECT zk_once('/both', interval '1 day')");

my $row = 'path, server, pid, last_key, run_keys, last_run_at = last_period_at,'
  . " last_run_at BETWEEN now() - interval '10 min' AND now() + interval '1 min',"
  . " recorded_at - last_run_at < interval '1 min', owner";
foreach my $node ($one, $two)
{
	is($test->look($node, "SELECT $row FROM zk_jobs ORDER BY 1"),
		join("\n",
			'/a|server2|' . $s2->pid . '|k"2|{"k\"2",k1}||t|t|postgres',
			'/a/b|server2|' . $s2->pid . '||{}|t|t|t|postgres',
			'/both|server1|' . $s1->pid . '||{k1}|t|t|t|postgres',
			'/r||||{}||||postgres'),
		'all jobs on ' . $node->name);
}

# a transaction that aborts, and one under way, leave nothing to see
$s1->query('BEGIN');
$s1->query("SELECT zk_once('/a', key => 'k3')");
is($test->look($two, "SELECT run_keys[1] FROM zk_jobs WHERE path = '/a'"),
	"k\"2", 'a turn is seen when it is used up');

# ---- what is kept, and what is removed

is($s2->query("SELECT zk_once_purge('1 hour')"), 0, 'all of them are younger');
is($s2->query("SELECT zk_once_purge('infinity'::text::interval)"), 0, 'or than any time')
  if $one->pg_version >= 17;
$zk->set('/zklock/.once/a/b/.history', 'no json');
is($test->look($one, "SELECT recorded_at IS NOT NULL, run_keys IS NULL, server IS NULL"
		  . " FROM zk_jobs WHERE path = '/a/b'"), 't|t|t', 'one that cannot be read');
is($s2->query("SELECT zk_once_purge('0')"), 2, 'those that nobody uses');
is($test->look($one, $paths), '/a /a/b', 'are gone');
ok($test->queue('/.once/a') == 1, 'the other one still runs');
$s1->query('COMMIT');
is($test->look($two, "SELECT run_keys[1] FROM zk_jobs WHERE path = '/a'"),
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
is($test->look($two, "SELECT count(*) FROM zk_jobs WHERE path LIKE '/many/%'"),
	100, 'a hundred jobs');

# ---- ZooKeeper is away, also in the middle

my ($export) =
  slurp_file(Document->path('monitoring/queries.yaml')) =~ /^zklock_job:\n.*?query: \|\n(.*?)  metrics:/ms;
my $exported = "SELECT count(*) FROM ($export) AS exported";
is($s2->query($exported), 102, 'the exporter sees all');
$s2->query("SET zklock.answer_timeout = '1s'");
foreach my $middle ('x50[^/0-9]', 'x50/.history', 'x100/.history')
{
	$net->catch('server2-zk', $middle);
	is($s2->error('SELECT count(*) FROM zk_jobs'), '08006', "no answer about $middle");
	$net->pass('server2-zk');
	$test->wait_connected($two);
	is($s2->query('SELECT count(*) FROM zk_jobs'), 102, 'and then there is one');
}
$test->zk->pause;
is($s2->error('SELECT count(*) FROM zk_jobs'), '08006', 'ZooKeeper hangs');
$test->look_until($two, "SELECT state = 'connected' FROM zk_status", 'f', 'which is known in time');
is($s2->error('SELECT count(*) FROM zk_jobs'), '08006', 'and no reason to show no jobs');
$s2->query("SET zklock.answer_timeout = '1h'");
is($s2->query($exported), 0, 'but the exporter does not wait at all');
$test->zk->resume;
$test->wait_connected($_) foreach $one, $two;
$s2->query('RESET zklock.answer_timeout');
is($s2->query('SELECT count(*) FROM zk_jobs'), 102, 'it is back');

is($s2->query("SELECT zk_once_purge('0')"), 101, 'all are purged at once');
is($test->look($one, $paths), '/a/b', 'all but what is not readable');
is($s2->query("SELECT zk_once('/a', key => 'k1')"), 't', 'a run key can be used again');
is($s2->query("SELECT zk_once_reset('/a/b')"), 't', 'a reset makes it readable');
is($s2->query("SELECT zk_once_purge('0')"), 2, 'and then it goes, too');

# ---- who may

$one->safe_psql('postgres', 'CREATE ROLE ops LOGIN IN ROLE pg_monitor; CREATE ROLE job LOGIN;'
	  . ' GRANT EXECUTE ON FUNCTION zk_once TO job, ops');
my ($ops, $job) = map { $test->session($one, user => $_) } 'ops', 'job';
is($ops->query('SELECT count(*) FROM zk_jobs'), 0, 'pg_monitor looks');
is($job->error('SELECT * FROM zk_jobs'), '42501', 'others do not');
$one->safe_psql('postgres', 'GRANT SELECT ON zk_jobs TO job');
$job->query("SELECT zk_once('/job/own', key => 'k')");
$job->query("BEGIN; SELECT zk_once('/job/undone', key => 'k'); ROLLBACK");
$ops->query("SELECT zk_once('/job/other', key => 'k')");
$s1->query("SELECT zk_once('/job/own', key => 'k2')");
$s1->query("SELECT zk_once_reset('/job/other')");
is($test->look($one, "SELECT string_agg(path || ' ' || owner, ', ' ORDER BY path) FROM zk_jobs"),
	'/job/other ops, /job/own job, /job/undone job',
	'a record belongs to the role that made it, whoever runs the job later');
is($job->query("SELECT string_agg(path || ' ' || coalesce(server, '-'), ', ' ORDER BY path) FROM zk_jobs"),
	'/job/other -, /job/own server1, /job/undone -', 'an ordinary role sees them, if it may look');
$one->safe_psql('postgres', "SELECT zk_grant('/job', 'job', 'once'), zk_grant('/job/own', 'job', 'all')");
is($job->query("SELECT string_agg(path, ', ' ORDER BY path) FROM zk_jobs"), '/job/own', 'and what it may look at');
$one->safe_psql('postgres', 'DELETE FROM zk_rights');
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

# More than the exporter takes: those are missing that ran last.
is($s1->query("SELECT string_agg(path, ' ' ORDER BY path) FROM zk_jobs"
		  . " WHERE path NOT IN (SELECT path FROM ($export) AS exported)"),
	'/full/ops1 /full/ops11 /full/super', 'the exporter has a thousand');
is($ops->query($exported), 1000, 'also as another role');

is($job->query("SELECT zk_once_purge('0')"), 1000, 'the role makes room');
is($job->query("SELECT zk_once('/full/job1001', key => 'k')"), 't', 'and has it');
is($s1->error("SELECT zk_once_purge('-1 s')"), '22023', 'a negative time');
is($s1->query('SELECT zk_once_purge(NULL)'), '', 'NULL does nothing');
$test->finish;
