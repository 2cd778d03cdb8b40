# Barriers: sessions of three servers, and of Curator's, that start and end
# together; who gives up, is lost or comes late; the same barrier again and
# again; and no ZooKeeper.

use strict;
use warnings;

use POSIX ();
use Test::More;

use CuratorClient;
use PgSession;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(servers => 3,
	conf => "client_connection_check_interval = 100ms\n");
my @nodes = $test->nodes;
my ($one, $two, $three) = @nodes;
my $curator = CuratorClient->new($test->zk->connect_string);
my $kazoo = $test->zk->new_client;
my @sessions = map { $test->session($_) } @nodes;
my ($s, $t, $u) = @sessions;

sub children { return $test->zk->client->ls("/zklock$_[0]"); }
sub members { return grep { $_ ne 'ready' } children($_[0]); }
sub is_ready { return scalar grep { $_ eq 'ready' } children($_[0]); }
sub enter { return "SELECT zk_barrier_enter('$_[0]', $_[1])"; }
sub leave { return "SELECT zk_barrier_leave('$_[0]')"; }

sub wait_members
{
	my ($path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for(sub { scalar(members($path)) == $count },
		"$count in barrier $path");
}

# Sends a call, and returns once there are so many members.
sub begin
{
	my ($session, $sql, $path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->send($sql);
	return wait_members($path, $count);
}

sub curator_answer { return $curator->command('barrier', 'answer', $_[0]); }

sub curator_says
{
	my ($key, $case) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { curator_answer($key) >= 0 }, $case)
		  && curator_answer($key) == 1, $case);
}

# ---- start together and end together, whoever is the last ----

my @kinds = (
	(
		map {
			my $i = $_;
			{
				enter => sub { $sessions[$i]->send(enter($_[0], 4)); },
				leave => sub { $sessions[$i]->send(leave($_[0])); },
				waits => sub { $test->still_waits($sessions[$i]); },
				done => sub { is($sessions[$i]->value, 't', $_[0]); }
			}
		} 0 .. 2),
	{
		enter => sub { $curator->command('barrier', 'enter', 'c', "/zklock$_[0]", 4); },
		leave => sub { $curator->command('barrier', 'leave', 'c'); },
		waits => sub { curator_answer('c') == -1; },
		done => sub { curator_says('c', $_[0]); }
	});

foreach my $last (0 .. 3)
{
	my @order = ((grep { $_ != $last } 0 .. 3), $last);

	foreach my $i (0 .. 2)
	{
		$kinds[ $order[$i] ]{enter}->('/b');
		wait_members('/b', $i + 1);
	}
	is(scalar(grep { $kinds[$_]{waits}->() } @order[ 0 .. 2 ]), 3,
		"$last is missing: nobody starts");
	is(is_ready('/b'), 0, "$last is missing: not ready");
	$kinds[$last]{enter}->('/b');
	$kinds[$_]{done}->("$last comes: $_ starts") foreach @order;
	is(is_ready('/b'), 1, 'ready');
	is(scalar(members('/b')), 4, 'all four are in');
	is($test->look($one,
			"SELECT mode, lifetime, state, path FROM zk_locks"),
		'member|session|granted|/b',
		'zk_locks shows a member');

	foreach my $i (0 .. 2)
	{
		$kinds[ $order[$i] ]{leave}->('/b');
	}
	is(scalar(grep { $kinds[$_]{waits}->() } @order[ 0 .. 2 ]), 3,
		"$last works on: nobody ends");
	is(is_ready('/b'), 1, "$last works on: still ready");
	$kinds[$last]{leave}->('/b');
	$kinds[$_]{done}->("$last leaves: $_ ends") foreach @order;
	is_deeply([ children('/b') ], [], 'nothing is left');
}


# ---- the first by name stays until it is alone: Curator relies on it ----

# A member of Curator's whose name is not the first; after a timeout it stays.
my $late;
for (1 .. 100)
{
	$curator->command('barrier', 'enter', 'f', '/zklock/f', 99, 0);
	wait_for(sub { curator_answer('f') == 0 }, 'Curator has entered');
	last if ($late = (members('/f'))[0]) gt '_c_';
	$curator->command('barrier', 'leave', 'f', 0);
	wait_members('/f', 0);
}
begin($s, enter('/f', 3), '/f', 2);
my ($first) = grep { $_ ne $late } members('/f');
is($t->query(enter('/f', 3)), 't', 'Curator and two more');
is($s->value, 't', 'start');
my ($leaves, $stays) = (sort(members('/f')))[0] eq $first ? ($s, $t) : ($t, $s);
$curator->command('barrier', 'leave', 'f');
wait_members('/f', 2);
$leaves->send(leave('/f'));
is(scalar(grep { $test->still_waits($leaves) && members('/f') == 2 } 1 .. 20),
	20, 'the first does not go before the others');
is(curator_answer('f'), -1, 'and Curator waits for all');
is($stays->query(leave('/f')), 't', 'the last one leaves');
is($leaves->value, 't', 'and the first');
curator_says('f', 'and Curator');
is_deeply([ children('/f') ], [], 'nothing is left');

# ---- giving up: while entering, and while leaving ----

my %ways = (
	'cancel' => sub { $_[0]->cancel; return '57014'; },
	'pg_terminate_backend' => sub {
		$test->look($_[0]->{node},
			'SELECT pg_terminate_backend(' . $_[0]->pid . ')');
		return '57P01';
	},
	'client gone' => sub { $_[0]->abandon; return ''; },
	'statement_timeout' => sub { return '57014'; },
	'lock_timeout' => sub { return '55P03'; },
	'timeout' => sub { return ''; });

foreach my $way (sort keys %ways)
{
	foreach my $call ('enter', 'leave')
	{
		my $case = "$way: $call";
		my $limit = $way eq 'timeout' ? ", '400ms'" : '';
		my $g = $test->session($one);

		if ($call eq 'leave')
		{
			begin($t, enter('/g', 2), '/g', 1);
			is($g->query(enter('/g', 2)), 't', "$case: both start");
			is($t->value, 't', "$case: the other, too");
		}
		$g->query("SET $way = '400ms'") if $way =~ /_timeout/;
		$g->send($call eq 'enter' ? "SELECT zk_barrier_enter('/g', 2$limit)" :
			  "SELECT zk_barrier_leave('/g'$limit)");
		$g->wait_running;
		$test->still_waits($g);
		my $expected = $ways{$way}->($g);
		is($g->sqlstate, $expected, "$case: SQLSTATE")
		  if $way ne 'client gone';
		is($g->value, 'f', "$case: the answer is no") if $way eq 'timeout';
		wait_members('/g', $call eq 'leave' ? 1 : 0);
		$test->look_until($one, 'SELECT count(*) FROM zk_locks', 0,
			"$case: nothing is left behind");
		if ($way =~ /cancel|timeout/)
		{
			is($g->query("RESET ALL; SELECT 1"), 1, "$case: the session goes on");
			is($g->query(leave('/g')), 'f', "$case: it is not in any more");
			like($g->messages, qr/^WARNING.*01000.*is not in barrier "\/g"/s,
				"$case: and is warned");
		}
		if ($call eq 'leave')
		{
			is(is_ready('/g'), 1, "$case: the barrier stays ready for who is in");
			is($t->query(leave('/g')), 't', "$case: the other leaves alone");
		}
		is_deeply([ children('/g') ], [], "$case: nothing is left");
		$g->close;
	}
}

# No time at all
is($s->query("SELECT zk_barrier_enter('/g', 1, '0')"), 't', 'one is enough for one');
is($s->query("SELECT zk_barrier_leave('/g', '0')"), 't', 'and leaves alone');
is($s->query("SELECT zk_barrier_enter('/g', 2, '0')"), 'f', 'but not for two');
is($s->query("SELECT zk_barrier('/g', 2, '0')"), 'f', 'nor to start only');
wait_members('/g', 0);

# lock_timeout is for the whole call, however many come meanwhile.
$s->query("SET lock_timeout = '2s'");
$s->send(enter('/g', 99));
foreach (1 .. 100)
{
	last unless $s->busy;
	$t->query("SELECT zk_barrier_enter('/g', 99, '200ms')");
}
is($s->sqlstate, '55P03', 'lock_timeout passes while others come and go');
$s->query('RESET lock_timeout');
wait_members('/g', 0);

# ---- once in each ----

$s->query("SELECT zk_barrier_enter('/o/' || n, 1) FROM generate_series(1, 3) n");
is($s->error(enter('/o/1', 1)), '55006', 'nobody is in twice');
is($s->error("SELECT zk_barrier('/o/1', 1)"), '55006', 'in no way');
$s->query('BEGIN');
$s->query(enter('/o/4', 1));
$s->query('ROLLBACK');
is(scalar(members('/o/4')), 1, 'a rollback does not take it out');
is($s->query("SELECT count(*) FROM zk_locks WHERE mode = 'member'"), 4,
	'one session in four barriers');
is($s->query("SELECT zk_try_lock('/o/1')"), 't', 'a lock of that name is another');
is($s->query("SELECT zk_unlock('/o/1')"), 't', 'and given back by itself');
is($s->query(leave('/o/1')), 't', 'it leaves one');
is($s->query("SELECT zk_unlock_all()"), '', 'and the others');
wait_members("/o/$_", 0) foreach 1 .. 4;

# ---- a crowd, of any clients: each child counts ----

$kazoo->create('/zklock/c/x');
is($kazoo->create_many('/zklock/c/some-member-of-a-larger-crowd-', 300), 300,
	'three hundred');
is($s->query("SELECT zk_barrier_enter('/c', 303, '0')"), 'f',
	'they and one more are too few');
wait_members('/c', 301);
is($s->query("SELECT zk_barrier_enter('/c', 302, '0')"), 't', 'or enough');
is($s->query("SELECT zk_barrier_leave('/c', '0')"), 'f', 'and stay');
wait_members('/c', 301);
$kazoo->delete_tree('/zklock/c');

# ---- who is gone does not count, and keeps nobody ----

my $gone = $test->session($two);
begin($gone, enter('/k', 3), '/k', 1);
begin($s, enter('/k', 3), '/k', 2);
$test->look($two, 'SELECT pg_terminate_backend(' . $gone->pid . ')');
wait_members('/k', 1);
begin($t, enter('/k', 3), '/k', 2);
ok($test->still_waits($s), 'who was terminated is not counted');
$gone = $test->session($three);
is($gone->query(enter('/k', 3)), 't', 'a third one comes');
is($_->value, 't', 'all start') foreach $s, $t;
$s->send(leave('/k'));
$t->send(leave('/k'));
ok($test->still_waits($s), 'the third one is waited for');
$test->stop_looking($three);
$_->abandon foreach $gone, $u;
$three->stop('immediate');
is($_->value, 't', 'until its server is gone') foreach $s, $t;
is_deeply([ children('/k') ], [], 'nothing is left');
$three->start;
$test->wait_connected($three);
$sessions[2] = $u = $test->session($three);

# ---- membership lost ----

begin($s, enter('/l', 2), '/l', 1);
$kazoo->delete('/zklock/l/' . (members('/l'))[0]);
is($s->sqlstate, '40001', 'a member whose znode is deleted while it waits');
like($s->messages, qr/membership in barrier "\/l" was lost.*Its znode is gone/s,
	'learns why');
is($s->query(leave('/l')), 'f', 'and is in no more');

sub lose_session
{
	my ($node, $path, $left) = @_;
	my $worker = $test->status($node, 'worker_pid');
	my $lost = $test->status($node, 'sessions_lost');

	# The worker may not have read yet what ZooKeeper already shows.
	$test->look_until($node,
		"SELECT bool_and(state = 'granted') FROM zk_locks WHERE path = '$path'",
		't', 'the server knows its members');
	kill 'STOP', $worker;
	kill 'KILL', $test->status($node, 'session_pid');
	wait_members($path, $left);
	kill 'CONT', $worker;
	return $test->look_until($node,
		"SELECT sessions_lost > $lost AND state = 'connected' FROM zk_status, zk_stat_server",
		't', 'there is a new session');
}

begin($s, enter('/l', 2), '/l', 1);
lose_session($one, '/l', 0);
is($s->sqlstate, '40001', 'a member whose session expires while it waits');
begin($s, enter('/l', 2), '/l', 1);
is($t->query(enter('/l', 2)), 't', 'it may enter again');
is($s->value, 't', 'and starts');
$t->send(leave('/l'));
lose_session($one, '/l', 0);
is($t->value, 't', 'who is lost keeps nobody in');
is($s->error('SELECT count(*) FROM pg_class'), '40001',
	'who was lost inside cannot commit');
is($s->query(leave('/l')), 'f', 'until it leaves');
like($s->messages, qr/^WARNING.*was already lost/s, 'and is told');
is($s->query('SELECT count(*) > 0 FROM pg_class'), 't', 'then it can');

# ---- what crashes leave behind is not taken for a start ----

$gone = $test->session($one);
is($gone->query(enter('/r', 1)), 't', 'in alone');
$gone->close;
wait_members('/r', 0);
is(is_ready('/r'), 1, 'who just ends leaves "ready" behind');
begin($s, enter('/r', 2), '/r', 1);
ok($test->still_waits($s), 'who comes then waits nevertheless');
is(is_ready('/r'), 0, 'and has cleaned up');
is($t->query(enter('/r', 2)), 't', 'for the second');
is($s->value, 't', 'both start');
is($u->query(enter('/r', 2)), 't', 'who comes late starts at once');
$_->send(leave('/r')) foreach @sessions;
is($_->value, 't', 'three leave a barrier of two') foreach @sessions;
is_deeply([ children('/r') ], [], 'nothing is left');

# ---- to start together only ----

sub once { return "SELECT zk_barrier('$_[0]', $_[1])"; }

begin($s, once('/s', 3), '/s', 1);
begin($t, once('/s', 3), '/s', 2);
ok($test->still_waits($_), 'two wait for the third') foreach $s, $t;
is($u->query(once('/s', 3)), 't', 'the third starts');
is($_->value, 't', 'and all') foreach $s, $t;
is_deeply([ children('/s') ], [], 'they leave nothing behind');

# One that looks only after all others are through
begin($s, once('/s', 3), '/s', 1);
begin($t, once('/s', 3), '/s', 2);
my $worker = $test->status($one, 'worker_pid');
kill 'STOP', $worker;
is($u->query(once('/s', 3)), 't', 'the third starts');
is($t->value, 't', 'and the second');
is(join(' ', map { s/-member.*//r } sort { $b cmp $a } children('/s')) =~ s/_c_\S+/us/r,
	'ready us', 'what they started stays for the first');
kill 'CONT', $worker;
is($s->value, 't', 'who starts, too');
is_deeply([ children('/s') ], [], 'and cleans up');

# Curator among them
begin($s, once('/s', 3), '/s', 1);
$curator->command('barrier', 'enter', 'd', '/zklock/s', 3);
wait_members('/s', 2);
is($t->query(once('/s', 3)), 't', 'with Curator: the third starts');
is($s->value, 't', 'with Curator: and the first');
curator_says('d', 'with Curator: and Curator');
is(is_ready('/s'), 1, 'who is in still');
$curator->command('barrier', 'leave', 'd');
curator_says('d', 'and leaves alone');
is_deeply([ children('/s') ], [], 'nothing is left');

# ---- Curator gives up ----

$curator->command('barrier', 'enter', 'e', '/zklock/t', 2, 300);
ok(wait_for(sub { curator_answer('e') == 0 }, 'its timeout'), 'Curator gives up');
is(scalar(members('/t')), 1, 'but stays a member, as is its way');
is($s->query(enter('/t', 2)), 't', 'and is counted');
$curator->command('barrier', 'leave', 'e');
is($s->query(leave('/t')), 't', 'both leave');
curator_says('e', 'Curator, too');

# ---- the same barrier fifty times: with Curator, and without a pause ----

my $mixed = 0;
foreach my $round (1 .. 50)
{
	my @order = sort { rand() <=> rand() } 0 .. 3;

	$kinds[$_]{enter}->('/m') foreach @order;
	my $started = grep { $_->value eq 't' } @sessions;
	wait_for(sub { curator_answer('c') == 1 }, "round $round: Curator starts");
	$kinds[$_]{leave}->('/m') foreach reverse @order;
	my $ended = grep { $_->value eq 't' } @sessions;
	wait_for(sub { curator_answer('c') == 1 }, "round $round: Curator ends");
	$mixed++ if $started == 3 && $ended == 3;
}
is($mixed, 50, 'fifty rounds of three servers and Curator');
is_deeply([ children('/m') ], [], 'nothing is left');

# Each writes what it has come to before it enters or leaves, and then looks
# whether all others have come as far.
my $dir = PostgreSQL::Test::Utils::tempdir('rounds');
my $rounds = 50;

sub write_number
{
	my ($file, $number) = @_;

	open my $out, '>', "$file.new" or POSIX::_exit(1);
	print $out $number;
	close $out or POSIX::_exit(1);
	rename "$file.new", $file or POSIX::_exit(1);
	return;
}

sub go_round
{
	my ($me, $node) = @_;
	my $pid = fork // die $!;

	return $pid if $pid;
	my $session = PgSession->new($node);
	foreach my $step (1 .. 2 * $rounds)
	{
		write_number("$dir/$me", $step);
		my $answer = $session->query($step % 2 ? enter('/n', 3) : leave('/n'));
		POSIX::_exit(2) if $answer ne 't';
		foreach my $other (0 .. 2)
		{
			POSIX::_exit(3) if slurp_file("$dir/$other") < $step;
		}
	}
	$session->close;
	POSIX::_exit(0);
}

write_number("$dir/$_", 0) foreach 0 .. 2;
foreach my $pid (map { go_round($_, $nodes[$_]) } 0 .. 2)
{
	waitpid $pid, 0;
	is($? >> 8, 0, 'fifty rounds without a pause: nobody is ahead');
}
is_deeply([ children('/n') ], [], 'nothing is left');

# Who is slow to leave has not come to the next round: nobody runs into that
# before, one after the other or again and again.
my ($fast, $slow) = map { $test->session($_) } $one, $two;
begin($slow, "SELECT zk_barrier('/again', 2)", '/again', 1);
is($fast->query("SELECT mode, granted FROM zk_queue('/again')"),
	'member|t', 'zk_queue() shows members');
kill 'STOP', $slow->pid;
is($fast->query("SELECT zk_barrier('/again', 2)"), 't', 'one is through');
is($fast->query("SELECT zk_barrier('/again', 2, '300ms')"),
	'f', 'and waits for the other to leave the round');
kill 'CONT', $slow->pid;
is($slow->value, 't', 'which is through, too');
foreach my $session ($fast, $slow)
{
	$session->send(<<'EOS');
DO $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		IF NOT zk_barrier('/again', 2, '1min') THEN
			RAISE EXCEPTION 'alone in round %', i;
		END IF;
	END LOOP;
END $$
EOS
}
is($_->sqlstate, '', 'a hundred rounds side by side') foreach $fast, $slow;
$_->close foreach $fast, $slow;

# ---- no watch is left of a wait ----

$_->send(enter('/watched', 3)) foreach $s, $t, $u;
is($_->value, 't', 'three are in') foreach $s, $t, $u;
ok(wait_for(sub { $test->zk->child_watches == 0 }, 'no watch'),
	'nobody watches the members any more');
$_->send(leave('/watched')) foreach $s, $t;
ok(wait_for(sub { $test->zk->child_watches == 2 }, 'two watches'),
	'two wait for the third');
$_->cancel foreach $s, $t;
is($_->sqlstate, '57014', 'and give up') foreach $s, $t;
ok(wait_for(sub { $test->zk->child_watches == 0 }, 'no watch'),
	'they take their watches back');
is($u->query(leave('/watched')), 't', 'the third leaves');

# ---- no ZooKeeper ----

$curator->quit;
is($s->query(enter('/z', 1)), 't', 'in before ZooKeeper goes');
$test->zk->pause;
$_->query("SET zklock.answer_timeout = '300ms'") foreach $t, $u;
is($t->error("SELECT zk_barrier_enter('/z', 2, '100ms')"), '08006',
	'a timeout without ZooKeeper is no "false"');
$u->query("SET lock_timeout = '400ms'");
is($u->error(enter('/z', 2)), '08006', 'nor is lock_timeout others that do not come');
$test->zk->resume;
$test->wait_connected($_) foreach @nodes;
$test->look_until($one, "SELECT lease_remaining > '0' FROM zk_status", 't',
	'the lease is back');
is($s->query(leave('/z')), 't', 'a short outage takes nobody out');

$test->finish;
