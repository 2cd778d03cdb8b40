# The faults of a chaos run that are done with an operator's tools, zklock's own or
# others: a part of ChaosFaults.pm.

package ChaosOperator;

use strict;
use warnings;

use ChaosClient;
use PgSession;

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
	return sub { $session->abandon; return; };
}

sub request_release
{
	my ($self, $fault) = @_;
	my ($row) = $self->find_somebody($fault,
		'SELECT path FROM zk_locks WHERE state = \'granted\' ORDER BY random() LIMIT 1');

	$self->ask($self->node($fault), "SELECT zk_request_release('$row->[0]')") if $row;
	return;
}

sub drain
{
	my ($self, $fault) = @_;
	my $node = $self->node($fault);
	my $session = eval { PgSession->new($node, wait => 0) } or return;

	return if eval { $session->result(2)->{error} } // 1;
	$self->{drained}{ $node->name } = 1;
	$session->send('SELECT count(*) FROM zk_drain()');
	return sub {
		$session->abandon;
		$self->undrain($node);
		return;
	};
}

# Returns whether the server has answered.
sub undrain
{
	my ($self, $node) = @_;
	my $rows = $self->ask($node, 'SELECT zk_undrain()') or return 0;

	delete $self->{drained}{ $node->name };
	return 1;
}

my %settings = (
	'zklock.cache_time' => [ '0', '20ms', '1s', '10s' ],
	'deadlock_timeout' => [ '10ms', '50ms', '1s', '5s' ]);

sub change_settings
{
	my ($self, $fault) = @_;
	my $node = $self->node($fault);
	my $n = 16 * $fault->{chance};

	$self->{changed}{ $node->name } = 1;
	foreach my $name (sort keys %settings)
	{
		$self->ask($node, "ALTER SYSTEM SET $name = '$settings{$name}[$n % 4]'");
		$n /= 4;
	}
	$self->ask($node, 'SELECT pg_reload_conf()');
	return sub { $self->reset_settings($node); return; };
}

# Returns whether the server has answered.
sub reset_settings
{
	my ($self, $node) = @_;

	foreach my $statement ((map { "ALTER SYSTEM RESET $_" } sort keys %settings),
		'SELECT pg_reload_conf()')
	{
		return 0 unless $self->ask($node, $statement);
	}
	delete $self->{changed}{ $node->name };
	return 1;
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
		return;
	};
}

1;
