# Every server tells the others about itself: zk_servers has a row for each one,
# the same on all of them, that follows a promotion, a new session and a changed
# timeout, and goes with the session.  Nothing is written again while nothing
# changes.  With credentials, only servers that have them can read it.

use strict;
use warnings;

use Test::More;

use Document;
use File::Spec::Functions qw(rel2abs);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sys::Hostname;
use ZklockTest;

my $test = ZklockTest->new(init => { allows_streaming => 1 });
my ($one, $two) = $test->nodes;
my $standby = $test->add_standby($one, "zklock.server_name = 'standby'");

sub column
{
	my ($node, $column) = @_;

	return
	  "SELECT $column FROM zk_servers WHERE server = '" . $node->name . "'";
}

sub change
{
	my ($node, $name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$name = '$value'");
	$node->reload;
	return;
}

# ---- what there is

my $servers = 'SELECT string_agg(server, $$,$$ ORDER BY server) FROM zk_servers';
foreach my $node ($one, $two, $standby)
{
	ok($test->look_until($node, $servers, 'server1,server2,standby', 'all three'),
		$node->name . ' sees all three');
	is($test->look(
			$one,
			column($node,
				'host, port, in_recovery, protocol, requested_timeout,'
				  . " session_timeout, session_start BETWEEN now() - interval '10 min' AND now(),"
				  . ' session_id')),
		join('|',
			hostname, $node->port, $node eq $standby ? 't' : 'f',
			1, '00:00:04', '00:00:04', 't',
			$test->status($node, 'session_id')),
		'it is as it is');
	is($test->look($one, column($node, 'postgresql_version')),
		$test->look($node, 'SHOW server_version'), 'its version');
	is($test->look($one, column($node, 'system_identifier')),
		$test->look($node, 'SELECT system_identifier FROM pg_control_system()'),
		'its system');
}
is($test->look($one, 'SELECT zklock_version FROM zk_servers GROUP BY 1'),
	slurp_file(Document->path('META.json')) =~ /"version": *"([^"]+)"/ && $1,
	"zklock's version is that of META.json");
my $all = 'SELECT * FROM zk_servers';
is($test->look($two, $all), $test->look($one, $all), 'all see the same');

# ---- what others put there

my $system = $test->look($one, 'SELECT system_identifier FROM pg_control_system()');
my @strange = map { "/zklock/.fleet/$_" } 'strange', '1.2', "0$system.00000000000000aa";
my $garbage = "/zklock/.fleet/$system.00000000000000aa";
$test->zk->client->create($_, '{"zklock":"fleet","server":"stranger"}') foreach @strange;
$test->zk->client->create($garbage, '{"zklock":"fleet","server":"stranger","port":-1}');
is($test->look($two, $servers), 'server1,server2,standby', 'other names are ignored');
is($test->look($two, 'SELECT count(*), count(server), count(in_recovery), count(session_id)'
		  . ' FROM zk_servers'),
	'4|3|3|4', 'an entry that cannot be read is empty');
$test->zk->client->delete($_) foreach @strange, $garbage;

# ---- who sees it

$one->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE ROLE monitor LOGIN'
	  . ' IN ROLE pg_monitor');
my $plain = $test->session($one, user => 'plain');
my $monitor = $test->session($one, user => 'monitor');
is($monitor->query('SELECT count(host) FROM zk_servers'), 3, 'pg_monitor sees all');
is($plain->error('SELECT * FROM zk_servers'), '42501', 'others see nothing');
$one->safe_psql('postgres',
	'GRANT SELECT ON zk_servers TO plain');
is($plain->query('SELECT count(server), count(in_recovery), count(host), count(port),'
		  . ' count(system_identifier), count(session_id), count(peer_address) FROM zk_servers'),
	'3|3|0|0|0|0|0', 'or not where and what it is');
$_->close foreach $plain, $monitor;

# ---- what changes, and what does not

my $znode = $test->fleet_znode($two);
my $connects = $test->status($two, 'connects');
kill 'KILL', $test->status($two, 'session_pid');
$test->look_until($two,
	"SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server", 't', 'again');
is($test->look($two, $all), $test->look($one, $all), 'a new connection');
is($test->zk->client->stat($znode)->{version}, 0, 'writes nothing');
$test->restart_worker($two);
ok($test->look_until($one, column($two, 'session_id'),
		$test->status($two, 'session_id'), 'a restarted worker'),
	'a restarted worker has a znode of its own');
$znode = $test->fleet_znode($two);

change($two, 'session_timeout', '6s');
ok($test->look_until($one, column($two, 'requested_timeout, session_timeout'),
		'00:00:06|00:00:06', 'another timeout'),
	'another session, with another timeout');
ok(!defined $test->zk->client->try_stat($znode), 'the znode of the old one is gone');

my $holder = $test->session($two);
$holder->query("SELECT zk_lock('/f/held')");
$test->lose_session($two, '/f/held');
ok($test->look_until($one, column($two, 'session_id'),
		$test->status($two, 'session_id'), 'a lost session'),
	'a new session after a lost one');
$holder->query("SELECT zk_unlock_all()");
$holder->close;

$test->stop_looking($one);
$one->stop('fast');
ok($test->look_until($two, $servers, 'server2,standby', 'one is gone'),
	'a server that stops goes at once');
is($test->look($two, column($standby, 'in_recovery')), 't', 'the standby is one');
$standby->promote;
ok($test->look_until($two, column($standby, 'in_recovery'), 'f', 'promoted'),
	'and no longer, once it is promoted');
$one->start;
$test->wait_connected($one);
$test->stop_looking($standby);
$standby->stop;
pop @{ $test->{nodes} };

# ---- with credentials

my $file = rel2abs(PostgreSQL::Test::Utils::tempdir()) . "/credentials";
append_to_file($file, "digest:zklock:secret\n");
chmod 0600, $file;
change($one, 'auth_file', $file);
$test->stop_looking($one);
$one->restart;
$test->wait_connected($one);
ok($test->look_until($one, column($one, 'port'), $one->port, 'its own'),
	'a server with credentials reads its own znode');
ok(!defined $test->zk->client->try_get($test->fleet_znode($one)), 'others do not');
is($test->look($two, 'SELECT count(*), count(server), count(in_recovery) FROM zk_servers'),
	'2|1|1', 'a server without them knows only that there is one');
change($two, 'auth_file', $file);
ok($test->look_until($two, 'SELECT count(server) FROM zk_servers', 2, 'both'),
	'and with them, what it is');

# The session goes on with other ones, and so does the znode.
write_secret("$file.other", "digest:zklock:other\n");
$test->connects_with($two, 'other credentials', auth_file => "$file.other");
ok($test->look_until($one, 'SELECT count(server) FROM zk_servers', 1, 'not the other'),
	'servers with the old ones cannot read it any more');
is($test->look($two,
		"SELECT bool_and(ok) FROM zk_healthcheck() WHERE check_name IN ('fleet', 'clock')"),
	't', 'but it reads its own znode');
$test->connects_with($two, 'the same credentials', auth_file => $file);
ok($test->look_until($two, 'SELECT count(server) FROM zk_servers', 2, 'both'),
	'and with the same ones it reads both again');

$test->finish;
