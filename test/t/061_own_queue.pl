# zk_queue() right after a lock has changed hands within one server: ZooKeeper
# still has the znode of the one who left.  The server that is asked knows
# better, about its own: who has left is not shown, and who has the lock is shown
# as its holder.  What other servers have is shown as ZooKeeper has it.

use strict;
use warnings;

use Test::More;

use ZklockTest;

# A lock that is cached stays in the queue.
my $test = ZklockTest->new(conf => "zklock.cache_time = 0\n");
my ($one, $two) = $test->nodes;
my @s = map { $test->session($one) } 1 .. 2;
my $looker = $test->session($one);
my $remote = $test->session($two);

# position, mode, granted and whose, of all rows
sub rows
{
	my ($session, $name) = @_;

	return $session->query('SELECT position, mode, granted, pid'
		  . " FROM zk_queue('$name') ORDER BY position");
}

# How often that many rounds did not show what they should
sub wrong
{
	my ($rounds, $round) = @_;
	my ($wrong, $last) = (0, '');

	foreach my $i (1 .. $rounds)
	{
		my ($got, $expected) = $round->($i);

		next if $got eq $expected;
		$wrong++;
		$last = "got:\n$got\nexpected:\n$expected";
	}
	diag $last if $wrong;
	return $wrong;
}

# From one to the other and back
$s[0]->query("SELECT zk_lock('/h/w')");
is(wrong(
		200,
		sub {
			my ($i) = @_;
			my ($from, $to) = @s[ ($i + 1) % 2, $i % 2 ];

			$test->enqueue($to, "SELECT zk_lock('/h/w')", '/h/w');
			$from->query("SELECT zk_unlock('/h/w')");
			$to->value;
			return (rows($looker, '/h/w'), '1|exclusive|t|' . $to->pid);
		}),
	0,
	'a hand-over is seen at once');

# With another server behind: it waits, whatever becomes of those ahead.
my ($has, $next) = @s;
$test->enqueue($next, "SELECT zk_lock('/h/w')", '/h/w');
$test->enqueue($remote, "SELECT zk_lock('/h/w')", '/h/w');
$has->query("SELECT zk_unlock('/h/w')");
$next->value;
is(rows($looker, '/h/w'),
	'1|exclusive|t|' . $next->pid . "\n2|exclusive|f|" . $remote->pid,
	'another server waits behind');
$next->query("SELECT zk_unlock('/h/w')");
like(rows($looker, '/h/w'),
	qr/^1\|exclusive\|[tf]\|@{[ $remote->pid ]}$/, 'and comes next');
$remote->value;
$remote->query("SELECT zk_unlock('/h/w')");

# Nobody is left
foreach my $call (
	[ "zk_lock('%s')", "zk_unlock('%s')" ],
	[ "zk_lock_shared('%s')", "zk_unlock_shared('%s')" ],
	[ "zk_lead('%s')", "zk_resign('%s')" ],
	[ "zk_acquire_permits('%s', max_permits => 2)", "zk_release_permits('%s')" ])
{
	my $i = 0;

	is(wrong(
			20,
			sub {
				my $name = '/h/' . $call->[0] =~ s/\W.*//r;

				$s[0]->query('SELECT ' . sprintf($call->[0], $name));
				my $held = rows($looker, $name);

				return ($held, 'one that is granted')
				  if $held !~ /^1\|\w+\|t\|\d*$/;
				$s[0]->query('SELECT ' . sprintf($call->[1], $name));
				return (rows($looker, $name), '');
			}),
		0,
		"$call->[1] is seen at once");
}

# One that is kept stays, and so does one that another hold of its owner needs.
$s[0]->query("SELECT zk_try_lock('/h/k', '0', '1 h', '1 min')");
$s[0]->query("SELECT zk_unlock('/h/k')");
like(rows($looker, '/h/k'), qr/^1\|exclusive\|t\|/, 'a lock that is kept');
is($looker->query("SELECT zk_break_lock('/h/k')"), 't', 'broken');
$s[0]->query("SELECT zk_lock('/h/o')");
$s[0]->query("BEGIN; SELECT zk_xact_lock('/h/o')");
is(wrong(
		5,
		sub {
			$s[0]->query("SELECT zk_unlock('/h/o')");
			my $rows = rows($looker, '/h/o');

			$s[0]->query("SELECT zk_lock('/h/o')");
			return ($rows, '1|exclusive|t|' . $s[0]->pid);
		}),
	0,
	'a znode that another hold goes on with');
$s[0]->query('COMMIT');
$s[0]->query("SELECT zk_unlock('/h/o')");

$_->close foreach @s, $looker, $remote;
$test->finish;
