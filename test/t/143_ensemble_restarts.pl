# All three servers of an ensemble that speaks TLS are killed, and started again
# ten times.  Their programs have just started then, and need long for their first
# handshakes.  ZooKeeper remembers the sessions, and gives each its timeout from the
# time when the ensemble serves again: no session is lost, and no lock.

use strict;
use warnings;

use Test::More;

use CertificateAuthority;
use ZklockTest;
use ZooKeeperEnsemble;

plan skip_all => 'ZooKeeper needs netty for TLS'
  unless glob '/usr/share/java/netty-*.jar';

my $ca = CertificateAuthority->new('ca');
my $zk = ZooKeeperEnsemble->new('zk',
	tick_time => 1000,
	tls => {
		certificate => $ca->issue('server', names => 'IP:127.0.0.1'),
		authority => $ca
	});
my $test = ZklockTest->new(
	zk => $zk,
	session_timeout => '10s',
	conf => "zklock.tls = 'verify-full'\n"
	  . "zklock.tls_ca_file = '@{[ $ca->file ]}'\n"
	  . "zklock.connect_string = '@{[ $zk->secure_connect_string ]}'\n");
my @nodes = $test->nodes;
my %holder = map { $_->name => $test->session($_) } @nodes;

$holder{$_}->query("SELECT zk_lock('/held/$_')") foreach sort keys %holder;
foreach my $round (1 .. 10)
{
	my %before = map { $_->name => $test->status($_, 'connects') } @nodes;

	$_->kill9 foreach $zk->servers;
	$zk->start;
	foreach my $node (@nodes)
	{
		my $name = $node->name;

		ok($test->look_until($node,
				"SELECT connects > $before{$name} AND state = 'connected' FROM zk_status, zk_stat_server",
				't', "round $round: $name"),
			"round $round: $name is connected again");
		is($test->status($node, 'sessions_lost'), 0, "round $round: in the same session");
	}
}
ok($test->look_until($_, "SELECT lease_remaining > '0' FROM zk_status", 't', 'a lease'),
	$_->name . ': the lease goes on')
  foreach @nodes;
is($holder{$_}->query("SELECT zk_unlock('/held/$_')"), 't', "$_: the lock was kept")
  foreach sort keys %holder;
$_->close foreach values %holder;
$test->finish;
