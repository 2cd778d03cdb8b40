# A cluster of the real Patroni, whose members and zklock use the same ZooKeeper,
# configured and switched over as docs/procedures.md says: jobs and leaders go on at
# once on the other member, and what a standby holds it keeps.  A drain that does
# not succeed is taken back.  Then the primary dies, and the standby takes over.  In the
# end a primary is cut off in the midst of a job, and goes on, while the standby is promoted
# and runs that job: only its run commits.

use strict;
use warnings;

use Test::More;

use Document;
use File::Path qw(rmtree);
use PatroniMember;
use PostgreSQL::Test::Utils;
use Procedure;
use TcpProxy;
use ZklockTest;

my $test = ZklockTest->new(servers => 1, session_timeout => '10s');
my ($outside) = $test->nodes;
my ($config) = map { $_->{text} } Document->new('docs/procedures.md')->blocks('yaml');
my $net = TcpProxy->new;
my $db1 = PatroniMember->new('db1', $test->zk, $config,
	'zklock.connect_string' => '127.0.0.1:' . $net->route('db1-zk', $test->zk->port));
my $db2 = PatroniMember->new('db2', $test->zk, $config);

# One query on a member
sub look
{
	my ($member, $sql) = @_;
	my $s = $test->session($member);
	my $value = $s->query($sql);

	$s->close;
	return $value;
}

sub switchover
{
	my (%here) = @_;
	my $procedure = Procedure->new('docs/procedures.md', 'Switch over',
		'/etc/patroni/config.yml' => $db1->config, %here);

	$procedure->services(db1 => $db1, db2 => $db2);
	return $procedure->start(0);
}

# ---- the members

$db1->start;
$db1->wait_role('primary') or BAIL_OUT(slurp_file($db1->logfile));
$db2->start;
$db2->wait_role('replica') or BAIL_OUT(slurp_file($db2->logfile));
look($db1, 'CREATE EXTENSION zklock');
ok(wait_for(sub { (eval { look($db2, 'SELECT state FROM zk_status') } // '') eq 'connected' },
		'the standby connects'),
	'one CREATE EXTENSION is enough');
is(look($_, 'SHOW cluster_name'), 'batman', $_->name . ' has the cluster_name of all members')
  foreach $db1, $db2;
is(look($db2, 'SELECT server, in_recovery FROM zk_servers ORDER BY server'),
	"db1|f\ndb2|t\nserver1|f", 'but a name of its own');

# ---- locks of both

my $leader = $test->session($db1);
my $candidate = $test->session($db2);
my $job = $test->session($db1);
my $standby = $test->session($db2);
my $rival = $test->session($outside);
my $token = $leader->query("SELECT zk_lead('/p/leader', id => 'db1')");
$test->enqueue($candidate, "SELECT zk_lead('/p/leader', id => 'db2')", '/p/leader');
$standby->query("SELECT zk_lock('/p/standby')");
is($standby->query("SELECT zk_once('/p/read', key => 'a')"), 't', 'a standby may run a job');
is($standby->error('CREATE TABLE t ()'), '25006', 'that does not write');
$job->query("BEGIN; SELECT zk_xact_lock('/p/job')");
$test->enqueue($rival, "SELECT zk_lock('/p/job')", '/p/job');

# ---- a drain that does not succeed

my $shell = switchover("'1 min'" => "'0'");
is($shell->status >> 8, 1, 'a job still runs: there is no switchover');
like($shell->output, qr{^/p/job\|granted\|}m, 'and the script tells the job');
is(look($db1, 'SELECT draining, pg_is_in_recovery() FROM zk_status'), 'f|f', 'nothing has changed');
$candidate->result;

# ---- a switchover

$shell = switchover();
wait_for(sub { look($db1, 'SELECT draining FROM zk_status') eq 't' }, 'it drains');
is($job->query('CREATE TABLE done (); COMMIT; SELECT 1'), 1, 'the job commits');
cmp_ok($rival->value, '>', 0, 'and another server has its lock');
is($shell->status, 0, 'the script ends well') or diag $shell->output;
$db2->wait_role('primary');
$db1->wait_role('replica');
# Patroni says so before PostgreSQL has ended its recovery.
wait_for(sub { $standby->query('SELECT pg_is_in_recovery()') eq 'f' }, 'the promotion');
is($standby->query("SELECT pg_is_in_recovery(), zk_unlock('/p/standby')"), 'f|t',
	'the standby kept its lock as it became the primary');
is($candidate->query("SELECT id FROM zk_leader('/p/leader')"), 'db2', 'its session leads');
is($candidate->query('BEGIN; CREATE TABLE led (); COMMIT; SELECT count(*) FROM done'), 0,
	'and can write, with what the job did');
is(look($db2, 'SELECT sessions_lost FROM zk_stat_server'), 0, 'no ZooKeeper session was lost');
ok(wait_for(sub {
			(eval { look($db1, 'SELECT state, draining FROM zk_status') } // '') eq 'connected|f';
		},
		'the old primary'),
	'the old primary is a standby that is not drained');
is(look($db1, 'SELECT server, in_recovery FROM zk_servers ORDER BY server'),
	"db1|t\ndb2|f\nserver1|f", 'as all servers see');
unlike(slurp_file($_->logfile), qr/same system identifier/, $_->name . ' sees no clone')
  foreach $db1, $db2;

# ---- a failover: the machine of the primary dies

$rival->query("SELECT zk_unlock('/p/job')");
my $holder = $test->session($db2);
$holder->query("SELECT zk_lock('/p/dead')");
$standby->close;
$standby = $test->session($db1);
$standby->query("SELECT zk_lock('/p/standby')");
$test->enqueue($rival, "SELECT zk_lock('/p/dead')", '/p/dead');
$db2->die_at_once(split /\|/, look($db2, 'SELECT session_pid, worker_pid FROM zk_status'));
cmp_ok($rival->value, '>', 0, 'a failover: another server gets the lock of the dead one');
$db1->wait_role('primary');
wait_for(sub { $standby->query('SELECT pg_is_in_recovery()') eq 'f' }, 'the promotion');
is($standby->query("SELECT pg_is_in_recovery(), zk_unlock('/p/standby')"), 'f|t',
	'and the standby keeps its lock as it becomes the primary');
is($standby->query("BEGIN; SELECT zk_xact_lock('/p/job') > 0; CREATE TABLE after (); COMMIT"),
	't', 'a job runs there');

$_->close foreach $leader, $candidate, $job, $standby, $rival, $holder;

# ---- the primary is cut off, and nobody demotes it

my $nightly = "CALL zk_run_exclusive('/p/nightly', 'CALL nightly()')";

rmtree($db2->data_dir);
$db2->start;
$db2->wait_role('replica') or BAIL_OUT(slurp_file($db2->logfile));
look($db1, 'CREATE TABLE run (by text)');
look($db1, "CREATE PROCEDURE nightly() LANGUAGE plpgsql AS 'BEGIN"
	  . ' INSERT INTO run VALUES (current_setting($$zklock.server_name$$));'
	  . " PERFORM pg_advisory_xact_lock(1); END'");
my $gate = $test->session($db1);
my $cut_off = $test->session($db1);
my $transaction = $test->session($db1);
$gate->query('SELECT pg_advisory_lock(1)');
$cut_off->send($nightly);
ok(wait_for(sub { look($db1, 'SELECT count(*) FROM pg_locks WHERE NOT granted') == 1 }, 'the job'),
	'the primary is in the midst of its job');
$transaction->query(
	"BEGIN; SELECT zk_xact_lock('/p/own'); INSERT INTO run VALUES ('db1, a transaction')");

$db1->hang;
$net->hold('db1-zk');
$db2->wait_role('primary');
wait_for(sub { look($db2, 'SELECT pg_is_in_recovery()') eq 'f' }, 'the promotion');
is(look($db1, 'SELECT pg_is_in_recovery()'), 'f', 'it is cut off: now there are two primaries');
foreach my $member ($db1, $db2)
{
	is(look($member, 'BEGIN; SELECT pg_try_advisory_xact_lock(2);'
			  . ' CREATE TABLE by_advisory_lock (); COMMIT'),
		't', $member->name . ': pg_advisory_lock lets the job run');
	is(look($member, 'SELECT count(*) FROM by_advisory_lock'), 0, 'and commit');
}

my $new = $test->session($db2);
is($new->error($nightly), '', 'the new primary runs the job');
$gate->query('SELECT pg_advisory_unlock(1)');
is($cut_off->sqlstate, '40001', 'that of the old one fails');
is($transaction->error('COMMIT'), '40001', 'as does a transaction with a lock');
is(look($db1, 'SELECT count(*) FROM run'), 0, 'the old one has committed nothing');
is(look($db2, 'SELECT by FROM run'), 'db2', 'only the run of the new one counts');

$net->pass('db1-zk');
$db1->wake;
$_->close foreach $gate, $cut_off, $transaction, $new;
$_->stop foreach $db1, $db2;
$test->finish;
