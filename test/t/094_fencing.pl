# The worked example of docs/guarantees.md: the statements that it shows are
# the ones that run here, and a holder that was stopped too long is refused.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $page =
  slurp_file(dirname(abs_path(__FILE__)) . '/../../docs/guarantees.md');
my ($example) = $page =~ /^## Fencing tokens(.*)/ms;
my ($resource, $take, $change) = $example =~ /^```sql\n(.*?)^```$/msg;
my ($token) = $change =~ /pass_fence\('\S+', (\d+)\)/;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
$one->safe_psql('postgres', 'CREATE DATABASE resource');
my $keeper = $test->session($one, dbname => 'resource');
$keeper->query($resource);

# Makes the change of the example under a token.
sub error_of_change
{
	my ($mine) = @_;
	my $session = $test->session($one, dbname => 'resource');
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
is(error_of_change($stale), '40001', 'the one that was stopped does not');
is($keeper->query('SELECT balance FROM account'),
	80, 'what it would have changed is not changed');

kill 'CONT', $worker;
$stopped->error('SELECT zk_unlock_all()');
$_->close foreach $keeper, $stopped, $next;
$test->finish;
