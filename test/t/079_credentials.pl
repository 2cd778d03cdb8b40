# What zklock.auth_file can hold: credentials of several schemes, which all count, and
# a line that hides znodes from clients without them.  Wrong ones are named, and
# cost nothing.  A server logs that ZooKeeper is of a release that loses writes.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $dir = rel2abs(PostgreSQL::Test::Utils::tempdir());
my $number = 0;

# A new file with these lines
sub auth_file
{
	my $file = "$dir/credentials" . ++$number;

	write_secret($file, join '', map { "$_\n" } @_);
	return $file;
}

my $ours = 'digest:zklock:open-sesame';
my $zk = ZooKeeper->new('zk',
	tick_time => 3000,
	more_java => [
		'-Dzookeeper.authProvider.1=org.apache.zookeeper.server.auth.EnsembleAuthenticationProvider',
		'-Dzookeeper.ensembleAuthName=alpha,beta' ]);
my $test = ZklockTest->new(
	zk => $zk,
	session_timeout => '1min',
	conf => "zklock.auth_file = '@{[ auth_file($ours, '', 'ensemble:alpha', 'acl: private') ]}'\n");
my ($one, $two) = $test->nodes;
my $outsider = $zk->client;

sub check
{
	my ($node, $name) = @_;

	return $test->look($node,
		"SELECT ok, detail FROM zk_healthcheck() WHERE check_name = '$name'");
}

# Settings that do not work
sub keeps
{
	my ($node, $pattern, $what, @lines) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $test->keeps_connection($node, $pattern, $what, auth_file => auth_file(@lines));
}

# ---- private from the beginning

my $holder = $test->session($one);
my $rival = $test->session($two);
my $token = $holder->query("SELECT zk_lock('/c/lock')");
$rival->send("SELECT zk_lock('/c/lock')");
ok($test->look_until($two, "SELECT count(*) FROM zk_queue('/c/lock')", 2, 'a rival'),
	'servers with the credentials share a lock');
is($test->look($two, "SELECT string_agg(server, ',' ORDER BY position) FROM zk_queue('/c/lock')"),
	'server1,server2', 'and see who wants it');
foreach my $path ('/zklock', '/zklock/c', '/zklock/c/lock', '/zklock/.servers', '/zklock/.fleet')
{
	ok(!defined $outsider->try_ls($path), "others cannot look into $path");
}
$holder->query("SELECT zk_unlock('/c/lock')");
cmp_ok($rival->value, '>', $token, 'the lock is handed on');
$rival->query("SELECT zk_unlock('/c/lock')");
is(check($_, 'access control'),
	't|This server has credentials, and its znodes can be read only with them.'
	  . '  Servers whose znodes it cannot read: 0.',
	'health') foreach $one, $two;

# ---- not private: what is new can be read

my $id = $test->status($one, 'session_id');
$test->connects_with($one, 'without the line', auth_file => auth_file($ours, 'ensemble:beta'));
is($test->status($one, 'session_id'), $id, 'in the same session');
is(check($one, 'access control'),
	't|This server has credentials.  Servers whose znodes it cannot read: 0.',
	'health of a server whose znodes can be read');
$holder->query("SELECT zk_lock('/d')");
ok(!defined $outsider->try_ls('/zklock'), 'a directory stays private');
is(scalar($outsider->ls('/zklock/d')), 1, 'others can look into a new one');
my ($znode) = $outsider->ls('/zklock/d');
like($outsider->get("/zklock/d/$znode"), qr/"server":"server1"/, 'and read whose lock it is');
ok(!eval { $outsider->delete("/zklock/d/$znode"); 1 }, 'but not delete it');
is($rival->query("SELECT zk_try_lock('/d')"), 'f', 'the other server understands it');

# ---- what does not work

keeps($one, 'refused the credentials|closed the connection', 'another ensemble',
	$ours, 'ensemble:gamma');
keeps($one, 'not allowed to create this server.s node', 'a wrong password',
	'digest:zklock:open-sesam', 'ensemble:alpha');
keeps($one, 'has a line "acl:" other than "acl: private"', 'another list', $ours, 'acl: public');
keeps($one, 'must hold lines scheme:credentials', 'a line without a colon', $ours, 'sesame');
keeps($one, 'must hold lines scheme:credentials', 'no line at all', '');
keeps($one, '"acl: private", which needs credentials', 'private, but for whom?',
	'ensemble:alpha', 'acl: private');
is($holder->query("SELECT zk_unlock('/d')"), 't', 'the lock was kept');

# ---- the same file with other lines

my $same = auth_file($ours, 'ensemble:alpha');
$test->connects_with($one, 'another file', auth_file => $same);
$token = $holder->query("SELECT zk_lock('/d')");
write_secret($same, "$ours\nensemble:alpha\ndigest:more:tea\n");
$test->connects_with($one, 'a reload takes up what has changed in it');
write_secret($same, "digest:zklock:open-sesam\nensemble:alpha\n");
$test->keeps_connection($one, 'not allowed to create this server.s node', 'if it works');
like(check($one, 'settings'), qr/^f\|.* are not used: not allowed to create/, 'health tells');
my $before = $test->status($one, 'connects');
kill 'KILL', $test->status($one, 'session_pid');
ok($test->look_until($one, "SELECT connects > $before AND state = 'connected' FROM zk_status, zk_stat_server",
		't', 'again'),
	'else the next connection has the old lines, too');
unlink $same;
$test->keeps_connection($one, 'could not open "zklock.auth_file"', 'also if it is gone');
is($holder->error('SELECT zk_reconnect()'), '08006', 'zk_reconnect() does nothing');
like($holder->messages, qr/^could not reconnect to ZooKeeper$/m, 'which is an error');
like($holder->messages, qr/^A trial has failed, .*not replaced: could not open "zklock.auth_file"/m,
	'that says why');
write_secret($same, "$ours\nensemble:beta\n");
$before = $test->status($one, 'connects');
$holder->query('SELECT zk_reconnect()');
is($test->status($one, 'state, connects'), 'connected|' . ($before + 1), 'zk_reconnect() with good lines');
like(check($one, 'settings'), qr/^t\|/, 'which are in use');
$holder->query('SELECT zk_reconnect()');
is($test->status($one, 'state, connects'), 'connected|' . ($before + 2), 'and once more with the same');

# Several at once; and one that fails although nothing has changed
my @operators = map { $test->session($one) } 1 .. 3;
$_->send('SELECT zk_reconnect()') foreach @operators;
is(join(',', map { $_->sqlstate } @operators), ',,', 'three at once');
$_->close foreach @operators;
$before = $test->status($one, 'connects');
$zk->pause;
$holder->send('SELECT zk_reconnect()');
$holder->cancel;
is($holder->sqlstate, '57014', 'it can be cancelled');
$holder->send('SELECT zk_reconnect()');
$test->look_until($one, "SELECT last_error ~ 'the connection is not replaced' FROM zk_status", 't', 'no answer');
$zk->resume;
is($holder->sqlstate, '08006', 'ZooKeeper does not answer');
like($holder->messages, qr/time was over before the server answered/, 'which the error says');
like(check($one, 'settings'), qr/^t\|/, 'the settings are in use all the same');
is($test->status($one, 'session_id, sessions_lost'), "$id|0", 'all in the same session');
is($holder->query("SELECT zk_fencing_token('/d')"), $token, 'on which the lock was kept');
$holder->query("SELECT zk_unlock('/d')");
$zk->pause;
$holder->send('SELECT zk_reconnect()');
$holder->wait_running;
my $worker = $test->status($one, 'worker_pid');
kill 'TERM', $worker;
$test->wait_gone($worker);
$zk->resume;
is($holder->sqlstate, '', 'a call goes on with the next worker');

# ---- a server that may not look

my $three = $test->new_node('server3', conf => "zklock.auth_file = ''\n");
$three->start;
$three->safe_psql('postgres', 'CREATE EXTENSION zklock');
ok($test->look_until($three,
		"SELECT last_error ~ 'not allowed to create this server.s node' FROM zk_status",
		't', 'no credentials'),
	'a server without credentials cannot join');
my $shut_out = $test->session($three);
$shut_out->query("SET zklock.answer_timeout = '100ms'");
foreach my $call ("zk_lock('/x', '100ms')", "zk_try_lock('/x')")
{
	is($shut_out->error("SELECT $call"), '08006', "$call: it does not reach them");
	like($shut_out->messages, qr/^Check "zklock\.auth_file"/m, 'and the hint is at the credentials');
}
$shut_out->close;
my $waiting = $test->session($three);
$test->set($three, auth_file => $same);
is($waiting->send('SELECT zk_reconnect()')->sqlstate, '', 'zk_reconnect() waits for its first session');
is($test->status($three, 'state'), 'connected', 'which is there with the credentials');
$waiting->close;
$test->stop_looking($three);
$three->stop;
pop @{ $test->{nodes} };

# ---- the version

my ($version) = $zk->mntr->{zk_version} =~ /^([\d.]+)/;
my ($major, $minor, $patch) = split /\./, $version;
my $is_old = $major * 1e6 + $minor * 1e3 + $patch < 3_009_004;
my $line = qr/ZooKeeper server "127.0.0.1:\d+" has version \Q$version\E$/m;

sub told
{
	return scalar(() = slurp_file($two->logfile) =~ /$line/g);
}

ok(wait_for(sub { told() == $is_old }, 'the version'), 'an old release is named');
my $connects = $test->status($two, 'connects');
kill 'KILL', $test->status($two, 'session_pid');
$test->look_until($two, "SELECT connects > $connects AND state = 'connected' FROM zk_status, zk_stat_server",
	't', 'connected again');
$rival->query("SELECT zk_lock('/e'), zk_unlock('/e')");
is(told(), $is_old ? 1 : 0, 'once');

unlike(slurp_file($_->logfile), qr/sesame/, 'no secret in the log') foreach $one, $two;
$_->close foreach $holder, $rival;
$test->finish(leaks => 0);
