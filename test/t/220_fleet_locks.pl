# zk_fleet_locks() shows all contenders of all locks, of all servers and clients.
# It reads a little at a time, so that locks go on, can be cancelled, and goes on
# where it was if the worker is restarted; what cannot be read is a row.

use strict;
use warnings;

use Test::More;

use CuratorClient;
use TcpProxy;
use ZklockTest;

my $max_buffer = 300_000;
my $net = TcpProxy->new;
my $test = ZklockTest->new(
	servers => 3,
	net => $net,
	session_timeout => '10s',
	zk => {
		java => [
			'-Xmx512m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1',
			'-Dzookeeper.preAllocSize=1024', "-Djute.maxbuffer=$max_buffer" ]
	});
my ($one, $two, $three) = $test->nodes;

# The first has room for many locks, the second reads much, and not through the proxy
# (with its TLS, if that is tested).
$test->stop_looking($_) foreach $one, $two;
$one->append_conf('postgresql.conf', 'zklock.max_requests = 2100');
$two->append_conf('postgresql.conf',
	"zklock.connect_string = '@{[ $test->zk->connect_string ]}'\nzklock.tls = off\n");
foreach my $node ($one, $two)
{
	$node->restart;
	$test->wait_connected($node);
}
my $zk = $test->zk->client;
my ($s, $t, $u) = map { $test->session($_) } $one, $two, $three;

# Columns of the rows below a path
sub rows
{
	my ($columns, $prefix, $session) = @_;

	return ($session // $u)->query("SELECT $columns FROM zk_fleet_locks('$prefix')");
}

# ---- three servers

is($u->query('SELECT count(*) FROM zk_fleet_locks()'), 0, 'no lock at all');
$s->query("SELECT zk_lock('/a/x'), zk_lock_shared('/a')"
	  . ' FROM set_config($$application_name$$, $$batch$$, false)');
$t->query("SELECT zk_lock_shared('/a')");
$test->enqueue($u, "SELECT zk_lock('/a')", '/a');
my $w = $test->session($two);
$test->enqueue($w, "SELECT zk_lock_shared('/a')", '/a');
$s->query('BEGIN');
$s->query("SELECT zk_once('/job', key => 'k2')");
my $user = getpwuid($<);
my $looker = $test->session($three);
my $columns = 'path, mode, dialect, position, granted, server, datname, pid, usename,'
  . ' application_name, error';

sub row
{
	my ($path, $mode, $position, $granted, $server, $session, $application) = @_;

	return join '|', $path, $mode, 'curator_rw', $position, $granted, $server, 'postgres',
	  $session->pid, $user, $application // 'zklock test', '';
}
is(rows($columns, '/', $looker),
	join("\n",
		row('/.once/job', 'exclusive', 1, 't', 'server1', $s, 'batch'),
		row('/a', 'shared', 1, 't', 'server1', $s, 'batch'),
		row('/a', 'shared', 2, 't', 'server2', $t),
		row('/a', 'exclusive', 3, 'f', 'server3', $u),
		row('/a', 'shared', 4, 'f', 'server2', $w),
		row('/a/x', 'exclusive', 1, 't', 'server1', $s, 'batch')),
	'all locks of all servers');
is(rows('path', '/a/x', $looker), '/a/x', 'below one path');
is(rows('path', '/.once', $looker), '/.once/job', 'the turns of jobs');
is(rows('path', '/.once/job', $looker), '/.once/job', 'or of one');
is($looker->error("SELECT zk_fleet_locks('/a/')"), '22023', 'a bad path');
is(rows('count(*)', '/none', $looker), 0, 'where nothing is');
is($looker->query('SELECT count(*) FROM zk_fleet_locks(NULL)'), 0, 'NULL');
is(rows('string_agg(DISTINCT session_id, $$,$$)', '/a/x', $looker),
	$test->status($one, 'session_id'), 'the ZooKeeper session');
is(rows('znode', '/a/x', $looker), '/zklock/a/x/' . ($test->queue('/a/x'))[0], 'the znode');
is(rows("bool_and(requested_at BETWEEN now() - interval '10 min' AND now() + interval '1 min')",
		'/', $looker),
	't', 'since when');
$s->query('COMMIT');
$_->query('SELECT zk_unlock_all()') foreach $s, $t;
$u->value;
$u->query('SELECT zk_unlock_all()');
$w->value;
$w->query('SELECT zk_unlock_all()');
$w->close;
$test->wait_queue('/a', 0);

# ---- other clients, and what else there is

my $curator = CuratorClient->new($test->zk->connect_string);
my $kazoo = $test->zk->new_client;
$curator->command('lock', 'm', 'mutex', '/zklock/o/mutex');
wait_for(sub { $curator->command('held', 'm') }, 'Curator has its mutex');
$curator->command('lock', 'r', 'read', '/zklock/o/rw');
wait_for(sub { $curator->command('held', 'r') }, 'Curator reads');
$test->enqueue($s, "SELECT zk_lock('/o/rw')", '/o/rw');
$curator->command('latch', 'start', 'l', '/zklock/o/leader', 'boss');
wait_for(sub { $curator->command('latch', 'leads', 'l') }, 'Curator leads');
$curator->command('barrier', 'enter', 'b', '/zklock/o/barrier', 3, 0);
$kazoo->lock('k', 'Lock', '/zklock/o/kazoo', 'me');
wait_for(sub { $kazoo->held('k') }, 'kazoo has its lock');
$kazoo->create('/zklock/o/kazoo_semaphore/0123456789abcdef0123456789abcdef', 'you', ['ephemeral']);
$t->query("SELECT zk_acquire_permits('/o/sem', 2, max_permits => 2)");
my @waiters = map { $test->session($_) } $two, $three;
$waiters[0]->send("SELECT zk_acquire_permits('/o/sem', max_permits => 2)");
$test->wait_queue('/o/sem/leases', 3);
$waiters[1]->send("SELECT zk_acquire_permits('/o/sem', max_permits => 2)");
$test->wait_queue('/o/sem/locks', 2);
# a directory with a name as those of members
$u->query("SELECT zk_lock('/o/01234567-89ab-cdef-0123-456789abcdef')");

my $host = rows('server', '/o/mutex', $looker);    # as Curator writes it
is(rows('path, mode, dialect, position, granted, server', '/o', $looker),
	join("\n",
		'/o/01234567-89ab-cdef-0123-456789abcdef|exclusive|curator_rw|1|t|server3',
		"/o/barrier|member|curator|1|t|$host",
		'/o/kazoo|exclusive|kazoo|1|t|me',
		'/o/kazoo_semaphore|permit|kazoo|1|t|you',
		'/o/leader|leader|curator|1|t|boss',
		"/o/mutex|exclusive|curator_mutex|1|t|$host",
		"/o/rw|shared|curator_rw|1|t|$host",
		'/o/rw|exclusive|curator_rw|2|f|server1',
		'/o/sem|permit|curator|1|t|server2',
		'/o/sem|permit|curator|2|t|server2',
		'/o/sem|permit|curator|3|f|server2',
		'/o/sem|permit|curator|4|f|server3'),
	'other clients, and what is no lock');
is(rows('path, mode, granted', '/o/sem/leases', $looker), "/o/sem|permit|t\n" x 2 . '/o/sem|permit|f',
	'the leases alone');

$curator->command('unlock', $_) foreach 'm', 'r';
$curator->command('latch', 'close', 'l');
$curator->command('barrier', 'leave', 'b', 0);
$kazoo->unlock('k');
$kazoo->quit;
$s->value;
$t->query("SELECT zk_release_permits('/o/sem', 2)");
$_->value foreach @waiters;
$_->query('SELECT zk_unlock_all()') foreach $s, $t, $u, @waiters;
$_->close foreach @waiters;

# ---- many locks, more than a listing that ZooKeeper would take as a request

my $name = "'/many/' || repeat('x', 160) || n";
$s->query('SET zklock.max_requests_per_session = 2100');
is($s->query("SELECT count(zk_lock($name)) FROM generate_series(1, 2000) n"), 2000, 'many locks');
my $names = join '', $zk->ls('/zklock/many');
cmp_ok(length $names, '>', $max_buffer, 'their names are longer than jute.maxbuffer');
is(rows('count(*), count(DISTINCT path), bool_and(granted), count(error)', '/', $looker),
	'2000|2000|t|0', 'all of them, from another server');
$s->query('SELECT zk_unlock_all()');

# ---- what cannot be read

$s->query("SELECT zk_lock('/z/' || n) FROM unnest(ARRAY[1, 3]) n");
my $shut = $zk->create('/zklock/z/2/_c_x-__WRIT__', '', [ 'ephemeral', 'sequence' ]);
$zk->shut_out($shut);
$zk->create('/zklock/e/shut');
$zk->shut_out('/zklock/e/shut');
$zk->create_long('/zklock/e/long', 70, 250_000);
is(rows('path, mode, granted, server, error', '/', $t),
	join("\n",
		'/e/long||||The list of its znodes is too long to be read.',
		'/e/shut||||ZooKeeper answered NOAUTH (-102).  An access control list denies this server access.',
		'/z/1|exclusive|t|server1|',
		'/z/2|exclusive|t||ZooKeeper answered NOAUTH (-102).  An access control list denies this server access.',
		'/z/3|exclusive|t|server1|'),
	'what cannot be read is a row');
is($test->status($two, 'state, connects'), 'connected|1', 'and harms nothing');
$net->answer('server3-zk', 'list', '/zklock/z/2', -4, times => 0);
is(rows('path, error', '/z', $looker),
	"/z/1|\n/z/2|ZooKeeper answered CONNECTIONLOSS (-4).  The connection broke.\n/z/3|",
	'a read that gets no answer by itself');
$net->pass('server3-zk');

# A connection that ends under it again and again: twice with the others, and twice by
# itself.  The worker is stopped, so that nothing passes before it is to be caught.
my $reader = $test->status($three, 'worker_pid');
my $caught = $net->stats('server3-zk')->{caught};
$net->catch('server3-zk', '/zklock/z/2');
$looker->send("SELECT path, error FROM zk_fleet_locks('/z')");
foreach my $time (1 .. 4)
{
	wait_for(sub { $net->stats('server3-zk')->{caught} == $caught + $time }, "end $time");
	kill 'STOP', $reader;
	$net->reset('server3-zk');
	$net->pass('server3-zk');
	$net->catch('server3-zk', '/zklock/z/2') if $time < 4;
	kill 'CONT', $reader;
}
is($looker->value,
	"/z/1|\n/z/2|ZooKeeper answered CONNECTIONLOSS (-4).  The connection broke.\n/z/3|",
	'a read that ends the connection');
$zk->delete($_) foreach $shut, '/zklock/e/shut';
$zk->delete_tree('/zklock/e');
$s->query('SELECT zk_unlock_all()');

# ---- a few reads at a time

my $crowd = $test->zk->new_client(session_timeout => 60);
$crowd->create('/zklock/crowd');
$crowd->create_many('/zklock/crowd/_c_x-__WRIT__', 1000);
my $other = $test->session($three);
my $all = "SELECT count(*), count(*) FILTER (WHERE granted), max(position) FROM zk_fleet_locks('/crowd')";
my $whole = '1000|1|1000';

# Answers come late, so that ZooKeeper has got all that is under way.
$net->delay('server3-zk', 2, 'down');
my $before = $test->zk->packets_received;
$_->send($all) foreach $looker, $other;
my $got;
wait_for(sub { ($got = $test->zk->packets_received - $before) > 16 }, 'they read');
cmp_ok($got, '<', 100, 'few reads are under way, whoever asks');
$net->pass('server3-zk');
is($_->value, $whole, 'and all the rest comes') foreach $looker, $other;

# ---- locks go on meanwhile, and the call can be cancelled

$net->delay('server3-zk', 0.05);
$looker->send($all);
$looker->wait_running;
is($other->query("SELECT zk_try_lock('/meanwhile', '1 min'), zk_unlock('/meanwhile')"), 't|t',
	'a lock in the meantime');
ok($looker->busy, 'while the call goes on');
$looker->cancel;
is($looker->sqlstate, '57014', 'cancelled');
$net->delay('server3-zk', 0);
is($looker->query($all), $whole, 'and called again');

# ---- the worker is restarted, or ZooKeeper goes away, in the middle

$net->catch('server3-zk', '__WRIT__0000000200');
$looker->send($all);
wait_for(sub { $net->stats('server3-zk')->{caught} > 0 }, 'on the way again');
my $worker = $test->status($three, 'worker_pid');
kill 'TERM', $worker;
$test->wait_gone($worker);
$net->pass('server3-zk');
is($looker->value, $whole, 'the next worker goes on');

$looker->query("SET zklock.answer_timeout = '1s'");
$net->catch('server3-zk', '__WRIT__0000000300');
is($looker->error($all), '08006', 'no answer');
like($looker->messages, qr/while waiting for ZooKeeper's answer about "\/crowd"/, 'and what it was about');
$net->pass('server3-zk');
$looker->query('RESET zklock.answer_timeout');
$test->wait_connected($three);
is($looker->query($all), $whole, 'ZooKeeper is back');

$net->catch('server3-zk', '__WRIT__0000000400');
$looker->send($all);
wait_for(sub { $net->stats('server3-zk')->{caught} > 2 }, 'on the way once more');
$net->reset('server3-zk');
$net->pass('server3-zk');
is($looker->value, $whole, 'a connection that breaks is no error');

# ---- who may look

$one->safe_psql('postgres',
	'CREATE ROLE plain LOGIN; CREATE ROLE granted LOGIN; CREATE ROLE monitor LOGIN IN ROLE pg_monitor;'
	  . ' GRANT EXECUTE ON FUNCTION zk_fleet_locks(text), zk_lock(text, interval, interval, interval) TO granted');
my %role = map { $_ => $test->session($one, user => $_) } qw(plain granted monitor);
$role{granted}->query("SELECT zk_lock('/role')");
is($role{plain}->error('SELECT zk_fleet_locks()'), '42501', 'not for everybody');
is(rows('path, mode, usename, znode IS NULL', '/role', $role{monitor}), '/role|exclusive|granted|f',
	'pg_monitor');
is(rows('path, mode, usename, pid, application_name, znode IS NULL', '/role', $role{granted}),
	'|exclusive||||t', 'others see neither names nor sessions');

# ---- where grants decide

$one->safe_psql('postgres',
	'CREATE ROLE reader LOGIN IN ROLE pg_read_all_stats;'
	  . ' GRANT EXECUTE ON FUNCTION zk_fleet_locks(text) TO reader;'
	  . " SELECT zk_grant('/secret', 'granted'); SELECT zk_grant('/role/secret', 'granted')");
$role{reader} = $test->session($one, user => 'reader');
$role{granted}->query("SELECT zk_lock('/secret'), zk_lock('/role/secret')");
$s->query('BEGIN');
$s->query("SELECT zk_once('/secret/job', key => 'k1')");
my $secret = "SELECT string_agg(coalesce(path, '-'), ' ' ORDER BY path),"
  . ' bool_and((path IS NULL) = (znode IS NULL))'
  . " FROM zk_fleet_locks('%s') WHERE path IS NULL OR path ~ 'secret|role'";
my $seen = sub { $role{ $_[0] }->query(sprintf $secret, $_[1]) };
is($seen->(reader => '/'), '/role - - -|t', 'no names in "/" that grants close');
is($seen->(reader => '/.once'), '-|t', 'and in "/.once"');
is($seen->(reader => '/role'), '/role -|t', 'nor below a name that is open');
is($role{reader}->error("SELECT zk_fleet_locks('/secret')"), '42501', 'a closed name');
is($seen->(monitor => '/'), '/.once/secret/job /role /role/secret /secret|t', 'pg_monitor sees all');
$one->safe_psql('postgres', "SELECT zk_grant('/secret', 'reader', 'look')");
is($seen->(reader => '/'), '/.once/secret/job /role /secret -|t', 'with the privilege to look');
is($seen->(reader => '/.once'), '/.once/secret/job|t', 'at its turns, too');
$s->query('ROLLBACK');
$_->close foreach values %role;

$crowd->quit;
$_->close foreach $s, $t, $u, $looker, $other;
$test->finish;
