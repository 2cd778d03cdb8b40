# Thousands of tickets on few names, made on three servers; on each, one connection claims
# them all, while sessions of all servers take the same locks, a connection breaks, and a
# worker ends, and a session process is killed.  Each ticket is claimed once, in the order of
# those of its name and server, or is told to be lost; nothing has two holders; tokens grow.
#
# ZKLOCK_TICKETS in the environment is how many.

use strict;
use warnings;

use IO::Select;
use Test::More;
use Time::HiRes qw(time);

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $each = int(($ENV{ZKLOCK_TICKETS} // 5000) / 3);
my $chunk = int($each / 10);
my $names = 100;
my $net = TcpProxy->new;
my $test = ZklockTest->new(servers => 3, net => $net, max_requests => $each + 100,
	conf => "zklock.max_requests_per_role = @{[ $each + 100 ]}\n"
	  . "zklock.max_requests_per_session = @{[ $each + 100 ]}\nzklock.lost_lock_action = 'none'\n");
my @nodes = $test->nodes;

my (%holder, %last);    # of each lock: who has it, and the last token
my %made;    # of each ticket: its server, its lock, and when it was asked for
my %claims;    # how often each was claimed
my %turn;    # of each server and lock: the ticket that was claimed last
my %wrong = map { $_ => 0 } qw(overlaps tokens order fenced unknown);
my (%errors, @lost);
my ($claimed, $locked, $empty) = (0, 0, 0);

# ---- who takes part: each is told when its answer is there

my @parts;

sub start
{
	my ($node, $begin) = @_;
	my $part = { node => $node, session => $test->session($node), begin => $begin };

	push @parts, $part;
	$begin->($part);
	return $part;
}

sub ask
{
	my ($part, $sql, $then) = @_;

	$part->{then} = $then;
	$part->{session}->send($sql);
	return;
}

# A hold counts from when its grant was read to when its release is sent.
sub take
{
	my ($part, $path, $token) = @_;

	$wrong{overlaps}++ if $holder{$path};
	$wrong{tokens}++ if $token <= ($last{$path} // 0);
	$holder{$path} = $part;
	$last{$path} = $token;
	return;
}

# ---- those who lock

my $goes_on = 1;

sub lock_one
{
	my ($part) = @_;
	my $path = '/many/' . int(rand $names);

	return unless $goes_on;
	ask($part, "SELECT zk_lock('$path')", sub {
			my ($answer) = @_;

			return lock_one($part) if $answer->{error};
			take($part, $path, $answer->{rows}[0][0]);
			$locked++;
			ask($part, 'SELECT 1', sub {
					delete $holder{$path};
					ask($part, "SELECT zk_unlock('$path')", sub { lock_one($part); });
			});
	});
	return;
}

# ---- those who claim

# What was claimed, in the order of the answers: that of those who make tickets may come later.
my @seen;

sub claim_one
{
	my ($part) = @_;

	return if $part->{rests};
	ask($part, "SELECT * FROM zk_claim_next('1 s')", sub {
			my ($answer) = @_;
			my ($ticket, $path, $token) = map { @$_ } @{ $answer->{rows} };

			return claim_one($part) if $answer->{error};
			if (!defined $ticket)
			{
				$empty++;
				return if all_over($part->{node});
				return claim_one($part);
			}
			$part->{claimed}++;
			$claimed++;
			push @seen, [ $part->{node}, $ticket, $path ];
			take($part, $path, $token);
			ask($part, "SELECT zk_fence('$path', $token)", sub {
					$wrong{fenced}++ if $_[0]{error};
					delete $holder{$path};
					ask($part, "SELECT zk_cancel_reservation('$path', $token)", sub { claim_one($part); });
			});
	});
	return;
}

# ---- those who make tickets

# How many of each server are made, or were asked for
my %asked;

sub make_some
{
	my ($part) = @_;
	my $name = $part->{node}->name;
	my @paths = map { '/many/' . int(rand $names) } 1 .. $chunk;
	my $list;

	return if ($asked{$name} // 0) >= $each;
	splice @paths, $each - ($asked{$name} // 0);
	$list = join ', ', map { "'$_'" } @paths;
	$asked{$name} += @paths;
	ask($part, "SELECT unnest(zk_enqueue_all(ARRAY[$list], '10 min', '10 min'))", sub {
			my ($answer) = @_;

			# Before its lease begins, a worker that was just started takes none.
			die $answer->{error}{text} if $answer->{error};
			foreach my $row (@{ $answer->{rows} })
			{
				$made{ $row->[0] } = { node => $part->{node}, path => shift @paths };
			}
			$part->{idle} = 1;
	});
	return;
}

sub outstanding
{
	my ($node) = @_;

	return $test->look($node, "SELECT count(*) FROM zk_tickets WHERE state IN ('waiting', 'granted')");
}

sub all_over
{
	my ($node) = @_;

	return ($asked{ $node->name } // 0) >= $each && outstanding($node) == 0;
}

# ---- the run

my @makers = map { start($_, \&make_some) } @nodes;
my @claimers;

sub turn
{
	my ($seconds) = @_;
	my %of = map { $_->{session}{socket} => $_ } grep { $_->{session}{busy} } @parts;

	foreach my $socket (IO::Select->new(map { $_->{session}{socket} } values %of)->can_read($seconds))
	{
		my $part = $of{$socket};
		next if $part->{session}->busy;
		my $answer = $part->{session}->result;
		$errors{ $answer->{error}{sqlstate} }++ if $answer->{error};
		die "a session has ended: $answer->{error}{text}" if $answer->{closed};
		$part->{then}->($answer);
	}
	return;
}

sub run_until
{
	my ($what, $condition) = @_;
	my $deadline = time + 2 * $PostgreSQL::Test::Utils::timeout_default;

	until ($condition->())
	{
		turn(0.05);
		foreach my $maker (@makers)
		{
			my ($claimer) = grep { $_->{node} == $maker->{node} } @claimers;
			my $name = $maker->{node}->name;
			next if !$maker->{idle} || ($asked{$name} - ($claimer->{claimed} // 0)) > 3 * $chunk;
			$maker->{idle} = 0;
			make_some($maker);
		}
		if (time > $deadline)
		{
			diag $_->name, ":\n", $test->look($_, 'SELECT * FROM zk_tickets LIMIT 20') foreach @nodes;
			diag "claimed $claimed, locked $locked";
			die "not in time: $what";
		}
	}
	return;
}

my $begun = time;
run_until('the first tickets', sub { !grep { !$_->{idle} } @makers });
@claimers = map { start($_, \&claim_one) } @nodes;
start($_, \&lock_one) foreach (@nodes) x 2;

sub claimed_at_least
{
	my ($part) = @_;

	run_until("$part of the tickets", sub { $claimed >= $part * 3 * $each });
	return;
}

claimed_at_least(0.2);
ok($net->reset('server1-zk'), 'a connection breaks');
claimed_at_least(0.4);
my $worker = $test->status($nodes[1], 'worker_pid');
$claimers[1]{rests} = 1;
run_until('some are granted', sub {
		$test->look($nodes[1], "SELECT count(*) > 20 FROM zk_tickets WHERE state = 'granted'") eq 't';
});
run_until('no ticket is under way', sub { $makers[1]{idle} || $asked{ $nodes[1]->name } >= $each });
kill 'TERM', $worker;
my ($anew_before) = sort { $b <=> $a } grep { $made{$_}{node} == $nodes[1] } keys %made;
run_until('another worker', sub { $test->look($nodes[1], "SELECT worker_pid <> $worker FROM zk_status") eq 't' });
$claimers[1]{rests} = 0;
claim_one($claimers[1]) unless $claimers[1]{session}{busy};
claimed_at_least(0.7);
kill 'KILL', $test->status($nodes[2], 'session_pid');
run_until('all tickets', sub { !grep { $_->{session}{busy} } @claimers });
$goes_on = 0;
run_until('all sessions', sub { !grep { $_->{session}{busy} } @parts });
note sprintf '%d tickets claimed, %d locks taken in %.1f s; nothing to claim %d times', $claimed, $locked,
  time - $begun, $empty;
note 'errors: ', join ', ', map { "$_: $errors{$_}" } sort keys %errors;

# ---- what became of them

# A ticket that was requested anew has lost its place.
foreach my $seen (@seen)
{
	my ($node, $ticket, $path) = @$seen;
	my $is = $made{$ticket};
	my $turn = $node->name . $path;

	$claims{$ticket}++;
	$wrong{unknown}++ unless $is && $is->{node} == $node && $is->{path} eq $path;
	$wrong{order}++
	  if $ticket < ($turn{$turn} // 0) && !($node == $nodes[1] && $ticket <= $anew_before);
	$turn{$turn} = $ticket;
}

is($wrong{$_}, 0, $_) foreach sort keys %wrong;
is(scalar keys %made, 3 * $each, 'all tickets were made');
is(join(', ', grep { $claims{$_} > 1 } keys %claims), '', 'none was claimed twice');
my @unclaimed = grep { !$claims{$_} } keys %made;
is(scalar(grep { $made{$_}{node} != $nodes[1] } @unclaimed), 0, 'all were claimed where the worker went on');
cmp_ok(scalar @unclaimed, '<', $each / 2, 'and most of the others');
my ($told, $wrong_told) = (0, '');
foreach my $ticket (@unclaimed)
{
	my $session = $claimers[1]{session};
	my $sqlstate = $session->error("SELECT zk_claim_ticket($ticket)");

	if ($sqlstate eq '55000'
		&& $session->messages =~ /is over\n(?:The zklock worker that held it has ended|The ZooKeeper session)/)
	{
		$told++;
	}
	else { $wrong_told .= "$sqlstate " . $session->messages . "\n"; }
}
cmp_ok($told, '>', 0, 'some were granted when the worker ended');
is($told, scalar @unclaimed, "$told others are told to be lost") or diag $wrong_told;

# So is a reservation that was lost before it was cancelled.
my ($reserved) = $test->look($nodes[1], "SELECT ticket FROM zk_tickets WHERE state = 'lost'");
is($claimers[1]{session}->error("SELECT zk_claim_ticket($reserved)"), '55000', 'so is a reservation')
  if $reserved ne '';
is($test->look($_, 'SELECT count(*) FROM zk_tickets'), 0, $_->name . ': no ticket is left') foreach @nodes;
cmp_ok($locked, '>', 0, 'sessions had the locks in between');

my @counts = map { [ split /\|/, $test->look($_, 'SELECT tickets_enqueued, tickets_claimed, tickets_lapsed FROM zk_stat_server') ] } @nodes;
foreach my $i (0 .. 2)
{
	is($counts[$i][0], $each, $nodes[$i]->name . ': the tickets made are counted');
	is($counts[$i][2], 0, $nodes[$i]->name . ': none lapsed');
}
is($counts[$_][1], $each, $nodes[$_]->name . ': and those claimed') foreach 0, 2;
my $claimed_there = grep { $made{$_}{node} == $nodes[1] } keys %claims;

# One that was given out may be lost before its session has its answer.
ok($counts[1][1] == $claimed_there || $counts[1][1] == $claimed_there + 1, 'likewise where the worker ended')
  or diag "$counts[1][1] and $claimed_there";

$_->{session}->close foreach @parts;
$test->finish;
