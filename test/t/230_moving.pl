# The script of docs/procedures.md moves three servers to another root, and then to
# another ensemble, whose transaction ids are lower, while sessions of all servers
# want the same locks all the time: no two ever hold one.  It waits for holders, and
# stops if a server of the fleet is missing in its list.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use Procedure;
use Workload;
use ZklockTest;

my $test = ZklockTest->new(servers => 3);
my ($one, $two, $three) = $test->nodes;
my $second = ZooKeeper->new('second');
my $there = '"zk1.example.com:2181,zk2.example.com:2181,zk3.example.com:2181"';
my %services = (db1 => $one, db2 => $two, db3 => $three);

sub procedure
{
	my $procedure = Procedure->new('docs/procedures.md', 'Move to another root or ensemble', @_);

	$procedure->services(%services);
	return $procedure;
}

# The token of a lock that $three takes, or undef while it may not
sub token_there
{
	my $session = $test->session($three);
	my $token = $session->error("SELECT zk_lock('/m/token', '5 s')") eq '' ?
	  $session->query("SELECT zk_fencing_token('/m/token')") : undef;

	$session->close;
	return $token;
}

# Moves while all servers want the same locks.  "at_pause" is called when the
# script waits for Enter.  Returns one of the first tokens behind that.
sub move
{
	my ($what, $zk, $at_pause, %here) = @_;
	my $procedure =
	  procedure($there => '"' . $zk->connect_string . '"', %here);
	my $holder = $test->session($two);
	my ($shell, $paused, $moved, $token);
	my $after = 0;

	$holder->query("SELECT zk_lock('/m/held')");
	$test->stop_looking($_) foreach $test->nodes;
	my $seen = Workload::run_beside(
		$test,
		tick => sub {
			my ($started) = @_;

			$shell //= $procedure->start(0) if $started > 100;
			return unless $shell;
			if ($holder && $shell->output =~ /db1: disabled/)
			{
				unlike($shell->output, qr/db2/, "$what: the script waits for a holder");
				is($holder->query("SELECT zk_unlock('/m/held')"), 't', "$what: who releases");
				$holder->close;
				undef $holder;
			}
			if (!$paused && $shell->output =~ /press Enter/)
			{
				$paused = 1;
				$at_pause->();
				$shell->enter;
			}
			$token //= token_there() if $paused;
			$moved //= $started if $shell->has_ended;
			return;
		},
		until => sub { defined $moved && ++$after > 100 });
	is($shell->status, 0, "$what: the script ends well") or diag $shell->output;
	is($seen->{overlaps}, 0, "$what: no two sessions held a lock");
	delete @{ $seen->{errors} }{qw(55000 57P01 08006)};
	is_deeply($seen->{errors}, {}, "$what: requests got no other errors");
	return $token;
}

sub places
{
	return join ' ', map { $test->look($_, 'SHOW zklock.root') } $test->nodes;
}

# ---- a server is missing in the list

my $short = procedure('"db1 db2 db3"' => '"db1 db2"');
my $shell = $short->start(0);
is($shell->status >> 8, 1, 'a list without one of the servers: the script stops');
like($shell->output, qr/zk_servers has 3 servers/, 'and says why');
is($test->status($_, 'state'), 'connected', $_->name . ' has not been touched')
  foreach $test->nodes;

# ---- another root

my $s = $test->session($one);
my $token = $s->query("SELECT zk_lock('/m/token'), zk_unlock('/m/token')") =~ s/\|.*//r;
$s->close;
move('root', $test->zk, sub {
		is(scalar($test->lock_znodes), 0, 'root: nothing is left in the old one');
		is($test->zk->client->ls('/zklock2'), 0, 'root: and nothing in the new one yet');
});
is(places(), '/zklock2 /zklock2 /zklock2', 'root: all are there');
$s = $test->session($three);
cmp_ok($s->query("SELECT zk_lock('/m/token')"), '>', $token, 'root: tokens grow');
$s->query("SELECT zk_lock('/m/many'), zk_unlock('/m/many') FROM generate_series(1, 500)");
$token = $s->query("SELECT zk_lock('/m/many')");
$s->close;

# ---- another ensemble

my $old = $test->zk;
$second->start;
my $first = move('ensemble', $second, sub {
		is($old->mntr->{zk_ephemerals_count}, 0, 'ensemble: all servers have left the old one');
		is($second->client->ls('/zklock'), 0, 'ensemble: and none is in the new one');
}, '"/zklock2"' => '"/zklock"');
is(places(), '/zklock /zklock /zklock', 'ensemble: all are there');
is($test->look($one, 'SELECT count(server) FROM zk_servers'), 3, 'and see each other');
cmp_ok($first, '<', $token, 'ensemble: with lower tokens');
$test->{zk} = $second;
$old->stop;

$test->finish;
