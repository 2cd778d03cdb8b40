# What works behind PgBouncer, in each of its modes: every cell of the table in
# docs/locks.md is tried with it.  A pool of one connection makes clients share a
# database session as soon as the mode allows that.

use strict;
use warnings;

use Test::More;

use Document;
use PgBouncer;
use ZklockTest;

plan skip_all => 'PgBouncer is not installed: see dev/setup.sh'
  unless PgBouncer->installed;

my @modes = ('session', 'transaction', 'statement');
my $test = ZklockTest->new(servers => 1);
my ($node) = $test->nodes;
$node->safe_psql('postgres',
	'CREATE ROLE pooled LOGIN; GRANT EXECUTE ON ALL ROUTINES IN SCHEMA public TO pooled;'
	  . ' ALTER ROLE pooled SET zklock.session_locks = off');

my $pooler = PgBouncer->new($node);
my (%wide, %narrow, %guarded);
foreach my $mode (@modes)
{
	$wide{$mode} = $pooler->pool($mode, 4);
	# Where clients keep their database sessions, one is not enough for two.
	$narrow{$mode} = $mode eq 'session' ? $wide{$mode} : $pooler->pool($mode, 1);
	$guarded{$mode} = $pooler->pool($mode, 1, user => 'pooled');
}
$pooler->start;

sub clients
{
	my ($pool, $count) = @_;

	return map { PgSession->new($pooler, dbname => $pool) } 1 .. $count;
}

# Waits until no session holds anything; a pool keeps its sessions.
sub end_locks
{
	my $left = 'SELECT count(*) FROM zk_locks';

	$node->safe_psql('postgres',
		'SELECT pg_terminate_backend(pid) FROM zk_locks')
	  if $test->look($node, $left) ne '0';
	$test->look_until($node, $left, 0, 'no lock is left');
	return;
}

# ---- the rows of the table: each returns what a cell has to say

# Whether what a client takes is its own, or any client can give it back
sub belongs
{
	my ($mode, $take, $give_back) = @_;
	my ($one, $two) = clients($narrow{$mode}, 2);

	$one->query("SELECT $take");
	my $stolen = $two->query("SELECT $give_back");
	my $own = $one->query("SELECT $give_back");
	$_->close foreach $one, $two;
	end_locks();
	return "$stolen$own" eq 'ft' ? 'yes' : $stolen eq 't' ? 'no' : "$stolen$own";
}

# Whether a transaction of several statements has the lock to its end
sub in_transactions
{
	my ($mode, $take) = @_;
	my ($one, $two) = clients($wide{$mode}, 2);
	my @seen;

	my $begun = $one->error('BEGIN') eq '';
	($one) = clients($wide{$mode}, 1) unless $begun;
	push @seen, $one->query("SELECT $take");
	push @seen, $two->query("SELECT $take") if $begun;
	$one->query('COMMIT') if $begun;
	push @seen, $two->query("SELECT $take");
	$_->close foreach $one, $two;
	return join('', @seen) eq ($begun ? 'tft' : 'tt') ?
	  $begun ? 'yes' : 'within a statement' : "@seen";
}

sub once
{
	my ($mode, $turn) = @_;
	my ($one, $two) = clients($wide{$mode}, 2);
	my $job = "SELECT $turn";

	my $begun = $one->error('BEGIN') eq '';
	($one) = clients($wide{$mode}, 1) unless $begun;
	my $first = $one->query($job);
	$one->query('COMMIT') if $begun;
	my $second = $two->query($job);
	$_->close foreach $one, $two;
	return "$first$second" eq 'tf' ?
	  $begun ? 'yes' : 'within a statement' : "$first$second";
}

sub whole_barrier
{
	my ($mode) = @_;
	my ($one, $two) = clients($wide{$mode}, 2);

	$_->send("SELECT zk_barrier('/p/whole', 2)") foreach $one, $two;
	my $answers = join '', map { $_->value } $one, $two;
	$_->close foreach $one, $two;
	return $answers eq 'tt' ? 'yes' : $answers;
}

# Whether a client that leaves takes its session locks along
sub leave
{
	my ($mode) = @_;
	my ($one, $two) = clients($narrow{$mode}, 2);

	$one->query("SELECT zk_lock('/p/leave')");
	my $pid = $test->look($node, "SELECT pid FROM zk_locks WHERE path = '/p/leave'");
	$one->close;
	# Whatever PgBouncer does about it, it has done when another client is through.
	my ($three) = clients($narrow{$mode}, 1);
	$three->query('SELECT 1');
	my $ended = $mode eq 'session' ?
	  $test->look_until($node, 'SELECT count(*) FROM zk_locks', 0, 'DISCARD ALL') :
	  $test->look($node, 'SELECT count(*) FROM zk_locks') eq '0';
	$_->close foreach $two, $three;
	is($test->look($node, "SELECT count(*) FROM pg_stat_activity WHERE pid = $pid"),
		1, "$mode: the database session is still there");
	end_locks();
	return $ended ? 'yes' : 'no';
}

sub set
{
	my ($mode) = @_;
	my ($one, $two) = clients($narrow{$mode}, 2);
	my $show = 'SHOW zklock.on_release_request';

	$one->query('SET zklock.on_release_request = ignore');
	my $seen = $two->query($show);
	$one->query('RESET zklock.on_release_request');
	return 'yes' if $seen eq 'notice';
	return 'no' if $one->error('BEGIN') ne '';
	$one->query('SET LOCAL zklock.on_release_request = ignore');
	my $local = $one->query($show);
	$one->query('COMMIT');
	$seen = $two->query($show);
	$_->close foreach $one, $two;
	return "$local $seen" eq 'ignore notice' ? '`SET LOCAL` only' : "$local $seen";
}

sub role
{
	my ($mode) = @_;
	my ($one) = clients($guarded{$mode}, 1);
	my $off = $one->query('SHOW zklock.session_locks');

	is($one->error("SELECT zk_lock('/p/role')"), '0A000', "$mode: it has its effect");
	$one->close;
	return $off eq 'off' ? 'yes' : $off;
}

sub cancel
{
	my ($mode) = @_;
	my ($one) = clients($wide{$mode}, 1);
	my $holder = $test->session($node);

	$holder->query("SELECT zk_lock('/p/cancel')");
	$test->enqueue($one, "SELECT zk_xact_lock('/p/cancel')", '/p/cancel');
	$one->cancel(running => 1);
	my $sqlstate = $one->sqlstate;
	$_->close foreach $one, $holder;
	end_locks();
	return $sqlstate eq '57014' ? 'yes' : $sqlstate;
}

# Whether any client can renew and end what another one has reserved
sub reserve
{
	my ($mode) = @_;
	my ($one, $two) = clients($wide{$mode}, 2);
	my $token = $one->query("SELECT zk_reserve('/p/r', '1 min')");
	my $answers = $two->query("SELECT zk_renew_reservation('/p/r', $token, '2 min')");

	$answers .= $one->query("SELECT zk_cancel_reservation('/p/r', $token)");
	$_->close foreach $one, $two;
	end_locks();
	return $answers eq 'tt' ? 'yes' : $answers;
}

# Whether any client can claim and end what another one has enqueued
sub enqueue
{
	my ($mode) = @_;
	my ($one, $two) = clients($wide{$mode}, 2);
	my $ticket = $one->query("SELECT zk_enqueue('/p/t', '1 min')");
	my $claimed = $two->query("SELECT ticket, token FROM zk_claim_next('1 min', '{/p/t}')");
	my ($number, $token) = split /\|/, $claimed;
	my $answer = $one->query("SELECT zk_cancel_reservation('/p/t', $token)");

	$_->close foreach $one, $two;
	end_locks();
	return "$number$answer" eq "${ticket}t" ? 'yes' : "$claimed $answer";
}

# Whether a procedure runs SQL, also where session locks are switched off
sub runs
{
	my ($call) = @_;
	my $answers = '';

	foreach my $pool (@_[ 1, 2 ])
	{
		my ($one) = clients($pool, 1);
		$answers .= substr $one->query("CALL $call"), 0, 1;
		$one->close;
	}
	end_locks();
	return $answers eq 'tt' ? 'yes' : $answers;
}

# The calls of a row: each function's name, and how its cell is found
my @session_calls = (
	[ zk_lock => sub { belongs($_[0], "zk_lock('/p/l')", "zk_unlock('/p/l')") } ],
	[ zk_multilock => sub {
			belongs($_[0], "zk_multilock(ARRAY['/p/m', '/p/n'])",
				"zk_multiunlock(ARRAY['/p/m', '/p/n'])");
	} ],
	[ zk_acquire_permits => sub {
			belongs($_[0], "zk_acquire_permits('/p/s', max_permits => 2)", "zk_release_permits('/p/s')");
	} ],
	[ zk_lead => sub { belongs($_[0], "zk_lead('/p/d')", "zk_resign('/p/d')") } ],
	[ zk_barrier_enter => sub {
			belongs($_[0], "zk_barrier_enter('/p/b', 1)", "zk_barrier_leave('/p/b')");
	} ]);
my @transaction_calls = (
	[ zk_xact_lock => sub { in_transactions($_[0], "zk_try_xact_lock('/p/x')") } ],
	[ zk_xact_multilock => sub {
			in_transactions($_[0], "zk_try_xact_multilock(ARRAY['/p/v', '/p/w'])");
	} ],
	[ zk_xact_acquire_permits => sub {
			in_transactions($_[0], "zk_try_xact_acquire_permits('/p/y', max_permits => 1)");
	} ],
	[ zk_once => sub { once($_[0], "zk_once('/p/once', key => '$_[0]')") } ]);

my @other_calls = (
	[ zk_reserve => \&reserve ],
	[ zk_enqueue => \&enqueue ],
	[ zk_run_once => sub {
			runs("zk_run_once('/p/1/' || clock_timestamp(), '1 day', 'SELECT 1')",
				$wide{ $_[0] }, $guarded{ $_[0] });
	} ],
	[ zk_run_exclusive => sub {
			runs("zk_run_exclusive('/p/e', 'SELECT 1')", $wide{ $_[0] }, $guarded{ $_[0] });
	} ]);

# A row for several functions, which all have the same cells
sub of_all
{
	my @calls = @_;

	return [ join(', ', map { "`$_->[0]`" } @calls), sub {
			my ($mode) = @_;
			my %cells = map { $_->[1]->($mode) => $_->[0] } @calls;

			return join ' or ', keys %cells;
	} ];
}

my @rows = (
	of_all(@session_calls),
	of_all(@transaction_calls),
	of_all(@other_calls),
	[ '`zk_barrier`', \&whole_barrier ],
	[ 'session locks end when the client leaves', \&leave ],
	[ 'a cancelled wait ends', \&cancel ],
	[ '`SET zklock.…`', \&set ],
	[ '`ALTER ROLE … SET zklock.…`', \&role ]);

my ($table) =
  Document->new('docs/locks.md')->section('Use a connection pooler')->text =~ /^((?:\|.*\n)+)/m;
my @documented = map { s/^\| *| *\|$//gr } split /\n/, $table;
is(shift @documented, join(' | ', 'PgBouncer', map { "$_ pooling" } @modes), 'the columns');
shift @documented;
foreach my $row (@rows)
{
	my ($name, $try) = @$row;

	is(join(' | ', $name, map { $try->($_) } @modes), shift @documented, $name);
}
is_deeply(\@documented, [], 'the table has no other rows');

# ---- session locks switched off

foreach my $mode (@modes)
{
	my ($one) = clients($guarded{$mode}, 1);

	foreach my $call ("zk_lock('/p/o')", "zk_try_lock('/p/o', '1h')",
		"zk_lock_shared('/p/o')", "zk_multilock(ARRAY['/p/o', '/p/o2'])",
		"zk_try_multilock(ARRAY['/p/o'])", "zk_acquire_permits('/p/o', max_permits => 1)",
		"zk_try_acquire_permits('/p/o', max_permits => 1)", "zk_lead('/p/o')",
		"zk_barrier_enter('/p/o', 1)")
	{
		is($one->error("SELECT $call"), '0A000', "$mode, switched off: $call");
		like($one->messages, qr/"zklock.session_locks" is off.*zk_xact_lock\(\)/s,
			"$mode, switched off: $call: says why, and what else");
	}
	is($one->query("SELECT zk_try_xact_lock('/p/o'), zk_try_xact_acquire_permits('/p/o', max_permits => 1),"
			  . " zk_once('/p/off', key => '$mode'), zk_barrier('/p/alone', 1)"),
		't|t|t|t', "$mode, switched off: all the rest works");
	$one->close;
}
$pooler->stop;
$test->finish;
