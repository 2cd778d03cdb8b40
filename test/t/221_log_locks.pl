# zklock.log_locks: what the server log tells of locks, by its three values, and
# from the reload on.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $s = $test->session($one, application_name => 'audit');
my $t = $test->session($two);
my $pid = $s->pid;

# The lines about locks since the last call, once there is one that matches
my $offset = 0;
sub lines
{
	my ($last) = @_;
	my $log;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_for(
		sub {
			$log = slurp_file($one->logfile, $offset);
			return $log =~ /$last/;
		},
		"the log has $last");
	$offset = -s $one->logfile;
	return join "\n", map { s/\d+\.\d{3} ms/T/r } $log =~
	  /(?:LOG|DETAIL):  ((?:the loss of )?distributed lock .*|Mode: .*|The lock was .*)$/mg;
}

sub set
{
	my ($value) = @_;

	$one->safe_psql('postgres', "ALTER SYSTEM SET zklock.log_locks = '$value'");
	$one->reload;
	$test->look_until($one, 'SHOW zklock.log_locks', $value, $value);
	# The worker has had the same signal, and looks at it before it answers.
	return $test->look($one, "SELECT count(*) FROM zk_queue('/barrier')");
}

# One round: a lock, a shared one, a permit, a leadership, a loss
sub round
{
	my ($name) = @_;

	$s->query("SET zklock.lost_lock_action = 'none'");
	$s->query("SELECT zk_lock('$name'), zk_lock('$name'), zk_unlock('$name'), zk_unlock('$name')");
	$s->query("SELECT zk_lock_shared('$name'); SELECT zk_unlock_shared('$name')");
	$s->query("SELECT zk_acquire_permits('$name', max_permits => 1); SELECT zk_release_permits('$name')");
	$s->query("SELECT zk_lead('$name'); SELECT zk_resign('$name')");
	my $token = $s->query("SELECT zk_lock('$name')");
	$t->send("SELECT zk_break_lock('$name')");
	$test->look_until($one, "SELECT count(*) FROM zk_locks WHERE state = 'lost'", 1, 'lost');
	$s->query("SELECT zk_unlock('$name')");
	is($t->value, 't', "$name: broken");
	$test->wait_queue($name, 0);
	$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0, "$name: over");
	return $token;
}

my $lost = "distributed lock \"/x\" of process $pid was lost";

round('/x');
is(lines('was lost'), $lost, 'by default: losses');

set('all');
my $token = round('/x');
my $log = lines('was acknowledged');
my $user = getpwuid($<);
sub whose { return "  Database: \"postgres\".  User: \"$user\".  Application: \"audit\"."; }
$log =~ s/Fencing token: (?!$token\b)\d+/Fencing token: N/g;
my @expected = (
	(
		map {
			(
				"distributed lock \"/x\" was granted to process $pid after T",
				"Mode: $_.  Fencing token: N." . whose(),
				"distributed lock \"/x\" of process $pid was released after T")
		} qw(exclusive shared permit leader)),
	"distributed lock \"/x\" was granted to process $pid after T",
	"Mode: exclusive.  Fencing token: $token." . whose(),
	$lost,
	"the loss of distributed lock \"/x\" was acknowledged by process $pid",
	'The lock was held for T.');
# A lock may be granted again before ZooKeeper has acknowledged its release.
is(join("\n", sort split /\n/, $log), join("\n", sort @expected),
	'all: grants, releases and losses');

# after a wait
$t->query("SELECT zk_lock('/w')");
$test->enqueue($s, "SELECT zk_lock('/w')", '/w');
$t->query("SELECT zk_unlock('/w')");
$s->value;
$s->query("SELECT zk_unlock('/w')");
like(lines('"/w" of process \d+ was released'), qr/"\/w" was granted to process $pid after T/,
	'all: after a wait');

set('off');
round('/x');
set('lost');
round('/y');
is(lines('was lost'), $lost =~ s/x/y/r, 'off: nothing, until it is on again');

$_->close foreach $s, $t;
$test->finish;
