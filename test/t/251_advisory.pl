# Extension zklock_advisory: its functions answer and warn as PostgreSQL's own, in
# random histories of three sessions, one of which may call PostgreSQL's own; they lock on
# all servers, and behind that with PostgreSQL's own locks; and no role gets those alone
# by mistake.

use strict;
use warnings;
use utf8;

use Test::More;

use DeadlockTest;
use ZklockTest;

my $test = ZklockTest->new(conf => $deadlock_conf);
my ($one, $two) = $test->nodes;
my $odd = 'Straße 1/%';
foreach my $node ($one, $two)
{
	$node->safe_psql('postgres', qq(CREATE DATABASE "$odd"; CREATE DATABASE theirs; CREATE ROLE migrator LOGIN));
	$node->safe_psql($_, 'CREATE EXTENSION zklock_advisory CASCADE') foreach 'postgres', 'theirs', $odd;
}

# ---- random histories ----

my $seed = $ENV{ZKLOCK_TEST_SEED} // time;
srand $seed;
note "ZKLOCK_TEST_SEED=$seed";

my @keys = ('0', '-1', '9223372036854775807', '-9223372036854775808', '0, 0', '-1, 7', 'NULL');
my @functions = (
	(map { ("pg_try_advisory${_}_lock", "pg_try_advisory${_}_lock_shared") } '', '', '_xact'),
	(map { ("pg_advisory${_}_lock", "pg_advisory${_}_lock_shared") } '', '_xact'),
	('pg_advisory_unlock', 'pg_advisory_unlock_shared') x 2);
my @others = ('COMMIT', 'ROLLBACK', ('SAVEPOINT s', 'ROLLBACK TO s') x 2, 'RELEASE s', 'SELECT 1/0');

# Two of each: the first calls PostgreSQL's functions, in a database of its own, the
# second ours.
my @pairs = map {
	[ $test->session($one, dbname => 'theirs', options => '-c lock_timeout=1ms'), $test->session($one) ]
} 1 .. 3;

sub answer
{
	my ($session, $sql) = @_;
	my $answer = $session->send($sql)->result;

	return join ' | ', $answer->{error} ? $answer->{error}{sqlstate} : $answer->{tag} // '',
	  (map { map { $_ // 'null' } @$_ } @{ $answer->{rows} }),
	  map { "$_->{sqlstate} $_->{message}" } @{ $answer->{notices} };
}

# A random statement: what PostgreSQL's session gets, and what ours, which may be a plain
# one in every second history
sub statement
{
	my ($in_transaction, $is_plain) = @_;
	my $call = rand() < 0.04 ? 'pg_advisory_unlock_all()' :
	  $functions[ rand @functions ] . '(' . $keys[ rand() < 0.6 ? 0 : rand @keys ] . ')';

	return ("SELECT pg_catalog.$call", 'SELECT ' . ($is_plain ? 'pg_catalog' : 'zk_advisory') . ".$call")
	  if rand() < 0.7;
	return (($others[ rand @others ]) x 2) if $in_transaction;
	return ((rand() < 0.1 ? 'DISCARD ALL' : 'BEGIN') x 2);
}

my ($differences, %seen) = (0);
foreach my $history (1 .. 1000)
{
	my (@said, @in_transaction);
	foreach (1 .. 20)
	{
		my $i = int rand @pairs;
		my ($theirs, $ours) = statement($in_transaction[$i], $history % 2 && $i == 2);
		$in_transaction[$i] = $theirs eq 'BEGIN'
		  || ($in_transaction[$i] && $theirs !~ /^(COMMIT|ROLLBACK)$/);
		my $expected = answer($pairs[$i][0], $theirs);
		# Ours must not get the lock either; the error takes the limit back.
		$ours = "SET lock_timeout = '20ms'; $ours" if $expected =~ /^55P03/;
		my $got = answer($pairs[$i][1], $ours);
		push @said, "session $i: $ours: $got";
		$seen{ $expected =~ s/^SELECT 1 \| //r }++;
		next if $expected eq $got;
		push @said, "expected $expected";
		$differences++;
		last;
	}
	diag join "\n", "history $history", @said if $said[-1] =~ /^expected/;
	last if $differences > 3;
	foreach my $session (map { @$_ } @pairs)
	{
		$session->error('ROLLBACK');
		$session->error('SELECT pg_catalog.pg_advisory_unlock_all(), zk_advisory.pg_advisory_unlock_all()');
	}
}
is($differences, 0, '1000 random histories: as PostgreSQL answers');
note map { "$seen{$_} $_\n" } sort { $seen{$b} <=> $seen{$a} } keys %seen;
cmp_ok($seen{$_} // 0, '>', 10, "they have shown $_")
  foreach 't', 'f', '55P03', 'COMMIT', 'ROLLBACK', 'RELEASE', 'f | 01000 you don\'t own a lock of type ExclusiveLock',
  'f | 01000 you don\'t own a lock of type ShareLock';

$_->close foreach map { @$_ } @pairs;

# ---- the local lock behind it ----

my $ours = $test->session($one);
my $plain = $test->session($one);
my $far = $test->session($two);
my $local = "SELECT mode, classid, objid, objsubid FROM pg_locks WHERE locktype = 'advisory' AND pid = ";
my $paths = 'SELECT path FROM zk_locks ORDER BY path';

# Whether the other server gets the lock, which it then releases
sub is_free
{
	my ($key) = @_;
	my $got = $far->query("SELECT zk_advisory.pg_try_advisory_lock($key)") eq 't';

	$far->query("SELECT zk_advisory.pg_advisory_unlock($key)") if $got;
	return $got;
}

sub waits_locally
{
	my ($session) = @_;

	return $test->look_until($one, 'SELECT wait_event_type FROM pg_stat_activity WHERE pid = ' . $session->pid,
		'Lock', 'it waits for the local lock');
}

foreach (
	[ 'pg_advisory_lock(7)', 'ExclusiveLock|0|7|1' ],
	[ 'pg_try_advisory_lock_shared(-1)', 'ShareLock|4294967295|4294967295|1' ],
	[ 'pg_advisory_xact_lock(1, -2)', 'ExclusiveLock|1|4294967294|2' ])
{
	$ours->query("BEGIN; SELECT zk_advisory.$_->[0]");
	is($test->look($one, $local . $ours->pid), $_->[1], "$_->[0]: in pg_locks");
	$ours->query('COMMIT; SELECT zk_advisory.pg_advisory_unlock_all()');
	is($test->look($one, $local . $ours->pid), '', "$_->[0]: and gone");
}

$plain->query('SELECT pg_advisory_lock(7)');
foreach my $kind ('', '_xact')
{
	$ours->query("BEGIN; SELECT zk_advisory.pg_advisory_xact_lock(6)");
	is($ours->query("SELECT zk_advisory.pg_try_advisory${kind}_lock(7)"),
		'f', "$kind: a try is denied by a plain caller");
	ok(wait_for(sub { is_free(7) }, 'the distributed lock'), "$kind: and the distributed lock goes back");
	is($ours->error("SET LOCAL lock_timeout = '50ms'; SAVEPOINT s; SELECT zk_advisory.pg_advisory${kind}_lock(7)"),
		'55P03', "$kind: a wait ends by lock_timeout");
	is($ours->query('ROLLBACK TO s; SHOW lock_timeout'), '50ms', "$kind: the setting is as before");
	ok(wait_for(sub { is_free(7) }, 'the distributed lock'), "$kind: the distributed lock goes back");
	is($test->look($one, $paths), '/advisory/postgres/6', "$kind: what it held before stays");
	$ours->query('ROLLBACK');
	ok($test->look_until($one, $paths, '', 'nothing is held'), "$kind: until the end");
}

# The wait for the local lock comes behind the other one; the setting is as before.
$far->query('SELECT zk_advisory.pg_advisory_lock(7)');
$ours->query("SET lock_timeout = '1h'");
$test->enqueue($ours, 'SELECT zk_advisory.pg_advisory_lock(7)', '/advisory/postgres/7');
$far->query('SELECT zk_advisory.pg_advisory_unlock(7)');
waits_locally($ours);
$plain->query('SELECT pg_advisory_unlock(7)');
is($ours->sqlstate, '', 'it gets both');
is($ours->query('SHOW lock_timeout'), '1h', 'the setting is as before');
is($plain->query('SELECT pg_try_advisory_lock(7)'), 'f', 'a plain caller is excluded');
is($ours->query('SELECT zk_advisory.pg_advisory_unlock(7)'), 't', 'it releases both');
is($plain->query('SELECT pg_try_advisory_lock(7)'), 't', 'then the plain caller gets it');

# Both waits have one limit: it ends before that of another session, which began to wait
# for the local lock later than our call, but earlier than that came to the local lock.
my $later = $test->session($one);
$_->query("SET lock_timeout = '5s'") foreach $ours, $later;
$far->query('SELECT zk_advisory.pg_advisory_lock(7)');
$test->enqueue($ours, 'SELECT zk_advisory.pg_advisory_lock(7)', '/advisory/postgres/7');
$test->look_until($one,
	"SELECT clock_timestamp() - query_start > '2.5s' FROM pg_stat_activity WHERE pid = " . $ours->pid,
	't', 'half of its time');
$later->send('SELECT pg_advisory_lock(7)');
waits_locally($later);
$far->query('SELECT zk_advisory.pg_advisory_unlock(7)');
waits_locally($ours);
is($ours->sqlstate, '55P03', 'the time in the queue counts');
ok($later->busy, 'so it ends before one that waits for the local lock for longer');
is($later->sqlstate, '55P03', 'which ends, too');
$later->close;

# A cancel, and a loss, during the wait for the local one
$ours->query('RESET lock_timeout');
$ours->send('SELECT zk_advisory.pg_advisory_lock(7)');
waits_locally($ours);
$ours->cancel;
is($ours->sqlstate, '57014', 'a wait is cancelled');
ok(wait_for(sub { is_free(7) }, 'the distributed lock'), 'the distributed lock goes back');
$ours->send('SELECT zk_advisory.pg_advisory_lock(7)');
waits_locally($ours);
$far->query("SELECT zk_break_lock('/advisory/postgres/7')");
is($ours->sqlstate, '40001', 'a lock that is lost during the wait for the local one');
$plain->query('SELECT pg_advisory_unlock(7)');
is($test->look($one, $local . $ours->pid), '', 'leaves no local one');
is($ours->error('SELECT zk_advisory.pg_advisory_lock(7)'), '', 'it can be taken again');

# A loss leaves the local lock, until it is released.
foreach my $release ('SELECT zk_advisory.pg_advisory_unlock(7)', 'DISCARD ALL')
{
	$ours->query('SELECT zk_advisory.pg_advisory_lock(7), zk_advisory.pg_advisory_lock(7)');
	$far->query("SELECT zk_break_lock('/advisory/postgres/7')");
	is($plain->query('SELECT pg_try_advisory_lock(7)'), 'f', 'a lost lock: the local one stays');
	ok(is_free(7), 'the other server has it meanwhile');
	$ours->query($release);
	is($plain->query('SELECT pg_try_advisory_lock(7)'), 't', "$release: it goes");
	$plain->query('SELECT pg_advisory_unlock(7)');
}

# A savepoint takes both back; a hold from before it stays.
$ours->query('BEGIN; SELECT zk_advisory.pg_advisory_xact_lock(1); SAVEPOINT s');
$ours->query('SELECT zk_advisory.pg_advisory_xact_lock(1), zk_advisory.pg_advisory_xact_lock_shared(2)');
$ours->query('ROLLBACK TO s');
is($test->look($one, $local . $ours->pid), 'ExclusiveLock|0|1|1', 'a savepoint: the local lock');
ok($test->look_until($one, $paths, '/advisory/postgres/1', 'the distributed locks'), 'and the distributed one');
$ours->query('COMMIT');

# O waits for the lock of S's, S for W's local one, W for O's lock.
# S has its lock before O asks for it.
foreach my $way (grep { "@$_" !~ /2.*0/ } ways(0 .. 2))
{
	my $name = 'a deadlock through a local lock, ' . join ' ', @$way;
	$far->query("BEGIN; SELECT zk_xact_lock('/m/o')");
	$plain->query('BEGIN; SELECT pg_advisory_xact_lock(9)');
	$ours->query('BEGIN');
	my @begin = (
		sub { $ours->send('SELECT zk_advisory.pg_advisory_xact_lock(9)'); waits_locally($ours) },
		sub { $test->enqueue($plain, "SELECT zk_xact_lock('/m/o')", '/m/o') },
		sub { $test->enqueue($far, 'SELECT zk_advisory.pg_advisory_xact_lock(9)', '/advisory/postgres/9') });
	$begin[$_]->() foreach @$way;
	is(one_victim($test, [ $ours, $plain, $far ], $name)->{session}, $plain, "$name: its waiter");
}
$_->close foreach $ours, $plain, $far;

# ---- names ----

my $path = 'zk_advisory, pg_catalog, "$user", public';
my $s = $test->session($one, options => '-c search_path=' . $path =~ s/ /\\ /gr);
my $other = $test->session($two);
my $held = 'SELECT path FROM zk_locks ORDER BY path';

is($s->error('SELECT pg_advisory_lock(7), pg_advisory_lock_shared(-1, 2)'), '', 'with a search_path');
is($test->look($one, $held), "/advisory/postgres/-1,2\n/advisory/postgres/7", 'names of locks');
is($other->query('SELECT zk_advisory.pg_try_advisory_lock(7)'), 'f', 'the other server does not get it');
is($other->query('SELECT zk_advisory.pg_try_advisory_lock_shared(-1, 2)'), 't', 'but shares the other');
is($other->query("SELECT zk_try_lock('/advisory/postgres/7')"), 'f', 'zk_try_lock has the same lock');
is($other->query('SELECT pg_try_advisory_lock(7)'), 't', "without it: PostgreSQL's own");
$other->query('SELECT pg_advisory_unlock(7)');
$s->query("SELECT zk_lock('/advisory/x'), zk_lock('/advisory/postgress/7')");
is($s->error('SELECT pg_advisory_unlock_all()'), '', 'unlock_all');
ok($test->look_until($one, $held, "/advisory/postgress/7\n/advisory/x"),
	'releases those of these functions alone');
$s->query('SELECT zk_unlock_all()');

# zk_unlock() and zk_unlock_all() release PostgreSQL's own locks, too: they would be in the
# way of the next one that gets the distributed lock.
my $local = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'";
$s->query('SELECT pg_advisory_lock(8), pg_advisory_lock(8), pg_advisory_lock_shared(-1, 2)');
is($s->error("SELECT zk_unlock('/advisory/postgres/8')"), '', 'zk_unlock of such a name');
is($test->look($one, $local), 2, 'counts for both locks');
is($s->query("SELECT zk_unlock('/advisory/postgres/8')"), 't', 'the last one');
is($test->look($one, $local), 1, 'releases both');
is($s->error("SELECT zk_lock('/advisory/postgres/9'), zk_unlock('/advisory/postgres/9')"), '', 'a name alone');
unlike($s->messages, qr/WARNING/, 'has no other lock');
$s->query('SELECT pg_advisory_lock(8), pg_advisory_lock(8)');
is($s->error('SELECT zk_unlock_all()'), '', 'zk_unlock_all');
is($test->look($one, $local), 0, 'releases all of both kinds');
$s->query("SELECT pg_advisory_lock(8)");
$s->query('DISCARD ALL');
ok($test->look_until($one, $held, '', 'DISCARD ALL releases them'), 'DISCARD ALL releases them');

utf8::encode(my $odd_bytes = $odd);
my $odd_session = $test->session($one, dbname => $odd_bytes);
$odd_session->query('SELECT zk_advisory.pg_advisory_lock(7)');
is($test->look($one, $held), '/advisory/Stra%C3%9Fe%201%2F%25/7', 'a database of another name');
is($other->query('SELECT zk_advisory.pg_try_advisory_lock(7)'), 't', 'has locks of its own');
$odd_session->query('SELECT zk_advisory.pg_advisory_unlock_all()');
ok($test->look_until($one, $held, '', 'and releases them'), 'and releases them');

is($odd_session->error("SET zklock.advisory_prefix = '/app/'"), '22023', 'a prefix that is no name');
like($odd_session->messages, qr/A lock name must not end with/, 'says why');
$odd_session->query("SET zklock.advisory_prefix = '/app/one'");
$odd_session->query('SELECT zk_advisory.pg_advisory_lock(7)');
is($test->look($one, $held), '/app/one/Stra%C3%9Fe%201%2F%25/7', 'another prefix');

# ---- rights ----

my $migrator = $test->session($one, user => 'migrator', options => '-c search_path=' . $path =~ s/ /\\ /gr);
is($migrator->error('SELECT pg_advisory_lock(9)'), '42501', 'without rights: an error');
is($migrator->query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"),
	0, "and not PostgreSQL's own lock");
is($migrator->error("SET zklock.advisory_prefix = '/x'"), '42501', 'only a superuser sets the prefix');
my $root = $test->session($one);
$root->query('GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA zk_advisory TO migrator');
is($migrator->error('SELECT pg_advisory_lock(9)'), '', 'with EXECUTE: it gets it');
$migrator->query('SELECT pg_advisory_unlock(9)');
$root->query("SELECT zk_grant('/advisory', 'migrator', 'shared')");
is($migrator->error('SELECT pg_advisory_lock(9)'), '42501', 'rights by prefix: no exclusive lock');
is($migrator->error('SELECT pg_advisory_lock_shared(9)'), '', 'a shared one');

# ---- errors ----

$other->query('SELECT zk_unlock_all(), zk_advisory.pg_advisory_lock(7)');
my $waiter = $test->session($two);
is($waiter->error("SET lock_timeout = '50ms'; SELECT zk_advisory.pg_advisory_lock(7)"),
	'55P03', 'lock_timeout limits the wait');
$root->query("SELECT zk_break_lock('/advisory/postgres/7')");
ok(wait_for(sub { $other->error('SELECT 1, zk_advisory.pg_try_advisory_lock_shared(7)') eq '40001' },
		'the loss'), 'a lost lock: 40001');
is($other->query('SELECT zk_advisory.pg_advisory_unlock(7)'), 'f', 'nothing to release');
like($other->messages, qr/was already lost/, 'because it was lost');
$root->query($_) foreach 'DROP EXTENSION zklock_advisory', 'DROP SCHEMA zk_advisory';
is($s->error('SELECT zk_advisory.pg_advisory_lock(7)'), '3F000', 'the extension can be dropped');
is($other->query('SHOW zklock.advisory_prefix'), '/advisory', 'the setting belongs to the library');

$_->close foreach $s, $other, $odd_session, $migrator, $root, $waiter;
$test->finish;
