# Clones, dumps and restored servers, made as docs/procedures.md says, while locks are
# held: a clone takes no part in the fleet, or has locks of its own; a dump brings
# the extension, its rights and the settings of roles; a restored server knows
# which turns are used up.  Then ZooKeeper itself goes back to older data: all locks
# are lost, and nothing is granted before a superuser says so on each server.

use strict;
use warnings;

use File::Path qw(rmtree);
use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::RecursiveCopy;
use PostgreSQL::Test::Utils;
use Procedure;
use ZklockTest;

my $test = ZklockTest->new(init => { allows_streaming => 1 });
my ($one, $two) = $test->nodes;
my $servers = 'SELECT string_agg(server, $$,$$ ORDER BY server) FROM zk_servers';
my $holder = $test->session($one);
my $token = $holder->query("SELECT zk_lock('/b/held')");

# ---- a clone

my $clone = PostgreSQL::Test::Cluster->new('clone');
$clone->{_host} = $one->host;
my $cloning = Procedure->new('docs/procedures.md', 'Make a clone',
	'/var/lib/postgresql/clone' => $clone->data_dir,
	'5433' => $clone->port);
$cloning->services(db1 => $one, clone => $clone);
$cloning->run(0);
push @{ $test->{nodes} }, $clone;
my $s = $test->session($clone);
is($s->query('SELECT state, session_id IS NULL FROM zk_status'), 'disabled|t',
	'the clone does not connect');
is($s->error("SELECT zk_try_lock('/b/held')"), '55000', 'and takes no lock');
is($s->query('SELECT count(*) FROM zk_locks'), 0, 'it has inherited none');
is($test->look($one, $servers), 'server1,server2', 'the fleet has no more servers');
$s->close;
$test->stop_looking($clone);
$cloning->run(1);
$test->wait_connected($clone);
$s = $test->session($clone);
cmp_ok($s->query("SELECT zk_lock('/b/held')"), '>', 0, 'another root: locks of its own');
is($test->look($clone, $servers), 'clone', 'in a fleet of its own');
is($holder->query("SELECT zk_fencing_token('/b/held')"), $token, 'the original keeps its lock');
unlike(slurp_file($_->logfile), qr/same system identifier/, $_->name . ': no clone is reported')
  foreach $one, $two;
unlike(slurp_file($clone->data_dir . '/log'), qr/same system identifier/, 'nor by the clone');
$s->close;
$test->stop_looking($clone);
$clone->stop;
pop @{ $test->{nodes} };

# ---- a dump

$one->safe_psql('postgres', 'CREATE DATABASE billing');
$one->safe_psql('billing', <<'EOS');
CREATE ROLE batch_role;
ALTER ROLE batch_role SET zklock.max_at_least = 0;
CREATE EXTENSION zklock;
GRANT EXECUTE ON FUNCTION zk_try_lock(text, interval, interval, interval) TO batch_role;
CREATE TABLE fence (token bigint);
EOS
$one->safe_psql('billing', "INSERT INTO fence VALUES ($token)");
my $dump = Procedure->new('docs/procedures.md', 'Move a database with pg_dump');
$dump->services(db1 => $one, db2 => $two);
$dump->run;
is($two->safe_psql('billing', <<'EOS'), "$token|t|f|{zklock.max_at_least=0}|zklock", 'a dump');
SELECT token,
  has_function_privilege('batch_role', 'zk_try_lock(text, interval, interval, interval)', 'EXECUTE'),
  has_function_privilege('batch_role', 'zk_lock(text, interval, interval, interval)', 'EXECUTE'),
  (SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'batch_role'::regrole),
  (SELECT extname FROM pg_extension WHERE extname = 'zklock')
FROM fence;
EOS
$s = $test->session($two, dbname => 'billing');
is($s->query("SELECT zk_try_lock('/b/held')"), 'f', 'locks are those of the fleet');
$s->close;
is($holder->query("SELECT zk_fencing_token('/b/held')"), $token, 'none was disturbed');
$holder->close;
$test->wait_queue('/b/held', 0);

# ---- a server that is lost and restored

$one->backup('base');
is($test->look($one, "SELECT zk_once('/b/job', key => 'today')"), 't', 'a job runs');
$one->safe_psql('postgres', 'CREATE TABLE done ()');
$test->stop_looking($one);
$one->stop('immediate');
rmtree($one->data_dir);
PostgreSQL::Test::RecursiveCopy::copypath($one->backup_dir . '/base', $one->data_dir);
chmod 0700, $one->data_dir;
append_to_file($one->data_dir . '/postgresql.auto.conf', "zklock.enabled = off\n");
$one->start;
is($test->look($one, "SELECT to_regclass('done') IS NULL, state FROM zk_status"),
	't|disabled', 'it is restored to the time before the job');
is($test->look($two, "SELECT zk_once('/b/job', key => 'today')"), 'f',
	'but its turn stays used up');
$test->look($two, "SELECT zk_once_reset('/b/job')");
$one->safe_psql('postgres', "ALTER SYSTEM SET zklock.enabled = 'on'");
$one->reload;
$test->wait_connected($one);
is($test->look($one, "SELECT zk_once('/b/job', key => 'today')"), 't',
	'it can run again after zk_once_reset()');

# ---- ZooKeeper's data is restored from a backup

my $data = "$test->{zk}{dir}/data";
my %s = map { $_->name => $test->session($_) } $one, $two;
$_->query("SET zklock.lost_lock_action = 'none'") foreach values %s;
$s{server1}->query("SELECT zk_lock('/b/older')");
$test->zk->stop;
PostgreSQL::Test::RecursiveCopy::copypath($data, "$data.copy");
$test->zk->start;
foreach my $node ($one, $two)
{
	# So many that the ids of the copy are lower for a while; of one name, most would
	# need no transaction, as the lock is cached.
	$test->wait_connected($node);
	$s{ $node->name }->query(
		"SELECT zk_lock('/b/x' || n), zk_unlock('/b/x' || n) FROM generate_series(1, 300) n");
}
$token = $s{server2}->query("SELECT zk_lock('/b/later')");
is($s{server2}->query("SELECT zk_once('/b/later-job', key => 'a')"), 't', 'another job');
$test->zk->client->quit;
delete $test->zk->{client};
$test->zk->kill9;
rmtree($data);
rename "$data.copy", $data or die "could not rename: $!";
$test->zk->start;
foreach my $node ($one, $two)
{
	my $name = $node->name;

	$test->look_until($node,
		"SELECT last_error LIKE 'transaction ids of ZooKeeper have gone back%'"
		  . " AND state <> 'connected' FROM zk_status",
		't', "$name notices");
	is($test->look($node, "SELECT bool_and(state = 'lost') FROM zk_locks"), 't',
		"$name: its locks are lost");
	$s{$name}->query('SELECT zk_unlock_all()');
	$s{$name}->send("SELECT zk_lock('/b/new')");
}
$test->look($one, 'SELECT zk_accept_lower_tokens()');
cmp_ok($s{server1}->value, '<', $token, 'the first server accepts them: it gets a lock');
ok($s{server2}->busy, 'the other one has to be told, too');
$test->look($two, 'SELECT zk_accept_lower_tokens()');
$test->wait_connected($two);
$test->wait_queue('/b/new', 2);
$s{server1}->query("SELECT zk_unlock('/b/new')");
cmp_ok($s{server2}->value, '>', 0, 'then it waits, and gets the lock after the first');
is($s{server1}->query("SELECT zk_once('/b/later-job', key => 'a')"), 't',
	'what is not in the backup can run again');
is($s{server1}->query("SELECT zk_once('/b/job', key => 'today')"), 'f', 'the rest cannot');
$_->close foreach values %s;
$test->finish;
