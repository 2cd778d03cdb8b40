# An ensemble of real ZooKeeper servers for a test.
#
#	my $zk = ZooKeeperEnsemble->new('zk', net => $net);	# zk1, zk2, zk3
#	$zk->start;							# all, until all serve
#	$zk->connect_string;				# of all three
#	my $leader = $zk->leader;			# a ZooKeeper, see ZooKeeper.pm
#	my ($follower) = $zk->followers;
#	$leader->kill9; $zk->wait_leader; $leader->start;
#	$zk->isolate($leader);				# from the other servers, not clients
#	$zk->part($zk->server(1), $zk->server(2));
#	$zk->heal;
#
# It can stand wherever a test takes a ZooKeeper.  With a TcpProxy as net all
# that the servers say to each other goes through routes of it, each server to
# each other one: zk1-zk2-quorum, zk1-zk2-election, zk2-zk1-quorum and so on.
#
# Further options: servers (3), tick_time (ms), init_limit and sync_limit
# (ticks; a follower and a leader give each other up after sync_limit),
# max_session_timeout (ms; 20 ticks),
# container_check_ms, java, more_java, tls (see ZooKeeper.pm), page (the zoo.cfg of a page,
# but for directories, hosts and ports).

package ZooKeeperEnsemble;

use strict;
use warnings;

use Carp;
use Time::HiRes qw(usleep time);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ZooKeeper;
use ZooKeeperClient;

sub new
{
	my ($class, $name, %params) = @_;
	my $count = $params{servers} // 3;
	my $self = bless { name => $name, net => $params{net} }, $class;
	my $limits = 'initLimit=' . ($params{init_limit} // 10) . "\n"
	  . 'syncLimit=' . ($params{sync_limit} // 4) . "\n";
	$limits .= "maxSessionTimeout=$params{max_session_timeout}\n"
	  if $params{max_session_timeout};

	my %ports = map {
		$_ => {
			quorum => PostgreSQL::Test::Cluster::get_free_port(),
			election => PostgreSQL::Test::Cluster::get_free_port()
		}
	} 1 .. $count;
	$self->_make_routes(%ports) if $params{net};
	foreach my $id (1 .. $count)
	{
		my $members = '';
		foreach my $other (1 .. $count)
		{
			my $seen =
			  $self->{routes}{ $other == $id ? '' : "$id-$other" }
			  // $ports{$other};
			$members .=
			  "server.$other=127.0.0.1:$seen->{quorum}:$seen->{election}\n";
		}
		my $page = $params{page};
		my %at = $members =~ /^server\.(\d)=(.*)$/mg;
		my $replaced = defined $page
		  && $page =~ s/^server\.(\d)=\K\w+:\d+:\d+$/$at{$1}/mg;
		croak "the page has $replaced members" if $page && $replaced != $count;
		push @{ $self->{servers} },
		  ZooKeeper->new(
			"$name$id",
			id => $id,
			config => $limits . $members,
			page => $page,
			map { $_ => $params{$_} }
			  grep { defined $params{$_} } 'tick_time', 'container_check_ms',
			'java', 'more_java', 'tls');
	}
	return $self;
}

# One route for each way between two servers and each of the two ports.  On
# the election port a server says where it can be called back: there too, the
# way through the proxy.
sub _make_routes
{
	my ($self, %ports) = @_;
	my ($net, $name) = @{$self}{qw(net name)};

	foreach my $from (keys %ports)
	{
		foreach my $to (grep { $_ != $from } keys %ports)
		{
			$self->{routes}{"$from-$to"} = {
				map { $_ => PostgreSQL::Test::Cluster::get_free_port() }
				  'quorum', 'election'
			};
		}
	}
	foreach my $way (keys %{ $self->{routes} })
	{
		my ($from, $to) = split /-/, $way;
		my $back = $self->{routes}{"$to-$from"};
		$net->route(
			"$name$from-$name$to-quorum", $ports{$to}{quorum},
			port => $self->{routes}{$way}{quorum},
			framed => 0,
			patience => 2);
		$net->route(
			"$name$from-$name$to-election", $ports{$to}{election},
			port => $self->{routes}{$way}{election},
			framed => 0,
			announce => "127.0.0.1:$back->{election}");
	}
	return;
}

sub servers { return @{ $_[0]->{servers} }; }
sub server { return $_[0]->{servers}[ $_[1] - 1 ]; }

sub connect_string
{
	my ($self) = @_;

	return join ',', map { $_->connect_string } $self->servers;
}

# The same with TLS
sub secure_connect_string
{
	my ($self) = @_;

	return join ',', map { '127.0.0.1:' . $_->secure_port } $self->servers;
}

# Starts those that do not run, and returns once all serve.
sub start
{
	my ($self) = @_;

	foreach my $server ($self->servers)
	{
		$server->launch unless $server->pid;
	}
	$_->wait_until_serving foreach $self->servers;
	return;
}

sub stop
{
	my ($self) = @_;

	delete $self->{client};
	$_->stop foreach $self->servers;
	return;
}

# leader, follower, or undef for a server that does not serve
sub role
{
	my ($self, $server) = @_;

	return undef unless $server->pid;
	return (($server->four_letter('srvr') // '') =~ /^Mode: (\w+)/m)[0];
}

# Polls until one of the servers leads, and returns it.
sub wait_leader
{
	my ($self, @among) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	@among = $self->servers unless @among;
	while (time < $deadline)
	{
		foreach my $server (@among)
		{
			return $server if ($self->role($server) // '') eq 'leader';
		}
		usleep(50_000);
	}
	croak 'no ZooKeeper server leads';
}

sub leader { return $_[0]->wait_leader; }

sub followers
{
	my ($self) = @_;
	my $leader = $self->leader;

	return grep { $_ != $leader && $_->pid } $self->servers;
}

# Cuts the way between two servers, in both directions.
sub part
{
	my ($self, $one, $two) = @_;

	$self->{net}->hold($one->name . '-' . $two->name . '-*');
	$self->{net}->hold($two->name . '-' . $one->name . '-*');
	return;
}

sub isolate
{
	my ($self, $server) = @_;

	$self->part($server, $_)
	  foreach grep { $_ != $server } $self->servers;
	return;
}

sub heal
{
	my ($self) = @_;

	$self->{net}->pass("$self->{name}*-$self->{name}*-*");
	return;
}

# The client that tests look at the ensemble with.
sub client
{
	my ($self) = @_;

	$self->{client} //= $self->new_client;
	return $self->{client};
}

sub new_client
{
	my ($self, %params) = @_;

	return ZooKeeperClient->new($self->connect_string, %params);
}

# { path => [ ids of the sessions that watch it ] }, over all servers
sub watches
{
	my ($self) = @_;
	my %watches;

	foreach my $server ($self->servers)
	{
		next unless $server->pid;
		my $seen = $server->watches;
		push @{ $watches{$_} }, @{ $seen->{$_} } foreach keys %$seen;
	}
	return \%watches;
}

# The ids of the sessions that the leader knows of
sub sessions { return $_[0]->leader->sessions; }

1;
