# zk_once(): of all servers that fire at the same moment exactly one has the
# turn, per run key or per period of ZooKeeper's time; an abort gives it back, a
# commit uses it up; and what a crash, a lost answer or a restarted worker in
# between does to it is what the guarantee says.

use strict;
use warnings;

use Test::More;

use PgSession;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test = ZklockTest->new(servers => 3, net => $net);
my @nodes = $test->nodes;
my ($s1, $s2, $s3) = my @sessions = map { $test->session($_) } @nodes;
my $zk = $test->zk->client;
my $seed = $ENV{ONCE_SEED} // int(rand(1_000_000));

note "ONCE_SEED=$seed";
srand $seed;
$_->query('CREATE TABLE runs (turn text, at timestamptz DEFAULT clock_timestamp())')
  foreach @sessions;

# How often a turn was had, over all servers
sub runs
{
	my ($turn) = @_;
	my $sum = 0;

	$sum += $_->query("SELECT count(*) FROM runs WHERE turn = '$turn'")
	  foreach @sessions;
	return $sum;
}

sub history
{
	my ($name) = @_;

	return ($zk->get("/zklock/.once$name"."/.history"))[0];
}

# A job as a cron daemon has it: all in one transaction
sub job
{
	my ($path, $what, $turn, $options) = @_;

	return "DO \$\$ BEGIN IF zk_once('$path', $what" . ($options // '') . ")"
	  . " THEN INSERT INTO runs VALUES ('$turn'); END IF; END \$\$";
}

# ---- a turn is one of all servers' ----

$s1->query('BEGIN');
is($s1->query("SELECT zk_once('/a', 'k1')"), 't', 'the first one has the turn');
is($s1->query("SELECT zk_once('/a', 'k1')"), 't', 'and has it still');
is($s1->error("SELECT zk_once('/a', 'k2')"), '0A000', 'but one turn at a time');
$s1->query('ROLLBACK');
is($s2->query("SELECT zk_once('/a', 'k1')"), 't', 'an abort gives it back');
is($s1->query("SELECT zk_once('/a', 'k1')"), 'f', 'a commit uses it up');
is($s2->query("SELECT zk_once('/a', 'k1')"), 'f', 'also for who had it');
diag $zk->get("/zklock/.once/a/.history") if eval { 1 };

$test->finish;
