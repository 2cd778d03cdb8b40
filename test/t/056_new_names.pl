# Names that were never used before: the directory is made ahead of the lock's znode, without
# waiting, and the answer to its create is the grant.  Directories that nobody uses any more
# go again, while Curator takes locks of the same names.

use strict;
use warnings;

use Test::More;

use CuratorClient;
use ZklockTest;

my $test = ZklockTest->new(
	servers => 1,
	session_timeout => '4s',
	zk => { container_check_ms => 3_600_000 },
	conf => "zklock.cache_time = 0\n");
my ($node) = $test->nodes;
my $s = $test->session($node);

sub pair { return "SELECT zk_lock('$_[0]'); SELECT zk_unlock('$_[0]')"; }

# How many directories there are
sub directories { return scalar grep { m{^/zklock/new/[^/]+$} } $test->zk->client->tree('/zklock/new'); }

# The first name of all is met as missing, with its parent.
$s->query(pair('/new/first'));

# Each pair takes a container, a batch with the create, and one with the delete; heartbeats
# and the deletes of directories come on top.
my $names = 300;
my $listings = $test->status($node, 'listings');
my $before = $test->zk->packets_received;
$s->query(pair("/new/$_")) foreach 1 .. $names;
my $requests = ($test->zk->packets_received - $before - 1) / $names;
cmp_ok($requests, '<=', 3.3, sprintf '%.2f requests a pair', $requests);
is($test->status($node, 'listings'), $listings, 'nothing is listed');

# In a session timeout they are gone.
cmp_ok(directories(), '>', 0, 'directories stay for a while');
wait_for(sub { directories() == 0 }, 'and go again');

# More than are remembered: they go at once, while Curator comes to the same ones.
my $curator = CuratorClient->new($test->zk->connect_string);
my $many = 2000;
$s->send("SELECT count(*) FROM generate_series(1, $many) i, LATERAL (SELECT zk_lock('/new/' || i), zk_unlock('/new/' || i)) l");
my ($tries, $got) = (0, 0);
while ($s->busy)
{
	my $i = 1 + int rand $many;

	# It dies if Curator meets an error.
	$got++ if $curator->command('attempt', 'write', "/zklock/new/$i");
	$tries++;
}
is($s->value, $many, 'zklock has had all of them');
cmp_ok($got, '>', $tries / 2, "so has Curator, in $got of $tries tries");
wait_for(sub { directories() <= $tries }, 'those in which it met nobody go');
$curator->quit;
$test->finish;
