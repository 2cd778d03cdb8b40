# Incidents, and where an operator sees them: each is brought about on real servers with
# the real exporter and a real Prometheus, and has to show in the log, in a counter, in a
# check of zk_healthcheck() and in an alert, as far as it has any.  How long that took
# is printed as a table, into the details of its log.
#
# Scrapes and rules come every INTERVAL seconds, what the exporter caches is new each
# time, and alerts wait no longer than that: in production, add the rest of what
# alerts.yml says after "for", and a minute for a check.

use strict;
use warnings;

use Cwd qw(abs_path);
use IO::Socket::IP;
use IPC::Run ();
use Socket qw(SOCK_DGRAM);
use Test::More;
use Time::HiRes qw(time usleep);

use CertificateAuthority;
use Document;
use LockedProgram;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prometheus;
use TcpProxy;
use UdpRelay;
use ZklockTest;

my $interval = $ENV{INTERVAL} // 5;
my $kit = Document->path('monitoring');
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('incidents'));
my $net = TcpProxy->new;
my $test = ZklockTest->new(
	net => $net,
	zk => { config => 'clientPortAddress=0.0.0.0' },
	conf => "zklock.cache_time = 0\n",
	init => { allows_streaming => 1 });
my ($one, $two) = $test->nodes;
my $relay = UdpRelay->new;
my (%port, %way);

foreach my $node ($one, $two)
{
	my $name = $node->name;

	$way{$name} = PostgreSQL::Test::Cluster::get_free_port();
	$port{$name} = PostgreSQL::Test::Cluster::get_free_port();
	$relay->route($name, $way{$name}, $port{$name});
	$test->set($node, peer_address => "127.0.0.1:$way{$name}", peer_port => $port{$name});
}

# ---- the kit

sub replaced
{
	my ($text, %changes) = @_;

	foreach my $from (sort keys %changes)
	{
		$text =~ s/$from/$changes{$from}/g or die "there is no $from";
	}
	return $text;
}

my $window = 6 * $interval;
append_to_file("$dir/queries.yaml",
	replaced(slurp_file("$kit/queries.yaml"), 'cache_seconds: \d+' => 'cache_seconds: 1'));
append_to_file(
	"$dir/alerts.yml",
	replaced(
		slurp_file("$kit/alerts.yml"),
		'for: \w+' => "for: ${interval}s",
		'\[1[05]m\]' => "[${window}s]",
		'check!~"' => 'check!~"zookeeper version|', # of old ones it always fires
	));
my $prometheus = Prometheus->new;
my @exporters;
foreach my $node ($one, $two)
{
	$node->psql('postgres', slurp_file("$kit/role.sql"), on_error_stop => 1);
	push @exporters,
	  $prometheus->add_exporter(
		$node,
		'user=zklock_monitor dbname=postgres host=' . $node->host . ' port=' . $node->port,
		"--extend.query-path=$dir/queries.yaml");
}
$prometheus->start(
	"rule_files: [$dir/alerts.yml]\nscrape_configs:\n"
	  . "  - job_name: zklock\n    static_configs:\n"
	  . "      - targets: ['$exporters[0]{address}', '$exporters[1]{address}']\n",
	$interval);

# ---- what shows, and when

my @table;

sub is_quiet
{
	my @firing = $prometheus->firing;

	return !@firing;
}

# Each sign is a name and a condition.
sub look_for
{
	my ($begun, $patience, $while, %signs) = @_;
	my %seen;

	while (time < $begun + $patience && keys %seen < keys %signs)
	{
		$while->() if $while;
		foreach my $sign (sort keys %signs)
		{
			$seen{$sign} = time - $begun if !exists $seen{$sign} && $signs{$sign}->();
		}
		usleep(200_000);
	}
	return %seen;
}

sub signs_of
{
	my (%params) = @_;
	my %signs;

	foreach my $log (@{ $params{logs} // [] })
	{
		my ($node, $pattern) = @$log;
		my $from = -s $node->logfile;

		$signs{ 'log ' . $node->name . ": $pattern" } =
		  sub { substr(slurp_file($node->logfile), $from) =~ /$pattern/ };
	}
	foreach my $counter (@{ $params{counters} // [] })
	{
		my ($node, $column) = @$counter;
		my $view = $column eq 'asks_unanswered' ? 'zk_servers' : 'zk_stat_server';
		my $sql = "SELECT coalesce(max($column), 0) FROM $view";
		my $before = $test->look($node, $sql);

		$signs{ 'counter ' . $node->name . ": $column" } =
		  sub { $test->look($node, $sql) > $before };
	}
	foreach my $check (@{ $params{checks} // [] })
	{
		my ($node, $name) = @$check;

		$signs{ 'check ' . $node->name . ": $name" } = sub {
			$test->look($node,
				"SELECT count(*) FROM zk_healthcheck() WHERE NOT ok AND check_name = '$name'");
		};
	}
	foreach my $alert (@{ $params{alerts} // [] })
	{
		$signs{"alert: $alert"} = sub {
			scalar grep { $_ eq $alert } $prometheus->firing;
		};
	}
	return %signs;
}

# An incident: "act" brings it about, "while" goes on meanwhile, "heal" ends it.
sub incident
{
	my ($what, %params) = @_;
	my %signs = signs_of(%params);
	my $begun = time;

	$params{act}->();
	my %seen = look_for($begun, $params{patience} // 12 * $interval, $params{while}, %signs);
	foreach my $sign (sort keys %signs)
	{
		ok(exists $seen{$sign}, "$what: $sign");
		push @table, sprintf '%-34s %6s s  %s', $what,
		  exists $seen{$sign} ? sprintf('%.1f', $seen{$sign}) : 'never', $sign;
	}
	push @table, sprintf '%-34s %8s  also firing: %s', $what, '', join ', ', $prometheus->firing;
	$params{heal}->() if $params{heal};
	ok(wait_for(sub { $params{while}->() if $params{while}; return is_quiet() }, "$what: over"),
		"$what: is over") unless $params{goes_on};
	return;
}

# A lock goes from one server to the other, which asks for it, and back.
my %hand;
my $rounds = 0;

sub hand_over
{
	foreach my $pair ([ $one, $two ], [ $two, $one ])
	{
		my ($from, $to) = map { $hand{ $_->name } //= $test->session($_) } @$pair;
		my $name = '/s/' . $rounds++;

		$from->query("SELECT zk_lock('$name')");
		$test->enqueue($to, "SELECT zk_lock('$name')", $name);
		$from->query("SELECT zk_unlock('$name')");
		$to->value;
		$to->query("SELECT zk_unlock('$name')");
	}
	return;
}

sub forget_hands
{
	$_->close foreach values %hand;
	%hand = ();
	return;
}

# Others notice a new address at once if the session is new, too.
sub restart_with
{
	my ($node, %settings) = @_;

	forget_hands();
	$test->stop_looking($node);
	$test->set($node, %settings);
	$node->restart;
	return $test->wait_connected($node);
}

ok(wait_for(
		sub {
			hand_over();
			$prometheus->query('zklock_connected == 1') == 2 && is_quiet();
		},
		'all is well'),
	'all is well');

# ---- a server is cut off: a program under zklock-run ends in time, and gives its
# reservation back; a reservation of somebody who does not notice is lost

my $session = $test->fleet_znode($one);

# Waits until ZooKeeper has ended the session that the first server had.
sub expires
{
	ok(wait_for(sub { !$test->zk->client->stat($session) }, 'expires'), 'the session expires');
	return;
}

my $jobs = LockedProgram->new("$dir/jobs");
my $run = $jobs->start($one, '/nightly', '--', $jobs->job('nightly', 600));
$jobs->begins('nightly');
incident(
	'cut off, under zklock-run',
	act => sub { $net->refuse('server1-zk') },
	checks => [ [ $one, 'connected' ] ],
	alerts => ['ZklockNoSession server1'],
	heal => sub {
		my $status = $run->status;
		push @table, "zklock-run ended with $status: " . $run->err =~ s/\n.*//sr;
		isnt($status, 0, 'zklock-run tells it');
		expires();
	},
	goes_on => 1);
incident(
	'back from that',
	act => sub { $net->pass('server1-zk') },
	counters => [ [ $one, 'sessions_lost' ] ],
	alerts => ['ZklockSessionsLost server1']);
$session = $test->fleet_znode($one);
my $absent = $test->session($one);
my $token = $absent->query("SELECT zk_reserve('/absent', '10 min')");
incident(
	'cut off, with a reservation',
	act => sub { $net->refuse('server1-zk') },
	logs => [ [ $one, 'the lease of this server.s distributed locks has ended' ] ],
	counters => [ [ $one, 'lapses' ] ],
	checks => [ [ $one, 'connected' ], [ $one, 'lease' ] ],
	alerts => [
		'ZklockLapses server1',
		'ZklockLeaseEnded server1',
		'ZklockNoSession server1' ],
	heal => \&expires,
	goes_on => 1);
incident(
	'a reservation is lost',
	act => sub { $net->pass('server1-zk') },
	logs => [ [ $one, 'the reservation of distributed lock "/absent" was lost' ] ],
	counters => [ [ $one, 'locks_lost' ], [ $one, 'sessions_lost' ] ],
	alerts => [ 'ZklockLocksLost server1', 'ZklockSessionsLost server1' ]);
is($absent->error("SELECT zk_assert_lock('/absent', $token)"), '40001', 'its owner is told');
$absent->close;

# ---- a copied data directory

$one->backup('base');
my $copy = PostgreSQL::Test::Cluster->new('copy');
$copy->init_from_backup($one, 'base');
incident(
	'a copied data directory',
	act => sub { $copy->start },
	logs => [
		[ $one, 'has the same system identifier as this server' ] ],
	checks => [ [ $one, 'clones' ] ],
	alerts => ['ZklockClone server1'],
	heal => sub { $copy->stop });

# ---- messages

my %silence = (
	while => \&hand_over,
	counters => [ [ $one, 'asks_unanswered' ] ],
	checks => [ [ $one, 'messages' ] ],
	alerts => [ 'ZklockCheckFailed server1', 'ZklockMessagesUnanswered server1' ]);
my %on_both = (
	checks => [ [ $one, 'messages' ], [ $two, 'messages' ] ],
	alerts => [ 'ZklockCheckFailed server1', 'ZklockCheckFailed server2' ]);
incident(
	'messages: dropped to server2',
	%silence,
	act => sub { $relay->drop('server2') },
	heal => sub { $relay->pass('*') });
incident(
	'messages: dropped back to server1',
	%silence,
	act => sub { $relay->drop('server1') },
	heal => sub { $relay->pass('*') });
write_secret("$dir/$_", "digest:zklock:$_\n") foreach 'ours', 'other';
$test->connects_with($one, 'credentials', auth_file => "$dir/ours");
$test->connects_with($two, 'credentials', auth_file => "$dir/ours");
ok(wait_for(\&is_quiet, 'the same'), 'the same credentials');
incident(
	'messages: other credentials',
	act => sub { $test->set($two, auth_file => "$dir/other") },
	checks => [ [ $one, 'access control' ], [ $two, 'access control' ], [ $two, 'messages' ] ],
	alerts => $on_both{alerts},
	heal => sub { $test->set($two, auth_file => "$dir/ours") });
incident(
	'messages: a wrong peer_address',
	%silence,
	act => sub {
		restart_with($two,
			peer_address => '127.0.0.1:' . PostgreSQL::Test::Cluster::get_free_port());
	},
	heal => sub { restart_with($two, peer_address => "127.0.0.1:$way{server2}") });
incident(
	'messages: a doubled peer_address',
	%on_both,
	act => sub { $test->set($two, peer_address => "127.0.0.1:$way{server1}") },
	heal => sub { $test->set($two, peer_address => "127.0.0.1:$way{server2}") });
incident(
	'messages: IPv4 against IPv6',
	%on_both,
	act => sub { $test->set($two, peer_address => '::1') },
	heal => sub { $test->set($two, peer_address => "127.0.0.1:$way{server2}") });
my $outward = IO::Socket::IP->new(PeerHost => '192.0.2.1', PeerPort => 9, Type => SOCK_DGRAM);
SKIP:
{
	skip 'no interface but loopback', 1 if !$outward || $outward->sockhost =~ /^127\./;
	incident(
		'messages: one has loopback',
		%on_both,
		act => sub { $test->set($two, peer_address => $outward->sockhost) },
		heal => sub { $test->set($two, peer_address => "127.0.0.1:$way{server2}") });
}

# ---- settings

incident(
	'another root',
	act => sub {
		forget_hands();
		$test->stop_looking($two);
		$two->append_conf('postgresql.conf', "zklock.root = '/elsewhere'");
		$two->restart;
	},
	alerts => [ 'ZklockFleetSplit server1', 'ZklockFleetSplit server2' ],
	heal => sub {
		$test->stop_looking($two);
		$two->append_conf('postgresql.conf', "zklock.root = '/zklock'");
		$two->restart;
	});
incident(
	'zklock.enabled = off',
	act => sub { $test->set($two, enabled => 'off') },
	logs => [ [ $two, '"zklock.enabled" changed to "off"' ] ],
	checks => [ [ $two, 'connected' ] ],
	alerts => ['ZklockDisabled server2'],
	heal => sub { $test->set($two, enabled => 'on') });
my $hosts = $test->look($one, 'SHOW zklock.connect_string');
incident(
	'a dead host in connect_string',
	act => sub {
		$test->set($one,
			connect_string => "$hosts,127.0.0.1:" . PostgreSQL::Test::Cluster::get_free_port());
	},
	checks => [ [ $one, 'hosts' ] ],
	alerts => ['ZklockCheckFailed server1'],
	heal => sub { $test->set($one, connect_string => $hosts) });

# ---- a certificate

my $authority = CertificateAuthority->new('soon', days => 400);
my $secure = $net->route(
	'secure', $test->zk->port,
	tls => $authority->issue('zookeeper', names => 'IP:127.0.0.1', days => 29));
incident(
	'a certificate expires in 29 days',
	act => sub {
		$test->set($one,
			tls_ca_file => $authority->file,
			tls => 'verify-full',
			connect_string => "127.0.0.1:$secure");
	},
	checks => [ [ $one, 'certificates' ] ],
	alerts => ['ZklockCertificateExpires server1'],
	heal => sub { $test->set($one, tls => 'off', connect_string => $hosts); });

# ---- ZooKeeper hangs: how long scrapes take then

my $most = sub {
	my ($range) = @_;
	my ($result) = $prometheus->query("max(max_over_time(scrape_duration_seconds[$range]))");
	return $result->{value};
};
push @table, sprintf 'scrapes before: %.2f s at most', $most->('1m');
my $held = $test->session($one);
$held->query("SELECT zk_lock('/held')");
incident(
	'ZooKeeper hangs',
	act => sub {
		$test->zk->pause;
		usleep(1_100_000);    # what the exporter has cached is old by then
		my $paused = time;
		like($prometheus->metrics($exporters[0]), qr/^pg_up 1$/m, 'a scrape at that moment');
		push @table, sprintf 'a scrape about a second later: %.2f s', time - $paused;
	},
	logs => [ [ $one, 'the lease of this server.s distributed locks has ended' ] ],
	counters => [ [ $one, 'lapses' ] ],
	checks => [ [ $one, 'connected' ], [ $one, 'lease' ] ],
	alerts => [ 'ZklockLapses server1', 'ZklockLeaseEnded server1', map { "ZklockNoSession $_" } 'server1', 'server2' ],
	heal => sub {
		usleep(1_000_000 * 4 * $interval);
		my $while = 6 * $interval . 's';
		push @table, sprintf 'scrapes while it hangs: %.2f s at most', $most->($while);
		is(scalar(my @good = $prometheus->query("min_over_time(up[$while]) == 1")),
			2, 'no scrape failed meanwhile');
		$test->zk->resume;
		$held->query('SELECT zk_unlock_all()');
	});
$held->close;
note $_ foreach @table;
forget_hands();
$prometheus->stop;
$test->finish;
