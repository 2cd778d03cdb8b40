# A disturbed network below TLS, in front of a ZooKeeper server that takes nothing
# else: silence, resets, records that are cut, and requests and answers that
# are larger than what the relay holds.  No lock is lost.  A server
# whose settings of TLS are no good does not start, and a client library that would
# go around the relay gets no byte out.

use strict;
use warnings;

use Test::More;

use CertificateAuthority;
use FakeSession;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

plan skip_all => 'ZooKeeper needs netty for TLS'
  unless glob '/usr/share/java/netty-*.jar';

my $ca = CertificateAuthority->new('ca');
my $net = TcpProxy->new;
my $zk = ZooKeeper->new('zk',
	java => [ '-Xmx512m', '-XX:+UseSerialGC' ],
	tls => {
		certificate => $ca->issue('server', names => 'IP:127.0.0.1'),
		authority => $ca
	});
my $fake = FakeSession->new;
my $port = $net->route('one', $zk->secure_port, framed => 0);
my $conf = $fake->conf . <<"EOC";
zklock.tls = 'verify-full'
zklock.tls_ca_file = '@{[ $ca->file ]}'
zklock.connect_string = '127.0.0.1:$port'
EOC
my $test = ZklockTest->new(
	servers => 0,
	zk => $zk);
my $node = $test->new_node('server1', session_timeout => '10s', conf => $conf);
$node->start;
$fake->create_extension($node);
$test->wait_connected($node);
my $holder = $test->session($node);
my $waiter = $test->session($node);
my $id = $test->status($node, 'session_id');

sub connects { return $test->status($node, 'connects'); }

sub survives
{
	my ($case, $disturb) = @_;
	my $token = $holder->query("SELECT zk_lock('/n')");
	my $before = connects();

	$test->enqueue($waiter, "SELECT zk_lock('/n')", '/n');
	$disturb->();
	$test->look_until($node,
		"SELECT connects > $before AND state = 'connected' FROM zk_status, zk_stat_server",
		't', "$case: connected again");
	is($test->status($node, 'session_id, sessions_lost'),
		"$id|0", "$case: the same session");
	ok($test->still_waits($waiter), "$case: nothing is lost");
	$holder->query("SELECT zk_unlock('/n')");
	cmp_ok($waiter->value, '>', $token, "$case: handed on");
	$waiter->query("SELECT zk_unlock('/n')");
	return;
}

survives('reset', sub { $net->reset('one') });
survives(
	'silence',
	sub {
		$net->hold('one');
		$test->look_until($node, 'SELECT state FROM zk_status',
			'disconnected', 'the silence is noticed');
		$net->pass('one');
	});
foreach my $direction ('up', 'down')
{
	foreach my $bytes (1, 5, 30)
	{
		survives(
			"a record cut after $bytes bytes, $direction",
			sub {
				$net->cut('one', $bytes, $direction);
				$holder->send("SELECT zk_try_lock('/other')");
				is($holder->value, 't', 'a request goes on');
				$holder->query("SELECT zk_unlock('/other')");
			});
	}
}
survives(
	'the session process killed',
	sub { kill 'KILL', $test->status($node, 'session_pid') });

# ---- requests and answers that are larger than all buffers
$zk->client->create('/zklock/large');
$zk->client->create_many('/zklock/large/_c_' . 'f' x 200 . '-__READ__', 2000);
$holder->query('SET zklock.answer_timeout = 60000');
foreach my $round (1 .. 3)
{
	is($holder->query("SELECT count(*) FROM zk_queue('/large')"),
		2000, "round $round: a listing of 450 kB arrives");
}
$holder->query('SET zklock.max_requests_per_session = 200');
is($holder->query(
		"SELECT count(zk_lock('/many/' || repeat('y', 150) || n))"
		  . ' FROM generate_series(1, 180) n'),
	180, 'and long requests get there');
$holder->query('SELECT zk_unlock_all()');

# ---- A copy of the session process whose function connect() nobody finds, as it
# would be if the client library were bound to another.
my $program = "$fake->{dir}/real";
my $bytes = slurp_file($program);
$bytes =~ s/\0connect\0/\0konnect\0/;
$net->hold('one');
unlink $program;
append_to_file($program, $bytes);
chmod 0755, $program;
my $plain = $net->route('plain', $zk->port, framed => 0);
$node->append_conf('postgresql.conf',
	"zklock.connect_string = '127.0.0.1:$plain'");
$node->reload;
ok($test->look_until($node,
		"SELECT last_error LIKE '%are not used: TLS is not possible%' FROM zk_status", 't',
		'a client library that connects by itself is noticed'),
	'a client library that connects by itself is noticed')
  or diag $test->status($node, 'last_error');
is($net->stats('plain')->{bytes}{up}, 0, 'and it has sent nothing');
$_->close foreach $holder, $waiter;
$test->stop_looking($node);
$node->stop;

# ---- starts
foreach my $wrong (
	[ "zklock.tls = 'verify_full'", 'The modes are off, verify-ca' ],
	[ "zklock.tls_ca_file = ''", 'requires "zklock.tls_ca_file"' ])
{
	my ($setting, $pattern) = @$wrong;
	my $offset = -s $node->logfile;

	$node->append_conf('postgresql.conf', $setting);
	ok(!$node->start(fail_ok => 1), "$setting: the server does not start");
	like(slurp_file($node->logfile, $offset), qr/FATAL:.*$pattern|DETAIL:.*$pattern/,
		"$setting: and says why");
	$node->append_conf('postgresql.conf', $conf);
}
$zk->stop;
done_testing();
