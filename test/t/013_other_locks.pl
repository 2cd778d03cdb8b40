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

# How often the next holder gets a table or is refused it, by SQLSTATE.  The holder before
# it has locked that table in the same transaction as the distributed lock, and ends it by
# this statement.
sub outcomes
{
	my ($end) = @_;
	my %outcomes;

	foreach my $round (1 .. $rounds)
	{
		$holder->query("BEGIN; SAVEPOINT s; SELECT zk_xact_lock('/other');"
			  . ' LOCK TABLE many IN ACCESS EXCLUSIVE MODE');
		$next->send(
			'DO $$ BEGIN PERFORM zk_xact_lock(\'/other\');'
			  . ' LOCK TABLE many IN ACCESS SHARE MODE NOWAIT; END $$');
		$test->wait_queue('/other', 2);
		$holder->query($end);
		$outcomes{ $next->sqlstate }++;
		$holder->query('ROLLBACK');
	}
	return \%outcomes;
}

is_deeply(outcomes('RELEASE s; COMMIT'), { '' => $rounds }, 'after a commit its locks are released');
is_deeply(outcomes('ROLLBACK'), { '' => $rounds }, 'after a rollback as well');
is_deeply(outcomes('ROLLBACK TO s'), { '' => $rounds }, 'and after one to a savepoint');

$test->finish;
