# The faults of a chaos run, as they are done to the servers.
#
#	my $faults = ChaosFaults->new($test, $relay, @ports);	# of UDP: UdpRelay.pm, servers
#	my $heal = $faults->inject($fault);	# its end, to be called later; or undef
#	my ($seconds, $heal) = $heal->();	# the next one, if it was not the last
#	$faults->heal_all;
#
# A fault is one of those that ChaosPlan.pm makes.
#
# "killed" knows the processes of PostgreSQL that were killed, "acts" what was
# done with an operator's tools: [ lock, server, begun, done ], and "causes" all
# faults: hashes of name, server (undef: all), begun and done.

package ChaosFaults;

use strict;
use warnings;

use parent 'ChaosOperator';

use IO::Socket::IP;
use Socket qw(SOCK_DGRAM);
use Time::HiRes qw(usleep);

use ChaosClient;
use ChaosPlan;
use ChaosProcesses;
use PgSession;
use PostgreSQL::Test::Utils;

sub new
{
	my ($class, $test, $relay, @ports) = @_;

	return bless {
		relay => $relay, ports => \@ports, test => $test, net => $test->net, zk => $test->zk,
		killed => {}, acts => [], causes => [], stopped => {}, counts => {},
		drained => {}, changed => {},
	}, $class;
}

sub inject
{
	my ($self, $fault) = @_;
	my ($method, @arguments) = ChaosPlan::method($fault->{name});

	my $cause = { name => $fault->{name}, begun => ChaosClient::now() };

	push @{ $self->{causes} }, $cause;
	$self->{counts}{ $fault->{name} }++;
	my $heal = $self->$method($fault, @arguments);
	my $ended = sub {
		my @more = $heal ? $heal->() : ();
		$cause->{done} = ChaosClient::now() unless @more;
		return @more;
	};
	# Of all servers if it is done to ZooKeeper or to a lock; cut_off_holder chooses
	# the server.
	$cause->{server} = $fault->{server}
	  unless ChaosPlan::target($fault->{name}) eq 'zookeeper'
	  || $fault->{name} =~ /^(storm|lock|znode)/;
	return $ended if $heal;
	$ended->();
	return;
}

# ---- helpers ----

sub node { return ($_[0]->{test}->nodes)[ $_[1]->{server} - 1 ]; }
sub member { return $_[0]->{zk}->server($_[1]->{member}); }

# An answer of a server that may not be able to give one: undef.
sub ask
{
	my ($self, $node, $sql) = @_;

	return eval {
		my $session = PgSession->new($node, wait => 0);
		die if $session->result(2)->{error};
		my $answer = $session->send($sql)->result(2);
		$session->close;
		die if $answer->{error};
		$answer->{rows};
	};
}

# The rows of an answer, once there are any.  What finds nobody that it could
# happen to does not count.
sub find_somebody
{
	my ($self, $fault, $sql) = @_;
	my $deadline = ChaosClient::now() + 1;

	while (ChaosClient::now() < $deadline)
	{
		my $rows = $self->ask($self->node($fault), $sql);
		return @$rows if $rows && @$rows;
		usleep(10_000);
	}
	$self->{counts}{ $fault->{name} }--;
	return;
}

sub stop_pids
{
	my ($self, @pids) = @_;

	$self->{stopped}{$_} = 1 foreach @pids;
	kill 'STOP', @pids;
	return sub {
		kill 'CONT', @pids;
		delete $self->{stopped}{$_} foreach @pids;
		return;
	};
}

# ---- processes of a server ----

sub signal_session
{
	my ($self, $fault, $signal) = @_;
	my $pid = ChaosProcesses::session_process($self->node($fault)->{_pid});

	kill $signal, $pid if $pid;
	return;
}

# Each time as soon as there is another
sub kill_sessions
{
	my ($self, $fault) = @_;
	my $deadline = ChaosClient::now() + 3;
	my %killed;

	while (keys %killed < 3 && ChaosClient::now() < $deadline)
	{
		my $pid = ChaosProcesses::session_process($self->node($fault)->{_pid});

		if ($pid && !$killed{$pid}) { kill 'KILL', $pid; $killed{$pid} = 1; }
		else { usleep(2000); }
	}
	return;
}

# PostgreSQL takes that for a crash: it ends all sessions, and its shared memory
# begins anew.
sub kill_worker
{
	my ($self, $fault) = @_;
	my $pid = ChaosProcesses::worker($self->node($fault)->{_pid}) or return;

	$self->{killed}{$pid} = 1;
	kill 'KILL', $pid;
	return;
}

sub stop_both
{
	my ($self, $fault) = @_;
	my $postmaster = $self->node($fault)->{_pid};

	return $self->stop_pids(grep { defined } ChaosProcesses::worker($postmaster),
		ChaosProcesses::session_process($postmaster));
}

sub terminate_worker
{
	my ($self, $fault) = @_;
	my $pid = ChaosProcesses::worker($self->node($fault)->{_pid});

	kill 'TERM', $pid if $pid;
	return;
}

sub stop_worker
{
	my ($self, $fault) = @_;

	return $self->stop_pids(
		grep { defined } ChaosProcesses::worker($self->node($fault)->{_pid}));
}

sub holders
{
	my ($self, $fault, $condition) = @_;

	return map { $_->[0] } $self->find_somebody($fault,
		"SELECT pid FROM zk_locks WHERE pid IS NOT NULL AND $condition ORDER BY random()");
}

sub kill_holder
{
	my ($self, $fault) = @_;
	my ($pid) = $self->holders($fault, q{state = 'granted'});

	return unless $pid;
	$self->{killed}{$pid} = 1;
	kill 'KILL', $pid;
	return;
}

sub signal_backends
{
	my ($self, $fault, $signal) = @_;
	my @pids =
	  $self->holders($fault, $signal eq 'INT' ? 'true' : q{state = 'granted'});

	kill $signal, @pids[ 0 .. ($#pids > 2 ? 2 : $#pids) ];
	return;
}

sub stop_backends
{
	my ($self, $fault) = @_;
	my @pids = ChaosProcesses::backends($self->node($fault)->{_pid});

	@pids = @pids[ map { rand @pids } 1 .. 3 ] if $fault->{chance} < 0.5 && @pids;
	return $self->stop_pids(@pids);
}

sub pause_server
{
	my ($self, $fault) = @_;
	my $postmaster = $self->node($fault)->{_pid};

	return $self->stop_pids($postmaster,
		ChaosProcesses::descendants($postmaster));
}

# ---- servers ----

sub host_dies
{
	my ($self, $fault) = @_;
	my $node = $self->node($fault);

	ChaosProcesses::kill9_all($node->{_pid});
	$node->kill9;
	return sub { ChaosProcesses::start_again($node); return; };
}

sub kill_postmaster
{
	my ($self, $fault) = @_;
	my $node = $self->node($fault);

	$node->kill9;
	return sub { ChaosProcesses::start_again($node); return; };
}

sub restart_server
{
	my ($self, $fault, $how) = @_;
	my $node = $self->node($fault);

	$node->stop($how);
	ChaosProcesses::start_again($node);
	return;
}

# ---- the network between a server and ZooKeeper ----

sub routes
{
	my ($self, $fault, $which) = @_;

	return "server$fault->{server}-"
	  . ($which eq 'one' ? "zk$fault->{member}" : $which);
}

sub network
{
	my ($self, $fault, $command, $which, $direction) = @_;
	my $routes = $self->routes($fault, $which);
	my $net = $self->{net};

	$direction = $fault->{either} if $direction eq 'either';
	if ($command eq 'delay')
	{
		$net->delay($routes, 0.01 + $fault->{chance} * 0.25, $direction);
	}
	else { $net->$command($routes, $direction); }
	return sub {
		$net->reset($routes) if $command eq 'drop';
		$net->pass($routes);
		return;
	};
}

# ---- messages between the workers of servers ----

sub disturb_messages
{
	my ($self, $fault, $command) = @_;
	my $relay = $self->{relay};
	my $way = "to-$fault->{server}";

	$relay->$command($way, $command eq 'delay' ? 0.002 + 4 * $fault->{chance}**4 : ());
	return sub { $relay->pass($way); return; };
}

# All that somebody can do who listens, and does not know the credentials
sub forge_messages
{
	my ($self, $fault) = @_;
	my $socket = IO::Socket::IP->new(
		PeerHost => '127.0.0.1',
		PeerPort => $self->{ports}[ $fault->{server} - 1 ],
		Type => SOCK_DGRAM) or die "no socket: $@";
	my @seen = map { $self->{relay}->seen("to-$_") } 1 .. 3;

	foreach my $number (1 .. 300)
	{
		my $datagram = @seen ? $seen[ rand @seen ] : '';
		substr($datagram, rand length $datagram, 1) = chr rand 256
		  if $datagram ne '' && $number % 3;
		$socket->send($datagram);
	}
	return;
}

sub refuse
{
	my ($self, $fault) = @_;
	my $routes = $self->routes($fault, 'zk*');

	$self->{net}->refuse($routes);
	return sub { $self->{net}->pass($routes); return; };
}

# Nothing gets through, then all, and so on, each for a while that is long enough
# to connect, or too short for that.
sub flap
{
	my ($self, $fault) = @_;
	my $routes = $self->routes($fault, 'zk*');
	my $end = ChaosClient::now() + $fault->{length};
	my $passes = 0;
	my $turn;

	$turn = sub {
		if (ChaosClient::now() >= $end)
		{
			$self->{net}->pass($routes);
			undef $turn;
			return;
		}
		if ($passes = !$passes) { $self->{net}->pass($routes); }
		elsif ($fault->{chance} < 0.5) { $self->{net}->hold($routes); }
		else { $self->{net}->refuse($routes); }
		return (0.05 + rand 0.5, $turn);
	};
	$fault->{length} = 0.2;
	$self->{net}->hold($routes);
	return $turn;
}

# Cuts off the server whose client has just got the lock that is held for so
# long that others get it meanwhile.
sub cut_off_holder
{
	my ($self, $fault) = @_;

	foreach (1 .. 1000)
	{
		foreach my $number (1 .. 3)
		{
			$fault->{server} = $number;
			my $rows = $self->ask($self->node($fault),
				q{SELECT 1 FROM zk_locks WHERE path = '/chaos/long'}
				  . q{ AND state = 'granted' AND mode = 'exclusive'}
				  . q{ AND granted_at > now() - interval '0.5 s'});
			return $self->network($fault, 'hold', 'zk*', 'both')
			  if $rows && @$rows;
		}
		usleep(50_000);
	}
	die "nobody gets /chaos/long\n";
}

# lose_reply waits for a transaction (14 is its type)
sub network_once
{
	my ($self, $fault, $command) = @_;
	my $routes = $self->routes($fault, 'zk*');
	my $net = $self->{net};

	if ($command eq 'reset') { $net->reset($routes); return; }
	if ($command eq 'cut')
	{
		$net->cut($routes, 1 + int($fault->{chance} * 200), $fault->{either});
	}
	else { $net->lose_reply($routes, '^.{8}\x00\x00\x00\x0e'); }
	return sub { $net->pass($routes); return; };
}

# ---- ZooKeeper ----

sub choose_member
{
	my ($self, $fault, $which) = @_;
	my ($leader) = $which eq 'leader'
	  ? grep { ($self->{zk}->role($_) // '') eq 'leader' } $self->{zk}->servers
	  : ();

	return $leader // $self->member($fault);
}

sub kill_member
{
	my ($self, $fault, $which) = @_;
	my $member = $self->choose_member($fault, $which);

	$member->kill9;
	return sub { $member->launch unless $member->pid; return; };
}

sub kill_two
{
	my ($self, $fault) = @_;
	my @members = ($self->member($fault),
		$self->{zk}->server(1 + $fault->{member} % 3));

	$_->kill9 foreach @members;
	return sub {
		$_->launch foreach grep { !$_->pid } @members;
		return;
	};
}

sub pause_members
{
	my ($self, $fault, $which) = @_;
	my @members = $self->choose_member($fault, $which);

	push @members, grep { $_ != $members[0] } $self->{zk}->server(
		1 + $fault->{member} % 3) if $which eq 'two';
	return $self->stop_pids(grep { defined } map { $_->pid } @members);
}

sub rolling_restart
{
	my ($self) = @_;

	foreach my $member ($self->{zk}->servers)
	{
		$member->stop;
		$member->launch;
		$member->wait_until_serving;
	}
	return;
}

sub isolate
{
	my ($self, $fault, $which) = @_;

	$self->{zk}->isolate($self->choose_member($fault, $which));
	return sub { $self->{zk}->heal; return; };
}

sub part_members
{
	my ($self, $fault) = @_;
	my $member = $self->member($fault);

	$self->{zk}->part($member, $self->{zk}->server(1 + $fault->{member} % 3));
	return sub { $self->{zk}->heal; return; };
}

sub among_members
{
	my ($self, $fault, $command) = @_;
	my $net = $self->{net};

	$net->reset('zk*-zk*') if $command eq 'reset';
	return if $command eq 'reset';
	$net->delay('zk*-zk*', 0.005 + $fault->{chance} * 0.1);
	return sub { $self->{zk}->heal; return; };
}

# ---- all is well again ----

sub heal_all
{
	my ($self) = @_;

	kill 'CONT', keys %{ $self->{stopped} };
	$self->{stopped} = {};
	$self->{net}->pass('*');
	$self->{relay}->pass('*');
	$self->{zk}->start;
	foreach my $node ($self->{test}->nodes)
	{
		ChaosProcesses::start_again($node) unless defined $node->{_pid};
		$self->until_done($node, 'undrain') if $self->{drained}{ $node->name };
		$self->until_done($node, 'reset_settings') if $self->{changed}{ $node->name };
	}
	$_->{done} //= ChaosClient::now() foreach @{ $self->{causes} };
	return;
}

# A server that crashed may need a while.
sub until_done
{
	my ($self, $node, $method) = @_;
	my $deadline = ChaosClient::now() + $PostgreSQL::Test::Utils::timeout_default;

	until ($self->$method($node))
	{
		die $node->name . ": $method does not succeed\n"
		  if ChaosClient::now() > $deadline;
		usleep(100_000);
	}
	return;
}

1;
