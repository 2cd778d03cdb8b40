# A PgBouncer in front of one server, for TAP tests: sessions connect to it as to
# a server.
#
#	plan skip_all => '...' unless PgBouncer->installed;
#	my $pooler = PgBouncer->new($node);
#	my $name = $pooler->pool('transaction', 2);	# pool mode, connections at most
#	$pooler->start;
#	my $s = PgSession->new($pooler, dbname => $name);
#	$pooler->stop;
#
# Each pool is a database of PgBouncer's, and all lead to the database postgres.
# Option of pool: user (who runs the test).

package PgBouncer;

use strict;
use warnings;

use parent 'OwnProcess';

use Carp;
use IO::Socket::UNIX;
use Time::HiRes qw(time usleep);

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;

my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';

sub installed { return defined $program; }

sub new
{
	my ($class, $node) = @_;

	return bless {
		node => $node,
		host => PostgreSQL::Test::Utils::tempdir_short(),
		port => PostgreSQL::Test::Cluster::get_free_port(),
		log => "$PostgreSQL::Test::Utils::log_path/pgbouncer.log",
		pools => '',
	}, $class;
}

# As PgSession asks them of a server
sub host { return $_[0]->{host}; }
sub port { return $_[0]->{port}; }

sub pool
{
	my ($self, $mode, $size, %params) = @_;
	my $node = $self->{node};
	my $user = $params{user} // getpwuid $<;
	my $name = "${mode}_${size}_$user";

	$self->{pools} .= "$name = host=@{[ $node->host ]} port=@{[ $node->port ]}"
	  . " dbname=postgres user=$user pool_mode=$mode pool_size=$size\n";
	return $name;
}

sub start
{
	my ($self) = @_;
	my $ini = "$self->{host}/pgbouncer.ini";
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	append_to_file($ini, <<"EOS");
[databases]
$self->{pools}
[pgbouncer]
listen_addr =
listen_port = $self->{port}
unix_socket_dir = $self->{host}
auth_type = any
EOS
	$self->{pid} = fork // die "could not fork: $!";
	if ($self->{pid} == 0)
	{
		open STDOUT, '>>', $self->{log} or die "$self->{log}: $!";
		open STDERR, '>&', \*STDOUT or die "could not duplicate: $!";
		exec $program, $ini or die "could not start $program: $!";
	}
	until (IO::Socket::UNIX->new(Peer => "$self->{host}/.s.PGSQL.$self->{port}"))
	{
		croak 'PgBouncer does not start: ' . slurp_file($self->{log})
		  if time > $deadline;
		usleep(20_000);
	}
	return;
}

1;
