# zk_fence().  The worked example of docs/guarantees.md: the statements that it shows are
# the ones that run here, on a server without zklock's library, and a holder that was
# stopped too long is refused.  Then what else a fence does, and for whom.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ServerTemplates;
use ZklockTest;

my $page =
  slurp_file(dirname(abs_path(__FILE__)) . '/../../docs/guarantees.md');
my ($example) = $page =~ /^## Fencing tokens(.*)/ms;
my ($resource, $take, $change, $trigger) = $example =~ /^```sql\n(.*?)^```$/msg;
my ($token) = $change =~ /zk_fence\('\S+', (\d+)\)/;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $plain = PostgreSQL::Test::Cluster->new('plain');
ServerTemplates::init($plain);
$plain->start;
my $keeper = $test->session($plain);
$keeper->query($_) foreach split /;.*\n/, $resource;

# Makes the change of the example under a token.
sub error_of_change
{
	my ($mine) = @_;
	my $session = $test->session($plain);
	my $error = $session->error($change =~ s/$token/$mine/gr);

	$session->close;
	return $error;
}

my $stopped = $test->session($one);
my $next = $test->session($two);
my $stale = $stopped->query($take);
$test->enqueue($next, $take, '/billing/run');

# Its server is cut off until the session is gone.
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
kill 'KILL', $test->status($one, 'session_pid');
my $fresh = $next->value;
cmp_ok($fresh, '>', $stale, 'the next holder has a higher token');
is(error_of_change($fresh), '', 'and passes the fence');
is(error_of_change($fresh), '', 'as often as it likes');
is(error_of_change($stale), 'ZK001', 'the one that was stopped does not');
is($keeper->query('SELECT balance FROM account'),
	80, 'what it would have changed is not changed');

# ---- two at a time, and what is undone

my $late = $test->session($plain);
$keeper->query("BEGIN; SELECT zk_fence('/f', 10)");
$late->send("SELECT zk_fence('/f', 9)");
$late->wait_running;
ok($late->busy, 'the second one waits for the first');
$keeper->query('COMMIT');
is($late->sqlstate, 'ZK001', 'and is refused');
like($late->messages, qr/Token 9 for "\/f" is lower than token 10, which passed at \d/,
	'and told by which');
$keeper->query("BEGIN; SELECT zk_fence('/f', 20)");
$late->send("SELECT zk_fence('/f', 15)");
$keeper->query('ROLLBACK');
is($late->sqlstate, '', 'what is rolled back has not passed');
$keeper->query("BEGIN; SELECT zk_fence('/f', 15); SAVEPOINT s");
is($keeper->error("SELECT zk_fence('/f', 14)"), 'ZK001', 'an error in a savepoint');
is($keeper->query("ROLLBACK TO s; SELECT current_user = session_user"),
	't', 'leaves the role as it was');
$keeper->query('COMMIT');
$late->query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1');
$keeper->query("SELECT zk_fence('/f', 16)");
is($late->error("SELECT zk_fence('/f', 15)"), '40001', 'an old snapshot decides nothing');
$late->query('ROLLBACK');
is($keeper->query("SELECT zk_fence_reset('/f', 5)"), 't', 'it is reset');
is($late->error("SELECT zk_fence('/f', 6)"), '', 'then lower ones pass');
is($keeper->query("SELECT zk_fence_reset('/none', 5)"), 'f', 'one that is new is set');
is($late->error("SELECT zk_fence('/none', 4)"), 'ZK001', 'and counts');
my %bad = (
	"zk_fence(NULL, 1)" => '22004',
	"zk_fence('/f', NULL)" => '22004',
	"zk_fence('/f', 0)" => '22023',
	"zk_fence('f', 1)" => '22023',
	"zk_fence_reset('/f', NULL)" => '22004',
	"zk_fence_reset('/f', -1)" => '22023',
	"zk_fence_trigger()" => '39P01');
is($late->error("SELECT $_"), $bad{$_}, "$_") foreach sort keys %bad;

# ---- the trigger

$keeper->query($trigger);
is($late->error('UPDATE account SET balance = 0'), '55000', 'a change without a token');
$late->query("SET zklock.fencing_token = '$stale'");
is($late->error('UPDATE account SET balance = 0'), 'ZK001', 'with one that is stale');
$late->query("SET zklock.fencing_token = '$fresh'");
is($late->error('UPDATE account SET balance = 0'), '', 'with one that is not');
$late->query("SET zklock.fencing_token = 'x'");
is($late->error('DELETE FROM account'), '22P02', 'with none at all');
$keeper->query(
	'CREATE TABLE rows (n int); CREATE TRIGGER fence BEFORE INSERT OR UPDATE OR DELETE ON rows'
	  . " FOR EACH ROW EXECUTE FUNCTION zk_fence_trigger('/rows')");
$late->query("SET zklock.fencing_token = '7'");
$late->query('INSERT INTO rows VALUES (1), (2)');
$late->query('UPDATE rows SET n = n + 1; DELETE FROM rows WHERE n = 3');
is($late->query('SELECT n FROM rows'), 2, 'a trigger of rows lets them through');
$keeper->query('CREATE TRIGGER bad BEFORE INSERT ON rows FOR EACH ROW EXECUTE FUNCTION zk_fence_trigger()');
is($late->error('INSERT INTO rows VALUES (1)'), '39P01', 'a trigger without a name');
$keeper->query('DROP TRIGGER bad ON rows');

# ---- rights

$keeper->query('CREATE ROLE worker LOGIN; GRANT INSERT ON rows TO worker');
my $role = $test->session($plain, user => 'worker');
is($role->error("SELECT zk_fence('/f', 100)"), '42501', 'not everybody may pass a token');
is($role->error('UPDATE zk_fences SET token = 1'), '42501', 'nor write to the table');
is($role->query("SELECT token FROM zk_fences WHERE name = '/f'"), 6, 'but read it');
$keeper->query('GRANT EXECUTE ON FUNCTION zk_fence, zk_fence_reset TO worker');
is($role->error("SELECT zk_fence('/f', 7)"), '', 'whoever may call it may');
is($role->error("SELECT zk_fence_reset('/f', 7)"), '42501', 'but not reset it');
$keeper->query("SELECT zk_grant('/f', 'worker', 'lock')");
is($role->error("SELECT zk_fence('/f', 8)"), '42501', 'rights by prefix bound the names');
$keeper->query("SELECT zk_grant('/f', 'worker', 'fence')");
is($role->error("SELECT zk_fence('/f', 8)"), '', 'with the right one it may');
$role->query("SET zklock.fencing_token = '8'");
is($role->error('INSERT INTO rows VALUES (1)'), '', 'a trigger is the table owner\'s');

# ---- a dump keeps them

$plain->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE owned OWNER owner');
$plain->safe_psql('owned', "CREATE EXTENSION zklock; SELECT zk_fence('/dumped', 5)");
my ($dump, $err) = run_command([ 'pg_dump', '-U', 'owner', '-d', $plain->connstr('owned') ]);
like($dump, qr{^/dumped\t5\t}m, 'the dump of the database\'s owner has them') or diag $err;
$_->close foreach $late, $role;

kill 'CONT', $worker;
$stopped->error('SELECT zk_unlock_all()');
$_->close foreach $keeper, $stopped, $next;
$plain->stop;
$test->finish;
