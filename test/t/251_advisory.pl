# Extension zklock_advisory: its functions answer and warn as PostgreSQL's own, in
# random histories of three sessions; they lock on all servers; and no role gets
# PostgreSQL's own by mistake.

use strict;
use warnings;
use utf8;

use Test::More;

use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;
my $odd = 'Straße 1/%';
foreach my $node ($one, $two)
{
	$node->safe_psql('postgres', qq(CREATE DATABASE "$odd"; CREATE ROLE migrator LOGIN));
	$node->safe_psql($_, 'CREATE EXTENSION zklock_advisory CASCADE') foreach 'postgres', $odd;
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

# Two of each: the first calls PostgreSQL's functions, the second ours.
my @pairs =
  map { [ $test->session($one, options => '-c lock_timeout=1ms'), $test->session($one) ] } 1 .. 3;

sub answer
{
	my ($session, $sql) = @_;
	my $answer = $session->send($sql)->result;

	return join ' | ', $answer->{error} ? $answer->{error}{sqlstate} : $answer->{tag} // '',
	  (map { map { $_ // 'null' } @$_ } @{ $answer->{rows} }),
	  map { "$_->{sqlstate} $_->{message}" } @{ $answer->{notices} };
}

# A random statement: what PostgreSQL's session gets, and what ours
sub statement
{
	my ($in_transaction) = @_;
	my $call = rand() < 0.04 ? 'pg_advisory_unlock_all()' :
	  $functions[ rand @functions ] . '(' . $keys[ rand() < 0.6 ? 0 : rand @keys ] . ')';

	return ("SELECT pg_catalog.$call", "SELECT zk_advisory.$call") if rand() < 0.7;
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
		my ($theirs, $ours) = statement($in_transaction[$i]);
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
$s->query("SELECT zk_lock('/advisory/x'), zk_lock('/advisory/postgress/7')");
is($s->error('SELECT pg_advisory_unlock_all()'), '', 'unlock_all');
ok($test->look_until($one, $held, "/advisory/postgress/7\n/advisory/x"),
	'releases those of these functions alone');
$s->query('SELECT zk_unlock_all()');
$s->query('SELECT pg_advisory_lock(8)');
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
is($migrator->query("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"),
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
