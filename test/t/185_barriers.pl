# Barriers: sessions of three servers, and of Curator's, that start and end
# together; who gives up, is lost or comes late; the same barrier again and
# again; and no ZooKeeper.

use strict;
use warnings;

use POSIX ();
use Test::More;

use CuratorClient;
use PgSession;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(servers => 3);
my @nodes = $test->nodes;
my ($one, $two, $three) = @nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $kazoo = $test->zk->new_client;
my @sessions = map { $test->session($_) } @nodes;
my ($s, $t, $u) = @sessions;

sub children { return $test->zk->client->ls("/zklock$_[0]"); }
sub members { return grep { $_ ne 'ready' } children($_[0]); }
sub is_ready { return scalar grep { $_ eq 'ready' } children($_[0]); }
sub enter { return "SELECT zk_barrier_enter('$_[0]', $_[1])"; }
sub leave { return "SELECT zk_barrier_leave('$_[0]')"; }

sub wait_members
{
	my ($path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for(sub { scalar(members($path)) == $count },
		"$count in barrier $path");
}

# Sends a call, and returns once there are so many members.
sub begin
{
	my ($session, $sql, $path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->send($sql);
	return wait_members($path, $count);
}

sub curator_answer { return $curator->command('barrier', 'answer', $_[0]); }

sub curator_says
{
	my ($key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { curator_answer($key) >= 0 }, $case)
		  && curator_answer($key) == 1, $case);
}

# ---- start together and end together, whoever is the last ----

my @kinds = (
	(
		map {
			my $session = $_;
			{
				enter => sub { $session->send(enter($_[0], 4)); },
				leave => sub { $session->send(leave($_[0])); },
				waits => sub { $test->still_waits($session); },
				done => sub { is($session->value, 't', $_[0]); }
			}
		} @sessions),
	{
		enter => sub { $curator->command('barrier', 'enter', 'c', "/zklock$_[0]", 4); },
		leave => sub { $curator->command('barrier', 'leave', 'c'); },
		waits => sub { curator_answer('c') == -1; },
		done => sub { curator_says('c', $_[0]); }
	});

foreach my $last (0 .. 3)
{
	my @order = ((grep { $_ != $last } 0 .. 3), $last);

	foreach my $i (0 .. 2)
	{
		$kinds[ $order[$i] ]{enter}->('/b');
		wait_members('/b', $i + 1);
	}
	is(scalar(grep { $kinds[$_]{waits}->() } @order[ 0 .. 2 ]), 3,
		"$last is missing: nobody starts");
	is(is_ready('/b'), 0, "$last is missing: not ready");
	$kinds[$last]{enter}->('/b');
	$kinds[$_]{done}->("$last comes: $_ starts") foreach @order;
	is(is_ready('/b'), 1, 'ready');
	is(scalar(members('/b')), 4, 'all four are in');
	is( $test->look($one,
			"SELECT mode, lifetime, granted, path FROM zk_locks"),
		'member|session|t|/b',
		'zk_locks shows a member');

	foreach my $i (0 .. 2)
	{
		$kinds[ $order[$i] ]{leave}->('/b');
	}

	# All but the first by name are gone by then.
	my $staying = (sort(members('/b')))[0];
	is(scalar(grep { $kinds[$_]{waits}->() } @order[ 0 .. 2 ]), 3,
		"$last works on: nobody ends");
	is(is_ready('/b'), 1, "$last works on: still ready");
	$kinds[$last]{leave}->('/b');
	$kinds[$_]{done}->("$last leaves: $_ ends") foreach @order;
	is_deeply([ children('/b') ], [], 'nothing is left');
}

$curator->quit;
$test->finish;
