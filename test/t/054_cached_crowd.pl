# A name that sessions of one server take again and again, so that its lock is
# cached there, while sessions of another server, Curator and kazoo want it every
# now and then, and workers and session processes die: no two are inside at once,
# everybody gets in, and tokens grow.

use strict;
use warnings;

use Test::More;
use Time::HiRes qw(sleep time);

use CuratorClient;
use PgSession;
use PostgreSQL::Test::Utils;
use Workload;
use ZklockTest;

my $test = ZklockTest->new(
	session_timeout => '10s',
	conf => "zklock.cache_time = '200ms'\nzklock.dialects = '/jobs=curator_mutex, /py=kazoo'\n");
my ($one, $two) = $test->nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $kazoo = $test->zk->new_client;
my $dir = PostgreSQL::Test::Utils::tempdir('counters');

sub slurp_number { return slurp_file($_[0]) =~ s/\s+//gr; }

sub write_number
{
	my ($file, $number) = @_;

	open my $out, '>', $file or POSIX::_exit(1);
	print $out $number;
	close $out or POSIX::_exit(1);
	return;
}

# Until somebody says stop: takes the lock, adds one to the number in a file,
# releases.  Its number of rounds, or what was wrong, is in a file of its own.  It
# pauses between two rounds, and, if it may, as long as somebody says rest.
sub count_here
{
	my ($node, $name, $file, $own, $pause, $may_rest) = @_;
	my $pid = fork // die $!;
	return $pid if $pid;

	my $session = PgSession->new($node);
	my $last = 0;
	my $rounds = 0;
	until (-e "$dir/stop")
	{
		my $token = $session->query("SELECT zk_lock('$name')");
		my $number = slurp_number($file);
		sleep 0.0002;
		write_number($file, $number + 1);
		$rounds++;
		POSIX::_exit(2) if $token <= $last;
		$last = $token;
		$session->query("SELECT zk_unlock('$name')");
		sleep rand($pause);
		sleep 0.02 while $may_rest && -e "$dir/rest";
	}
	write_number($own, $rounds);
	POSIX::_exit(0);
}

sub set_cache_time
{
	my ($time) = @_;

	$one->append_conf('postgresql.conf', "zklock.cache_time = '$time'");
	$one->reload;
	ok($test->look_until($one, 'SHOW zklock.cache_time', $time, "cache_time = $time"),
		"cache_time = $time");
	return;
}

sub takes { return $test->status($one, 'cache_takes'); }

# A session process dies.
sub kill_one
{
	my $pid = $test->status(($one, $two)[ rand 2 ], 'session_pid');

	kill 'KILL', $pid if $pid =~ /^\d+$/ && $pid > 1;
	return;
}

my %crowds = (
	'/a' => [ [ $curator, 'write' ], [ $kazoo, 'kazoo' ], [ $curator, 'read' ] ],
	'/jobs/a' => [ [ $curator, 'mutex' ], [ $kazoo, 'kazoo_mutex' ] ],
	'/py/a' => [ [ $kazoo, 'Lock' ], [ $kazoo, 'WriteLock' ] ]);

foreach my $name (sort keys %crowds)
{
	foreach my $deaths (0, 1)
	{
		my $case = $name . ($deaths ? ', processes die' : '');
		my $file = "$dir/counter";
		my $before = takes();
		my $expected = 0;

		write_number($file, 0);
		unlink "$dir/stop";
		my @here = (
			count_here($one, $name, $file, "$dir/0", 0.01),
			count_here($two, $name, $file, "$dir/1", 1.5, 1));
		foreach my $round (1 .. 12)
		{
			my ($client, $kind) = @{ $crowds{$name}[ rand @{ $crowds{$name} } ] };

			sleep rand(0.5);
			kill_one() if $deaths;
			$client->command('count', 'c', $kind, "/zklock$name", $file, 3);
			ok(wait_for(sub { $client->command('counted', 'c') == 3 },
					'a client of another kind'),
				"$case: $kind gets in");
			$expected += 3 if $kind ne 'read';
		}

		# Where others come too often for the speed of the machine, no lock is cached:
		# so they rest meanwhile.
		unless ($deaths)
		{
			write_number("$dir/rest", 1);
			ok(wait_for(sub { takes() > $before }, 'a session takes a cached lock'),
				"$case: the lock is cached");
		}
		write_number("$dir/stop", 1);
		unlink "$dir/rest";
		foreach my $i (0, 1)
		{
			waitpid $here[$i], 0;
			is($?, 0, "$case: one of ours is through, and its tokens grew");
			$expected += slurp_number("$dir/$i");
		}
		is(slurp_number($file), $expected, "$case: no two were inside at once");
		$test->wait_queue($name, 0);
	}
}

# ---- clients that must not wait can take a cached lock for a held one

foreach my $case ([ $curator, 'write' ], [ $kazoo, 'kazoo' ])
{
	my ($client, $kind) = @$case;
	my $s = PgSession->new($one);
	my $use = "SELECT zk_lock('/attempt/$kind'), zk_unlock('/attempt/$kind')";
	my $state = "SELECT state FROM zk_locks WHERE path = '/attempt/$kind'";

	set_cache_time('50s');
	ok($test->look_until($one, $state, 'cached', "$kind: cached",
			before => sub { $s->query($use) }),
		"$kind: a lock is cached");

	# Mostly the server is fast enough: then they get it.
	my $worker = $test->status($one, 'worker_pid');
	kill 'STOP', $worker;
	ok(!$client->command('attempt', $kind, "/zklock/attempt/$kind"),
		"$kind: it is refused, although no session holds the lock");
	kill 'CONT', $worker;
	ok($test->look_until($one, $state, '', "$kind: given back"),
		"$kind: the server gives the lock back");
	ok($client->command('attempt', $kind, "/zklock/attempt/$kind"),
		"$kind: then it gets it");
	set_cache_time('0');
	foreach (1 .. 10)
	{
		$s->query($use);
		$test->wait_queue("/attempt/$kind", 0);
	}
	ok($client->command('attempt', $kind, "/zklock/attempt/$kind"),
		"$kind: without caching it is not refused");
	$s->close;
}
set_cache_time('200ms');

# ---- 16 sessions on one name, and on some

foreach my $names (1, 6, 40)
{
	my $killed = 0;
	my $before = takes();
	my $next = 100;
	my $seen = Workload::run(
		$test,
		sessions => 16,
		names => $names,
		rounds => 2500,
		tick => sub {
			my ($rounds) = @_;
			return if $rounds < $next;
			$next = $rounds + 250;
			$killed++;
			kill_one();
		},
		lock => "SELECT zk_lock('%s')",
		unlock => "SELECT zk_unlock('%s')");
	cmp_ok($killed, '>', 5, "$names names: processes were killed");
	is_deeply($seen->{errors}, {}, "$names names: no error");
	is($seen->{overlaps}, 0, "$names names: no two holders");
	cmp_ok(takes(), '>', $before, "$names names: some were cached") if $names == 40;
}
is($test->status($_, 'sessions_lost'), 0, 'no session lost') foreach $one, $two;

$test->finish;
