# One session with several holds on one lock, and others in line.  A session
# never waits for itself; the znode that covers its holds stays until the last
# of them ends; and what can never be granted is refused as a deadlock.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $s = $test->session($one);

# The lock is released in one lifetime and still held in the other, while a
# writer waits.
foreach my $node ($one, $two)
{
	my $case = 'writer on ' . $node->name;

	$s->query("SELECT zk_lock('/o')");
	my $writer =
	  $test->enqueue($test->session($node), "SELECT zk_lock('/o')", '/o');
	$s->query('BEGIN');
	$s->query("SELECT zk_xact_lock('/o')");
	is(scalar($test->queue('/o')), 2, "$case: a covered hold makes no znode");
	$s->query("SELECT zk_unlock('/o')");
	ok($test->still_waits($writer),
		"$case: session lock released, transaction lock holds");
	$s->query('COMMIT');
	cmp_ok($writer->value, '>', 0, "$case: granted after COMMIT");
	$writer->close;
	$test->wait_queue('/o', 0);

	$s->query('BEGIN');
	$s->query("SELECT zk_xact_lock('/o')");
	$writer =
	  $test->enqueue($test->session($node), "SELECT zk_lock('/o')", '/o');
	$s->query("SELECT zk_lock('/o')");
	$s->query('COMMIT');
	ok($test->still_waits($writer),
		"$case: transaction lock released, session lock holds");
	$s->query("SELECT zk_unlock('/o')");
	cmp_ok($writer->value, '>', 0, "$case: granted after zk_unlock");
	$writer->close;
	$test->wait_queue('/o', 0);

	# Exclusive covers shared.
	$s->query("SELECT zk_lock('/o')");
	my $reader = $test->enqueue($test->session($node),
		"SELECT zk_lock_shared('/o')", '/o');
	$s->query("SELECT zk_lock_shared('/o')");
	is(scalar($test->queue('/o')),
		2, "$case: shared under exclusive makes no znode");
	is($s->query("SELECT zk_unlock('/o')"), 't', "$case: exclusive released");
	is($s->query("SELECT zk_unlock_shared('/o')"),
		't', "$case: shared released");
	cmp_ok($reader->value, '>', 0, "$case: the reader gets in");
	$reader->close;
	$test->wait_queue('/o', 0);

	# Shared to exclusive, with nobody else there, and with a reader.
	$s->query("SELECT zk_lock_shared('/o')");
	my $token = $s->query("SELECT zk_lock('/o')");
	cmp_ok($token, '>', 0, "$case: upgraded when alone");
	is($s->query("SELECT zk_unlock('/o')"), 't', "$case: down again");
	$reader = $test->session($node);
	is($reader->query("SELECT zk_try_lock_shared('/o', '1min')"),
		't', "$case: readers get in again");
	$s->send("SELECT zk_lock('/o')");
	$test->wait_queue('/o', 3);
	ok($test->still_waits($s), "$case: an upgrade waits for the reader");
	$reader->query("SELECT zk_unlock_shared('/o')");
	cmp_ok($s->value, '>', $token, "$case: and comes after it");
	$s->query('SELECT zk_unlock_all()');
	$reader->close;
	$test->wait_queue('/o', 0);

	# Shared to exclusive behind a waiting writer can never be.
	$s->query("SELECT zk_lock_shared('/o')");
	$writer =
	  $test->enqueue($test->session($node), "SELECT zk_lock('/o')", '/o');
	is($s->error("SELECT zk_lock('/o')"),
		'40P01', "$case: upgrade behind a writer is refused");
	$test->wait_queue('/o', 2);
	ok($test->still_waits($writer), "$case: the shared lock is still held");
	is($s->query("SELECT zk_unlock_shared('/o')"), 't', "$case: released");
	cmp_ok($writer->value, '>', 0, "$case: the writer gets in");
	$writer->close;
	$test->wait_queue('/o', 0);

	# Two readers that both want to write: the second one is refused.
	my $rival = $test->session($node);
	$_->query("SELECT zk_lock_shared('/o')") foreach $s, $rival;
	$s->send("SELECT zk_lock('/o')");
	$test->wait_queue('/o', 3);
	is($rival->error("SELECT zk_lock('/o')"),
		'40P01', "$case: of two upgrades the second is refused");
	$test->wait_queue('/o', 3);
	ok($test->still_waits($s), "$case: the first waits for its shared lock");
	$rival->close;
	cmp_ok($s->value, '>', 0, "$case: and is granted after it");
	$s->query('SELECT zk_unlock_all()');
	$test->wait_queue('/o', 0);
}

# A refused upgrade inside a transaction: the abort releases it all.
my $writer = $test->session($two);
$s->query("BEGIN; SELECT zk_xact_lock_shared('/o')");
$test->enqueue($writer, "SELECT zk_lock('/o')", '/o');
is($s->error("SELECT zk_xact_lock('/o')"),
	'40P01', 'upgrade refused in a transaction');
$s->query('ROLLBACK');
cmp_ok($writer->value, '>', 0, 'the writer gets in after the abort');

$writer->query('SELECT zk_unlock_all()');

# Not re-entrant: a second acquire, of whatever kind, is an error, and the first
# hold stays as it was.
$s->query('SET zklock.reentrant = off');
foreach my $first ('zk_lock', 'zk_lock_shared', 'zk_try_lock')
{
	$s->query("SELECT $first('/o')");
	is($s->error("SELECT $_('/o')"), '55006', "$_ after $first is an error")
	  foreach qw(zk_lock zk_lock_shared zk_try_lock zk_xact_lock
	  zk_try_xact_lock_shared);
	is($s->query("SELECT string_agg(holds::text, ' ') FROM zk_locks"), '1',
		"$first is counted once");
	$s->query('SELECT zk_unlock_all()');
	$test->wait_queue('/o', 0);
}
$s->query("BEGIN; SELECT zk_xact_lock('/o')");
is($s->error("SELECT zk_lock('/o')"), '55006', 'nor within a transaction');
$s->query('ROLLBACK');
is($s->query("SELECT zk_try_lock('/o')"), 't', 'what was released is free');
$s->query('SET zklock.reentrant = on; SELECT zk_lock(\'/o\')');
is($s->query('SELECT holds FROM zk_locks'), '2', 'with it on, they are counted');

$_->close foreach $s, $writer;
$test->finish;
