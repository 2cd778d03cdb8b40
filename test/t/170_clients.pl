# Clients that ask for more than there is, or for what cannot be: floods of
# requests and of connections, a full table, names of any size, no
# credentials.  They get clear errors (rows 28, 33, 35), and nobody else is
# disturbed.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $slots = 24;
my $test = ZklockTest->new(
	max_requests => $slots,
	conf => "client_connection_check_interval = 50ms\nlog_statement = none\n");
my ($one, $two) = $test->nodes;
my $bystander = $test->session($one);
my $rival = $test->session($two);
my $token = $bystander->query("SELECT zk_lock('/b')");
$test->enqueue($rival, "SELECT zk_lock('/b')", '/b');

sub undisturbed_ok
{
	my ($case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$test->look_until($one, 'SELECT count(*) FROM zk_locks',
		1, "$case: all slots are given back");
	is($bystander->query("SELECT zk_fencing_token('/b')"),
		$token, "$case: the bystander holds its lock");
	ok($test->still_waits($rival), "$case: and keeps the other one out");
	is($test->status($_, 'state, sessions_lost'),
		'connected|0', "$case: connected, on " . $_->name)
	  foreach $one, $two;
	return;
}

# Each of them takes more than there is, as fast as it can.
my @flood = map { $test->session($one) } 1 .. 20;
$_->send(<<'EOS') foreach @flood;
DO $$
DECLARE
	refused int := 0;
BEGIN
	FOR i IN 1 .. 400 LOOP
		BEGIN
			PERFORM zk_try_lock('/flood/' || pg_backend_pid() || '/' || i);
		EXCEPTION WHEN configuration_limit_exceeded THEN
			refused := refused + 1;
		END;
		IF i % 5 = 0 THEN PERFORM zk_unlock_all(); END IF;
	END LOOP;
	PERFORM zk_unlock_all();
	RAISE NOTICE 'refused: %', refused > 0;
END $$
EOS
is(join(' ', grep { $_ } map { $_->sqlstate } @flood),
	'', 'flood: no error but 53400');
cmp_ok(scalar(grep { $_->messages =~ /refused: t/ } @flood),
	'>', 0, 'flood: which some got');
undisturbed_ok('flood');

# A table that one client fills
is($flood[0]->error(
		'SELECT count(zk_lock(\'/full/\' || n)) FROM generate_series(1, 100) n'),
	'53400', 'full: an error');
like($flood[0]->messages, qr/zklock\.max_requests/, 'full: names the setting');
is($flood[1]->error("SELECT zk_lock('/full')"), '53400', 'full: for others too');
is($bystander->query("SELECT zk_lock('/b')"), $token, 'full: not to re-enter');
$bystander->query("SELECT zk_unlock('/b')");
$flood[0]->query('SELECT zk_unlock_all()');
undisturbed_ok('full');

# Thousands in one message
is($flood[2]->error("SELECT zk_try_lock('/many'), zk_unlock('/many');" x 3000),
	'', 'many statements in one message: no error');
is(scalar(grep { $_->[0] ne 't' } @{ $flood[2]->result->{rows} }),
	0, 'all of them granted');
$_->close foreach @flood;
undisturbed_ok('many statements');

# Clients that ask and vanish
foreach my $round (1 .. 15)
{
	my @vanishing = map { $test->session($one) } 1 .. 15;

	$_->send("SELECT zk_lock('/b')") foreach @vanishing;
	$_->abandon foreach @vanishing;
}
undisturbed_ok('vanished');

# Names
my $s = $test->session($one);
my %names = (
	"'/' || repeat('x', 65536)" => 'of 64 kB',
	"'/' || repeat('x', 10000000)" => 'of 10 MB',
	"repeat('/x', 32768)" => 'of many parts',
	"'/' || repeat(U&'\\00E4', 128)" => 'of 257 bytes in 129 characters',
	"''" => 'empty',
	"'/'" => 'the root',
	"'x'" => 'relative',
	"'../x'" => 'above',
	"'/a/../zookeeper'" => 'around',
	"'/a/./b'" => 'with a dot',
	"'/a//b'" => 'with nothing between slashes',
	"'/a/'" => 'with a slash at its end',
	"'/.servers/x'" => 'reserved',
	"'/a' || chr(1)" => 'with a control character',
	"'/a' || chr(65534)" => 'with a character that ZooKeeper refuses',
	"'/a/_c_0b5e6a2e-0000-8000-8000-000000000000-__WRIT__0000000001'" =>
	  'of a request',
	"'/a/x__READ__0000000001/b'" => 'that goes through one');
foreach my $name (sort keys %names)
{
	my $case = "a name $names{$name}";

	is($s->error("SELECT zk_lock($name)"), '22023', "$case: refused");
	cmp_ok(length $s->messages, '<', 1500, "$case: in few words");
	is($s->error("SELECT zk_try_xact_lock_shared($name)"),
		'22023', "$case: by all functions");
	is($s->error("SELECT * FROM zk_queue($name)"), '22023', "$case: and views");
}
is($s->error("SELECT zk_lock(E'/a\\xff')"), '22021', 'not UTF-8: refused');
cmp_ok($s->query("SELECT zk_lock('/zookeeper')"),
	'>', 0, '/zookeeper is a name like others');
is_deeply([ $test->queue('/zookeeper') ? 1 : 0 ], [1], 'below the root');
$s->query('SELECT zk_unlock_all()');
is(scalar(grep { !/^zookeeper$|^zklock$/ } $test->zk->client->ls('/')),
	0, 'nothing was made beside the root');
undisturbed_ok('names');

# Credentials that ZooKeeper does not take
my $file = rel2abs(PostgreSQL::Test::Utils::tempdir()) . '/credentials';
write_secret($file, "nosuchscheme:secret-word\n");
$two->safe_psql('postgres', "ALTER SYSTEM SET zklock.auth_file = '$file'");
$two->reload;
$test->look_until($two,
	"SELECT state, last_error LIKE 'new settings of the connection are not used%' FROM zk_status",
	'connected|t', 'wrong credentials: zk_status says so');
unlike($test->status($two, 'last_error'),
	qr/secret-word/, 'wrong credentials: and not what they are');
$two->safe_psql('postgres', 'ALTER SYSTEM RESET zklock.auth_file');
$two->reload;
$test->wait_connected($two);
is($test->status($two, 'sessions_lost'), 0, 'right ones again: nothing is lost');
unlike(slurp_file($_->logfile), qr/secret-word/, 'no secret in the log')
  foreach $one, $two;

$bystander->query("SELECT zk_unlock('/b')");
cmp_ok($rival->value, '>', $token, 'the other one gets the lock in the end');
$_->close foreach $bystander, $rival, $s;

# A server that starts with them has no others.
$two->safe_psql('postgres', "ALTER SYSTEM SET zklock.auth_file = '$file'");
$test->stop_looking($two);
$two->restart;
$test->look_until($two, 'SELECT state FROM zk_status', 'auth_failed', 'at its start: zk_status says so');
unlike($test->status($two, 'last_error'), qr/secret-word/, 'and not what they are');
my $u = $test->session($two);
$u->query("SET zklock.answer_timeout = '100ms'");
is($u->error("SELECT zk_try_lock('/x')"), '08006', 'a try is refused');
like($u->messages, qr/Check "zklock\.auth_file"/, 'and the hint follows the last error');
is($u->error("SELECT zk_lock('/x', '1s')"), '08006', 'a request that waits times out');
like($u->messages, qr/^The wait goes on\.  Check "zklock\.auth_file"/m, 'so does the hint of the notice');
like($u->messages, qr/^Check "zklock\.auth_file"/m, 'and that of the error');
$u->close;
$two->safe_psql('postgres', 'ALTER SYSTEM RESET zklock.auth_file');
$two->reload;
$test->wait_connected($two);
unlike(slurp_file($two->logfile), qr/secret-word/, 'no secret in the log');
$test->finish;
