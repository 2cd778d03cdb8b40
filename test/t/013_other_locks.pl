# When a transaction lock gets its next holder, PostgreSQL has released all other locks
# of the former holder's transaction.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $rounds = 20;
my $test = ZklockTest->new(
	servers => 1,
	conf => "max_locks_per_transaction = 512\nlock_timeout = '3min'\n");
my ($one) = $test->nodes;
my $holder = $test->session($one);
my $next = $test->session($one);

# So many tables that releasing their locks takes a while
$holder->query('CREATE TABLE many (n integer) PARTITION BY LIST (n)');
$holder->query("DO \$\$ BEGIN FOR n IN 1 .. 2000 LOOP"
	  . ' EXECUTE format(\'CREATE TABLE many_%1$s PARTITION OF many FOR VALUES IN (%1$s)\', n);'
	  . ' IF n % 200 = 0 THEN COMMIT; END IF; END LOOP; END $$');

# How often the next holder is refused a table.  The holder before it has locked that
# table in the same transaction as the distributed lock, and ends it by this statement.
sub count_refusals
{
	my ($end) = @_;
	my $refused = 0;

	foreach my $round (1 .. $rounds)
	{
		$holder->query("BEGIN; SAVEPOINT s; SELECT zk_xact_lock('/other');"
			  . ' LOCK TABLE many IN ACCESS EXCLUSIVE MODE');
		$next->send(
			'DO $$ BEGIN PERFORM zk_xact_lock(\'/other\');'
			  . ' LOCK TABLE many IN ACCESS SHARE MODE NOWAIT; END $$');
		$test->wait_queue('/other', 2);
		$holder->query($end);
		$refused += $next->sqlstate eq '55P03';
		$holder->query('ROLLBACK');
	}
	return $refused;
}

is(count_refusals('RELEASE s; COMMIT'), 0, 'after a commit its locks are released');
is(count_refusals('ROLLBACK'), 0, 'after a rollback as well');
is(count_refusals('ROLLBACK TO s'), 0, 'and after one to a savepoint');

$test->finish;
