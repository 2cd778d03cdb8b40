# What locks cost that do not stay on their server, counted by ZooKeeper itself:
# an uncontended lock in a known directory is one write and no read, re-entry is
# nothing, many clients at once share batches, and a lock held or waited for costs
# heartbeats only.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(time usleep);

use PostgreSQL::Test::Utils;
use ZklockTest;

# ZooKeeper would delete the directories that are empty at that moment: each
# costs a listing when it is used again.  So does a new connection, which a server makes
# whose session process has not answered for a sixth of the session timeout.
my $test = ZklockTest->new(
	servers => 1,
	session_timeout => '60s',
	zk => { container_check_ms => 3_600_000, tick_time => 3000 },
	conf => "max_connections = 100\nzklock.max_requests_per_session = 200\n"
	  . "zklock.cache_time = 0\n");
my ($node) = $test->nodes;
my $s = $test->session($node);

# Requests that ZooKeeper received while something ran, but for the one that
# asks.
sub requests
{
	my ($run) = @_;
	my $before = $test->zk->packets_received;

	$run->();
	return $test->zk->packets_received - $before - 1;
}

is(usual_requests(sub { }), 0, 'counting itself is not counted');

# The directory gets known.
$s->query("SELECT zk_lock('/r'), zk_unlock('/r')") foreach 1, 2, 3;

# A heartbeat or a ping may fall into one measurement, not into most of them.
sub usual_requests
{
	my ($run, $after) = @_;
	my %seen;

	foreach (1 .. 15)
	{
		$seen{ requests($run) }++;
		$after->() if $after;
	}
	diag join ', ', map { "$_ requests: $seen{$_} times" } sort keys %seen;
	return (sort { $seen{$b} <=> $seen{$a} } keys %seen)[0];
}

# A condition on the counters of zk_stat_server that is to hold for what ran, if
# meanwhile the connection was the same one: else that says nothing, and it runs again.
sub no_listing
{
	my ($run, $what) = @_;
	my ($before, $after);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach (1 .. 10)
	{
		$before = $test->status($node, 'connects, listings');
		$run->();
		$after = $test->status($node, 'connects, listings');
		last if $before =~ s/\|.*//r eq $after =~ s/\|.*//r;
	}
	return is($after, $before, "$what: no listing");
}

my $release = sub {
	$s->query("SELECT zk_unlock('/r')");
	$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0);
};
no_listing(
	sub {
		is(usual_requests(sub { $s->query("SELECT zk_lock('/r')") }, $release),
			1, 'an uncontended zk_lock: one request');
		is(usual_requests(sub { $s->query("SELECT zk_xact_lock('/r')") },
				sub { $test->look_until($node, 'SELECT count(*) FROM zk_locks', 0) }) <= 2,
			1, 'a transaction lock: no more than one and its release');
	},
	'locks one after the other');

$s->query("SELECT zk_lock('/r')");
is(usual_requests(
		sub {
			$s->query("SELECT zk_lock('/r'), zk_lock_shared('/r'),"
				  . " zk_xact_lock('/r'), zk_try_lock('/r'),"
				  . " zk_fencing_token('/r'), zk_unlock('/r')");
		}),
	0, 're-entry: none');
$s->query('SELECT zk_unlock_all()');

# Pairs by one client: at most 2.2 requests each
my $pairs = 500;
my $count;
no_listing(
	sub {
		$count = requests(
			sub { $s->query("SELECT zk_lock('/r'); SELECT zk_unlock('/r')")
				  foreach 1 .. $pairs; });
	},
	'one client');
diag sprintf '%.2f requests a pair, one client', $count / $pairs;
cmp_ok($count / $pairs, '<=', 2.2, 'one client: at most 2.2 requests a pair');

# By 64 clients on 64 names: at most 0.4
my $script = PostgreSQL::Test::Utils::tempdir . '/pairs.sql';
append_to_file($script, <<'EOS');
SELECT zk_lock('/r/' || :client_id);
SELECT zk_unlock('/r/' || :client_id);
EOS

sub pgbench
{
	my ($rounds) = @_;
	my $good = PostgreSQL::Test::Utils::run_log(
		[
			'pgbench', '-n', '-M', 'prepared', '-c', 64, '-j', 2, '-t',
			$rounds, '-h', $node->host, '-p', $node->port, '-f', $script,
			'postgres'
		]);
	ok($good, "pgbench, 64 clients, $rounds rounds");
	return;
}
pgbench(10);
no_listing(sub { $count = requests(sub { pgbench(100) }) }, '64 clients on 64 names');
diag sprintf '%.2f requests a pair, 64 clients', $count / 6400;
cmp_ok($count / 6400, '<=', 0.4,
	'64 clients on 64 names: at most 0.4 requests a pair');

# Many at once in one statement after another, all for one client
$s->query('SELECT zk_lock(\'/r/\' || n) FROM generate_series(0, 63) n');
$count = requests(
	sub {
		$s->query('SELECT zk_unlock_all()');
		$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0);
	});
cmp_ok($count, '<=', 16, "zk_unlock_all of 64 locks: $count requests");

# The end of a session releases in a batch as well.
$s->query('SELECT zk_lock(\'/r/\' || n) FROM generate_series(0, 63) n');
$count = requests(
	sub {
		$s->close;
		$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0);
	});
cmp_ok($count, '<=', 16, "the end of a session with 64 locks: $count requests");

# Nobody links the client library but the session process.
my $libdir = $node->config_data('--pkglibdir');
my $linked = `ldd '$libdir/zklock.so'`;
like($linked, qr/libc\.so/, 'ldd works');
unlike($linked, qr/zookeeper/i, 'zklock.so does not link the client library');
my $pid = $test->look($node, 'SELECT pg_backend_pid()');
unlike(slurp_file("/proc/$pid/maps"),
	qr/zookeeper/i, 'nor is it in a backend');
unlike(slurp_file('/proc/' . $test->status($node, 'worker_pid') . '/maps'),
	qr/zookeeper/i, 'nor in the worker');

$test->finish;
