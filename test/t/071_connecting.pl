# How a server comes to its ensemble: credentials from zklock.auth_file keep
# others from a lock's directory, but not from looking.  All of it can be changed by
# a reload: new settings are tried beside the connection, and used once they work.
# Those that do not, such as a file that is no good, a host that does not answer, or a
# chroot that does not exist, are named in zk_status, and cost neither connection nor
# lock.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use FakeZooKeeper;
use IO::Socket::INET;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $file = rel2abs(PostgreSQL::Test::Utils::tempdir()) . '/credentials';

# Sets one setting of the configuration file, and waits for what it leads to.
sub set_and_wait
{
	my ($node, $name, $value, $condition, $what) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$name = '$value'");
	$node->reload;
	ok($test->look_until($node, "SELECT $condition FROM zk_status, zk_stat_server", 't', $what),
		$what);
}

sub connects
{
	my ($node) = @_;
	my $so_far = $test->status($node, 'connects');

	return "state = 'connected' AND connects > $so_far";
}

write_secret($file, "digest:zklock:secret\n");
my $id = $test->status($one, 'session_id');
set_and_wait($one, 'auth_file', $file, connects($one),
	'a reload takes up the credentials');
is($test->status($one, 'session_id'), $id, 'in the same session');

my $holder = $test->session($one);
my $other = $test->session($two);
$holder->query("SELECT zk_lock('/private/lock')");
is($other->error("SELECT zk_lock('/private/lock')"),
	'42501', 'who lacks them may not queue');
is($other->query("SELECT count(*) FROM zk_queue('/private/lock')"),
	1, 'but may look');
cmp_ok($other->query("SELECT zk_lock('/public')"),
	'>', 0, 'and lock elsewhere');
$other->query("SELECT zk_unlock('/public')");

set_and_wait($two, 'auth_file', $file, connects($two),
	'the other server has them too');
$test->enqueue($other, "SELECT zk_lock('/private/lock')", '/private/lock');
$holder->query("SELECT zk_unlock('/private/lock')");
cmp_ok($other->value, '>', 0, 'and gets the lock');
$other->query("SELECT zk_unlock('/private/lock')");

# Settings that cannot be used are named, and the connection goes on.
my $unused = 'new settings of the connection are not used: ';
my $health = q(SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'settings');
my $connects = $test->status($two, 'connects');
$other->query("SELECT zk_lock('/kept')");
like($test->look($two, $health), qr/^t\|/, 'the settings are in use');
set_and_wait($two, 'auth_file', "$file.missing",
	"last_error LIKE '$unused%auth_file%No such file%'",
	'a missing file is named');
like($test->look($two, $health), qr/^f\|.*are not used: .*No such file/, 'health tells, too');
write_secret("$file.bad", "no colon\n");
set_and_wait($two, 'auth_file', "$file.bad",
	"last_error LIKE '$unused%must hold lines scheme:credentials'",
	'so is one of another form');
$two->safe_psql('postgres', "ALTER SYSTEM SET zklock.auth_file = '$file'");
set_and_wait($two, 'tls', 'verify-full',
	"last_error LIKE '$unused%zklock.tls%requires%tls_ca_file%'",
	'and a setting that lacks another one');
$two->safe_psql('postgres', "ALTER SYSTEM SET zklock.tls = 'off'");
$two->reload;
ok($test->look_until($two, "SELECT ok FROM ($health) h", 't', 'taken back'), 'all taken back');
write_secret("$file.group", "digest:zklock:secret\n");
chmod 0640, "$file.group";
set_and_wait($two, 'auth_file', "$file.group",
	"last_error LIKE '$unused%must have permissions 0600 or less%'",
	'a file that others could read');
is($test->status($two, 'state, connects'), "connected|$connects", 'all on one connection');
is($other->query("SELECT zk_unlock('/kept')"), 't', 'on which the lock was kept');

# The old ones are used for the next connection, too, until the new ones work.
my $again = connects($two);
kill 'KILL', $test->status($two, 'session_pid');
ok($test->look_until($two, "SELECT $again FROM zk_status, zk_stat_server", 't', 'again'),
	'the next connection has the old credentials');
like($test->look($two, $health), qr/^f\|.*0600 or less/, 'health still tells');
$again = connects($two);
chmod 0600, "$file.group";
ok($test->look_until($two, "SELECT $again FROM zk_status, zk_stat_server", 't', 'a good file'),
	'a file that becomes good is used without another reload');
like($test->look($two, $health), qr/^t\|/, 'and is in use');
set_and_wait($two, 'auth_file', $file, connects($two), 'the first file again');

# A connect string that does not work costs nothing.
my $servers = $test->zk->connect_string;
my $port = PostgreSQL::Test::Cluster::get_free_port();
my $fake_port = PostgreSQL::Test::Cluster::get_free_port();
my $fake = FakeZooKeeper->new($fake_port);
my $token = $other->query("SELECT zk_lock('/kept')");
my @sessions = $test->zk->sessions;
$id = $test->status($two, 'session_id');
$connects = $test->status($two, 'connects');
$fake->mode('ssh');
foreach my $wrong (
	[ "127.0.0.1:$port", "could not connect to \"127.0.0.1:$port\": Connection refused" ],
	[ "127.0.0.1:$fake_port", 'does not speak ZooKeeper' ],
	[ "127.0.0.1:$fake_port,127.0.0.1:$port", 'does not speak ZooKeeper' ],
	[ "$servers/missing", 'chroot%does not exist' ])
{
	my ($string, $fault) = @$wrong;

	set_and_wait($two, 'connect_string', $string, "last_error LIKE '$unused%$fault%'",
		"$string is not used");
	ok(wait_for(
			sub { slurp_file($two->logfile) =~ /LOG: +zklock: \Q$unused\E.*\Q$fault\E/
				  || $fault =~ /%/ }, 'the log says so'),
		'the log says so');
	like($test->look($two, $health), qr/^f\|/, 'health, too');
}
set_and_wait($two, 'tls', 'verify-full',
	"last_error LIKE '$unused%zklock.tls%requires%tls_ca_file%'",
	'a setting that lacks another one is named again');
ok(wait_for(
		sub { 2 == (() = slurp_file($two->logfile) =~ /LOG: .*: "zklock.tls" requires/g) },
		'also in the log'),
	'also in the log, after many other errors of settings');
set_and_wait($two, 'tls', 'off', "last_error LIKE '$unused%chroot%does not exist%'",
	'the missing chroot is named again');
is($test->status($two, 'state, connects, session_id, sessions_lost'),
	"connected|$connects|$id|0", 'all on one connection');
is($other->query("SELECT zk_fencing_token('/kept')"), $token, 'on which the lock was kept');

# Not even if the connection breaks meanwhile
kill 'KILL', $test->status($two, 'session_pid');
ok($test->look_until($two, "SELECT state = 'connected' AND connects > $connects FROM zk_status, zk_stat_server",
		't', 'again'),
	'the next connection is made to the old servers');
is($test->status($two, 'session_id, sessions_lost'), "$id|0", 'in the same session');

# One host that works is enough.
set_and_wait($two, 'connect_string', "127.0.0.1:$port,$servers", connects($two),
	'a string of which one host works is used');
set_and_wait($two, 'connect_string', $servers, connects($two), 'the first one again');

# If the worker learns late that a host has failed, the next one is tried all the same.
my $listener = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1');
my $failing = '127.0.0.1:' . $listener->sockport;
my $worker = $test->status($two, 'worker_pid');
my $present = $test->status($two, 'session_pid');
$again = connects($two);
$two->safe_psql('postgres', "ALTER SYSTEM SET zklock.connect_string = '$failing,$servers'");
$two->reload;
my $client = $listener->accept;
my ($trial) = grep { $_ != $present } split ' ', `ps -o pid= --ppid $worker`;
kill 'STOP', $worker;
$_->close foreach $client, $listener;
ok(wait_for(sub { `ps -o stat= -p $trial` =~ /^Z/ }, 'its end'), 'the process that tries it ends');
kill 'CONT', $worker;
ok($test->look_until($two, "SELECT $again FROM zk_status, zk_stat_server", 't', 'used'), 'the next host works');
unlike(slurp_file($two->logfile), qr/\Q$unused\E.*\Q$failing\E/, 'in the same round');
set_and_wait($two, 'connect_string', $servers, connects($two), 'the first one once more');
is($test->status($two, 'session_id, sessions_lost'), "$id|0", 'all in the same session');
is($other->query("SELECT zk_unlock('/kept')"), 't', 'which has the lock');
ok(wait_for(sub { @sessions == (() = $test->zk->sessions) }, 'as many sessions'),
	'the sessions that tried the settings are closed');

$fake->quit;
$_->close foreach $holder, $other;
$test->finish;
