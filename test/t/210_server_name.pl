# What a server is called: the members of a Patroni cluster, which have one
# cluster_name, can be told apart by zk_queue, zk_leader, the history of zk_once
# and a holder who is asked for its lock.  A name of 200 bytes is never cut, and
# the server does not start with one that is longer, or no name at all.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Sys::Hostname;
use ZklockTest;

my $test = ZklockTest->new(
	servers => 3,
	conf => "cluster_name = 'batman'\nzklock.server_name = ''\n");
my ($one, $two, $three) = $test->nodes;

sub set
{
	my ($node, $name, $value) = @_;

	$node->append_conf('postgresql.conf', "$name = '$value'");
	return;
}

# Without what Cluster.pm gives a server on its command line: cluster_name
sub restart
{
	my ($node) = @_;

	$test->stop_looking($node);
	$node->stop;
	run_log([ 'pg_ctl', '-w', '-D', $node->data_dir, '-l', $node->logfile, 'start' ]);
	$node->_update_pid(1);
	$test->wait_connected($node);
	return;
}

my $long = 'x' x 196 . "\x{c3}\x{a9}\x{c3}\x{bc}";
set($two, 'zklock.server_name', $long);
set($three, 'cluster_name', '');
restart($_) foreach $one, $two, $three;

my %names = (
	$one->name => 'batman@' . hostname . ':' . $one->port,
	$two->name => $long,
	$three->name => hostname . ':' . $three->port);
my $looker = $test->session($one);

sub lock_names
{
	my ($path) = @_;

	return [ split /\n/,
		$looker->query(
			"SELECT convert_to(server, 'UTF8') FROM zk_queue('$path')") =~ s/\\x([0-9a-f]+)/pack 'H*', $1/ger ];
}

# ---- what others see

foreach my $node ($one, $two, $three)
{
	my $name = $names{ $node->name };
	my $pattern = $name =~ s/[^ -~]+/.+/r;
	my $s = $test->session($node);

	$s->query("SELECT zk_lock_shared('/n/shared')");
	$s->query("SELECT zk_lead('/n/leader')");
	is_deeply(lock_names('/n/shared'), [$name], $node->name . ': zk_queue');
	is($looker->query("SELECT id FROM zk_leader('/n/leader')"),
		"$name/" . $s->pid, $node->name . ': zk_leader');
	is($s->query("SELECT zk_once('/n/job', key => '$name')"),
		't', $node->name . ': a job runs');
	ok(wait_for(
			sub {
				$test->zk->client->get('/zklock/.once/n/job/.history') =~
				  /"server":"$pattern"/;
			},
			'the history'),
		$node->name . ': its history tells where');
	$s->close;
	$test->wait_queue($_, 0) foreach '/n/shared', '/n/leader';
}

# ---- who asks for a lock

my $holder = $test->session($one);
my $asker = $test->session($two);
$holder->query("SELECT zk_lock('/n/asked')");
is($asker->query("SELECT zk_request_release('/n/asked')"), 1, 'the holder is asked');
$test->look_until($one,
	"SELECT release_requested FROM zk_locks WHERE path = '/n/asked'", 't', 'asked');
$holder->query('SELECT 1');
like($holder->messages, qr/process @{[ $asker->pid ]} of x{196}\\xC3\\xA9\\xC3\\xBC /,
	'and hears the whole name');
$_->close foreach $holder, $asker, $looker;

# ---- what is no name

$test->stop_looking($three);
$three->stop;
foreach (
	[ 'y' x 201, 'at most 200 bytes' ],
	[ "\x{e4}", 'valid UTF-8' ],
	[ 'a"b', 'control characters, double quotes or backslashes' ],
	[ "a\tb", 'control characters, double quotes or backslashes' ])
{
	my ($value, $why) = @$_;
	my $offset = -s $three->logfile;

	set($three, 'zklock.server_name', $value);
	is($three->start(fail_ok => 1), 0, "$why: it does not start");
	like(slurp_file($three->logfile, $offset),
		qr/invalid value for parameter "zklock.server_name".*$why/s,
		"$why: and says so");
}
set($three, 'zklock.server_name', 'c');
$three->start;
is($three->safe_psql('postgres', 'SHOW zklock.server_name'), 'c', 'a good name');

$test->finish;
