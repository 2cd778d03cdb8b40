# A copy of a server that is started with the same settings: its new session
# grants nothing for a session timeout and two ticks, and then it warns.  Nobody takes
# a standby, a primary that has gone, a server that restarts after a crash, or its own
# past for a clone; but a standby that is promoted beside its primary is one.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test =
  ZklockTest->new(
	servers => 1,
	init => { allows_streaming => 1 },
	conf => "restart_after_crash = on\n");
my ($one) = $test->nodes;
my $same = 'has the same system identifier as this server';
$one->backup('base');

sub add_copy
{
	my ($name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	$node->init_from_backup($one, 'base', has_streaming => $params{has_streaming});
	$node->append_conf('postgresql.conf', "zklock.server_name = '$name'")
	  unless $params{same_name};
	$node->start;
	push @{ $test->{nodes} }, $node;
	return $node;
}

# How often a server logged something, at a level or at any
sub logged
{
	my ($node, $pattern) = @_;

	return scalar(() = slurp_file($node->logfile) =~ /$pattern/g);
}

sub logs
{
	my ($node, $pattern, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { logged($node, $pattern) }, $what), $what);
}

# ---- a clone

my $original = $test->session($one);
my $token = $original->query("SELECT zk_lock('/c/original')");
my $copy = add_copy('copy');
my $s = $test->session($copy);
logs($copy, "server \"server1\" $same, \"copy\", and may be the same or a former primary"
	  . "\n.*grants nothing until then, for at most 5000 ms",
	'the clone finds the original');
cmp_ok($s->query("SELECT zk_lock('/c/own')"), '>', $token, 'it gets a lock');
my $port = $one->port;
is(logged($copy, "WARNING:  server \"server1\" $same, \"copy\""
		  . "\n.*has the session 0x0*@{[ $test->session_hex($one) ]}, and was started on port $port of host"),
	1, 'once it has warned');
is($original->query("SELECT zk_fencing_token('/c/original')"),
	$token, 'the original keeps its lock');
is($s->query("SELECT zk_try_lock('/c/original')"), 'f', 'against the clone too');
logs($one, "WARNING:  server \"copy\" $same, \"server1\"", 'and hears of the clone');
is(logged($one, "LOG:  server \"copy\" $same"), 0, 'of which it has no doubt');
$test->look_until($one, q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'clones'), 'f', 'the check says so');
$test->zk->client->shut_out('/zklock/.fleet');
$copy->reload;
is($test->look($copy, "SELECT zk_try_lock('/c/new', '1min'), zk_unlock('/c/new')"), 't|t',
	'the clone gets more');
$test->zk->client->let_in('/zklock/.fleet');
$_->close foreach $original, $s;
$test->stop_looking($one);
$one->stop;
ok($test->look_until($copy,
		q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'clones'), 't', 'alone'),
	'without the original, all is well');
$test->stop_looking($copy);
$copy->stop;
pop @{ $test->{nodes} };

# One that kept the name, too
$one->start;
my $twin = add_copy('twin', same_name => 1);
logs($twin, "WARNING:  server \"server1\" $same, \"server1\"\n.* port $port of host",
	'a clone of the same name');
$test->stop_looking($twin);
$twin->stop;
pop @{ $test->{nodes} };

# ---- its own past

my $znode = $test->fleet_znode($one);
my $data = $test->zk->client->get($znode);
my $past = $znode =~ s/\.[^.]*$/.0123456789abcdef/r;
$test->stop_looking($one);
$one->stop('immediate');

# ZooKeeper has not yet ended a session of it, more than T after it was found.
$test->zk->client->create($past, $data);
$one->append_conf('postgresql.conf', "zklock.tick_time = '20s'");
truncate $one->logfile, 0;
$one->start;
$s = $test->session($one);
$s->send("SELECT zk_lock('/c/again') > 0");
logs($one, "server \"server1\" $same, \"server1\", and may be the same.*\n.* for at most 44000 ms",
	'a session of its past');
ok($test->look_until($one,
		"SELECT clock_timestamp() - connected_since > '5 s' FROM zk_status", 't', 'later'),
	'after more than a session timeout');
ok($s->busy, 'it grants nothing');
$test->zk->client->delete($past);
is($s->value, 't', 'until that session has ended');
is(logged($one, "WARNING:  server .* $same"), 0, 'and it warns of no clone');
$s->query('SELECT zk_unlock_all()');
$s->close;
$test->stop_looking($one);
$one->append_conf('postgresql.conf', "zklock.tick_time = '500ms'");
$one->stop;
truncate $one->logfile, 0;

# ---- no clones

$one->start;
$test->wait_connected($one);
$s = $test->session($one);
$s->query("SELECT zk_lock('/c/crash')");
my $victim = $test->session($one);
my $session = $test->status($one, 'session_id');
kill 'KILL', $victim->pid;
$_->abandon foreach $victim, $s;
ok($test->look_until($one,
		"SELECT session_id <> '$session' FROM zk_status",
		't', 'crashed'),
	'after a crash of a backend there is a new session');
is($test->look($one, "SELECT zk_try_lock('/c/other', '1min'), zk_unlock('/c/other')"),
	't|t', 'that gets locks');
is(logged($one, $same), 0, 'and the old one is no clone');
my $standby = add_copy('standby', has_streaming => 1);
$test->wait_connected($standby);
$s = $test->session($standby);
is($s->query("SELECT zk_try_lock('/c/standby', '1min')"), 't', 'a standby may lock');
is(logged($standby, $same), 0, 'it is no clone');

# ---- but this is one

$standby->promote;
logs($standby, "WARNING:  server \"server1\" $same",
	'a standby that is promoted beside its primary warns');
logs($one, "WARNING:  server \"standby\" $same, \"server1\"", 'and so does the primary');
is($s->query("SELECT zk_unlock('/c/standby')"), 't', 'and keeps its locks');
$s->close;
$test->stop_looking($standby);
$standby->stop;
pop @{ $test->{nodes} };
logs($one, 'LOG:  no other server has the same system identifier as this server, "server1", any more',
	'until it is gone');

$test->finish(crashes => 'was terminated by signal 9|all server processes terminated');
