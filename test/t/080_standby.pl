# A hot standby takes locks of its own, against its primary and others, and
# keeps them through its promotion; nothing is inherited from the primary.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use ZklockTest;

my $test = ZklockTest->new(servers => 1, init => { allows_streaming => 1 });
my ($primary) = $test->nodes;
$primary->backup('base');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($primary, 'base', has_streaming => 1);
my $p = $test->session($primary);
my $token = $p->query("SELECT zk_lock('/s/primary')");

$standby->start;
push @{ $test->{nodes} }, $standby;
$test->wait_connected($standby);
isnt($test->status($standby, 'session_id'),
	$test->status($primary, 'session_id'), 'a ZooKeeper session of its own');
is($test->look($standby, 'SELECT count(*) FROM zk_locks'),
	0, 'no lock is inherited');

my $s = $test->session($standby);
is($s->query('SELECT pg_is_in_recovery()'), 't', 'in recovery');
is($s->query("SELECT zk_try_lock('/s/primary')"),
	'f', 'the primary\'s lock keeps the standby out');
cmp_ok($s->query("SELECT zk_lock('/s/standby')"), '>', $token, 'it may lock');
is($p->query("SELECT zk_try_lock('/s/standby')"),
	'f', 'and keeps the primary out');
$s->query("BEGIN READ ONLY; SELECT zk_xact_lock('/s/xact')");
is($p->query("SELECT zk_try_lock('/s/xact')"), 'f', 'in a transaction too');
$s->query('COMMIT');
is($p->query("SELECT zk_try_lock('/s/xact', '1min')"), 't', 'until its end');
$p->query("SELECT zk_unlock('/s/xact')");
cmp_ok($s->query("SELECT zk_lead('/s/leader', id => 'standby')"), '>', 0, 'it may lead');
is($p->query("SELECT id FROM zk_leader('/s/leader')"), 'standby', 'as the primary sees');
is($p->query("SELECT zk_request_release('/s/standby')"), 1, 'it is asked for its locks');
ok($test->look_until($standby,
		"SELECT release_requested FROM zk_locks WHERE path = '/s/standby'", 't', 'asked'),
	'and hears of it');
$s->query('SELECT 1');
like($s->messages, qr/release of .* was requested/, 'as its session does');
is($s->query("SELECT zk_request_release('/s/primary')"), 1, 'it may ask, too');
$test->enqueue($s, "SELECT zk_lock('/s/primary')", '/s/primary');

# The primary goes down; its lock goes to the waiting standby.
$test->stop_looking($primary);
$primary->stop('fast');
cmp_ok($s->value, '>', $token, 'the standby gets the lock of the stopped primary');
my @tokens = map { $s->query("SELECT zk_fencing_token('/s/$_')") }
  'primary', 'standby';
$standby->promote;
is($s->query('SELECT pg_is_in_recovery()'), 'f', 'promoted');
is_deeply(
	[ map { $s->query("SELECT zk_fencing_token('/s/$_')") } 'primary', 'standby' ],
	\@tokens, 'it holds the same locks');
is($s->query("SELECT id FROM zk_leader('/s/leader')"), 'standby', 'and leads');
is($s->query('BEGIN; CREATE TABLE t (); COMMIT'), '', 'and may write');
$s->close;

$test->finish;
