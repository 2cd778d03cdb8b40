# zk_healthcheck() tells whether each thing is well that an operator would look at,
# and notices when it is not; zk_version() tells which versions work together.

use strict;
use warnings;

use Test::More;

use Document;
use File::Spec::Functions qw(rel2abs);
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(
	max_requests => 10,
	init => { allows_streaming => 1 });
my ($one, $two) = $test->nodes;

sub change
{
	my ($node, $name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$name = '$value'");
	$node->reload;
	return;
}

# The checks that are not ok on a server, but for the release of ZooKeeper
my $bad = 'SELECT string_agg(check_name, $$,$$ ORDER BY check_name) FROM zk_healthcheck()'
  . ' WHERE ok IS NOT TRUE AND check_name <> $$zookeeper version$$';

sub bad_ok
{
	my ($node, $expected, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($test->look_until($node, $bad, $expected, $what), $what);
}

sub detail
{
	my ($node, $check) = @_;

	return $test->look($node,
		"SELECT detail FROM zk_healthcheck() WHERE check_name = '$check'");
}

# ---- all is well

bad_ok($_, '', $_->name . ' is healthy') foreach $one, $two;
is($test->look($one, 'SELECT string_agg(check_name, $$,$$) FROM zk_healthcheck()'),
	'connected,lease,session timeout,tick,settings,hosts,zookeeper version,tls,certificates,requests,waits,messages,lost writes,clock rate,script,rights,dialects,fleet,fleet versions,znode protocol,'
	  . 'fleet timeouts,access control,clones,clock',
	'the checks');
is(detail($one, 'fleet'), 'Servers in the fleet: 2.', 'the fleet');
like(detail($one, 'clock'), qr/^The clock of ZooKeeper's leader is \d+ ms /, 'the clock');
my $znode = $test->fleet_znode($one);
my $data = $test->zk->client->get($znode);
cmp_ok($test->zk->client->stat($znode)->{version}, '>', 0, 'it has written its znode');
is($test->look($two, 'SELECT count(host) FROM zk_servers'), 2, 'as it was');

# ---- one thing after the other is not

$test->zk->client->set($znode, $data =~ s/"protocol":1/"protocol":2/r);
bad_ok($two, 'znode protocol', 'another format');
$test->zk->client->set($znode, $data =~ s/"version":"/"version":"9/r);
bad_ok($two, 'fleet versions', 'another version');
$test->zk->client->set($znode, $data =~ s/"timeout":4000/"timeout":5000/r);
bad_ok($two, 'fleet timeouts', 'another timeout');
$test->zk->client->shut_out($znode);
bad_ok($two, 'access control', 'a znode that cannot be read');
bad_ok($one, 'access control,clock,fleet', 'its own');
$test->zk->client->delete($znode);
bad_ok($one, 'clock,fleet', 'no znode at all');
bad_ok($two, '', 'which is not the problem of others');
$test->stop_looking($one);
$one->restart;
$test->wait_connected($one);
bad_ok($one, '', 'a new session mends it');

my $s = $test->session($one);
$s->query('SET zklock.max_requests_per_session = 10');
$s->query("SELECT zk_lock('/h/' || n) FROM generate_series(1, 9) n");
bad_ok($one, 'requests', 'too many requests');
$s->query('SELECT zk_unlock_all()');
bad_ok($one, '', 'not any more');
change($one, 'tick_time', '2 s');
bad_ok($one, 'tick', 'less than four ticks');
change($one, 'tick_time', '100 ms');
change($one, 'session_timeout', '60 s');
bad_ok($one, 'fleet timeouts,session timeout', 'more than ZooKeeper grants');
like(detail($one, 'session timeout'), qr/^60000 ms were requested/, 'and how much');
change($one, 'session_timeout', '4 s');
bad_ok($one, '', 'taken back');

my $port = PostgreSQL::Test::Cluster::get_free_port();
my $no_address =
  'The connection to ZooKeeper has the local address "127.0.0.1", to which other servers cannot send.';
like(detail($one, 'messages'), qr/^"zklock\.peer_port" is 0/, 'messages that are not wanted');
change($one, 'peer_port', $port);
bad_ok($one, 'messages', 'messages without an address');
ok(wait_for(sub { detail($one, 'messages') eq $no_address }, 'why'),
	'and it says what is missing');
change($one, 'peer_port', 0);
bad_ok($one, '', 'nor wanted any more');

$one->backup('base');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($one, 'base');
$copy->start;
push @{ $test->{nodes} }, $copy;
bad_ok($copy, 'clones', 'a clone');
ok(wait_for(sub { detail($copy, 'clones') =~ /neither of them is in recovery/ }, 'found'),
	'that it has found');
ok(wait_for(sub { detail($one, 'clones') =~ /neither of them is in recovery/ }, 'the original'),
	'as has the original, which was there before');
bad_ok($one, 'clones', 'it is told of it');
$test->stop_looking($copy);
$copy->stop;
pop @{ $test->{nodes} };
bad_ok($one, '', 'until it is gone');

# ---- ZooKeeper refuses

$test->zk->client->shut_out('/zklock/.fleet');
is($test->look($one, 'SELECT string_agg(check_name, $$,$$) FROM zk_healthcheck() WHERE ok IS NULL'),
	'fleet,fleet versions,znode protocol,fleet timeouts,clones,clock',
	'a fleet that may not be looked at');
bad_ok($one,
	'access control,clock,clones,fleet,fleet timeouts,fleet versions,znode protocol',
	'which is a matter of access control');
like(detail($one, 'access control'),
	qr/^This server has no credentials\.  It may not read the directory of the fleet: ZooKeeper answered NOAUTH/,
	'as it says, and why');
is(detail($one, $_), 'Not known: see "access control".', "$_: not again")
  foreach 'fleet', 'fleet versions', 'clones', 'clock';
is($test->look($one, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'connected'"),
	't', 'it is connected');
$test->zk->client->let_in('/zklock/.fleet');
bad_ok($one, '', 'let in again');

# ---- versions

my ($version) = slurp_file(Document->path('META.json')) =~ /"version": *"([^"]+)"/;
is($test->look($one, 'SELECT * FROM zk_version()'),
	"$version|1.0|$version|3|1", 'zk_version: all of one release');

# ---- without ZooKeeper

$s->query("SELECT zk_lock('/h/held')");
my $token = $s->query("SELECT zk_reserve('/h/reserved', '10 min')");
like(detail($one, 'lease'), qr/^Locks held: 2\./, 'a reservation is held, too');
$test->zk->pause;
$test->look_until($one, 'SELECT state FROM zk_status', 'disconnected', 'an outage');
is($test->look($one, 'SELECT string_agg(check_name, $$,$$) FROM zk_healthcheck() WHERE ok IS NULL'),
	'hosts,zookeeper version,fleet,fleet versions,znode protocol,fleet timeouts,access control,clones,clock',
	'in an outage some things are not known');
ok($test->look_until($one,
		'SELECT string_agg(check_name, $$,$$) FROM zk_healthcheck()'
		  . ' WHERE NOT ok AND check_name <> $$zookeeper version$$',
		'connected,lease', 'the lease'),
	'and others are not well');
like(detail($one, 'hosts'), qr/"127\.0\.0\.1:\d+" accepts connections, and does not answer\.  In an outage/,
	'which hosts do not answer');
like(detail($one, 'connected'), qr/"disconnected"\.  Its last error: /, 'and why');
$test->zk->resume;
bad_ok($one, '', 'until it is over');

# It goes away in the middle: before the worker knows of it.
my $monitor = $test->session($one);
$monitor->query("SET zklock.answer_timeout = '50ms'");
$test->zk->pause;
my ($not_ok, $unknown, $why, $elsewhere) = split /\|/,
  $monitor->query('SELECT string_agg(check_name, $$,$$) FILTER (WHERE NOT ok),'
	  . ' string_agg(check_name, $$,$$ ORDER BY ordinality) FILTER (WHERE ok IS NULL),'
	  . ' string_agg(check_name, $$,$$) FILTER (WHERE detail ~ $$did not answer within "zklock.answer_timeout"$$),'
	  . ' string_agg(DISTINCT detail, $$,$$) FILTER (WHERE ok IS NULL AND check_name <> $$hosts$$)'
	  . ' FROM zk_healthcheck() WITH ORDINALITY WHERE check_name <> $$zookeeper version$$');
is($not_ok, 'connected', 'an outage that begins with the call');
is($unknown, 'hosts,fleet,fleet versions,znode protocol,fleet timeouts,access control,clones,clock',
	'in which as much is not known');
is($why, 'connected', 'one detail says why');
is($elsewhere, 'Not known: see "connected".', 'and the others where');
$test->zk->resume;
bad_ok($one, '', 'which is soon over');
$monitor->close;
$s->query("SELECT zk_unlock_all(), zk_cancel_reservation('/h/reserved', $token)");
$s->close;

# ---- hosts that are not there, beside one that is

my $silent = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1');
my $full = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1');
my @fill = map { IO::Socket::INET->new(PeerAddr => '127.0.0.1:' . $full->sockport, Blocking => 0) } 1 .. 5;
my $good = $test->zk->connect_string;
my $gone = PostgreSQL::Test::Cluster::get_free_port();
my %hosts = (
	"127.0.0.1:$gone" => qr/"127\.0\.0\.1:$gone" cannot be reached: Connection refused/,
	'255.255.255.255:2181' => qr/"255\.255\.255\.255:2181" cannot be reached: /,
	'nowhere.invalid:2181' => qr/(could not resolve "nowhere\.invalid:2181": |"nowhere\.invalid:2181" was not resolved)/,
	'127.0.0.1:' . $silent->sockport => qr/"127\.0\.0\.1:\d+" accepts connections, and does not answer/,
	'127.0.0.1:' . $full->sockport => qr/"127\.0\.0\.1:\d+" does not accept connections/);
like(detail($one, 'hosts'), qr/: 1, without an answer: 0\.$/, 'all hosts are there');
$test->connects_with($one, 'one host of six is there', connect_string => join ',', $good, sort keys %hosts);
bad_ok($one, 'hosts', 'which is told');
my $told = detail($one, 'hosts');
like($told, qr/^Servers in "zklock.connect_string": 6, without an answer: 5\.  /, 'how many are not');
like($told, $hosts{$_}, "which one: $_") foreach sort keys %hosts;
unlike($told, qr/\Q$good\E/, 'and not the good one');
$_->close foreach $silent, $full, @fill;
my $impatient = $test->session($one);
$impatient->query("SET statement_timeout = '300ms'");
my $stalled = IO::Socket::INET->new(Listen => 50, LocalAddr => '127.0.0.1');
$test->connects_with($one, 'another one', connect_string => "$good,127.0.0.1:" . $stalled->sockport);
is($impatient->error('SELECT * FROM zk_healthcheck()'), '57014', 'the wait can be cancelled');
is(`ps -o pid= --ppid @{[ $impatient->pid ]}`, '', 'and leaves no process');
$impatient->close;
$test->connects_with($one, 'only the good one', connect_string => $good);
bad_ok($one, '', 'all hosts are there again');

# ---- who may look

$one->safe_psql('postgres',
	'CREATE ROLE plain LOGIN; CREATE ROLE monitor LOGIN IN ROLE pg_monitor');
foreach my $function ('zk_healthcheck', 'zk_version')
{
	my $plain = $test->session($one, user => 'plain');
	my $monitor = $test->session($one, user => 'monitor');
	is($plain->error("SELECT * FROM $function()"), '42501', "$function: not for everybody");
	cmp_ok($monitor->query("SELECT count(*) FROM $function()"), '>', 0, 'for pg_monitor');
	$_->close foreach $plain, $monitor;
}
change($one, 'peer_port', $port);
bad_ok($one, 'messages', 'no messages again');
$one->safe_psql('postgres', 'GRANT EXECUTE ON FUNCTION zk_healthcheck() TO plain');
my $plain = $test->session($one, user => 'plain');
ok(wait_for(
		sub {
			$plain->query("SELECT detail FROM zk_healthcheck() WHERE check_name = 'messages'") eq
			  'The server log says why.';
		},
		'only the log'),
	'a fault may show addresses and paths: not to everybody');
$test->set($one, connect_string => "$good,nowhere.invalid");
like($plain->query("SELECT detail FROM zk_healthcheck() WHERE check_name = 'hosts'"),
	qr/without an answer: [01]\.$/, 'nor the names of hosts');
$plain->close;

$test->finish;
