# An operator breaks locks of other clients: a head with a name of any length
# (row 48), and a writer of Curator's whose reader, with the same number, comes
# to be only after its node is deleted (row 49).  When zk_break_lock() returns,
# nobody of that client's stands beside the next holder.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '4s');
my ($one, $two) = $test->nodes;
my $operator = $test->session($one);
my $client = $test->zk->new_client;
my $other = $test->zk->new_client;
my $zk = $test->zk->client;
my $uuid = '12345678-1234-4234-9234-123456789012';
my $uuid2 = '87654321-1234-4234-9234-123456789012';

# ---- names of any length ----

foreach my $length (200, 600, 5000)
{
	my $path = "/l/$length";
	my $name = 'x' x $length . '__WRIT__';
	my $next = $test->session($two);

	my $znode = $client->create("/zklock$path/$name", 'somebody',
		[ 'ephemeral', 'sequence' ]);
	$test->enqueue($next, "SELECT zk_lock('$path')", $path);
	is($test->look($one,
			"SELECT znode FROM zk_queue('$path') WHERE position = 1"),
		$znode, "$length bytes: zk_queue shows the whole name");
	is($operator->query("SELECT zk_request_release('$path')"),
		1, "$length bytes: it is asked");
	is($zk->get($znode), '__REVOKE__', "$length bytes: and told so");

	my $packets = $test->zk->packets_received;
	$operator->query("SET statement_timeout = '30s'");
	is($operator->query("SELECT zk_break_lock('$path')"),
		't', "$length bytes: it is broken");
	$operator->query('RESET statement_timeout');
	cmp_ok($test->zk->packets_received - $packets,
		'<', 500, "$length bytes: without asking ZooKeeper over and over");
	cmp_ok($next->value, '>', 0, "$length bytes: the next has the lock");
	$next->query("SELECT zk_unlock('$path')");
	$next->close;
	$test->wait_queue($path, 0);
}

# ---- a reader that comes late ----

# A writer holds, and one of ours waits behind it; the operator breaks the
# writer.  Returns once ours has the lock: the writer's node, in the result, and
# the session of ours.
sub break_writer
{
	my ($path) = @_;
	my $next = $test->session($two);
	my $writer = $client->create("/zklock$path/_c_$uuid-__WRIT__",
		'10.0.0.1', [ 'ephemeral', 'sequence' ]);

	$test->enqueue($next, "SELECT zk_lock('$path')", $path);
	$operator->send("SELECT zk_break_lock('$path')");
	cmp_ok($next->value, '>', 0, "$path: the next has the lock");
	return ($writer, $next);
}

sub number { return $_[0] =~ /(\d{10})$/ ? $1 : die; }

# Who makes the reader, and with which unique id: Curator gives it one of its
# own, and may try again in another session.
my %readers = (
	'/r/curator' => [ $client, $uuid2 ],
	'/r/same' => [ $client, $uuid ],
	'/r/again' => [ $other, $uuid2 ]);

foreach my $path (sort keys %readers)
{
	my ($maker, $id) = @{ $readers{$path} };
	my ($writer, $next) = break_writer($path);
	my $n = number($writer);

	# One that has nothing to do with it, behind the next holder
	my $innocent = $other->create("/zklock$path/_c_$uuid2-__READ__",
		'10.0.0.2', [ 'ephemeral', 'sequence' ]);
	my $reader = $maker->create("/zklock$path/_c_$id-__READ__$n", '10.0.0.1',
		['ephemeral']);

	is($operator->value, 't', "$path: broken");
	ok(!$zk->stat($reader), "$path: and its late reader is gone");
	ok($zk->stat($innocent), "$path: another's reader is left alone");
	like(
		slurp_file($one->logfile),
		qr{znode "\Q$reader\E" of distributed lock "$path" is deleted},
		"$path: it is logged");
	is($next->query("SELECT zk_unlock('$path')"),
		't', "$path: the next one had it to itself");
	$other->delete($innocent);
	$next->close;
	$test->wait_queue($path, 0);
}

# It was there before: both nodes go.
{
	my $writer = $client->create("/zklock/r/both/_c_$uuid-__WRIT__",
		'10.0.0.1', [ 'ephemeral', 'sequence' ]);
	my $reader = $client->create(
		"/zklock/r/both/_c_$uuid2-__READ__" . number($writer),
		'10.0.0.1', ['ephemeral']);

	is($operator->query("SELECT zk_break_lock('/r/both')"), 't', 'broken');
	is_deeply([ $zk->ls('/zklock/r/both') ], [], 'both of its nodes are gone');
}

# In a directory that was made anew meanwhile, the number is another's.
{
	my ($writer, $next) = break_writer('/r/anew');
	my $n = number($writer);

	$next->query("SELECT zk_unlock('/r/anew')");
	$next->close;
	$test->wait_queue('/r/anew', 0);
	$zk->delete('/zklock/r/anew');
	my $reader = $other->create("/zklock/r/anew/_c_$uuid2-__READ__",
		'10.0.0.2', [ 'ephemeral', 'sequence' ]);
	is(number($reader), $n, 'the same number, given out again');
	is($operator->value, 't', 'broken');
	ok($zk->stat($reader), 'who has it now is left alone');
	$other->delete($reader);
}

# Where nothing can come late the break does not wait: its session timeout is
# longer than this test may take.
{
	my $slow = $test->new_node('slow', session_timeout => '20s');

	$slow->start;
	$slow->safe_psql('postgres', 'CREATE EXTENSION zklock');
	$test->wait_connected($slow);
	my $s = $test->session($slow);
	$client->create("/zklock/r/reader/_c_$uuid-__READ__",
		'10.0.0.1', [ 'ephemeral', 'sequence' ]);
	$s->query("SET statement_timeout = '8s'");
	is($s->query("SELECT zk_break_lock('/r/reader')"),
		't', 'a reader leaves nothing behind');
	$s->close;
}

$_->close foreach $operator;
$_->quit foreach $client, $other;
$test->finish;
