# Dialects: locks that are shared with Curator's and kazoo's own clients, each
# where zklock.dialects says so.  Clients of all kinds exclude each other, in
# one queue, and see each other in it.

use strict;
use warnings;

use POSIX ();
use Test::More;

use CuratorClient;
use PgSession;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(conf => <<'EOC');
zklock.dialects = '/jobs=curator_mutex, /py=kazoo'
EOC
my ($one, $two) = $test->nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $kazoo = $test->zk->new_client;
my ($s, $t) = ($test->session($one), $test->session($two));
my $s_looks = $test->session($one);
my $dir = PostgreSQL::Test::Utils::tempdir('counters');
my $rounds = 250;

sub slurp_number { return slurp_file($_[0]) =~ s/\s+//gr; }

sub held_ok
{
	my ($client, $key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $client->command('held', $key) }, $case), $case);
}

# ---- one queue: [client, kind] as others see the dialect ----

my %dialects = (
	curator_mutex => [ '/jobs/a', [ $curator, 'mutex' ], [ $kazoo, 'kazoo_mutex' ] ],
	curator_rw => [ '/a', [ $curator, 'write' ], [ $kazoo, 'kazoo' ] ],
	kazoo => [ '/py/a', [ $kazoo, 'Lock' ], [ $kazoo, 'WriteLock' ] ]);

foreach my $dialect (sort keys %dialects)
{
	my ($name, @others) = @{ $dialects{$dialect} };
	my $path = "/zklock$name";
	my $number = 0;

	foreach my $other (@others)
	{
		my ($client, $kind) = @$other;
		my $case = "$dialect: $kind";

		# They hold, we wait; another of them comes, then another of us.
		$client->command('lock', 'first', $kind, $path);
		held_ok($client, 'first', "$case gets a free lock");
		is($s->query("SELECT zk_try_lock('$name')"), 'f', "$case keeps us out");
		$test->enqueue($s, "SELECT zk_lock('$name')", $name);
		$client->command('lock', 'second', $kind, $path);
		$test->wait_queue($name, 3);
		$test->enqueue($t, "SELECT zk_lock('$name')", $name);
		ok($test->still_waits($s), "$case: we wait for it");

		# Each sees all of them.
		is($s_looks->query(
				"SELECT string_agg(mode || ' ' || granted || ' ' ||"
				  . " (pid IS NOT NULL), ', ' ORDER BY position) FROM zk_queue('$name')"),
			'exclusive true false, exclusive false true,'
			  . ' exclusive false false, exclusive false true',
			"$case: zk_queue() shows theirs");
		if ($client == $curator)
		{
			is($curator->command('participants', $kind, $path),
				4, "$case: getParticipantNodes() counts ours");
		}
		else
		{
			my @contenders = @{ $kazoo->contenders($kind, $path) };
			is(scalar(grep { /"zklock"/ } @contenders), 2,
				"$case: contenders() shows ours") or diag("@contenders");
		}

		# First come, first served.
		$client->command('unlock', 'first');
		cmp_ok($s->value, '>', 0, "$case: we come after it");
		ok(!$client->command('held', 'second'), "$case: who waits for us");
		ok($test->still_waits($t), "$case: and the other server");
		$s->query("SELECT zk_unlock('$name')");
		held_ok($client, 'second', "$case: first come");
		ok($test->still_waits($t), "$case: first served");
		$client->command('unlock', 'second');
		cmp_ok($t->value, '>', 0, "$case: the other server comes last");
		$t->query("SELECT zk_unlock('$name')");
		$test->wait_queue($name, 0);
	}
}

# ---- readers, where there are any ----

foreach my $case ([ '/b', $curator, 'read', 'write' ],
	[ '/b', $kazoo, 'kazoo_read', 'kazoo' ],
	[ '/py/b', $kazoo, 'ReadLock', 'WriteLock' ])
{
	my ($name, $client, $reader, $writer) = @$case;

	$client->command('lock', 'r', $reader, "/zklock$name");
	held_ok($client, 'r', "$reader gets in");
	is($s->query("SELECT zk_try_lock_shared('$name')"), 't', "$reader: so do we");
	is($t->query("SELECT zk_try_lock('$name')"), 'f', "$reader: but no writer");
	$client->command('lock', 'w', $writer, "/zklock$name");
	$test->wait_queue($name, 3);
	$client->command('unlock', 'r');
	ok(!$client->command('held', 'w'), "$writer waits for our reader");
	$s->query("SELECT zk_unlock_shared('$name')");
	held_ok($client, 'w', "$writer comes after all readers");
	is($s->query("SELECT zk_try_lock_shared('$name')"), 'f', "$writer keeps ours out");
	$client->command('unlock', 'w');
	$test->wait_queue($name, 0);
}

# ---- readers between two writers: they wait for the first one only ----

foreach my $case ([ $curator, 'read' ], [ $kazoo, 'kazoo_read' ])
{
	my ($client, $reader) = @$case;

	$s->query("SELECT zk_lock('/b')");
	$client->command('lock', 'r', $reader, '/zklock/b');
	$test->wait_queue('/b', 2);
	$test->enqueue($t, "SELECT zk_lock('/b')", '/b');
	$s->query("SELECT zk_unlock('/b')");
	held_ok($client, 'r', "$reader between two writers gets in");
	ok($t->busy, "$reader: the second writer waits");
	$client->command('unlock', 'r');
	cmp_ok($t->value, '>', 0, "$reader: and comes then");
	$t->query("SELECT zk_unlock('/b')");
	$test->wait_queue('/b', 0);
}

# ---- broken by an operator: a foreign holder, then one of ours ----

foreach my $dialect (sort keys %dialects)
{
	my ($name, $other) = @{ $dialects{$dialect} };
	my ($client, $kind) = @$other;

	$client->command('lock', 'broken', $kind, "/zklock$name");
	held_ok($client, 'broken', "$dialect: $kind holds");
	$test->enqueue($t, "SELECT zk_lock('$name')", $name);
	is($s->query("SELECT zk_break_lock('$name')"), 't', "$dialect: it is broken");
	cmp_ok($t->value, '>', 0, "$dialect: who waited gets the lock");
	$s->send("SELECT zk_break_lock('$name')");
	$test->look_until($two, "SELECT count(*) FROM zk_locks WHERE state = 'lost'",
		1, "$dialect: and loses it, too");
	$t->query('SELECT zk_unlock_all()');
	is($s->value, 't', "$dialect: ours is broken as well");
	$test->wait_queue($name, 0);
	$client->command('unlock', 'broken') if $client == $kazoo;
}

# ---- many of all kinds at once ----

# So often: takes the lock, adds one to the number in a file, releases.
sub count_here
{
	my ($node, $name, $file) = @_;
	my $pid = fork // die $!;

	return $pid if $pid;
	my $session = PgSession->new($node);
	foreach (1 .. $rounds)
	{
		$session->query("SELECT zk_lock('$name')");
		my $number = slurp_number($file);
		select undef, undef, undef, 0.0002;
		open my $out, '>', $file or POSIX::_exit(1);
		print $out $number + 1;
		close $out or POSIX::_exit(1);
		$session->query("SELECT zk_unlock('$name')");
	}
	POSIX::_exit(0);
}

# ReadLock of kazoo 2.8 waits for writers behind it, which wait for it, and so
# comes to a stop without us as well: it is left out.
my %crowds = (
	'/jobs/c' => [ [ $curator, 'mutex' ], [ $curator, 'mutex' ], [ $kazoo, 'kazoo_mutex' ] ],
	'/c' => [
		[ $curator, 'write' ], [ $kazoo, 'kazoo' ], [ $curator, 'read' ], [ $kazoo, 'kazoo_read' ] ],
	'/py/c' => [ [ $kazoo, 'Lock' ], [ $kazoo, 'WriteLock' ] ]);

foreach my $name (sort keys %crowds)
{
	my @crowd = @{ $crowds{$name} };
	my $file = "$dir/counter";
	my $expected = $rounds * (2 + grep { $_->[1] !~ /read/ } @crowd);

	open my $out, '>', $file or die "$file: $!";
	print $out 0;
	close $out;
	my @here = map { count_here($_, $name, $file) } $one, $two;
	$crowd[$_][0]->command('count', "c$_", $crowd[$_][1], "/zklock$name", $file,
		$rounds) foreach 0 .. $#crowd;
	foreach my $i (0 .. $#crowd)
	{
		ok(wait_for(sub { $crowd[$i][0]->command('counted', "c$i") == $rounds },
				'a client of another kind'),
			"$name: $crowd[$i][1] is through");
	}
	foreach my $pid (@here)
	{
		waitpid $pid, 0;
		is($?, 0, "$name: one of ours is through");
	}
	is(slurp_number($file), $expected, "$name: no two were inside at once");
}

# ---- errors ----

is($s->error("SELECT zk_lock_shared('/jobs/a')"), '0A000',
	'no shared locks among mutexes');
is($s->error("SELECT zk_try_xact_lock_shared('/jobs/a')"), '0A000',
	'nor tries of such');
like($s->result->{error}{detail} // '', qr/curator_mutex/, 'the dialect is named');
is($s->query("SELECT zk_try_lock('/jobsite')::int + zk_try_lock_shared('/jobsite')::int"),
	2, 'a name that only begins like that is another');
$s->query('SELECT zk_unlock_all()');
is($s->error("ALTER SYSTEM SET zklock.dialects = '$_'"), '22023',
	"\"$_\" is refused")
  foreach '/a', '/a=zookeeper', 'a=kazoo', '/a=kazoo, /a=curator_rw', '/a/=kazoo';
is($s->query("ALTER SYSTEM SET zklock.dialects = '/a=kazoo'"), '', 'others are not');
$s->query('ALTER SYSTEM RESET zklock.dialects');

# A server that would speak another dialect than it is told does not start.
$_->close foreach $s, $s_looks;
$one->stop('fast');
$one->append_conf('postgresql.conf', "zklock.dialects = '/jobs=curator'");
ok(!$one->start(fail_ok => 1), 'a server with a bad list does not start');
like(slurp_file($one->logfile), qr/The dialects are "curator_rw"/,
	'and its log says why');
$one->append_conf('postgresql.conf',
	"zklock.dialects = '/jobs=curator_mutex, /py=kazoo'");
$one->start;
$test->wait_connected($one);

$curator->quit;
$test->finish;
