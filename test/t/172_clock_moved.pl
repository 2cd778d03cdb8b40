# The wall clock of a PostgreSQL server is moved by an hour, and by days, forward
# and back (row 29): its locks stay, its waits end when they should, and nobody is
# let in beside it.  The other server's clock stays.

use strict;
use warnings;

use Cwd qw(abs_path);
use Test::More;

use ZklockTest;

my $library = ZooKeeper::clock_library();
plan skip_all => 'libfaketime is not installed: see dev/setup.sh'
  unless $library;

my $file = abs_path(PostgreSQL::Test::Utils::tempdir('clock')) . '/offset';

sub set_clock
{
	my ($offset) = @_;

	PostgreSQL::Test::Utils::append_to_file("$file.new", "$offset\n");
	rename "$file.new", $file or die "could not rename $file.new: $!";
	return;
}

# Only what the first server is started with; leases are measured by a clock that
# stays as it is.
set_clock('+0');
my $test = ZklockTest->new(servers => 2);
my ($one, $two) = $test->nodes;
{
	local $ENV{LD_PRELOAD} = $library;
	local $ENV{FAKETIME_TIMESTAMP_FILE} = $file;
	local $ENV{FAKETIME_NO_CACHE} = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
	local $ENV{FAKETIME_FORCE_MONOTONIC_FIX} = 0;
	$one->restart;
}
$test->wait_connected($one);
my ($s, $t) = map { $test->session($_) } $one, $two;

my $real = $t->query('SELECT extract(epoch FROM clock_timestamp())::bigint');

is($s->query("SELECT zk_lock('/held') > 0"), 't', 'a lock is held');
foreach my $offset ('+1h', '-1h', '+30d', '-30d', '+0')
{
	set_clock($offset);
	my $ahead = $s->query(
		"SELECT round((extract(epoch FROM clock_timestamp()) - $real) / 3600)");
	is($ahead, { '+1h' => 1, '-1h' => -1, '+30d' => 720, '-30d' => -720 }->{$offset} // 0,
		"$offset: the clock is moved");

	is($t->query("SELECT zk_try_lock('/held')"), 'f', "$offset: the lock is held");
	is($s->query("SELECT zk_fencing_token('/held') > 0"), 't', "$offset: its holder knows");
	$s->query('BEGIN');
	is($s->query("SELECT zk_xact_lock('/x') > 0"), 't', "$offset: another is taken");
	$s->query('COMMIT');
	is($s->sqlstate, '', "$offset: and the transaction commits");

	# Waits of the server whose clock moves while they last
	$t->query("SELECT zk_lock('/other')");
	$test->enqueue($s, "SELECT zk_try_lock('/other', '1h')", '/other');
	set_clock('+2h');
	ok($test->still_waits($s), "$offset: a wait goes on when the clock is moved");
	set_clock('-2h');
	ok($test->still_waits($s), "$offset: and back");
	set_clock($offset);
	$t->query("SELECT zk_unlock('/other')");
	is($s->value, 't', "$offset: until it has the lock");
	$s->query("SELECT zk_unlock('/other')");
	$t->query("SELECT zk_lock('/other')");
	is($s->query("SELECT zk_try_lock('/other', '100ms')"), 'f', "$offset: a try ends");
	is($s->error("SET lock_timeout = '100ms'; SELECT zk_lock('/other')"),
		'55P03', "$offset: so does a wait with lock_timeout");
	$s->query('RESET lock_timeout');
	$t->query("SELECT zk_unlock('/other')");

	# Bounds of holds
	is($s->query("SELECT zk_lock('/bound', at_most => '1h') > 0"), 't',
		"$offset: a lock for an hour");
	set_clock('+3h');
	is($s->query("SELECT zk_unlock('/bound')"), 't',
		"$offset: is still held when the clock is moved past that");
	is($s->messages, '', "$offset: without a word");
	set_clock($offset);
}

is($s->query("SELECT zk_unlock('/held')"), 't', 'the lock was held all the time');
is($s->messages, '', 'without a word');
is($test->status($one, 'sessions_lost'), 0, 'as was the session');
is($test->status($one, 'last_error IS NULL'), 't', 'nothing went wrong');
$_->close foreach $s, $t;

$test->finish;
