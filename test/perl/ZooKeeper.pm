# Starts, disturbs and stops a real ZooKeeper server for a test.
#
#	my $zk = ZooKeeper->new('zk');		# free port, not started
#	$zk->start;							# returns once it answers
#	$zk->connect_string;				# 127.0.0.1:port
#	$zk->pause; $zk->resume;			# SIGSTOP, SIGCONT
#	$zk->kill9; $zk->start;				# the same port and data again
#	$zk->launch; $zk->wait_until_serving;	# start in two steps
#	$zk->set_clock('+3h');				# see below; back again: '+0'
#	$zk->mntr->{zk_watch_count};
#	$zk->client->ls('/');				# see ZooKeeperClient.pm
#
# The server is Debian's package "zookeeper", one process; ZooKeeperEnsemble.pm
# makes an ensemble of several.  It listens on loopback only, keeps its files below the test's own directory,
# and dies with the test, even if that is killed.
#
# If it is made with movable_clock => 1, it runs under libfaketime, and set_clock
# moves its wall clock by so much, as somebody does who sets the clock of its host.

package ZooKeeper;

use strict;
use warnings;

use Carp;
use Cwd qw(abs_path);
use File::Basename;
use File::Copy;
use File::Path qw(rmtree);
use IO::Socket::INET;
use IPC::Run ();
use POSIX ();
use Socket qw(SO_RCVTIMEO);
use Time::HiRes qw(usleep time);

use PipedProgram;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ServerTemplates;
use ZooKeeperClient;

my @servers;
# No test takes the power away, so the log need not reach the disk.
my @small_java = (
	'-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1',
	'-Dzookeeper.preAllocSize=1024', '-Dzookeeper.forceSync=no');
my $directory = dirname(abs_path(__FILE__));
my $python = -x '/usr/bin/python3' ? '/usr/bin/python3' : 'python3';

# Options: tick_time in ms (the least session timeout is twice that),
# container_check_ms (how often empty containers are reaped), port,
# movable_clock; id and config (lines for zoo.cfg) for a member of an ensemble;
# java (options of the program, in place of those that make it start fast and
# stay small), more_java (others beside them); class_path (more jar files); tls
# (see _tls_config); page (a zoo.cfg to use, but for its directory and port).
sub new
{
	my ($class, $name, %params) = @_;

	my $self = bless {
		name => $name,
		port => $params{port} // PostgreSQL::Test::Cluster::get_free_port(),
		tick_time => $params{tick_time} // 500,
		container_check_ms => $params{container_check_ms} // 60_000,
		id => $params{id},
		java => [ @{ $params{java} // \@small_java }, @{ $params{more_java} // [] } ],
		class_path => $params{class_path} // [],
		movable_clock => $params{movable_clock},
		dir => PostgreSQL::Test::Utils::tempdir("zk_$name"),
	}, $class;
	$self->_tls_config($params{tls}) if $params{tls};
	my $test = basename($0) =~ s/\.[^.]+$//r;
	$self->{logfile} = "$PostgreSQL::Test::Utils::log_path/${test}_$name.log";

	append_to_file("$self->{dir}/zoo.cfg",
		$params{page} ? $self->_config_of_page($params{page}) : <<"EOC");
tickTime=$self->{tick_time}
dataDir=$self->{dir}/data
clientPort=$self->{port}
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
extendedTypesEnabled=true
@{[ $params{config} // '' ]}
@{[ $self->{tls_config} // '' ]}
EOC
	if (defined $params{id})
	{
		mkdir "$self->{dir}/data";
		append_to_file("$self->{dir}/data/myid", "$params{id}\n");
	}
	append_to_file("$self->{dir}/log4j.properties", <<"EOC");
log4j.rootLogger=INFO, OUT
log4j.appender.OUT=org.apache.log4j.ConsoleAppender
log4j.appender.OUT.layout=org.apache.log4j.PatternLayout
log4j.appender.OUT.layout.ConversionPattern=%d{ISO8601} %-5p %m%n
EOC
	$self->set_clock('+0') if $self->{movable_clock};
	push @servers, $self;
	return $self;
}

sub _config_of_page
{
	my ($self, $text) = @_;

	$text =~ s{^dataDir=\K.*}{$self->{dir}/data}m or croak 'no dataDir';
	$text =~ s/^clientPort=\K.*/$self->{port}\nclientPortAddress=127.0.0.1/m
	  or croak 'no clientPort';
	($self->{tick_time}) = $text =~ /^tickTime=(\d+)$/m or croak 'no tickTime';
	return $text;
}

# The server speaks TLS at a second port, secure_port.  Options: certificate, a
# CertificateAuthority's (its files), and authority (whom it trusts).  ZooKeeper
# wants key and certificate in one file.
sub _tls_config
{
	my ($self, $tls) = @_;
	my $keys = "$self->{dir}/keys.pem";

	append_to_file($keys, slurp_file($_))
	  foreach $tls->{certificate}{key}, $tls->{certificate}{file};
	$self->{secure_port} = PostgreSQL::Test::Cluster::get_free_port();
	push @{ $self->{class_path} }, glob '/usr/share/java/netty-*.jar';
	$self->{tls_config} = <<"EOC";
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
secureClientPort=$self->{secure_port}
secureClientPortAddress=127.0.0.1
ssl.keyStore.location=$keys
ssl.keyStore.type=PEM
ssl.trustStore.location=@{[ $tls->{authority}->file ]}
ssl.trustStore.type=PEM
EOC
	$self->set_client_auth('none');
	return;
}

# From its next start on, clients show a certificate: none, want or need.
sub set_client_auth
{
	my ($self, $mode) = @_;

	$self->{tls_java} = "-Dzookeeper.ssl.clientAuth=$mode";
	return;
}

# Whether it checks access control lists, from its next start on: no or yes
sub set_skip_acl
{
	my ($self, $skip) = @_;
	my $file = "$self->{dir}/zoo.cfg";
	my $config = slurp_file($file) =~ s/^skipACL=.*\n//mr;

	unlink $file;
	append_to_file($file, $config . ($skip eq 'yes' ? "skipACL=yes\n" : ''));
	return;
}

# What moves the clock of a process, or undef if it is not installed
sub clock_library
{
	return (glob '/usr/lib/*/faketime/libfaketimeMT.so.1')[0];
}

# From now on, its wall clock is so far ahead of the host's ('+3h', '-1d').
sub set_clock
{
	my ($self, $offset) = @_;
	my $file = "$self->{dir}/clock";

	append_to_file("$file.new", "$offset\n");
	rename "$file.new", $file or die "could not rename $file.new: $!";
	return;
}

sub name { return $_[0]->{name}; }
sub tick_time { return $_[0]->{tick_time}; }
sub id { return $_[0]->{id}; }
sub servers { return $_[0]; }
sub port { return $_[0]->{port}; }
sub secure_port { return $_[0]->{secure_port}; }
sub pid { return $_[0]->{pid}; }
sub logfile { return $_[0]->{logfile}; }
sub connect_string { return "127.0.0.1:$_[0]->{port}"; }
sub log_directory { return "$_[0]->{dir}/data/version-2"; }

# Deletes the data of a stopped member, which copies it from the leader then.
sub forget_data
{
	my ($self) = @_;

	rmtree("$self->{dir}/data/version-2");
	return;
}

# A copy of what the server has on disk now, for go_back.
sub copy_data
{
	my ($self) = @_;
	my $copy = "$self->{dir}/copy";

	rmtree($copy);
	system('cp', '-a', '--sparse=always', "$self->{dir}/data/version-2", $copy) == 0
	  or croak "could not copy the data of \"$self->{name}\"";
	return $copy;
}

# Has the data of that copy again, while it does not run, but knows of all
# elections since: the next transaction ids are greater than all before.
sub go_back
{
	my ($self, $copy) = @_;

	foreach my $epoch ('currentEpoch', 'acceptedEpoch')
	{
		copy("$self->{dir}/data/version-2/$epoch", "$copy/$epoch")
		  or croak "could not copy $epoch: $!";
	}
	$self->forget_data;
	rename $copy, "$self->{dir}/data/version-2"
	  or croak "could not rename $copy: $!";
	return;
}

# Starts the server and returns once it serves.
sub start
{
	my ($self) = @_;

	$self->launch;
	$self->wait_until_serving;
	return;
}

# Starts the process only: a member of an ensemble serves when others do.
sub launch
{
	my ($self) = @_;

	croak "ZooKeeper \"$self->{name}\" is already running" if $self->{pid};
	my @command = (
		'setpriv', '--pdeathsig', 'KILL', '--',
		'java', '-Xshare:auto', ServerTemplates::java_options(),
		@{ $self->{java} }, $self->{tls_java} // (),
		"-Dlog4j.configuration=file:$self->{dir}/log4j.properties",
		"-Dznode.container.checkIntervalMs=$self->{container_check_ms}",
		'-Dznode.container.maxPerMinute=1000000',
		'-Dzookeeper.jmx.log4j.disable=true',
		'-cp', join(':',
			(map { "/usr/share/java/$_.jar" }
				  'zookeeper', 'slf4j-log4j12', 'log4j-1.2'),
			@{ $self->{class_path} }),
		'org.apache.zookeeper.server.quorum.QuorumPeerMain',
		"$self->{dir}/zoo.cfg");

	print "### Starting ZooKeeper \"$self->{name}\" on port $self->{port}\n";
	my $pid = fork() // die "could not fork: $!";
	if ($pid == 0)
	{
		open STDIN, '<', '/dev/null';
		open STDOUT, '>>', $self->{logfile};
		open STDERR, '>&', \*STDOUT;
		$self->_fake_clock if $self->{movable_clock};
		exec @command or POSIX::_exit(127);
	}
	$self->{pid} = $pid;
	return;
}

# Waits and ticks are not measured by the wall clock, and stay as they are.
sub _fake_clock
{
	my ($self) = @_;

	$ENV{LD_PRELOAD} = clock_library();
	$ENV{FAKETIME_TIMESTAMP_FILE} = "$self->{dir}/clock";
	$ENV{FAKETIME_NO_CACHE} = 1;
	$ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
	$ENV{FAKETIME_FORCE_MONOTONIC_FIX} = 0;
	return;
}

sub wait_until_serving
{
	my ($self) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;

	until (($self->four_letter('srvr') // '') =~ /^Mode:/m)
	{
		if (waitpid($self->{pid}, POSIX::WNOHANG()) != 0)
		{
			delete $self->{pid};
			croak "ZooKeeper did not start, see $self->{logfile}";
		}
		croak "ZooKeeper does not serve, see $self->{logfile}"
		  if time > $deadline;
		usleep(50_000);
	}
	return;
}

# Ends the process by a signal and waits for its end.
sub _end
{
	my ($self, $signal) = @_;

	return unless $self->{pid};
	print "### Sending $signal to ZooKeeper \"$self->{name}\"\n";
	kill $signal, $self->{pid};
	kill 'CONT', $self->{pid};
	waitpid $self->{pid}, 0;
	delete $self->{pid};
	return;
}

sub stop { return $_[0]->_end('TERM'); }
sub kill9 { return $_[0]->_end('KILL'); }

sub restart
{
	my ($self) = @_;

	$self->stop;
	$self->start;
	return;
}

# Restarts the server with another counter of creates of a znode, which the
# numbers of its next sequential children come from.
sub restart_with_counter
{
	my ($self, $path, $counter) = @_;

	# It writes a snapshot when it starts, and begins a log with the first write.  If it
	# is stopped in that moment, the log may be empty, and it does not start again.
	# The client repeats a set; it would not repeat a sequential create.
	$self->restart;
	$self->client->set('/', '');
	$self->stop;
	system($python, "$directory/zksnapshot.py", "$self->{dir}/data/version-2",
		$path, $counter) == 0
	  or croak "could not set the counter of $path";
	$self->start;
	return;
}

# Returns once no thread of it runs any more: until then it can answer.
sub pause
{
	my ($self) = @_;

	kill 'STOP', $self->{pid};
	usleep(1000) until !grep { _runs($_) } glob "/proc/$self->{pid}/task/*/stat";
	return;
}

# Whether a thread is not stopped; one that has ended is not there any more.
sub _runs
{
	my ($file) = @_;

	open my $stat, '<', $file or return 0;
	my $line = readline($stat) // '';
	close $stat;
	return $line =~ /\) ([A-Z])/ && $1 !~ /[TtZX]/;
}

sub resume
{
	my ($self) = @_;

	kill 'CONT', $self->{pid};
	return;
}

# The answer to one of ZooKeeper's four-letter words; undef if there is no server, or
# no whole answer within some seconds: a connection that was made while the server
# starts may never get one, and a server that has no time may be late.
sub four_letter
{
	my ($self, $word) = @_;

	my $socket = IO::Socket::INET->new(
		PeerAddr => '127.0.0.1',
		PeerPort => $self->{port},
		Timeout => 5) or return undef;
	$socket->sockopt(SO_RCVTIMEO, pack('l!l!', 2, 0));
	print $socket $word;
	$socket->flush;
	my $answer = '';
	while (PipedProgram::can_read($socket, 5))
	{
		my $n = sysread $socket, $answer, 65536, length $answer;
		return undef if !defined $n;
		return $answer if $n == 0;
	}
	return undef;
}

# The answer of a server that serves, as a pattern tells.  No answer says nothing: not
# that there is no session, nor no watch.  So this asks again.
sub _answer
{
	my ($self, $word, $pattern) = @_;
	my $deadline = time + $PostgreSQL::Test::Utils::timeout_default;
	my $answer;

	until (defined($answer = $self->four_letter($word)) && $answer =~ $pattern)
	{
		croak "ZooKeeper does not answer \"$word\", see $self->{logfile}"
		  if time > $deadline;
		usleep(50_000);
	}
	return $answer;
}

# What ZooKeeper counts: zk_packets_received, zk_watch_count,
# zk_ephemerals_count, zk_znode_count and many more.
sub mntr
{
	my ($self) = @_;

	return { $self->_answer('mntr', qr/^zk_/m) =~ /^(\S+)\t(.*)$/mg };
}

# Requests received so far.  Reading it costs one itself, which is not in the
# number.
sub packets_received { return $_[0]->mntr->{zk_packets_received} + 0; }

# { path => [ ids of the sessions that watch it, in lower-case hex ] }; none if the
# server says that it does not serve.
sub watches
{
	my ($self) = @_;
	my (%watches, $path);

	foreach my $line (split /\n/, $self->_answer('wchp', qr/^/))
	{
		if ($line =~ m{^(/.*)}) { $path = $1; }
		elsif ($line =~ /^\s+0x([0-9a-f]+)/) { push @{ $watches{$path} }, $1; }
	}
	return \%watches;
}

# Each watch on data, as "path session", in order.
sub data_watches
{
	my ($self) = @_;
	my $watches = $self->watches;
	my @all;

	foreach my $path (keys %$watches)
	{
		push @all, map { "$path $_" } @{ $watches->{$path} };
	}
	return [ sort @all ];
}

# How many watches on children there are, of all sessions, but for those by which each
# server watches the directory of the fleet: "wchp" shows those on data only.  ZooKeeper has no answer with both, so this asks again until the
# watches on data are the same before and after.
sub child_watches
{
	my ($self) = @_;
	my ($before, $all);
	my $after = $self->data_watches;

	do
	{
		$before = $after;
		$all = $self->mntr->{zk_watch_count};
		$after = $self->data_watches;
	} until "@$before" eq "@$after";
	return $all - @$after - $self->client->ls('/zklock/.fleet');
}

# The ids of the sessions that ZooKeeper knows of, in lower-case hex.
sub sessions
{
	my ($self) = @_;
	my $behind = qr/^ephemeral nodes dump/im;
	my ($sessions) = split $behind, $self->_answer('dump', $behind);

	return $sessions =~ /0x([0-9a-f]+)/g;
}

# The client that tests look at ZooKeeper with.
sub client
{
	my ($self) = @_;

	$self->{client} //= ZooKeeperClient->new($self->connect_string);
	return $self->{client};
}

# A session of its own, for a test to play another lock client with.
sub new_client
{
	my ($self, %params) = @_;

	return ZooKeeperClient->new($self->connect_string, %params);
}

END
{
	my $exit_code = $?;

	foreach my $server (@servers)
	{
		delete $server->{client};
		$server->kill9;
	}
	$? = $exit_code;
}

1;
