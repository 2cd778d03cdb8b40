# The monitoring kit with the real programs: prometheus-postgres-exporter looks at
# two servers as docs/monitoring.md sets it up, and Prometheus at both exporters.
# Every metric is there, each expression of the dashboard has a result, and alerts
# fire and clear: one server is cut off from ZooKeeper and loses its lock, a
# session waits long, nobody claims a ticket, messages between servers are dropped or
# are none, a worker ends, a leader goes, a job does not run, an exporter ends.
#
# The rules are those of alerts.yml, with shorter times, and with the limits of jobs that
# its comment has as examples.  The file for sql_exporter is
# what its script makes, and its queries return what its metrics name.

use strict;
use warnings;

use Cwd qw(abs_path);
use IPC::Run ();
use JSON::PP;
use Test::More;

use Document;
use PeerForger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Prometheus;
use TcpProxy;
use UdpRelay;
use ZklockTest;

my $kit = Document->path('monitoring');
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('kit'));
my $page = Document->new('docs/monitoring.md');
my $net = TcpProxy->new;
my $test = ZklockTest->new(net => $net, max_requests => 50);
my ($one, $two) = $test->nodes;
my $relay = UdpRelay->new;
my %port;

foreach my $node ($one, $two)
{
	my $way = PostgreSQL::Test::Cluster::get_free_port();

	$port{ $node->name } = PostgreSQL::Test::Cluster::get_free_port();
	$relay->route($node->name, $way, $port{ $node->name });
	$test->set($node, peer_address => "127.0.0.1:$way", peer_port => $port{ $node->name });
}

# ---- set up as the page says

sub run_shell
{
	my ($node, $text, $what) = @_;
	my $output;

	local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port);
	my $good = IPC::Run::run(
		[ 'sh', '-ec', 'cd "$0" && ' . $text, Document->path('.') ],
		'>&', \$output);
	ok($good, $what) or diag $output;
	return $output;
}

my ($role, $defaults, $check) = map { $_->{text} } $page->blocks('sh');
my ($config) = map { $_->{text} } $page->blocks('yaml');
run_shell($_, $role, 'the role on ' . $_->name) foreach $one, $two;
like(run_shell($one, $check, 'the rules are good'), qr/SUCCESS: \d+ rules/, 'all of them');
run_shell($one, 'promtool test rules monitoring/alerts_test.yml',
	'the tests of the rules pass');
my $variables =
  run_shell($one, "$defaults echo \"\$DATA_SOURCE_NAME|\$ARGS\"", 'the defaults');
chomp $variables;
my ($data_source, $arguments) = split /\|/, $variables;

# Replaces text of the kit that must be there.
sub replaced
{
	my ($text, %changes) = @_;

	foreach my $from (sort keys %changes)
	{
		$text =~ s/$from/$changes{$from}/g or die "there is no $from";
	}
	return $text;
}

append_to_file("$dir/queries.yaml",
	replaced(slurp_file("$kit/queries.yaml"), 'cache_seconds: \d+' => 'cache_seconds: 1'));
my $rules = slurp_file("$kit/alerts.yml");
my ($limits) = $rules =~ /((?: +# +(?:group by .*|or)\n)+)(?= +- record: zklock_job_limit_seconds)/;
$limits =~ s/^ +# +/          /mg;
append_to_file(
	"$dir/alerts.yml",
	replaced(
		$rules =~ s/(- record: zklock_job_limit_seconds\n.*\n)/$1$limits/r,
		'for: \w+' => 'for: 5s',
		'\[1[05]m\]' => '[30s]',
		'\[1h\]' => '[10s]',
		'check!~"' => 'check!~"zookeeper version|', # of old ones it always fires
		'> 300' => '> 2',
		'\* 2 \* 3600' => '* 5',
		'\* 26 \* 3600' => '* 10',
		'zklock_hold_seconds > 3600' => 'zklock_hold_seconds{path=~".*long"} > 2'));
my $prometheus = Prometheus->new;
my ($first, $second) = map {
	$prometheus->add_exporter(
		$_,
		replaced($data_source, 'host=\S+' => 'host=' . $_->host . ' port=' . $_->port),
		split / /, replaced($arguments, '/etc/\S+' => "$dir/queries.yaml"))
} $one, $two;

# ---- what the role may do

my $role_session = $test->session($one, user => 'zklock_monitor');
is($role_session->error("SELECT zk_lock('/m')"), '42501', 'the role takes no locks');
is($role_session->query('SELECT count(*) FROM zk_status'), 1, 'but looks');

# ---- the file for sql_exporter

my ($made) = run_command([ 'python3', '-B', "$kit/collectors.py" ]);
my $collector = slurp_file("$kit/zklock.collector.yml");
is("$made\n", $collector, 'it is what its script makes');
my %columns;
foreach my $metric ($collector =~ /^  - metric_name: (.*?)(?=^  - metric_name|^queries:)/gms)
{
	my ($name) = $metric =~ /^(\w+)/;
	my ($query) = $metric =~ /query_ref: (\w+)/;
	my ($labels) = $metric =~ /key_labels: \[(.*)\]/;
	my ($value) = $metric =~ /values: \[(\w+)\]/;
	is($name, "${query}_$value", "$name is named for its query");
	$columns{$query}{$_} = 1 foreach $value, split /, /, $labels // '';
}
my $root = $test->session($one);
my ($queries_of_collector) = $collector =~ /^queries:\n(.*)/ms;
while ($queries_of_collector =~ /query_name: (\w+)\n    query: \|\n(.*?)(?=^  - query_name|\z)/gms)
{
	my ($name, $sql) = ($1, $2);
	$root->query("CREATE TEMP VIEW $name AS $sql");
	is($root->query("SELECT string_agg(attname, ' ' ORDER BY attname) FROM pg_attribute"
			  . " WHERE attrelid = '$name'::regclass"),
		join(' ', sort keys %{ $columns{$name} }),
		"sql_exporter: the columns of $name");
	is($role_session->error("SELECT * FROM ($sql) AS rows"), '', "sql_exporter: $name runs");
	delete $columns{$name};
}
is(join(' ', keys %columns), '', 'every metric has its query');
$_->close foreach $root, $role_session;

# ---- all is well

my $holder = $test->session($one);
my $other = $test->session($two);
my $leader = $test->session($two);
$holder->query("SELECT zk_lock('/m/own')");
my $reserved = $holder->query("SELECT zk_reserve('/m/a', '10 min')");
$other->query("SELECT zk_lock('/m/b'), zk_unlock('/m/b')");
$leader->query("SELECT zk_lead('/m/lead')");
$other->query("SELECT zk_once('/m/key', key => '1')");

# A lock goes from the first server to the second one, which asks for it, and back.
my @hands = map { $test->session($_) } $one, $two;

sub hand_over
{
	foreach my $pair ([@hands], [ reverse @hands ])
	{
		my ($from, $to) = @$pair;

		$from->query("SELECT zk_lock('/m/c')");
		$test->enqueue($to, "SELECT zk_lock('/m/c')", '/m/c');
		$from->query("SELECT zk_unlock('/m/c')");
		$to->value;
		$to->query("SELECT zk_unlock('/m/c')");
	}
	return;
}

# Hands a lock over until the servers have asked each other so often without an answer.
sub unanswered
{
	my ($condition, $what) = @_;
	my $sql = "SELECT max(asks_unanswered) $condition FROM zk_servers";

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		wait_for(
			sub { hand_over(); return $test->look($one, $sql) . $test->look($two, $sql) eq 'tt' },
			$what),
		$what);
}

unanswered('= 0', 'messages arrive');
$prometheus->start(
	replaced($config,
		'/etc/\S+' => "$dir/alerts.yml",
		'db1:9187' => $first->{address},
		'db2:9187' => $second->{address}),
	2);
is($prometheus->rules, scalar(() = $rules =~ /- (?:alert|record):/g),
	'Prometheus has the rules');

# Polls until an expression has that many results.
sub results_ok
{
	my ($expression, $count, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $prometheus->query($expression) == $count }, $what), $what);
}

# Polls until these alerts fire, each with its server or its path, and no others.
sub alerts_ok
{
	my ($what, @expected) = @_;
	my @firing;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $good = wait_for(
		sub {
			@firing = $prometheus->firing;
			return "@firing" eq join ' ', sort @expected;
		},
		$what);
	return ok($good, $what) || diag "firing: @firing";
}

# Polls until these alerts fire, among others that may come with them.
sub fires
{
	my ($what, @expected) = @_;
	my @missing;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $good = wait_for(
		sub {
			my %firing = map { $_ => 1 } $prometheus->firing;

			@missing = grep { !$firing{$_} } @expected;
			return !@missing;
		},
		$what);
	return ok($good, $what) || diag "not firing: @missing";
}

my $queries = slurp_file("$kit/queries.yaml");
my @metrics;
my $prefix;
foreach my $line (split /\n/, $queries)
{
	$prefix = $1 if $line =~ /^(\w+):$/;
	push @metrics, "${prefix}_$1" if $line =~ /^    - (\w+):$/;
	pop @metrics if $line =~ /"LABEL"/;
}
cmp_ok(scalar @metrics, '>', 20, 'the metrics of queries.yaml');
results_ok('zklock_lock_acquires_total{path="/m/b"}', 1, 'statistics of a lock');
results_ok('zklock_leadership_leaders == 1', 1, 'a leader');
results_ok('zklock_job_last_run_timestamp_seconds{path="/m/key", kind="key"} > time() - 600', 2,
	'each server sees the jobs of both');
results_ok('zklock_fleet_servers == 2', 2, 'each server sees both');
results_ok('zklock_health_ok{check!="zookeeper version"} == 1',
	2 * $test->look($one, 'SELECT count(*) - 1 FROM zk_healthcheck()'),
	'all checks are ok');
results_ok('sum(zklock_locks_held) == 3', 1, 'what is held, and reserved');
my %seen = map { $_ => 1 } $prometheus->names;
is(join(' ', grep { !$seen{$_} } @metrics), 'zklock_certificate_expiry_seconds zklock_wait_seconds',
	'Prometheus has every metric but those of TLS and of waits');
like($prometheus->metrics($_), qr/^pg_exporter_last_scrape_error 0$/m, "$_->{name}: no query failed")
  foreach $first, $second;
my @explained =
  Document->new('monitoring/README.md')->text =~ /^\| `(zklock_\w+)` \|/mg;
is_deeply([ sort @explained ], [ sort @metrics ], 'monitoring/README.md explains them');

my $dashboard = decode_json(slurp_file("$kit/dashboard.json"));
my @expressions = map { $_->{expr} } map { @{ $_->{targets} } } @{ $dashboard->{panels} };
cmp_ok(scalar @expressions, '>', 10, 'the dashboard has expressions');
foreach my $expression (@expressions)
{
	$expression =~ s/\$instance/.*/g;
	ok(wait_for(sub { scalar $prometheus->query($expression) }, $expression),
		"the dashboard: $expression");
}
alerts_ok('no alert');

# ---- one server is cut off, and loses its lock to the other one

my $waiter = $test->session($two);
$waiter->send("SELECT zk_lock('/m/a')");
alerts_ok('a long wait', 'ZklockLongWait /m/a');
results_ok('zklock_wait_seconds{path="/m/a"}', 1, 'how long it is');
$net->refuse('server1-zk');
alerts_ok(
	'a server is cut off',
	'ZklockLapses server1',
	'ZklockLeaseEnded server1',
	'ZklockNoSession server1');
cmp_ok($waiter->value, '>', 0, 'its lock goes to the other server');
$net->pass('server1-zk');
alerts_ok(
	'it has lost the lock',
	'ZklockLocksLost server1',
	'ZklockSessionsLost server1');
is($test->status($one, 'locks_lost, lapses'), '2|1', 'as zk_stat_server counts');
$holder->query('SELECT zk_unlock_all()');
is($holder->error("SELECT zk_assert_lock('/m/a', $reserved)"), '40001', 'and the reservation tells');
alerts_ok('and after some time all is well');

# ---- a lock is held for long, and a drain is forgotten

my $keeper = $test->session($one);
$keeper->query("SELECT zk_lock('/m/long')");
alerts_ok('a long hold', 'ZklockLongHold /m/long');
$keeper->query("SELECT zk_unlock('/m/long')");
alerts_ok('ends');
$keeper->query("SELECT zk_drain('1ms')");
alerts_ok('a drain', 'ZklockDrainForgotten server1');
$keeper->query('SELECT zk_undrain()');
alerts_ok('is ended');

# ---- a reservation is held, too

my $token = $keeper->query("SELECT zk_reserve('/m/reserved/long', '10 min')");
alerts_ok('a reservation for long', 'ZklockLongHold /m/reserved/long');
$keeper->query("SELECT zk_cancel_reservation('/m/reserved/long', $token)");
alerts_ok('is cancelled');

# ---- tickets may wait for long, but are to be claimed

$keeper->query("SELECT zk_lock('/m/t')");
$keeper->query("SELECT zk_enqueue('/m/t', '1 min', '1 s')");
results_ok('min_over_time(zklock_locks_waiting[8s]) == 1', 1, 'a ticket has waited');
is(scalar(my @waits = $prometheus->query('zklock_wait_seconds or zklock_longest_wait_seconds > 0')),
	0, 'which is no long wait');
$keeper->query("SELECT zk_unlock('/m/t')");
alerts_ok('nobody claims it', 'ZklockTicketsLapsed server1');
alerts_ok('which is over');

# ---- jobs that do not run: each has its limit, and what runs by key has none

$keeper->query("SELECT zk_once('$_', '1 day')") foreach '/hourly/a', '/nightly', '/on/demand';
alerts_ok('the limit of some jobs', 'ZklockJobOverdue /hourly/a');
alerts_ok('that of all others', map { "ZklockJobOverdue $_" } '/hourly/a', '/nightly');
$keeper->query("SELECT zk_once_reset('/nightly')");
alerts_ok('one is to run again', 'ZklockJobOverdue /hourly/a');
alerts_ok('but does not', map { "ZklockJobOverdue $_" } '/hourly/a', '/nightly');
is($keeper->query("SELECT zk_once('/nightly', '1 day')"), 't', 'it runs');
alerts_ok('in the end', 'ZklockJobOverdue /hourly/a');
$keeper->query("SELECT zk_once_purge('0')");
alerts_ok('no job is known');
$keeper->query("SELECT zk_once('/m/key', key => '1')");
results_ok('zklock_job_last_run_timestamp_seconds', 2, 'and one is again');

# ---- messages between servers

$relay->drop('*');
unanswered('>= 5', 'messages are dropped');
alerts_ok(
	'which is seen',
	map { ("ZklockCheckFailed $_", "ZklockMessagesUnanswered $_") } 'server1', 'server2');
$relay->pass('*');
unanswered('= 0', 'messages are not dropped');
alerts_ok('any more');
my $forger = PeerForger->new($test->zk->client);
$forger->send('x', $port{server1}) for 1 .. 250;
alerts_ok('what is no message', 'ZklockMessagesRefused server1');
alerts_ok('ends');

# ---- locks are switched off on one server, and then that has another root

$leader->query("SELECT zk_resign('/m/lead')");
$test->set($two, enabled => 'off');
alerts_ok('switched off', 'ZklockDisabled server2');
$test->set($two, enabled => 'on');
alerts_ok('and on again');
$test->stop_looking($two);
$_->close foreach $other, $leader, $waiter, @hands;
$two->append_conf('postgresql.conf', "zklock.root = '/elsewhere'");
$two->restart;
alerts_ok('two fleets', map { "ZklockFleetSplit $_" } 'server1', 'server2');
$two->append_conf('postgresql.conf', "zklock.root = '/zklock'");
$two->restart;
alerts_ok('are one again');
$leader = $test->session($two);
$leader->query("SELECT zk_lead('/m/lead')");
results_ok('zklock_leadership_leaders == 1', 1, 'a leader again');

# ---- a worker ends, and with it the session and what it held

kill 'TERM', $test->status($two, 'worker_pid');
fires(
	'another worker',
	'ZklockLeaderless /m/lead',
	map { "$_ server2" } 'ZklockLocksLost', 'ZklockSessionsLost', 'ZklockWorkerRestarts');
results_ok('zklock_leadership_leading{path="/m/lead"} == 0', 1, 'who was the leader is none');
$leader->query("SELECT zk_resign('/m/lead')");
$leader->query("SELECT zk_lead('/m/lead')");
alerts_ok('goes on');

# ---- a leader resigns, and no other is there

$leader->query("SELECT zk_resign('/m/lead')");
alerts_ok('a leadership without a leader', 'ZklockLeaderless /m/lead');
alerts_ok('is forgotten');

# ---- ZooKeeper itself hangs: scrapes go on meanwhile

$leader->query("SELECT zk_lock('/m/two')");
$test->zk->pause;
alerts_ok(
	'ZooKeeper hangs',
	'ZklockLapses server2',
	'ZklockLeaseEnded server2',
	map { "ZklockNoSession $_" } 'server1', 'server2');
results_ok('zklock_job_last_run_timestamp_seconds', 0, 'when jobs ran is not known');
$test->zk->resume;
ok(wait_for(sub { !grep { /NoSession|LeaseEnded/ } $prometheus->firing }, 'it is back'),
	'it is back');
alerts_ok('all is well again');
results_ok('zklock_job_last_run_timestamp_seconds', 2, 'and known again');

# ---- an exporter ends

$prometheus->stop_exporter($second);
alerts_ok('an exporter is gone', 'ZklockNotScraped server2');
$prometheus->start_exporter($second);
alerts_ok('and back');
results_ok('zklock_connected == 1', 2, 'both servers are seen again');

$prometheus->stop;
$_->close foreach $holder, $keeper, $leader;
$test->finish;
