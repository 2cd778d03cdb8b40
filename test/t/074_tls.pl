# TLS to ZooKeeper: locks work over it, with servers that are verified by name or
# by address; a server that cannot be verified gets no byte of ZooKeeper's
# protocol, and zk_status says what to do; clients show certificates if they are
# asked for, and files that hold a secret must keep it.  New settings that do not work
# cost nothing: the connection goes on with the old ones.

use strict;
use warnings;

use File::Copy qw(copy);
use IPC::Run ();
use Test::More;

use CertificateAuthority;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

plan skip_all => 'ZooKeeper needs netty for TLS'
  unless glob '/usr/share/java/netty-*.jar';

my $ca = CertificateAuthority->new('ca', days => 60);
my $other = CertificateAuthority->new('other');
my $names = 'DNS:localhost,IP:127.0.0.1';
my $server = $ca->issue('server', names => $names, days => 60);
my $net = TcpProxy->new;
my $conf = <<"EOC";
zklock.tls = 'verify-full'
zklock.tls_ca_file = '@{[ $ca->file ]}'
EOC

my $zk = ZooKeeper->new('zk',
	tick_time => 3000,
	tls => { certificate => $server, authority => $ca });
my $secure = 'localhost:' . $zk->secure_port;
my $test = ZklockTest->new(
	zk => $zk,
	session_timeout => '1min',
	conf => "$conf\nzklock.connect_string = '$secure'\n");
my ($one, $two) = $test->nodes;

# Goes back to the settings of the configuration file, which the connection still has.
sub mended
{
	my ($node, $what) = @_;

	$node->safe_psql('postgres', 'ALTER SYSTEM RESET ALL');
	$node->reload;
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($test->look_until($node,
			"SELECT ok AND state = 'connected' FROM zk_status, zk_healthcheck()"
			  . " WHERE check_name = 'settings'",
			't', "$what: mended"),
		"$what: mended");
	return;
}

# What zk_status says of a connection in the end
sub complains
{
	my ($node, $pattern, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($test->look_until($node,
			"SELECT state <> 'connected' AND coalesce(last_error, '') ~ '$pattern'"
			  . ' FROM zk_status',
			't', $what),
		$what)
	  or diag $test->status($node, 'state, last_error');
	return;
}

# What zk_healthcheck() says of settings while there is no connection
sub refuses
{
	my ($node, $pattern, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok($test->look_until($node,
			"SELECT NOT ok AND detail ~ 'are not used.*$pattern' FROM zk_healthcheck()"
			  . " WHERE check_name = 'settings'",
			't', $what),
		$what);
	return;
}

# Until when a certificate is valid, as zk_status shows it
sub end_of
{
	my ($node, $file) = @_;
	my ($date) = qx{openssl x509 -noout -enddate -in '$file'} =~ /^notAfter=(.*)/;

	return $test->look($node, "SELECT '$date'::timestamptz");
}

# The check of zk_healthcheck() that says so
sub check
{
	my ($node, $name) = @_;

	return $test->look($node,
		"SELECT ok, detail FROM zk_healthcheck() WHERE check_name = '$name'");
}

# A port with another certificate, before the same ZooKeeper server
sub impostor
{
	my ($name, %tls) = @_;

	return '127.0.0.1:' . $net->route($name, $zk->port, tls => \%tls);
}

# ---- by name
my $holder = $test->session($one);
my $rival = $test->session($two);
my $token = $holder->query("SELECT zk_lock('/t')");
cmp_ok($token, '>', 0, 'a lock over TLS');
is($rival->query("SELECT zk_try_lock('/t')"), 'f', 'which excludes others');
$test->enqueue($rival, "SELECT zk_lock('/t')", '/t');
my $id = $test->status($one, 'session_id');
is(check($one, 'hosts'), 't|Servers in "zklock.connect_string": 1, without an answer: 0.',
	'a host is there if it accepts connections');
like(check($one, 'tls'), qr/^t\|The connection has TLSv1\.\d, with the cipher \w\S+\.$/,
	'what the connection has');
like($test->status($one, 'tls_version, tls_cipher'), qr/^TLSv1\.\d\|\w\S+$/, 'in zk_stat_server, too');
is($test->status($one,
		'certificate_expires_at, ca_expires_at, zookeeper_certificate_expires_at'),
	join('|', '', map { end_of($one, $_) } $ca->file, $server->{file}),
	'until when certificates are valid');
like(check($one, 'certificates'),
	qr/^t\|The CA is valid until \S.*  The certificate of the ZooKeeper server is valid until [^:]*:[^:]*:[^:]*\.$/,
	'which is long enough');

# ---- by address, and without the name
$test->connects_with($one, 'verify-full by address',
	connect_string => '127.0.0.1:' . $zk->secure_port);
is($test->status($one, 'session_id'), $id, 'in the same session');
my $elsewhere = impostor('elsewhere',
	%{ $ca->issue('elsewhere', names => 'DNS:elsewhere') });
$test->connects_with($one, 'verify-ca takes any name',
	tls => 'verify-ca', connect_string => $elsewhere);
like(check($one, 'certificates'),
	qr/^f\|.* The certificate of the ZooKeeper server is valid until .*: renew it\.$/,
	'two days are not long enough');

# ---- servers that cannot be trusted
my $accepted = $net->stats('elsewhere')->{accepted};
$test->keeps_connection($one, 'certificate does not name "127.0.0.1": check "zklock.connect_string"',
	'another name',
	tls => 'verify-full');
is($net->stats('elsewhere')->{accepted}, $accepted, 'another name: nothing is sent');
$test->keeps_connection($one, 'certificate does not name "localhost"', 'nor that one',
	connect_string => $elsewhere =~ s/127.0.0.1/localhost/r);

my %impostors = (
	'wrong CA' => [
		{ %{ $other->issue('server', names => $names) } },
		'could not verify the server.s certificate .*check "zklock.tls_ca_file"'
	],
	'expired' => [
		{ %{ $ca->issue('old', names => $names, days => 0) } },
		'not valid now .certificate has expired.: renew it'
	]);
foreach my $case (sort keys %impostors)
{
	my ($tls, $pattern) = @{ $impostors{$case} };

	foreach my $mode ('verify-ca', 'verify-full')
	{
		$test->keeps_connection($one, $pattern, "$case, $mode: refused",
			tls => $mode,
			connect_string => impostor("$case, $mode", %$tls));
		is($net->stats("$case, $mode")->{accepted},
			0, "$case, $mode: nothing is sent");
	}
}
my $switches = $test->status($one, 'connects');
mended($one, 'trust');
ok($test->look_until($one, "SELECT connects > $switches FROM zk_stat_server", 't', 'a new connection'),
	'which takes a new connection');
is($test->status($one, 'session_id, sessions_lost'),
	"$id|0", 'nothing is lost by all that');

# ---- a server that only speaks an older protocol
my $old_port = PostgreSQL::Test::Cluster::get_free_port();
my $old = IPC::Run::start(
	[ 'openssl', 's_server', '-accept', "127.0.0.1:$old_port", '-cert',
		$server->{file}, '-key', $server->{key}, '-tls1_1', '-cipher',
		'ALL:@SECLEVEL=0', '-quiet' ],
	'<', \'', '&>', "$ca->{dir}/s_server.log");
$test->keeps_connection($one, 'TLS handshake failed: .*protocol version', 'TLS 1.1',
	connect_string => "127.0.0.1:$old_port");
$old->kill_kill;
mended($one, 'protocol');

# ---- ports without TLS
$test->keeps_connection($one, 'TLS handshake: .*must name its "secureClientPort", or the server failed: see its log', 'a port without TLS',
	connect_string => 'localhost:' . $zk->port);
mended($one, 'port');

# ---- from the port without TLS to the other one, under a lock
$test->connects_with($one, 'without TLS', tls => 'off', connect_string => 'localhost:' . $zk->port);
$test->connects_with($one, 'with TLS again', tls => 'verify-full', connect_string => $secure);
is($test->status($one, 'session_id, sessions_lost'), "$id|0", 'to TLS in the same session');

# ---- settings that do not go together
$test->keeps_connection($one, '"zklock.tls" requires "zklock.tls_ca_file"', 'no CA', tls_ca_file => '');
$test->keeps_connection($one, 'could not open "zklock.tls_ca_file" .*No such file', 'no file',
	tls_ca_file => "$ca->{dir}/missing");
$test->keeps_connection($one, 'could not load a certificate from "zklock.tls_ca_file"', 'no certificate in it',
	tls_ca_file => "$ca->{dir}/server.key");
mended($one, 'CA');
$test->keeps_connection($one, '"zklock.tls_cert_file" and "zklock.tls_key_file" require each other',
	'a certificate without a key',
	tls_cert_file => $server->{file});

# ---- files of keys
my %ours = (
	tls_cert_file => "$ca->{dir}/client.pem",
	tls_key_file => "$ca->{dir}/client.key");
$ca->issue('client');
$test->connects_with($one, 'a certificate that nobody asked for', %ours);
chmod 0640, $ours{tls_key_file};
$test->keeps_connection($one, '"zklock.tls_key_file" .*must have permissions 0600 or less',
	'a key that others can read',
	tls_cert_file => $server->{file});
chmod 0600, $ours{tls_key_file};
$test->keeps_connection($one, 'does not belong to the certificate', 'the key of another');
$ca->openssl('pkey', '-in', $ours{tls_key_file}, '-aes128', '-passout',
	'pass:sesame', '-out', "$ca->{dir}/locked.key");
chmod 0600, "$ca->{dir}/locked.key";
$test->keeps_connection($one, 'protected by a passphrase', 'a key with a passphrase',
	%ours, tls_key_file => "$ca->{dir}/locked.key");
mended($one, 'key');

# ---- a waiting session has waited through all that
is($holder->query("SELECT zk_unlock('/t')"), 't', 'unlocked after all that');
cmp_ok($rival->value, '>', $token, 'and handed on');
$rival->query("SELECT zk_unlock('/t')");

# ---- a server that wants certificates: one for each PostgreSQL server
$zk->set_client_auth('need');
$zk->restart;
complains($one, 'requires a client certificate: set "zklock.tls_cert_file"',
	'no certificate');
$other->issue('stranger');
$test->set($one,
	tls_cert_file => "$other->{dir}/stranger.pem",
	tls_key_file => "$other->{dir}/stranger.key");
refuses($one, 'refused the certificate in "zklock.tls_cert_file"',
	'one that the server does not trust');
write_secret("$ca->{dir}/credentials", "digest:zklock:open-sesame\n");
my $number = 0;
foreach my $node ($one, $two)
{
	my $name = 'host' . ++$number;
	my $own = $ca->issue($name);
	$test->connects_with(
		$node, "$name shows its own",
		tls_cert_file => $own->{file},
		tls_key_file => $own->{key},
		auth_file => "$ca->{dir}/credentials");
}
is($test->status($one, 'certificate_expires_at'),
	end_of($one, "$ca->{dir}/host1.pem"), 'until when its own is valid');
like(check($one, 'certificates'),
	qr/^f\|The certificate of this server is valid until [^C]*: renew it\.  The CA is valid/,
	'two days of its own are not long enough');
my $late = $ca->issue('late', days => 0);
$test->keeps_connection($one, 'refused the certificate in "zklock.tls_cert_file"', 'one that has expired',
	tls_cert_file => $late->{file}, tls_key_file => $late->{key});
$test->set($one,
	tls_cert_file => "$ca->{dir}/host1.pem",
	tls_key_file => "$ca->{dir}/host1.key");
$token = $holder->query("SELECT zk_lock('/m')");
$test->enqueue($rival, "SELECT zk_lock('/m')", '/m');
$holder->query("SELECT zk_unlock('/m')");
cmp_ok($rival->value, '>', $token, 'they share the locks');
$rival->query("SELECT zk_unlock('/m')");
is($holder->query("SELECT zk_try_lock('/m/more')"), 't', 'both ways');
$rival->error("SELECT zk_lock('/m/more', '0')");
$holder->query("SELECT zk_unlock('/m/more')");

# ---- a certificate that is renewed, by a file of the same name
sub renewed
{
	my ($from) = @_;

	copy("$from.$_", "$ca->{dir}/host1.$_") or die "copy: $!" foreach qw(pem key);
	return;
}
$holder->query("SELECT zk_lock('/renewed')");
$id = $test->status($one, 'session_id');
my $since = $test->look($one, 'SELECT clock_timestamp()');
my ($of_connection, $of_settings) =
  split /\|/, $test->status($one, 'connection_errors, settings_errors');
renewed("$other->{dir}/stranger");
my $connects = $test->status($one, 'connects');
kill 'KILL', $test->status($one, 'session_pid');
ok($test->look_until($one,
		"SELECT connects > $connects AND state = 'connected' AND last_error_at > '$since'"
		  . " AND last_error ~ 'are not used: .*refused the certificate' FROM zk_status, zk_stat_server",
		't', 'an error'),
	'renewed with one that the server does not trust: the next connection has the old one');
cmp_ok($test->status($one, 'settings_errors'), '>', $of_settings,
	'which is an error of the settings');
is($test->status($one, 'connection_errors'), $of_connection, 'and none of the connection');
$test->keeps_connection($one, 'refused the certificate', 'nor does a reload use it');
is($holder->error('SELECT zk_reconnect()'), '08006', 'nor zk_reconnect()');
like($holder->messages, qr/^A trial has failed, .*refused the certificate in "zklock.tls_cert_file"/m, 'which says why');
$ca->issue('renewed', days => 40);
renewed("$ca->{dir}/renewed");
$test->connects_with($one, 'a reload uses a renewed certificate');
is($test->status($one, 'certificate_expires_at'), end_of($one, "$ca->{dir}/renewed.pem"),
	'which is valid for longer');
$ca->issue('renewed', days => 50);
renewed("$ca->{dir}/renewed");
$holder->query('SELECT zk_reconnect()');
is($test->status($one, 'certificate_expires_at'), end_of($one, "$ca->{dir}/renewed.pem"),
	'zk_reconnect() uses the next one, and returns when it is in use');
is($test->status($one, 'session_id'), $id, 'in the same session');
is($holder->query("SELECT zk_unlock('/renewed')"), 't', 'which has its lock');
unlike(slurp_file($_->logfile), qr/sesame|PRIVATE/, 'no secret in the log')
  foreach $one, $two;
$_->close foreach $holder, $rival;

# ---- the end: the server is told, and answers
my $session = $test->session_hex($two);
$test->stop_looking($two);
$two->stop('fast');
is(scalar(grep { $_ eq $session } $zk->sessions),
	0, 'a server that stops closes its session');
$test->finish(leaks => 0);
