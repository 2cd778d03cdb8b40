# The faults of a chaos run, as they are done to the servers.
#
#	my $faults = ChaosFaults->new($test);
#	my $heal = $faults->inject($fault);	# its end, to be called later; or undef
#	$faults->heal_all;
#
# A fault is one of those that ChaosPlan.pm makes.
#
# "killed" knows the processes of PostgreSQL that were killed, "acts" what was
# done with an operator's tools: [ lock, server, begun, done ].

package ChaosFaults;

use strict;
use warnings;

use Time::HiRes qw(usleep);

use ChaosClient;
use ChaosPlan;
use ChaosProcesses;
use PgSession;

sub new
{
	my ($class, $test) = @_;

	return bless {
		test => $test, net => $test->net, zk => $test->zk,
		killed => {}, acts => [], stopped => {}, counts => {},
	}, $class;
}

sub inject
{
	my ($self, $fault) = @_;
	my ($method, @arguments) = ChaosPlan::method($fault->{name});

	$self->{counts}{ $fault->{name} }++;
	return $self->$method($fault, @arguments);
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
	return sub { ChaosProcesses::start_again($node) };
}

sub kill_postmaster
{
	my ($self, $fault) = @_;
	my $node = $self->node($fault);

	$node->kill9;
	return sub { ChaosProcesses::start_again($node) };
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
	};
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
	return sub { $net->pass($routes) };
}

# ---- an operator's tools ----

sub close_session
{
	my ($self, $fault) = @_;
	my ($row) = $self->find_somebody($fault,
		'SELECT session_id FROM zk_status WHERE session_id IS NOT NULL');

	return unless $row;
	my $program = (grep { -e } map { "$_/close_session.py" } @INC)[0];
	my $begin = ChaosClient::now();
	system 'timeout', '5', '/usr/bin/python3', $program,
	  $self->{zk}->connect_string, $row->[0];
	push @{ $self->{acts} },
	  [ undef, $fault->{server}, $begin, ChaosClient::now() ];
	return;
}

sub delete_znode
{
	my ($self, $fault) = @_;
	my ($row) = $self->find_somebody($fault,
		'SELECT path, znode FROM zk_locks WHERE state = \'granted\' AND znode IS NOT NULL'
		  . ' ORDER BY random() LIMIT 1');

	return unless $row;
	my ($lock, $znode) = @$row;
	$znode =~ s{.*/}{};
	my $begin = ChaosClient::now();
	$self->{zk}->client->try_delete("/zklock$lock/$znode");
	push @{ $self->{acts} }, [ $lock, undef, $begin, ChaosClient::now() ];
	return;
}

# zklock's own tool needs no trust: a holder is told before it goes.  It may
# take a session timeout, and is not waited for.
sub break_lock
{
	my ($self, $fault) = @_;
	my ($lock) = ('/chaos/a', '/chaos/b', '/chaos/c', '/chaos/long')[
	  4 * $fault->{chance} ];
	my $session = eval { PgSession->new($self->node($fault), wait => 0) }
	  or return;

	return unless eval { $session->result(2) };
	$session->send("SELECT zk_break_lock('$lock')");
	return sub { $session->abandon };
}

# Every lock is broken, by operators on all servers, while a worker ends and what
# its clients wait for is cancelled; and the next worker ends when that is over.
sub storm
{
	my ($self, $fault) = @_;
	my @ends = map {
		my %break = (%$fault, chance => $_ / 4, server => 1 + $_ % 3);
		$self->break_lock(\%break);
	} 0 .. 3;

	$self->terminate_worker($fault);
	$self->signal_backends($fault, 'INT');
	return sub {
		$_->() foreach grep { defined } @ends;
		$self->terminate_worker($fault);
	};
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
	return sub { $member->launch unless $member->pid };
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
	return sub { $self->{zk}->heal };
}

sub part_members
{
	my ($self, $fault) = @_;
	my $member = $self->member($fault);

	$self->{zk}->part($member, $self->{zk}->server(1 + $fault->{member} % 3));
	return sub { $self->{zk}->heal };
}

sub among_members
{
	my ($self, $fault, $command) = @_;
	my $net = $self->{net};

	$net->reset('zk*-zk*') if $command eq 'reset';
	return if $command eq 'reset';
	$net->delay('zk*-zk*', 0.005 + $fault->{chance} * 0.1);
	return sub { $self->{zk}->heal };
}

# ---- all is well again ----

sub heal_all
{
	my ($self) = @_;

	kill 'CONT', keys %{ $self->{stopped} };
	$self->{stopped} = {};
	$self->{net}->pass('*');
	$self->{zk}->start;
	foreach my $node ($self->{test}->nodes)
	{
		ChaosProcesses::start_again($node) unless defined $node->{_pid};
	}
	return;
}

1;
