# The clock of ZooKeeper's server is ahead for one call of zk_once(), then back
# (row 51): the turns up to that time count as used up, and each call that gets
# none of them is warned.  zk_once_reset() gives them back.  Nothing else depends
# on that clock.  And: days and months of a time zone, also when its clocks change.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

plan skip_all => 'libfaketime is not installed: see dev/setup.sh'
  unless ZooKeeper::clock_library();

my $test = ZklockTest->new(zk => { movable_clock => 1 });
my ($one, $two) = $test->nodes;
my ($s, $t, $u) = map { $test->session($_) } $one, $two, $two;
my $zk = $test->zk->client;
my $late = qr/last run of "[^"]*" is in the future/;

is($s->query("SELECT zk_lock('/held') > 0"), 't', 'a lock is held all the time');

# The call for a period, or for the key 'k'
sub once
{
	my ($path, $what) = @_;

	return "SELECT zk_once('$path', " . ($what eq "'k'" ? 'key => ' : '') . "$what)";
}

# Calls while ZooKeeper's clock is ahead by so much, then sets it back
sub once_ahead
{
	my ($offset, $path, $what) = @_;

	$test->zk->set_clock($offset);
	my $answer = $s->query(once($path, $what));
	$test->zk->set_clock('+0');
	return $answer;
}

sub call_ok
{
	my ($path, $what, $answer, $warned, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($t->query(once($path, $what)), $answer, "$case: $answer");
	if ($warned)
	{
		like($t->messages, qr/^WARNING\n01000\n$late/, "$case: with a warning");
	}
	else
	{
		unlike($t->messages, $late, "$case: without a warning");
	}
	return;
}

# ---- ahead by hours ----

my $offset = -s $two->logfile;
is(once_ahead('+3h', '/j', "interval '1 hour'"), 't', 'a turn, three hours ahead');
call_ok('/j', "interval '1 hour'", 'f', 1, 'back again');
like($t->messages, qr/recorded at .* ZooKeeper's clock now says/, 'the times are told');
like($t->messages, qr/zk_once_reset\(\)/, 'and what to do');
like(slurp_file($two->logfile, $offset), qr/WARNING:  $late/,
	'it stands in the log as well');
call_ok('/j', "interval '1 hour'", 'f', 1, 'again');
call_ok('/j', "interval '1 day'", 'f', 1, 'another period');
call_ok('/j', "'k'", 't', 0, 'a key');
call_ok('/j', "'k'", 'f', 0, 'a key again');
is($t->query("SELECT zk_once_reset('/j')"), 't', 'the runs are forgotten');
call_ok('/j', "interval '1 hour'", 't', 0, 'a turn of now');
call_ok('/j', "interval '1 hour'", 'f', 0, 'which is used up');

# Until that time has come, and no longer
is(once_ahead('+3h', '/k', "interval '1 hour'"), 't', 'a turn, three hours ahead');
$test->zk->set_clock('+3h');
call_ok('/k', "interval '1 hour'", 'f', 0, 'three hours later');
$test->zk->set_clock('+4h');
call_ok('/k', "interval '1 hour'", 't', 0, 'four hours later');
$test->zk->set_clock('+0');

# ---- clocks that differ a little ----

is(once_ahead('+20s', '/l', "interval '1 day'"), 't', 'a turn, some seconds ahead');
call_ok('/l', "interval '1000 weeks'", 'f', 0, 'less than a minute');
is(once_ahead('+20s', '/m', "interval '1 second'"), 't', 'a turn of a second');
call_ok('/m', "interval '1 second'", 'f', 1, 'more than the period');

# ---- one that has waited is behind its time, but no clock is wrong ----

$u->query("BEGIN; SELECT zk_once('/w', key => 'k')");
$test->enqueue($t, "SELECT zk_once('/w', interval '1 hour')", '/.once/w');
$test->zk->set_clock('+2h');
$zk->set('/zklock/.once/.clock', '');
my $now = $zk->stat('/zklock/.once/.clock')->{mtime};
$zk->set('/zklock/.once/w/.history',
	"{\"zklock\":\"once\",\"period_at\":$now,\"keys\":[]}");
$u->query('ROLLBACK');
is($t->value, 'f', 'another that came later has had the turn');
unlike($t->messages, $late, 'without a warning');
$test->zk->set_clock('+0');

# ---- time zones ----

# Each call comes at that time; t: it is in another period than the one before.
sub calls_ok
{
	my ($what, @calls) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $path = '/zone/' . ++$test->{zones};
	while (my ($time, $answer) = splice @calls, 0, 2)
	{
		$test->zk->set_clock(
			$s->query("SELECT '\@' || to_char('$time'::timestamptz AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')"));
		is($t->query("SELECT zk_once('$path', interval $what)"), $answer, "$what: $time: $answer");
	}
	$test->zk->set_clock('+0');
	return;
}

# Nights at 01:00 in Berlin: clocks are set forward on 2027-03-28, back on 2027-10-31.
my @spring = map { "2027-03-$_ 01:00 Europe/Berlin" } 27 .. 30;
my @autumn = map { "2027-10-$_ 01:00 Europe/Berlin" } 30, 31;
calls_ok("'1 day', zone => 'Europe/Berlin'", map { $_ => 't' } @spring, @autumn);
calls_ok("'1 day'", map { $_ => $_ eq $spring[2] ? 'f' : 't' } @spring);
calls_ok("'1 day', zone => 'Europe/Berlin'",
	'2027-10-31 02:30 Europe/Berlin' => 't',    # summer time
	'2027-10-31 03:30 Europe/Berlin' => 'f',
	'2027-10-31 23:59 Europe/Berlin' => 'f',
	'2027-10-31 23:59:45 Europe/Berlin' => 't',    # half a minute early
	'2027-11-01 00:00:20 Europe/Berlin' => 'f');
calls_ok("'1 week', zone => 'America/New_York'",
	'2027-03-08 00:10 America/New_York' => 't',    # a Monday
	'2027-03-14 23:00 America/New_York' => 'f',
	'2027-03-15 00:10 America/New_York' => 't');
calls_ok("'1 month', zone => 'Asia/Tokyo'",
	'2027-01-31 23:00 Asia/Tokyo' => 't',
	'2027-02-01 01:00 Asia/Tokyo' => 't',
	'2027-02-28 23:00 Asia/Tokyo' => 'f',
	'2028-02-28 23:00 Asia/Tokyo' => 't');
calls_ok("'3 months'",
	'2027-03-31 23:00 UTC' => 't',
	'2027-04-01 01:00 UTC' => 't',
	'2027-06-30 23:00 UTC' => 'f');
$t->query("SET timezone = 'Asia/Tokyo'");
calls_ok("'1 day'",
	'2027-05-01 00:10 Asia/Tokyo' => 't',
	'2027-05-01 08:50 Asia/Tokyo' => 'f',
	'2027-05-01 09:10 Asia/Tokyo' => 't');

# A time that cannot be is no history.
$zk->set('/zklock/.once/w/.history',
	'{"zklock":"once","period_at":9223372036854775807,"keys":[]}');
is($t->error("SELECT zk_once('/w', interval '1 hour')"), 'XX001',
	'a time past all times is none');

is($s->query("SELECT zk_unlock('/held')"), 't', 'the lock was held all the time');
is($s->messages, '', 'without a word');
is($test->status($one, 'sessions_lost'), 0, 'as was the session');
$_->close foreach $s, $t, $u;

$test->finish;
