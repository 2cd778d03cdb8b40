# The ensemble of docs/install.md: its zoo.cfg, but for directories, hosts and ports, starts
# three members.  The leader is killed, and locks go on: who holds one keeps it, who waits
# gets it, and a transaction commits.  The page, its settings of PostgreSQL, and the
# compose file name the same members.

use strict;
use warnings;

use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use ZklockTest;
use ZooKeeperEnsemble;

my $page = Document->new('docs/install.md');
my ($config, $unit) = map { $_->{text} } $page->section('Set up ZooKeeper')->blocks('text');
my ($settings) = map { $_->{text} } $page->section('Load it')->blocks('ini');

# ---- what belongs together

my %members = $config =~ /^server\.(\d)=(\w+):2888:3888$/mg;
my ($port) = $config =~ /^clientPort=(\d+)$/m;
my ($tick) = $config =~ /^tickTime=(\d+)$/m;
my $connect_string = join ',', map { "$members{$_}:$port" } sort keys %members;
my $compose = slurp_file(Document->path('docker/ensemble.yaml'));
my %composed = $compose =~ /^ +server\.(\d)=(\w+):2888:3888;$port$/mg;
my %named;

$named{$2} = $1 while $compose =~ /^  (zk\d):\n(?:    .*\n)*?      ZOO_MY_ID: "(\d)"$/mg;
is(scalar keys %members, 3, 'the page has three members');
like($settings, qr/^zklock\.connect_string = '$connect_string'$/m, 'which PostgreSQL connects to');
is($settings =~ /^zklock\.tick_time = '(\d+)s'$/m ? $1 * 1000 : 0, $tick, 'with their tick');
is_deeply(\%composed, \%members, 'the compose file has the same members');
is_deeply(\%named, \%members, 'and starts each under its number');
is_deeply([ $compose =~ /zklock\.connect_string=(.*)/g ], [ ($connect_string) x 2 ],
	'to which its servers connect');
like($unit, qr{^ExecStart=/opt/zookeeper/bin/zkServer\.sh start-foreground$}m, 'a unit starts them');
like($unit, qr/^Environment=.*\bJMXDISABLE=true$/m, 'without a port for JMX, which would be open to all');

# ---- what runs: the checks of the tests use more of the four-letter words

my $zk = ZooKeeperEnsemble->new('zk', page => $config,
	more_java => ['-Dzookeeper.4lw.commands.whitelist=*']);
my $test = ZklockTest->new(zk => $zk, session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $holder = $test->session($one);
my $transaction = $test->session($one);
my $waiter = $test->session($two);

$holder->query("SELECT zk_lock('/i/held')");
$transaction->query("CREATE TABLE done (); BEGIN; SELECT zk_xact_lock('/i/job'); CREATE TABLE more ()");
$test->enqueue($waiter, "SELECT zk_lock('/i/held')", '/i/held');
my $victim = $zk->leader;
$victim->kill9;
$zk->wait_leader(grep { $_ != $victim } $zk->servers);
is($transaction->query('COMMIT; SELECT count(*) FROM more'), 0, 'a member is killed: a transaction commits');
is($holder->query("SELECT zk_unlock('/i/held')"), 't', 'who holds a lock has it still');
cmp_ok($waiter->value, '>', 0, 'who waits gets it');
is($test->status($_, 'sessions_lost'), 0, 'no session is lost') foreach $one, $two;
$victim->start;
is($zk->role($victim), 'follower', 'and the member comes back');
is($waiter->query("SELECT zk_unlock('/i/held')"), 't', 'it is released');
$_->close foreach $holder, $transaction, $waiter;
$test->finish;
