# A client of a chaos run that knows nothing of zklock: kazoo, which takes the same
# locks in Curator's ways, in a process of its own, as ChaosWorkload.pm has it.  Its
# network is that of ZooKeeper's clients, without proxies.
#
#	my $w = ChaosForeign->new(connect_string => $where, server => 4,
#		locks => [...], resource => $node, seed => 7, log => $path);
#
# Nothing tells kazoo's clients until when they hold.  So a section proves it when
# it ends: it writes to its own znode, which only works as long as that is there.
# Its token is computed as zklock computes those of its own znodes.

package ChaosForeign;

use strict;
use warnings;

use parent 'ChaosWorkload';

use IO::Select;
use JSON::PP;
use Time::HiRes qw(usleep);

use ChaosClient;
use PgSession;
use ZooKeeperClient;

my $root = '/zklock';
my $takes = 4096;    # how many tokens a znode has
my $patience = 20;    # seconds

sub _work
{
	my ($class, $control, %params) = @_;
	my $json = JSON::PP->new->canonical;
	my $self = bless {
		%params,
		control => $control,
		paused => 1,
		serial => 0,
		session => PgSession->new($params{resource}),
	}, $class;

	srand $params{seed};
	open my $log, '>>', $params{log} or die "could not open $params{log}: $!";
	$log->autoflush(1);
	$control->autoflush(1);
	until ($self->_heed)
	{
		if ($self->{paused}) { usleep(20_000); next; }
		my $section = $self->_choose;
		my $good = eval { $self->_visit($section); 1 };
		$section->{message} = $@ unless $good;
		$self->_leave_zookeeper unless $good;
		$section->{ended} = $section->{released} = ChaosClient::now();
		print $log $json->encode($section), "\n" if $section->{granted};
	}
	$self->_leave_zookeeper;
	return;
}

# Takes in what the parent says; true if that is the end.
sub _heed
{
	my ($self) = @_;
	my $control = $self->{control};

	while (IO::Select->new($control)->can_read(0))
	{
		return 1 unless sysread $control, my $bytes, 100;
		my $word = (split ' ', $bytes)[-1];
		return 1 if $word eq 'quit';
		$self->{paused} = $word eq 'pause';
		next unless $self->{paused};
		$self->_leave_zookeeper;
		print $control "quiet\n";
	}
	return 0;
}

sub _choose
{
	my ($self) = @_;
	my $kind = (qw(write kazoo kazoo_read))[ rand 3 ];

	return {
		id => join('-', $self->{server}, $self->{serial}++),
		server => $self->{server},
		client => "$self->{server}-$kind",
		lock => $self->{locks}[ rand @{ $self->{locks} } ],
		shared => $kind eq 'kazoo_read' ? 1 : 0,
		transaction => 0,
		how => 'foreign',
		kind => $kind,
		hold => rand(10) < 9 ? rand 0.02 : rand 0.5,
		asked => ChaosClient::now(),
	};
}

sub _leave_zookeeper
{
	my ($self) = @_;
	my $zk = delete $self->{zk} or return;

	eval { $zk->quit };
	return;
}

sub _visit
{
	my ($self, $section) = @_;
	my $zk = $self->{zk} //= ZooKeeperClient->new($self->{connect_string},
		session_timeout => $self->{session_timeout}, timeout => $patience);

	$zk->lock('mine', $section->{kind}, "$root$section->{lock}");
	my $deadline = $section->{asked} + $patience;
	until ($zk->held('mine'))
	{
		die "not in time\n" if ChaosClient::now() > $deadline;
		usleep(5000);
	}
	my $node = $zk->node('mine');
	my $znode = "$root$section->{lock}/$node";
	my $stat = $zk->stat($znode) // die "no znode any more\n";

	@{$section}{qw(znode token)} = ($node, $stat->{czxid} * $takes);
	$section->{granted} = $section->{proved} = ChaosClient::now();
	$self->_use($section);
	$section->{commit_sent} = ChaosClient::now();
	$zk->set($znode, 'foreign');
	$section->{commit_seen} = ChaosClient::now();
	$zk->unlock('mine');
	return;
}

# Reads and writes what the lock protects, as ChaosClient.pm does.
sub _use
{
	my ($self, $section) = @_;
	my $shared = $section->{shared} ? 'true' : 'false';
	my $sql = "'$section->{lock}', $section->{token}, $shared";

	@{$section}{qw(entered fenced unfenced)} =
	  @{ $self->{session}->send("SELECT * FROM enter($sql)")->result->{rows}[0] };
	$section->{entered_at} = ChaosClient::now();
	usleep(1e6 * $section->{hold});
	$sql .= ', ' . ($section->{fenced} // 'NULL') . ", $section->{unfenced}";
	@{$section}{qw(left fenced_changed unfenced_changed)} =
	  @{ $self->{session}->send("SELECT * FROM leave($sql)")->result->{rows}[0] };
	$section->{left_at} = ChaosClient::now();
	return;
}

1;
