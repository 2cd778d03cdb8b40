# The trace of the core: off by default, and when it is on there is one line for
# each event and action, in a file that others cannot read, that does not grow
# without end, and that holds no secret.  If it cannot be written, locks go on.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $credentials = rel2abs(PostgreSQL::Test::Utils::tempdir()) . '/credentials';
write_secret($credentials, "digest:zklock:open-sesame\n");

my $test = ZklockTest->new(
	servers => 1,
	conf => "zklock.auth_file = '$credentials'\nzklock.cache_time = 0\n");
my ($node) = $test->nodes;
my $session = $test->session($node, application_name => 'hush-hush');
my $trace = $node->data_dir . '/zklock.trace';
my $old = "$trace.old";

sub lock_and_unlock
{
	my ($path) = @_;

	return $session->query("SELECT zk_lock('$path'); SELECT zk_unlock('$path')");
}

# Waits until the trace has a line like that.
sub wait_line
{
	my ($pattern, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(sub { -e $trace && slurp_file($trace) =~ $pattern }, $what),
		$what);
	return;
}

lock_and_unlock('/t/off');
ok(!-e $trace, 'there is no trace by default');

$test->set($node, trace => 'on');
wait_line(qr/ process \d+ begins$/m, 'it begins when it is switched on');
wait_line(qr/^\S+ \S+ \S+ client \S/m, 'also what the client library of the connection says');
is((stat $trace)[2] & 07777, 0600, 'the file is for its owner alone');
lock_and_unlock('/t/on');
# Not the release of the lock before, which may still come and has its number.
wait_line(qr{in release request=(\d+) /zklock/t/on now=\d+\n.* out free request=\g1$}ms,
	'a lock is released');

my ($request) =
  slurp_file($trace) =~ m{ in submit (request=\d+) /zklock/t/on };
my $time = qr/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} \w+/;
my $uuid = qr/[0-9a-f-]{36}/;
my @expected = (
	qr{in submit $request /zklock/t/on exclusive curator_rw owner=\d+ patience_ms=\d+ together plain now=\d+},
	qr{out record $request /zklock/t/on exclusive uuid=$uuid index=1 generation=\d+},
	qr{out operation create /zklock/t/on/_c_$uuid-__WRIT__},
	qr{in result operation=1 rc=0 /zklock/t/on/_c_$uuid-__WRIT__\d{10}},
	qr{out grant $request /zklock/t/on token=\d+(?: solitary)?},
	qr{in release $request /zklock/t/on now=\d+},
	qr{out operation delete /zklock/t/on/_c_$uuid-__WRIT__\d{10} version=-1},
	qr{out free $request});
my @lines = split /\n/, slurp_file($trace);
foreach my $line (@lines)
{
	shift @expected if @expected && $line =~ /^$time $expected[0]$/;
}
is_deeply(\@expected, [], 'the life of a lock is there, in order')
  or diag join "\n", @lines;

# What the client library says of new settings that are tried
my $zookeeper = $test->zk->connect_string;
$test->keeps_connection($node, 'could not connect', 'a port that nobody listens on',
	connect_string => '127.0.0.1:1');
wait_line(qr/^$time client .*127\.0\.0\.1:1\b/m, 'its lines are there, too');
$test->set($node, connect_string => $zookeeper);

# A restarted worker goes on in the same file.
$session->query("SELECT zk_lock('/t/held')");
kill 'TERM', $test->status($node, 'worker_pid');
$test->look_until($node, "SELECT state FROM zk_locks WHERE path = '/t/held'", 'lost', 'lost');
$test->wait_connected($node);
$session->query("SELECT zk_unlock_all()");
lock_and_unlock('/t/next');
wait_line(qr{in release request=(\d+) /zklock/t/next now=\d+\n.* out free request=\g1$}ms,
	'a restarted worker tells what it does');

# Nothing tells what opens the session to others, also not how it was opened.
my $password = $test->zk->client->password(hex $test->session_hex($node));
my %told = (
	dump => $test->look($node, "SELECT string_agg(item || ' ' || state, ' ') FROM zk_dump()"),
	log => slurp_file($node->logfile),
	trace => slurp_file($trace));
like($told{trace}, qr/ in connected session=/, 'the trace tells of the session');
like($told{trace}, qr/^$time client .*(?:sending request|initiated connection)/im,
	'and has what the client library says');
unlike($told{log}, qr/sending request|initiated connection/i, 'which the log does not');
foreach my $where (sort keys %told)
{
	unlike($told{$where}, qr/sesame/, "the $where does not tell the credentials");
	unlike($told{$where}, qr/$password/i, "the $where does not tell the password in hex");
	is(index($told{$where}, pack 'H*', $password), -1, "the $where does not tell the password");
}

# Whether a lock adds nothing to the file: before the answer to the second one, the
# worker writes what it tells of the first one.
sub is_quiet
{
	my $size = -s $trace;

	lock_and_unlock('/t/last') foreach 1, 2;
	return $size == -s $trace;
}

# Many lines, by locks
sub fill_trace
{
	return $session->query('DO $$ BEGIN FOR i IN 1 .. 700 LOOP'
		  . " PERFORM zk_lock('/t/size'); PERFORM zk_unlock('/t/size');"
		  . ' END LOOP; END $$');
}

# With a file that is nearly full, so that the next lines fill it
my $most = 8 * 1024 * 1024;
foreach my $round (1, 2)
{
	$test->set($node, trace => 'off');
	ok(wait_for(\&is_quiet, 'the trace ends'), "round $round: it ends");
	append_to_file($trace, 'x' x ($most - 10_000 - -s $trace) . "\n");
	my $before = -e $old ? (stat $old)[1] : 0;
	$test->set($node, trace => 'on');
	ok(wait_for(sub { lock_and_unlock('/t/full'); -e $old && (stat $old)[1] != $before },
			'a full file is replaced'), "round $round: a full file is replaced");
	cmp_ok(-s $old, '<=', $most, "round $round: it was full");
}
is((stat $old)[2] & 07777, 0600, 'the old one is for its owner alone, too');
fill_trace();
cmp_ok(-s $trace, '<=', $most, 'the new one begins from nothing');

foreach my $secret ('sesame', 'hush-hush', 'postgres')
{
	unlike(slurp_file($_), qr/$secret/, "$_ does not tell $secret")
	  foreach $trace, $old;
}

# The worker may see the new setting only a while later.
$test->set($node, trace => 'off');
ok(wait_for(\&is_quiet, 'it ends'), 'it ends when it is switched off');
lock_and_unlock('/t/after');
unlike(slurp_file($trace), qr{/t/after}, 'nothing more is told');

# Somebody has put a directory in its place.
unlink $trace;
mkdir $trace;
$test->set($node, trace => 'on');
ok(wait_for(
		sub { slurp_file($node->logfile) =~ /could not open file "zklock.trace"/ },
		'the server log tells'),
	'a trace that cannot be written is told in the server log');
like(lock_and_unlock('/t/without'), qr{^\d+\nt$}, 'locks go on');
rmdir $trace;
$node->reload;
wait_line(qr/ begins$/m, 'a reload tries again');

$session->close;
$test->finish;
