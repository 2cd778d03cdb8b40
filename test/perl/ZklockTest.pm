# One ZooKeeper and some PostgreSQL servers with zklock, for TAP tests.
#
#	my $test = ZklockTest->new(servers => 2);
#	my ($one, $two) = $test->nodes;
#	my $s = $test->session($one);
#	...
#	$test->finish;		# looks for leaks, stops everything, done_testing
#
# Options of new: servers (2), prefix of their names ('server'), conf (added
# to each postgresql.conf), session_timeout ('4s'), max_requests (200), zk
# (options for ZooKeeper.pm, or an object), start_zookeeper (1), net (a
# TcpProxy: each server gets its own routes to ZooKeeper, server1-zk, or
# server1-zk1 and so on of an ensemble), route (options of those routes).
#
# With ZKLOCK_TEST_TLS=1 in the environment the servers speak TLS to these routes.

package ZklockTest;

use strict;
use warnings;

use Carp;
use Exporter 'import';
use Test::More;
use Time::HiRes qw(usleep time);

use CertificateAuthority;
use PgSession;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use ServerTemplates;
use ZooKeeper;

our @EXPORT = qw(wait_for write_secret);

my $root = '/zklock';

# Polls until the condition holds; fails the test when it never does.
sub wait_for
{
	my ($condition, $what, $timeout) = @_;
	my $deadline =
	  time + ($timeout // $PostgreSQL::Test::Utils::timeout_default);

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	until ($condition->())
	{
		if (time > $deadline)
		{
			fail("in time: $what");
			return 0;
		}
		usleep(20_000);
	}
	return 1;
}

# Writes a file that only its owner can read.
sub write_secret
{
	my ($file, $text) = @_;

	unlink $file;
	append_to_file($file, $text);
	chmod 0600, $file or croak "could not chmod $file: $!";
	return;
}

sub new
{
	my ($class, %params) = @_;
	my $zk = $params{zk} // {};

	my $self = bless {
		zk => ref $zk eq 'HASH' ? ZooKeeper->new('zk', %$zk) : $zk,
		nodes => [],
		net => $params{net},
		route => { %{ $params{route} // {} } },
		max_requests => $params{max_requests} // 200,
	}, $class;
	$self->_use_tls if $self->net && $ENV{ZKLOCK_TEST_TLS};
	$self->{zk}->start if $params{start_zookeeper} // 1;

	foreach my $number (1 .. $params{servers} // 2)
	{
		my $node = $self->new_node(($params{prefix} // 'server') . $number,
			%params);
		$node->start;
		$node->safe_psql('postgres', 'CREATE EXTENSION zklock');
	}
	if ($params{start_zookeeper} // 1)
	{
		foreach my $node ($self->nodes)
		{
			$self->wait_connected($node)
			  or die $node->name . ' does not connect to ZooKeeper';
		}
	}
	return $self;
}

sub _use_tls
{
	my ($self) = @_;
	my $authority = CertificateAuthority->new('net');

	$self->{route}{tls} = $authority->issue('zookeeper', names => 'IP:127.0.0.1');
	$self->{tls_conf} = <<"EOC";
zklock.tls = 'verify-full'
zklock.tls_ca_file = '@{[ $authority->file ]}'
EOC
	return;
}

# An initialised server that is not started yet.
sub new_node
{
	my ($self, $name, %params) = @_;
	my $node = PostgreSQL::Test::Cluster->new($name);

	ServerTemplates::init($node, %{ $params{init} // {} });
	$node->append_conf('postgresql.conf',
		$self->settings(%params, name => $name));
	push @{ $self->{nodes} }, $node;
	return $node;
}

# Adds a streaming standby of a node, which needs init => { allows_streaming => 1 },
# with these lines in its configuration.
sub add_standby
{
	my ($self, $primary, $conf) = @_;
	my $standby = PostgreSQL::Test::Cluster->new('standby');

	$primary->backup('base');
	$standby->init_from_backup($primary, 'base', has_streaming => 1);
	$standby->append_conf('postgresql.conf', $conf) if $conf;
	$standby->start;
	push @{ $self->{nodes} }, $standby;
	$self->wait_connected($standby);
	return $standby;
}

sub settings
{
	my ($self, %params) = @_;
	my $timeout = $params{session_timeout} // '4s';
	my ($member) = $self->zk->servers;

	return <<"EOC" . ($self->{tls_conf} // '') . ($params{conf} // '');
shared_preload_libraries = 'zklock'
zklock.server_name = '$params{name}'
zklock.connect_string = '@{[ $self->connect_string($params{name}) ]}'
zklock.session_timeout = '$timeout'
zklock.tick_time = @{[ $member->tick_time ]}
zklock.max_requests = @{[ $params{max_requests} // $self->{max_requests} ]}
max_connections = 60
max_prepared_transactions = 5
log_statement = none
EOC
}

# Where a server of that name finds ZooKeeper.
sub connect_string
{
	my ($self, $name) = @_;

	return $self->zk->connect_string unless $self->net;
	return join ',',
	  map { '127.0.0.1:' . $self->route("$name-" . $_->name, $_->port) }
	  $self->zk->servers;
}

# A route to a port of ZooKeeper's, as the servers have it
sub route
{
	my ($self, $name, $target) = @_;

	return $self->net->route($name, $target, %{ $self->{route} });
}

sub zk { return $_[0]->{zk}; }
sub net { return $_[0]->{net}; }
sub nodes { return @{ $_[0]->{nodes} }; }

# A client session; see PgSession.pm.
sub session
{
	my ($self, $node, %params) = @_;

	return PgSession->new($node, %params);
}

# One query in a session kept for looking, as psql -At shows it.
sub look
{
	my ($self, $node, $sql) = @_;
	my $looker = $self->{looker}{ $node->name };

	if (!$looker || $looker->{answer}{closed})
	{
		$looker = PgSession->new($node, application_name => 'looker');
		$self->{looker}{ $node->name } = $looker;
	}
	return $looker->query($sql);
}

# Forgets that session, before its server is stopped.
sub stop_looking
{
	my ($self, $node) = @_;
	my $looker = delete $self->{looker}{ $node->name };

	$looker->close if $looker;
	return;
}

# Polls a query until it has that answer; "before" is called ahead of each.
sub look_until
{
	my ($self, $node, $sql, $expected, $what, %params) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $seen = '';
	my $good = wait_for(
		sub {
			$params{before}->() if $params{before};
			$seen = eval { $self->look($node, $sql) } // "error: $@";
			return $seen eq $expected;
		},
		$what // $sql);
	diag "last seen: $seen" unless $good;
	return $good;
}

# Columns of the two views that have one row each
sub status
{
	my ($self, $node, $columns) = @_;

	return $self->look($node, "SELECT $columns FROM zk_status, zk_stat_server");
}

# A server's ZooKeeper session as ZooKeeper writes it: lower-case hex
sub session_hex
{
	my ($self, $node) = @_;

	return $self->status($node, 'session_id') =~ s/^0x0*//r;
}

# Its znode in the directory of the fleet; undef: there is none
sub fleet_znode
{
	my ($self, $node) = @_;
	my $hex = $self->session_hex($node);
	my ($name) = grep { /\.0*$hex$/ } $self->zk->client->ls('/zklock/.fleet');

	return $name ? "/zklock/.fleet/$name" : undef;
}

sub wait_connected
{
	my ($self, $node) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $self->look_until($node, 'SELECT state FROM zk_status',
		'connected', $node->name . ' connects to ZooKeeper');
}

# Changes settings of zklock by a reload.
sub set
{
	my ($self, $node, %settings) = @_;

	$node->safe_psql('postgres', "ALTER SYSTEM SET zklock.$_ = '$settings{$_}'")
	  foreach sort keys %settings;
	$node->reload;
	return;
}

# Changes settings of the connection, and waits for one with them.
sub connects_with
{
	my ($self, $node, $what, %settings) = @_;
	my $connects = $self->status($node, 'connects');

	$self->set($node, %settings);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$self->look_until($node,
			"SELECT state = 'connected' AND connects > $connects FROM zk_status, zk_stat_server",
			't', $what),
		$what)
	  || diag $self->status($node, 'state, last_error');
}

# Changes settings of the connection to some that do not work: it stays, with the old
# ones, and the last error matches.
sub keeps_connection
{
	my ($self, $node, $pattern, $what, %settings) = @_;
	my $connects = $self->status($node, 'connects');

	$self->set($node, %settings);
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$self->look_until($node,
			"SELECT state = 'connected' AND connects = $connects AND"
			  . " coalesce(last_error, '') ~ '^new settings of the connection are not used: .*$pattern'"
			  . ' FROM zk_status, zk_stat_server',
			't', $what),
		$what)
	  || diag $self->status($node, 'state, last_error');
}

# The znodes that queue for a lock, in their order, as ZooKeeper has them.
sub queue
{
	my ($self, $path) = @_;

	my @znodes = sort { substr($a, -10) cmp substr($b, -10) }
	  grep { /(?:__WRIT__|__READ__|-(?:lock|lease|latch)-|__r?lock__)\d{10}$/ }
	  $self->zk->client->ls($root . $path);
	return @znodes;
}

# Waits until a lock's queue has so many znodes in ZooKeeper itself.
sub wait_queue
{
	my ($self, $path, $length) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for(sub { scalar($self->queue($path)) == $length },
		"$length in the queue of $path");
}

# Waits until a server shows so many waiting requests for a lock.
sub wait_waiting
{
	my ($self, $node, $path, $count) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return $self->look_until(
		$node,
		"SELECT count(*) FROM zk_locks WHERE path = '$path' AND state = 'waiting'",
		$count,
		"$count waiting for $path on " . $node->name);
}

# Sends a blocking lock call, and returns once its znode is in the queue, so
# that calls made after it have a place behind it.
sub enqueue
{
	my ($self, $session, $sql, $path) = @_;
	my %before = map { $_ => 1 } $self->queue($path);

	# Others may leave the queue meanwhile: look for the new one.
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$session->send($sql);
	wait_for(sub { scalar grep { !$before{$_} } $self->queue($path) },
		"one more in the queue of $path");
	return $session;
}

# Whether a call ends by its timeout, and says so in words that match.  If the
# time ends before the znode is there, the call has waited for the worker or for
# ZooKeeper, not for other sessions: then it is tried again.
sub times_out
{
	my ($self, $session, $call, $words) = @_;
	my $sqlstate;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	wait_for(
		sub {
			$sqlstate = $session->error("SELECT $call");
			return $session->messages !~ /The wait was for/;
		},
		"$call waits for others");
	is($sqlstate, '55P03', "$call: its time is over");
	return like($session->messages, $words, "$call: and the error says so");
}

# True if a session that waits still does so once its server's worker has been
# to ZooKeeper and back, and so has seen all that happened before.
sub still_waits
{
	my ($self, $session) = @_;

	$self->look($session->{node}, "SELECT count(*) FROM zk_queue('/barrier')");
	return $session->busy;
}

# Cuts a server off until its ZooKeeper session is gone, with all that it holds
# on the lock "name", and returns once it has a new one.
sub lose_session
{
	my ($self, $node, $name) = @_;
	my $worker = $self->status($node, 'worker_pid');
	my $lost = $self->status($node, 'sessions_lost');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	kill 'STOP', $worker;
	kill 'KILL', $self->status($node, 'session_pid');
	$self->wait_queue($name, 0);
	kill 'CONT', $worker;
	return $self->look_until($node,
		"SELECT sessions_lost > $lost AND state = 'connected' FROM zk_status, zk_stat_server",
		't', "after losing $name, there is a new session");
}

# Waits until a process is gone.
sub wait_gone
{
	my ($self, $pid) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return wait_for(sub { !kill 0, $pid }, "process $pid ends");
}

# Ends a server's worker, and returns once the next one is connected: the session before
# has expired by then, if it was in use.
sub restart_worker
{
	my ($self, $node) = @_;
	my $worker = $self->status($node, 'worker_pid');

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	kill 'TERM', $worker;
	$self->wait_gone($worker);
	return $self->look_until($node,
		"SELECT worker_pid <> $worker AND state = 'connected' FROM zk_status",
		't', 'the next worker is connected');
}

# The znodes below the root that are neither a server's own nor a directory.
sub lock_znodes
{
	my ($self) = @_;

	return grep { /\d{10}$/ && !m{^\Q$root\E/\.(?:servers|fleet)/} }
	  $self->zk->client->tree($root);
}

# How many of so many locks a session gets, whose names begin so.  If its server loses
# the ZooKeeper session meanwhile, as one that has no time may, that says nothing:
# then it tries again.
sub _take_all
{
	my ($self, $session, $max, $names) = @_;
	my $answer;

	$session->query("SET zklock.max_requests_per_session = $max;"
		  . " SET zklock.lost_lock_action = 'cancel'");
	wait_for(
		sub {
			$session->send("SELECT count(*) FROM generate_series(1, $max) n"
				  . " WHERE zk_try_lock('$names' || n, '1min')");
			$answer = $session->result;
			return 1 if $session->sqlstate ne '40001';
			$self->wait_connected($session->{node});
			$session->query('SELECT zk_unlock_all()');
			return 0;
		},
		"$max locks below $names");
	return $answer->{error} ? $answer->{error}{text} : $answer->{rows}[0][0];
}

# Nothing may be left when all is released: no slot, no znode, no watch.
# Takes every slot of every server once, which proves that all are free.
sub check_no_leaks
{
	my ($self) = @_;

	foreach my $node ($self->nodes)
	{
		my $name = $node->name;
		next unless defined $node->{_pid};
		next if $self->look($node, 'SELECT pg_is_in_recovery()') eq 't';
		my $max = $self->look($node, 'SHOW zklock.max_requests');
		$self->wait_connected($node);
		$self->look_until($node, 'SELECT count(*) FROM zk_locks', 0,
			"$name: no lock left");
		my $all = $self->session($node);
		is($self->_take_all($all, $max, "/leak-check/$name-"),
			$max, "$name: all $max slots were free");
		$all->query('SELECT zk_unlock_all()');
		$all->close;
		$self->look_until($node, 'SELECT count(*) FROM zk_locks', 0,
			"$name: no lock left after that");
	}
	ok(wait_for(sub { !$self->lock_znodes }, 'all znodes deleted'),
		'no znode left in ZooKeeper')
	  or diag join "\n", $self->lock_znodes;
	my @watches;
	ok(wait_for(
			sub {
				@watches = grep { /\d{10}$/ } keys %{ $self->zk->watches };
				return !@watches;
			},
			'all watches gone'),
		'no watch left on a znode of a queue') or diag join "\n", @watches;
	return;
}

# No process of a server may have crashed: only what the test names may have
# been killed, as a pattern of log lines.
sub check_logs
{
	my ($self, $expected) = @_;

	foreach my $node ($self->nodes)
	{
		my @bad = grep {
			/PANIC|was terminated by signal|TRAP:|all server processes terminated|corrupted/
			  && !($expected && /$expected/)
		} split /\n/, slurp_file($node->logfile);
		is(join("\n", @bad), '', $node->name . ': nothing crashed');
	}
	return;
}

# Ends a test file.  Options: crashes (a pattern of log lines that are meant
# to be there), leaks => 0 to leave the check for leaks out.
sub finish
{
	my ($self, %params) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$self->check_no_leaks if $params{leaks} // 1;
	foreach my $node (reverse $self->nodes)
	{
		$self->stop_looking($node);
		$node->stop('fast');
	}
	$self->check_logs($params{crashes});
	$self->zk->stop;
	done_testing();
	return;
}

1;
