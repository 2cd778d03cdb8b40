# What docs/operations.md tells an operator to do, on three servers that want the
# same locks all the time: the session timeout, the connection and the dialects are
# changed server by server, and no two sessions ever hold a lock.  A stuck lock is
# found and ended with the statements of the page.  A server that is killed and
# started again before its old session has expired waits like any other.

use strict;
use warnings;

use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use Workload;
use ZklockTest;

my $test = ZklockTest->new(servers => 3, session_timeout => '6s');
my ($one, $two, $three) = $test->nodes;
my $page = Document->new('docs/operations.md');
my $dialects = '/jobs=curator_mutex, /py=kazoo';

# The statements of a section, in a language of its blocks
sub statements
{
	my ($heading, $language) = @_;

	return map { map { $_->{sql} =~ s/;\s*$//r } Document::statements($_->{text}) }
	  $page->section($heading)->blocks($language // 'sql');
}

sub set
{
	my ($node, $name, $value) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$name = '$value'");
	$node->reload;
	return;
}

sub state_is
{
	my ($node, $condition) = @_;

	return (eval { $test->look($node, "SELECT state = 'connected' AND $condition FROM zk_status, zk_stat_server") }
		  // '') eq 't';
}

# Does one step after the other, each once the one before has had its effect, while
# all servers want the same locks.  A step does something, and returns what tells
# whether it had its effect.
sub rolling
{
	my ($what, @steps) = @_;
	my ($has_effect, $next) = (sub { 1 }, 100);
	my $done;

	my $seen = Workload::run_beside(
		$test,
		tick => sub {
			my ($started) = @_;

			return if $started < $next || !$has_effect->();
			my $step = shift @steps;
			if ($step) { $has_effect = $step->(); }
			else { $done = 1; }
			$next = $started + 50;
			return;
		},
		until => sub { $done });
	is($seen->{overlaps}, 0, "$what: no two sessions held a lock");
	cmp_ok($seen->{grants}, '>', 0, "$what: sessions got locks");
	return $seen->{errors};
}

# ---- a stuck lock

my $holder = $test->session($one);
my $waiter = $test->session($two);
$holder->query("SELECT zk_lock('/batch/nightly')");
$test->enqueue($waiter, "SELECT zk_lock('/batch/nightly')", '/batch/nightly');
my ($find, $look, $ask) = statements('Find and end a stuck lock');
my ($found) = grep { (split /\|/)[1] eq 't' } split /\n/, $test->look($three, $find);
my (undef, undef, $server, undef, $pid) = split /\|/, $found;
is("$server $pid", 'server1 ' . $holder->pid, 'a stuck lock: any server tells who holds it');
is($test->look($one, $look), "granted|$pid", 'and its server that it is not kept');
is($test->look($three, $ask), 1, 'its holder can be asked');
$test->look($one, "SELECT pg_terminate_backend($pid)");
cmp_ok($waiter->value, '>', 0, 'if the holder is ended, the next one gets the lock');
$waiter->query("SELECT zk_unlock('/batch/nightly')");

$waiter->query("SELECT zk_lock('/batch/nightly', at_least => '1h'), zk_unlock('/batch/nightly')");
$waiter->close;
($found) = split /\n/, $test->look($three, $find);
is((split /\|/, $found)[2], 'server2', 'a kept lock: its server');
is($test->look($two, $look), 'kept|', 'tells that it is kept');
is($test->look($three, (statements('Break a lock'))[0]), 't', 'it is broken');
is($test->look($three, "SELECT zk_try_lock('/batch/nightly', '1min')"), 't', 'and free');
$test->look($three, "SELECT zk_unlock('/batch/nightly')");

# ---- killed, and started again

$holder = $test->session($one);
my $token = $holder->query("SELECT zk_lock('/o/killed')");
my $hex = $test->session_hex($one);
my @pids = ($holder->pid, map { $test->status($one, $_) } 'worker_pid', 'session_pid');
$test->stop_looking($one);
$one->kill9;
$test->wait_gone($_) foreach @pids;
$holder->abandon;
$one->start;
my $again = $test->session($one);
$again->send("SELECT zk_lock('/o/killed')");
cmp_ok($again->value, '>', $token, 'started again: it gets the lock');
like(slurp_file($test->zk->logfile), qr/Expiring session 0x$hex/,
	'once its old session has expired');
unlike(slurp_file($one->logfile), qr/WARNING:  server .* has the same system identifier/, 'it does not warn of a clone');
$again->close;

# ---- the session timeout and the connection, server by server

my %before = map { $_->name => $test->status($_, 'connects') } $test->nodes;
my $other = $test->zk->connect_string =~ s/^127\.0\.0\.1/localhost/r;
my $errors = rolling(
	'the connection',
	map {
		my $node = $_;
		sub {
			set($node, 'session_timeout', '5s');
			set($node, 'connect_string', $other);
			return sub { state_is($node, "connects > $before{ $node->name }") };
		}
	} $test->nodes);
is_deeply($errors, {}, 'the connection: no request fails');
is($test->status($_, 'sessions_lost'), 0, $_->name . ' has kept its session') foreach $test->nodes;
ok($test->look_until($_, 'SELECT state, session_timeout FROM zk_status', 'connected|00:00:05', 'idle'),
	'the session timeout: ' . $_->name . ' has it once it is idle')
  foreach $test->nodes;

# ---- dialects, server by server

my ($change) = statements('Change dialects', 'text');
is($change, "SELECT zk_set_dialects('$dialects')", 'the page sets these dialects');
$errors = rolling(
	'dialects',
	map {
		my $node = $_;
		sub {
			$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.dialects = '$dialects'");
			$test->stop_looking($node);
			$node->restart;
			return sub { state_is($node, 'true') };
		}
	} $test->nodes);
delete @{$errors}{qw(57P01 08006)};
is_deeply($errors, {}, 'dialects: other locks are refused to nobody');
is($test->session($one)->error("SELECT zk_try_lock('/jobs/a')"), '55000',
	'dialects: those that change are refused');
$test->look($one, $change);
my @s = map { $test->session($_) } $test->nodes;
is(join(' ', map { $_->query("SELECT zk_try_lock('/jobs/a', '1min'), zk_unlock('/jobs/a')") } @s),
	't|t t|t t|t', 'dialects: and granted after the change');
is($test->look($_, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'dialects'"), 't',
	'dialects: ' . $_->name . ' agrees')
  foreach $test->nodes;

# ---- locks switched off, and a drain, on one server

my ($drain, $undrain) = statements('Drain a server');
my $operator;
$errors = rolling(
	'switched off, and drained',
	sub {
		set($one, 'enabled', 'off');
		return sub { $test->status($one, 'state') eq 'disabled' };
	},
	sub {
		set($one, 'enabled', 'on');
		return sub { state_is($one, 'true') };
	},
	sub {
		$operator = $test->session($one);
		$operator->send($drain);
		return sub { !$operator->busy };
	},
	sub {
		is($operator->value, '', 'drained: nothing is left');
		is($operator->query($undrain), 't', 'drained: it ends');
		return sub { state_is($one, 'NOT draining') };
	});
delete $errors->{55000};
is_deeply($errors, {}, 'switched off, and drained: requests get no other error');
$_->close foreach @s, $operator;
$test->finish(crashes => 'was terminated by signal 9|all server processes terminated');
