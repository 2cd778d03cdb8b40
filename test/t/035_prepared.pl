# COMMIT PREPARED and ROLLBACK PREPARED around a lost lock.  Refused inside a
# transaction, they change nothing: the transaction still meets the commit check,
# also when a rollback to a savepoint, such as psql's ON_ERROR_ROLLBACK makes
# one, has saved it.  Carried out, COMMIT PREPARED makes the check before it
# does anything, and ROLLBACK PREPARED is never refused.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;
my $looker = $test->session($one);

$looker->query('CREATE TABLE done (what text)');

sub done_ok
{
	my ($expected, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is(
		$looker->query("SELECT string_agg(what, ' ' ORDER BY what) FROM done"),
		$expected, $case);
}

# Leaves a prepared transaction that would note this.
sub prepare
{
	my ($what) = @_;

	$looker->query("BEGIN; INSERT INTO done VALUES ('$what');"
		  . " PREPARE TRANSACTION '$what'");
	return;
}

sub holder
{
	my ($sql) = @_;
	my $session = $test->session($one);

	$session->query("SET zklock.lost_lock_action = 'none'");
	$session->query($sql);
	return $session;
}

# ---- refused in a transaction that goes on

# Statements that are refused in a block, or for want of a transaction to
# finish, and what a rollback to a savepoint makes of that.
my %refused = (
	'COMMIT PREPARED' => "COMMIT PREPARED 'p'",
	'ROLLBACK PREPARED' => "ROLLBACK PREPARED 'p'",
	'COMMIT PREPARED of nothing' => "COMMIT PREPARED 'nothing'");
my %sessions;
my $n = 0;

prepare('p');
foreach my $case (sort keys %refused)
{
	foreach my $lifetime ('lock', 'xact_lock')
	{
		my $path = '/p/' . ++$n;
		my $s = holder("BEGIN; SELECT zk_$lifetime('$path');"
			  . " INSERT INTO done VALUES ('wrong'); SAVEPOINT s");

		is($s->error($refused{$case}), '25001', "$case is refused in a block");
		$s->query('ROLLBACK TO s; RELEASE s');
		$sessions{"$case, $lifetime"} = $s;
	}
}

# The lock that was taken outside of any block, and several statements at once
my $string = holder("SELECT zk_lock('/p/string')");
is($string->error("SELECT 1; COMMIT PREPARED 'p'"),
	'25001', 'it is refused among other statements');

my $committed = holder("SELECT zk_lock('/p/committed')");
my $rolled_back = holder("SELECT zk_lock('/p/rolled_back')");
my $good = $test->session($two);
$good->query("SELECT zk_lock('/p/good')");
prepare($_) foreach 'committed', 'rolled_back';

ok($test->lose_session($one, '/p/1'), 'the session is lost');

foreach my $case (sort keys %sessions)
{
	my $s = $sessions{$case};

	is($s->error('COMMIT'), '40001', "no commit after $case was refused");
	$s->error('SELECT zk_unlock_all()');
}
done_ok('', 'nothing was committed');

# ---- carried out

is($string->error("INSERT INTO done VALUES ('string')"),
	'40001', 'nor after it was refused among other statements');
is($committed->error("COMMIT PREPARED 'committed'"),
	'40001', 'COMMIT PREPARED is refused under a lost lock');
is($looker->query("SELECT count(*) FROM pg_prepared_xacts"
		  . " WHERE gid = 'committed'"),
	1,
	'before it did anything');
is($rolled_back->error("ROLLBACK PREPARED 'rolled_back'"),
	'', 'ROLLBACK PREPARED is not');
is($looker->query("SELECT count(*) FROM pg_prepared_xacts"
		  . " WHERE gid = 'rolled_back'"),
	0,
	'and is carried out');
is($rolled_back->error("INSERT INTO done VALUES ('behind')"),
	'40001', 'the next transaction of its session is checked');
done_ok('', 'still nothing was committed');

is($committed->query("SELECT zk_unlock('/p/committed')"),
	'f', 'the loss is acknowledged');
is($committed->error("COMMIT PREPARED 'committed'"), '', 'and it commits');
done_ok('committed', 'what was prepared');
$looker->query("ROLLBACK PREPARED 'p'");

$_->close foreach $looker, $good, $string, $committed, $rolled_back,
  values %sessions;
$test->finish;
