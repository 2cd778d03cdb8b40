# A server that zklock cannot use, for it wants TLS, or clients that prove who
# they are, is named as such in zk_status and in the log.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use IPC::Run ();
use Test::More;

use FakeZooKeeper;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $dir = rel2abs(PostgreSQL::Test::Utils::tempdir());
my $secure_port = PostgreSQL::Test::Cluster::get_free_port();

# ZooKeeper reads key and certificate from one file each.
IPC::Run::run(
	[ 'openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days',
		'2', '-subj', '/CN=localhost', '-keyout', "$dir/server.pem", '-out',
		"$dir/cert.pem" ],
	'&>', "$dir/openssl.log")
  or die "openssl failed, see $dir/openssl.log";
append_to_file("$dir/server.pem", slurp_file("$dir/cert.pem"));

my @netty = glob('/usr/share/java/netty-*.jar');
my $test = ZklockTest->new(
	servers => 1,
	start_zookeeper => 0,
	zk => {
		class_path => \@netty,
		config => <<"EOC" });
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort=$secure_port
secureClientPortAddress=127.0.0.1
ssl.keyStore.location=$dir/server.pem
ssl.keyStore.type=PEM
ssl.trustStore.location=$dir/cert.pem
ssl.trustStore.type=PEM
enforce.auth.enabled=true
enforce.auth.schemes=digest
EOC
my ($node) = $test->nodes;

# What zk_status says of a server on that port, until it says the like
sub complains
{
	my ($port, $pattern, $what) = @_;

	$pattern = "\"127.0.0.1:$port\".*$pattern";
	$node->safe_psql('postgres',
		"ALTER SYSTEM SET zklock.connect_string = '127.0.0.1:$port'");
	$node->reload;
	ok($test->look_until($node,
			"SELECT last_error ~ '$pattern' FROM zk_status", 't', $what),
		$what)
	  or diag $test->status($node, 'state, last_error');
	return;
}

$test->zk->start;
complains($test->zk->port, 'requires authentication',
	'a server that wants credentials is named as such');
like($test->status($node, 'last_error'),
	qr/"zklock.auth_file"/, 'with the setting that has them');

my $file = "$dir/credentials";
write_secret($file, "digest:zklock:secret\n");
$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.auth_file = '$file'");
$node->reload;
$test->wait_connected($node);
my $session = $test->session($node);
cmp_ok($session->query("SELECT zk_lock('/u')"),
	'>', 0, 'with credentials it serves');
$session->query("SELECT zk_unlock('/u')");
$session->close;

SKIP:
{
	skip 'no netty', 1 unless @netty;
	complains($secure_port, 'requires TLS',
		'a port that wants TLS is named as such');
}

# A proxy that speaks TLS answers with an alert.
my $fake_port = PostgreSQL::Test::Cluster::get_free_port();
my $fake = FakeZooKeeper->new($fake_port);
$fake->mode('tls alert');
complains($fake_port, 'requires TLS', 'so is one that answers with an alert');
$fake->mode('ssh');
complains($fake_port, 'does not speak', 'but not whatever answers');
$fake->mode('close');
complains($fake_port, 'closed the connection', 'nor what just hangs up');
$fake->mode('connect: ClickHouse Keeper');
complains($fake_port, 'is ClickHouse Keeper', 'nor ClickHouse Keeper, tried beside a connection');

# No client of the test's can look there: it has no credentials.
$node->safe_psql('postgres',
	"ALTER SYSTEM SET zklock.connect_string = '"
	  . $test->zk->connect_string
	  . "'");
$node->reload;
$test->wait_connected($node);
$fake->quit;
$test->finish(leaks => 0);
