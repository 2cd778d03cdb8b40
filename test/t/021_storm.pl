# Cancels race with grants: many clients of two servers with statement
# timeouts of a few milliseconds, tries, and cancels from outside.  Never two
# holders, and nothing is left at the end.

use strict;
use warnings;

use Test::More;

use Workload;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;

my $seen = Workload::run(
	$test,
	sessions => 20,
	names => 2,
	rounds => 4000,
	settings => "SET statement_timeout = '8ms'",
	lock => "SELECT zk_lock('%s')",
	unlock => "SET statement_timeout = 0; SELECT zk_unlock('%s');"
	  . " SET statement_timeout = '8ms'");
diag explain $seen;
is($seen->{overlaps}, 0, 'statement_timeout: no two holders');
cmp_ok($seen->{grants}, '>', 0, 'statement_timeout: some were granted');
is(join(' ', grep { $_ ne '57014' } keys %{ $seen->{errors} }),
	'', 'statement_timeout: no other error');
cmp_ok($seen->{errors}{'57014'} // 0, '>', 0,
	'statement_timeout: some gave up');
$test->check_no_leaks;

$seen = Workload::run(
	$test,
	sessions => 20,
	names => 2,
	rounds => 4000,
	settings => "SET lock_timeout = '5ms'",
	lock => "SELECT zk_lock('%s')",
	unlock => "SELECT zk_unlock('%s')");
is($seen->{overlaps}, 0, 'lock_timeout: no two holders');
is(join(' ', grep { $_ ne '55P03' } keys %{ $seen->{errors} }),
	'', 'lock_timeout: no other error');
cmp_ok($seen->{errors}{'55P03'} // 0, '>', 0, 'lock_timeout: some gave up');

$seen = Workload::run(
	$test,
	sessions => 20,
	names => 2,
	rounds => 4000,
	lock => "SELECT zk_try_lock('%s', random() * interval '5 ms')",
	unlock => "SELECT zk_unlock('%s')");
is($seen->{overlaps}, 0, 'tries: no two holders');
is_deeply($seen->{errors}, {}, 'tries: no error');
cmp_ok($seen->{refused}, '>', 0, 'tries: some were refused');

$seen = Workload::run(
	$test,
	sessions => 20,
	names => 2,
	rounds => 4000,
	tick => sub {
		$test->look($_,
			'SELECT pg_cancel_backend(pid) FROM zk_locks'
			  . " WHERE state = 'waiting' ORDER BY random() LIMIT 1")
		  foreach $one, $two;
	},
	lock => "SELECT zk_lock('%s')",
	unlock => "SELECT zk_unlock('%s')");
is($seen->{overlaps}, 0, 'cancels: no two holders');
is(join(' ', grep { $_ ne '57014' } keys %{ $seen->{errors} }),
	'', 'cancels: no other error');

$test->finish;
