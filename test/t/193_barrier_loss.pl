# A membership in a barrier that is lost while its session waits to leave, inside
# an EXCEPTION block that catches the error: the transaction has relied on the
# membership, and must not commit.  The same if it is not known whether it was
# lost, because ZooKeeper does not answer.  An error that says nothing about the
# membership ends that, and nothing else.

use strict;
use warnings;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my %node = (s => $one, t => $two);
my %session = map { $_ => $test->session($node{$_}) } keys %node;
$_->query('CREATE TABLE work (what text)') foreach values %session;

# Both enter.  Returns the one whose znode is the first by name: it stays until
# the other one has left.
sub both_enter
{
	my ($path) = @_;

	$session{s}->send("SELECT zk_barrier_enter('$path', 2)");
	is($session{t}->query("SELECT zk_barrier_enter('$path', 2)"), 't', "$path: both are in");
	is($session{s}->value, 't', "$path: both are in");
	my ($first) = sort grep { $_ ne 'ready' } $test->zk->client->ls("/zklock$path");
	my ($name) = grep {
		$test->look($node{$_}, "SELECT znode FROM zk_locks WHERE path = '$path'") =~
		  /\Q$first\E/
	} keys %node;
	return ($name, "/zklock$path/$first");
}

sub leaving
{
	my ($path, $condition, $timeout) = @_;
	my $more = $timeout ? ", '$timeout'" : '';

	return "DO \$\$ BEGIN PERFORM zk_barrier_leave('$path'$more);"
	  . " EXCEPTION WHEN $condition THEN RAISE NOTICE 'caught %', SQLSTATE; END \$\$";
}

sub begin_work
{
	my ($session, $path) = @_;

	$session->query("BEGIN; INSERT INTO work VALUES ('$path')");
	return;
}

sub not_done_ok
{
	my ($name, $path) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($test->look($node{$name}, "SELECT count(*) FROM work WHERE what = '$path'"),
		0, "$path: nothing is committed");
}

# ---- lost while it waits, in a block that catches that, or behind a savepoint ----

foreach my $how ('block', 'savepoint')
{
	my $path = "/lost/$how";
	my ($name, $znode) = both_enter($path);
	my ($s) = $session{$name};
	my ($other) = grep { $_ != $s } values %session;

	begin_work($s, $path);
	$s->query('SAVEPOINT p') if $how eq 'savepoint';
	$s->send($how eq 'block' ? leaving($path, 'serialization_failure') :
		  "SELECT zk_barrier_leave('$path')");
	ok($test->still_waits($s), "$path: it waits for the other one to leave");
	$test->zk->client->delete($znode);
	is($s->sqlstate, $how eq 'block' ? '' : '40001', "$path: its znode is deleted");
	like($s->messages, qr/caught 40001/, "$path: which the block catches")
	  if $how eq 'block';
	$s->query('ROLLBACK TO p') if $how eq 'savepoint';
	is($s->error('SELECT 1'), '40001', "$path: the transaction cannot go on");
	is($s->error('COMMIT'), '', "$path: and is over");
	not_done_ok($name, $path);
	begin_work($s, $path);
	is($s->error('COMMIT'), '40001', "$path: nor does the next one commit");
	is($s->query("SELECT zk_barrier_leave('$path')"), 'f', "$path: until that is acknowledged");
	like($s->messages, qr/was already lost/, "$path: with a warning");
	is($other->query("SELECT zk_barrier_leave('$path')"), 't', "$path: the other one leaves");
}

# The commit alone, with no statement before it
{
	my ($name, $znode) = both_enter('/lost/commit');
	my $s = $session{$name};
	my ($other) = grep { $_ != $s } values %session;

	begin_work($s, '/lost/commit');
	$s->send(leaving('/lost/commit', 'OTHERS'));
	ok($test->still_waits($s), 'it waits for the other one to leave');
	$test->zk->client->delete($znode);
	like($s->messages, qr/caught 40001/, 'its loss is caught');
	is($s->error('COMMIT'), '40001', 'the commit fails');
	not_done_ok($name, '/lost/commit');
	$s->query('SELECT zk_unlock_all()');
	$other->query("SELECT zk_barrier_leave('/lost/commit')");
}

# ---- not in a subtransaction: it all ends with the transaction ----

{
	my ($name, $znode) = both_enter('/lost/alone');
	my $s = $session{$name};
	my ($other) = grep { $_ != $s } values %session;

	$s->send("SELECT zk_barrier_leave('/lost/alone')");
	ok($test->still_waits($s), 'it waits for the other one to leave');
	$test->zk->client->delete($znode);
	is($s->sqlstate, '40001', 'lost outside of a block');
	is($s->error("INSERT INTO work VALUES ('/lost/alone')"), '', 'is over with that statement');
	$other->query("SELECT zk_barrier_leave('/lost/alone')");
}

# ---- another error: the membership ends, and the work is good ----

{
	my ($name) = both_enter('/late');
	my $s = $session{$name};
	my ($other) = grep { $_ != $s } values %session;

	begin_work($s, '/late');
	$s->query("SET LOCAL lock_timeout = '100ms'");
	$s->query(leaving('/late', 'lock_not_available'));
	like($s->messages, qr/caught 55P03/, 'it takes too long');
	is($s->error('COMMIT'), '', 'the work is committed');
	is($s->query("SELECT count(*) FROM zk_locks WHERE path = '/late' AND state = 'granted'"),
		0, 'and it has left');
	is($other->query("SELECT zk_barrier_leave('/late')"), 't', 'the other one, too');
}

# ---- not known whether it is lost ----

{
	my ($name) = both_enter('/unknown');
	my $s = $session{$name};
	my ($other) = grep { $_ != $s } values %session;

	begin_work($s, '/unknown');
	$s->query("SET LOCAL zklock.answer_timeout = '100ms'; SET LOCAL zklock.commit_wait = 0");
	$test->zk->pause;
	$test->look_until($node{$name}, "SELECT lease_remaining <= '0' FROM zk_status",
		't', 'the lease passes');
	$s->query(leaving('/unknown', 'connection_failure', '100ms'));
	like($s->messages, qr/caught 08006/, 'ZooKeeper does not answer');
	is($s->error('COMMIT'), '40001', 'the commit fails');
	not_done_ok($name, '/unknown');
	$test->zk->resume;
	$test->wait_connected($_) foreach $one, $two;
	$_->query('SELECT zk_unlock_all()') foreach values %session;
}

$_->close foreach values %session;
$test->finish;
