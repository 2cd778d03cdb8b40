# A copy of a server that is started with the same settings: its new session
# grants nothing for a session timeout, and then it warns, or refuses all locks,
# by zklock.clone.  What it holds goes on.  Nobody takes a standby, a primary that
# has gone, or a server that restarts after a crash for a clone; but a standby that
# is promoted beside its primary is one.

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

	$node->init_from_backup($one, 'base', %params);
	$node->append_conf('postgresql.conf', "zklock.server_name = '$name'");
	$node->start;
	push @{ $test->{nodes} }, $node;
	return $node;
}

sub change
{
	my ($node, $name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$name = '$value'");
	$node->reload;
	return;
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
logs($copy, "server \"server1\" $same\n.*grants nothing for 4000 ms",
	'the clone finds the original');
cmp_ok($s->query("SELECT zk_lock('/c/own')"), '>', $token, 'it gets a lock');
is(logged($copy, "WARNING:  server \"server1\" $same"), 1, 'once it has warned');
is($original->query("SELECT zk_fencing_token('/c/original')"),
	$token, 'the original keeps its lock');
is($s->query("SELECT zk_try_lock('/c/original')"), 'f', 'against the clone too');
is(logged($one, $same), 0, 'and does not look again in its session');

# ---- that is refused

my $waiter = $test->session($copy);
$test->enqueue($waiter, "SELECT zk_lock('/c/original')", '/c/original');
change($copy, 'clone', 'error');
is($waiter->sqlstate, '55000', 'zklock.clone = error: who waits gets an error');
like($waiter->messages, qr/there is a clone of this server/, 'that says why');
is($waiter->error("SELECT zk_try_lock('/c/new')"), '55000', 'nothing new');
is($s->query("SELECT zk_lock('/c/own') > 0"), 't', 'what is held is counted again');
is($s->query("BEGIN; SELECT zk_fencing_token('/c/own') > 0; COMMIT"), 't', 'and good');
is($s->query("SELECT count(*) FROM zk_queue('/c/own')"), 1, 'it may look');
is($s->query('SELECT zk_unlock_all()'), '', 'and release');
change($copy, 'clone', 'warn');
ok($test->look_until($copy,
		"SELECT zk_try_lock('/c/new', '1min'), zk_unlock('/c/new')", 't|t', 'warn'),
	'zklock.clone = warn: locks again');
change($copy, 'clone', 'error');
logs($copy, 'refused because there is a clone', 'refused again');
$test->zk->client->shut_out('/zklock/.fleet');
$copy->reload;
logs($copy, 'could not write or read znodes in the directory', 'a look that ZooKeeper refuses');
is($s->error("SELECT zk_lock('/c/new')"), '55000', 'does not count as one that finds no clone');
$test->zk->client->let_in('/zklock/.fleet');
$original->close;
$test->stop_looking($one);
$one->stop;
ok($test->look_until($copy,
		q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'clones' AND detail ~ 'is gone\.  Reload'),
		'f', 'gone'),
	'without the original, the check says that a reload is due');
is($s->error("SELECT zk_lock('/c/new')"), '55000', 'until then locks are refused');
$copy->reload;
ok($test->look_until($copy,
		"SELECT zk_try_lock('/c/new', '1min'), zk_unlock('/c/new')", 't|t', 'alone'),
	'which makes it look, and locks again');
is($test->look($copy, q(SELECT ok FROM zk_healthcheck() WHERE check_name = 'clones')),
	't', 'all is well');
$_->close foreach $s, $waiter;
$test->stop_looking($copy);
$copy->stop;
pop @{ $test->{nodes} };

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
is($s->query("SELECT zk_unlock('/c/standby')"), 't', 'and keeps its locks');
$s->close;
$test->stop_looking($standby);
$standby->stop;
pop @{ $test->{nodes} };

$test->finish(crashes => 'was terminated by signal 9|all server processes terminated');
