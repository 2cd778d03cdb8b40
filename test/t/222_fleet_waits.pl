# Who blocks my nightly job: three servers wait in a row over two locks and a reader's
# queue, one behind the other.  zk_fleet_waits shows on each server, for each waiter,
# the request right ahead and the holder that all of them wait for; the query of the
# page leads to what that one is doing.  Since when it holds its lock, other servers
# learn from its znode.  A role that may not see whose locks these are sees neither
# names nor sessions.

use strict;
use warnings;

use JSON::PP qw(decode_json);
use List::Util qw(max);
use Test::More;

use Document;
use ZklockTest;

my $test = ZklockTest->new(servers => 3, session_timeout => '4s');
my ($one, $two, $three) = $test->nodes;
my $hog = $test->session($one, application_name => 'hog');
my $second = $test->session($one);
my $middle = $test->session($two);
my $third = $test->session($three);
my $reader = $test->session($three);
my $first = $test->session($two);

# The hog waits for a while itself, before it holds the lock.
$first->query("SELECT zk_lock('/w/a')");
$test->enqueue($hog, "SELECT zk_lock('/w/a')", '/w/a');
$middle->query("SELECT zk_lock('/w/b', at_most => '1 hour')");
$test->enqueue($middle, "SELECT zk_lock('/w/a')", '/w/a');
$test->enqueue($third, "SELECT zk_lock('/w/b')", '/w/b');
$test->enqueue($reader, "SELECT zk_lock_shared('/w/b')", '/w/b');
$test->look_until($one,
	"SELECT now() - requested_at > '1.5 s' FROM zk_locks WHERE path = '/w/a'",
	't', 'the hog has waited for long');
$first->query("SELECT zk_unlock('/w/a')");
$hog->value;

my $who = 'path, mode, position, waiting_server, waiting_pid, ahead_server, ahead_pid, ahead_granted,'
  . ' root_path, root_server, root_pid, root_application_name';

sub wait_row
{
	my ($path, $mode, $position, $server, $s, $ahead_server, $ahead, $granted) = @_;

	return join '|', $path, $mode, $position, $server, $s->pid, $ahead_server,
	  $ahead->pid, $granted, '/w/a', 'server1', $hog->pid, 'hog';
}
foreach my $node ($one, $two, $three)
{
	$test->look_until($node,
		"SELECT count(*) FROM zk_fleet_waits WHERE root_application_name = 'hog'",
		3, $node->name . ': all wait for the hog');
	is($test->look($node, "SELECT $who FROM zk_fleet_waits ORDER BY path, position"),
		join("\n",
			wait_row('/w/a', 'exclusive', 2, 'server2', $middle, 'server1', $hog, 't'),
			wait_row('/w/b', 'exclusive', 2, 'server3', $third, 'server2', $middle, 't'),
			wait_row('/w/b', 'shared', 3, 'server3', $reader, 'server3', $third, 'f')),
		$node->name . ': each waiter, the one ahead, and the root');
}

# ---- since when, and until when

my $granted_at =
  $test->look($one, "SELECT granted_at FROM zk_locks WHERE path = '/w/a' AND state = 'granted'");
foreach my $node ($one, $two)
{
	$test->look_until($node,
		"SELECT abs(extract(epoch FROM granted_at - '$granted_at')) < 1"
		  . " AND granted_at > requested_at + interval '1 s'"
		  . " FROM zk_queue('/w/a') WHERE granted",
		't', $node->name . ': since when the hog holds the lock');
	is($test->look($node,
			'SELECT granted_at IS NULL, held_until IS NULL FROM zk_queue($$/w/a$$) WHERE NOT granted'),
		't|t', $node->name . ': who waits holds nothing');
	is($test->look($node,
			"SELECT granted_at >= requested_at AND granted_at < requested_at + interval '1 s'"
			  . " AND abs(extract(epoch FROM held_until - granted_at) - 3600) < 1"
			  . " FROM zk_queue('/w/b') WHERE granted"),
		't', $node->name . ': a hold without a wait, and its limit');
}
my ($node_of_hog) = ($test->queue('/w/a'))[0];
like($test->zk->client->get("/zklock/w/a/$node_of_hog"), qr/"waited":\d+/,
	'its znode tells');

# ---- the same columns, the same rows

my @columns =
  qw(path position granted mode server host pid datname usename application_name client_addr
  backend_start requested_at granted_at held_until dialect cached znode session_id error);
foreach my $function ("zk_queue('/w/a')", "zk_fleet_locks('/w/a')")
{
	is($test->look($one,
			"SELECT string_agg(key, ' ' ORDER BY n) FROM json_object_keys((SELECT row_to_json(q)"
			  . " FROM $function q LIMIT 1)) WITH ORDINALITY AS keys (key, n)"),
		"@columns", "$function: the columns");
}
my $same = join ', ',
  grep { $_ !~ /^(?:granted_at|held_until)$/ } map { $_ eq 'position' ? '"position"' : $_ } @columns;
is($test->look($two, "SELECT $same FROM zk_queue('/w/b') ORDER BY position"),
	$test->look($two, "SELECT $same FROM zk_fleet_locks('/w/b') ORDER BY position"),
	'both functions show the same');
is($test->look($two,
		'SELECT count(*) FROM zk_fleet_locks($$/w$$) q JOIN zk_servers s USING (server, host, session_id)'),
	5, 'the hosts of all servers');

# With many directories, and names of many lengths, memory is used again meanwhile.
my $many = $test->session($two);
$many->query("SELECT count(zk_lock('/many/' || repeat('x', 6 * n))) FROM generate_series(1, 40) n");
is($test->look($one,
		'SELECT count(*), count(s.host) FROM zk_fleet_locks($$/many$$) q'
		  . ' LEFT JOIN zk_servers s USING (server, host, session_id)'),
	'40|40', 'also for many locks');
$many->close;
is($test->look($one,
		"SELECT q.backend_start = date_trunc('milliseconds', a.backend_start)"
		  . " FROM zk_queue('/w/a') q JOIN pg_stat_activity a USING (pid) WHERE q.granted"),
	't', 'when the session began');

# ---- a long queue of other clients, shared and exclusive

my $crowd = $test->zk->new_client(session_timeout => 60);
$crowd->create('/zklock/w/c/_c_x-__' . ($_ % 7 < 4 ? 'READ__' : 'WRIT__'),
	"client $_", [ 'ephemeral', 'sequence' ])
  foreach 1 .. 60;
my $ahead = 'FROM q x WHERE x.position < w.position AND (x.mode <> $$shared$$ OR w.mode <> $$shared$$)';
is($test->look($one,
		'SELECT position, waiting_server, ahead_server, root_server FROM zk_fleet_waits'
		  . " WHERE path = '/w/c' ORDER BY position"),
	$test->look($one,
		"WITH q AS MATERIALIZED (SELECT * FROM zk_queue('/w/c')) SELECT position, server,"
		  . " (SELECT server $ahead ORDER BY position DESC LIMIT 1),"
		  . " (SELECT server $ahead AND granted ORDER BY position LIMIT 1)"
		  . ' FROM q w WHERE NOT granted ORDER BY position'),
	'each waiter of a mixed queue, the one ahead, and the holder');

# The work grows with the queue, not with its square.
$crowd->create_many('/zklock/w/c/_c_x-__WRIT__', 440);

sub most_rows
{
	my ($plan) = @_;
	my $rows = $plan->{'Actual Rows'};

	$rows += $plan->{$_} // 0 foreach 'Rows Removed by Filter', 'Rows Removed by Join Filter';
	return max($rows * $plan->{'Actual Loops'}, map { most_rows($_) } @{ $plan->{Plans} // [] });
}
my $plan = decode_json($test->look($one,
		'EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) SELECT * FROM zk_fleet_waits'));
my $most = most_rows($plan->[0]{Plan});
cmp_ok($most, '>', 500, 'a queue of five hundred');
cmp_ok($most, '<', 2000, 'each is looked at a few times');
$crowd->quit;
$test->wait_queue('/w/c', 0);

# ---- the page

my $page = Document->new('docs/monitoring.md');
my ($query) = grep { /dblink\(/ }
  map { $_->{text} } $page->section('Find out who blocks a job')->blocks('text');
ok($query, 'the page has the query');
$query =~ s{^(?:CREATE|--).*\n}{}mg;
$query =~ s{'/batch/nightly'}{'/w/b'};
$query =~ s{host=%s}{host=@{[ $one->host ]}} or die;
$query =~ s{s\.host, }{} or die;
$hog->send('SELECT pg_sleep(3600)');
$test->look_until($one,
	"SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep(3600)%' AND state = 'active'",
	1, 'the hog is busy');
$three->safe_psql('postgres', 'CREATE EXTENSION dblink');
my @doing = split /\n/, $three->safe_psql('postgres', $query);
is(scalar(@doing), 2, 'both waiters of the job');
like($_, qr/server1.*SELECT pg_sleep\(3600\)/, 'what the root is doing') foreach @doing;
$hog->cancel;
is($hog->sqlstate, '57014', 'the root can be cancelled');

# ---- who may see it

$one->safe_psql('postgres',
	'CREATE ROLE stranger LOGIN; GRANT SELECT ON zk_locks, zk_lock_waits, zk_fleet_waits TO stranger;'
	  . ' GRANT EXECUTE ON FUNCTION zk_queue(text), zk_fleet_locks(text), zk_lock_shared(text, interval, interval, interval) TO stranger');
my $stranger = $test->session($one, user => 'stranger');
my $private = join ' AND ', map { "$_ IS NULL" }
  qw(path pid datname usename application_name client_addr backend_start host znode session_id);
foreach my $function ("zk_queue('/w/a')", "zk_fleet_locks('/w')", 'zk_fleet_locks()')
{
	is($stranger->query("SELECT bool_and($private) AND count(*) > 0 FROM $function"),
		't', "$function: neither the lock nor the sessions of others");
}
is($stranger->query('SELECT bool_and(path IS NULL AND pid IS NULL AND datname IS NULL AND usename IS NULL'
		  . ' AND application_name IS NULL AND znode IS NULL AND fencing_token IS NULL) AND count(*) > 0'
		  . ' FROM zk_locks'),
	't', 'zk_locks: likewise');
is($stranger->query('SELECT count(*) FROM zk_fleet_waits'), 0, 'zk_fleet_waits: nothing');
$stranger->query("SELECT zk_lock_shared('/w/s')");
is($stranger->query("SELECT path, pid = pg_backend_pid(), usename FROM zk_queue('/w/s')"),
	'/w/s|t|stranger', 'zk_queue: its own on this server');
is($stranger->query('SELECT path, pid = pg_backend_pid(), usename FROM zk_locks WHERE path IS NOT NULL'),
	'/w/s|t|stranger', 'zk_locks: its own');
$stranger->close;

$_->close foreach $hog, $middle, $third, $reader, $first, $second;
$test->finish;
