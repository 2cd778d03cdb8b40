# What is reached through SQL, by pgbench: zklock itself, PostgreSQL's advisory
# locks, and statements that do nothing, which show what is left for any lock.
# All three run with the same options and the same number of statements.
#
# "zklock" caches locks (zklock.cache_time = 100ms), "uncached" does not; "words" is
# zklock whose servers send each other messages (zklock.peer_port); in a
# cluster 'tls' "tls" is zklock on the server that speaks TLS to ZooKeeper.
#
# For hand-overs sessions are driven by pgclient.c, a process for each server.

package PgContestants;

use strict;
use warnings;

use IPC::Run ();
use List::Util qw(max min);
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use PostgreSQL::Test::Utils;

# How a name is written in SQL, by the scenario's names
my %paths = (
	distinct => q{'/bench/distinct/' || :client_id},
	lone => q{'/bench/lone'},
	one => q{'/bench/one'},
	held => q{'/bench/held'});
my %keys = (
	distinct => '1, :client_id',
	one => '2, 0',
	held => '3, 0',
	lone => '5, 0');

# kind of scenario => scripts, with their weights; NAME and KEY are put in
my %scripts = (
	zklock => {
		pairs => ["SELECT zk_lock(NAME);\nSELECT zk_unlock(NAME);\n"],
		shared => [
			"SELECT zk_lock(NAME);\nSELECT zk_unlock(NAME);\n\@1",
			"SELECT zk_lock_shared(NAME);\nSELECT zk_unlock_shared(NAME);\n\@9"
		],
		try => ["SELECT 1 / (NOT zk_try_lock(NAME))::int;\n"],
		reentry => [
			"\\if :held = 0\nSELECT zk_lock(NAME);\n\\set held 1\n\\endif\n"
			  . "SELECT zk_lock(NAME);\nSELECT zk_unlock(NAME);\n"
		],
		onestatement => ["SELECT zk_lock(NAME), zk_unlock(NAME);\n"],
	},
	advisory => {
		pairs => [
			"SELECT pg_advisory_lock(KEY);\nSELECT pg_advisory_unlock(KEY);\n"
		],
		shared => [
			"SELECT pg_advisory_lock(KEY);\nSELECT pg_advisory_unlock(KEY);\n\@1",
			"SELECT pg_advisory_lock_shared(KEY);\n"
			  . "SELECT pg_advisory_unlock_shared(KEY);\n\@9"
		],
		try => ["SELECT 1 / (NOT pg_try_advisory_lock(KEY))::int;\n"],
		reentry => [
			"\\if :held = 0\nSELECT pg_advisory_lock(KEY);\n\\set held 1\n\\endif\n"
			  . "SELECT pg_advisory_lock(KEY);\nSELECT pg_advisory_unlock(KEY);\n"
		],
		onestatement =>
		  ["SELECT pg_advisory_lock(KEY), pg_advisory_unlock(KEY);\n"],
	},
	sql => {
		pairs => ["SELECT 1;\nSELECT 1;\n"],
		onestatement => ["SELECT 1, 1;\n"],
	});
$scripts{$_} = $scripts{zklock} foreach qw(tls uncached words);

my %servers = (tls => 1);    # others: 0

sub new
{
	my ($class, $name, $cluster) = @_;

	return bless {
		name => $name,
		cluster => $cluster,
		server => $servers{$name} // 0,
		dir => PostgreSQL::Test::Utils::tempdir("pgbench_$name"),
		program => Contestants::Program->new($name, $cluster, root()),
	}, $class;
}

sub root { return '/zklock/bench'; }

# ---- runs of pgbench ----

sub _script_files
{
	my ($self, $scenario) = @_;
	my $names = $scenario->{names};
	my $draw = $names =~ /^\d+$/ ? "\\set n random(0, $names - 1)\n" : '';
	my $path = $paths{$names} // q{'/bench/many/' || :n};
	my $key = $keys{$names} // '4, :n';
	my $scripts = $scripts{ $self->{name} }{ $scenario->{kind} }
	  or die "$self->{name} has no $scenario->{kind}\n";
	my @options;

	foreach my $i (0 .. $#$scripts)
	{
		my $file = "$self->{dir}/$scenario->{name}.$i.sql";
		my ($text, $weight) = $scripts->[$i] =~ /^(.*?)(\@\d+)?$/s;

		$text =~ s/NAME/$path/g;
		$text =~ s/KEY/$key/g;
		unlink $file;
		append_to_file($file, $draw . $text);
		push @options, '-f', $file . ($weight // '');
	}
	return @options;
}

# Returns rate (per second), total (warm-up included), p50 and p99 (ms).
sub run
{
	my ($self, @what) = @_;

	return $self->result($self->begin(@what));
}

# Starts a run, for "result" to wait for.  The scenario may set how many pairs
# a second there are, no matter how many there could be.
sub begin
{
	my ($self, $scenario, $seconds, $warmup) = @_;
	my $node = $self->{cluster}->node($self->{server});
	my $clients = $scenario->{clients};
	my $log = "$self->{dir}/log-$scenario->{name}";

	# pgbench's time begins before its connections are made.
	my @command = (
		'pgbench', '-n', '-M', 'prepared', '-h', $node->host, '-p', $node->port,
		'-c', $clients, '-j', min($clients, 2), '-D', 'held=0',
		'-T', $warmup + $seconds + int($clients / 64), '-l',
		'--log-prefix', $log,
		$scenario->{rate} ? ('-R', $scenario->{rate}) : (),
		$self->_script_files($scenario), 'postgres');
	my %run = (log => $log, seconds => $seconds, warmup => $warmup, err => '');

	unlink glob "$log.*";
	$run{program} = IPC::Run::start(\@command, '<', \'', '>', \$run{out}, '2>',
		\$run{err});
	return \%run;
}

sub result
{
	my ($self, $run) = @_;

	$run->{program}->finish
	  or die 'pgbench: '
	  . ($run->{err} =~ /^pgbench: error: (.*)/m ? $1 : $run->{err}) . "\n";
	return $self->_evaluate(@$run{qw(log seconds warmup)});
}

# From pgbench's log of all transactions: those that began after the warm-up
# and ended within the time, which is counted from the first transaction on.
# Its own average would include the first calls of all the new sessions.
sub _evaluate
{
	my ($self, $log, $seconds, $warmup) = @_;
	my (@begins, @lengths, @times);

	foreach my $file (glob "$log.*")
	{
		open my $log, '<', $file or die "$file: $!";
		while (my $line = readline $log)
		{
			my (undef, undef, $us, undef, $end_s, $end_us, $lag) = split ' ', $line;

			# With a rate, it counts from when it should have begun.
			$us -= $lag // 0;
			push @begins, $end_s + ($end_us - $us) / 1e6;
			push @lengths, $us / 1e6;
		}
		close $log;
		unlink $file;
	}
	die "pgbench has done no transaction\n" unless @begins;
	my $from = min(@begins) + $warmup;
	my $to = min($from + $seconds, max(@begins));
	die "pgbench had no time left\n" if $to < $from + $seconds / 2;
	foreach my $i (0 .. $#begins)
	{
		push @times, $lengths[$i] * 1000
		  if $begins[$i] >= $from && $begins[$i] + $lengths[$i] <= $to;
	}
	@times = sort { $a <=> $b } @times;
	return {
		rate => @times / ($to - $from),
		total => scalar(@begins),
		p50 => $times[ $#times * 0.5 ],
		p99 => $times[ $#times * 0.99 ],
	};
}

# ---- hand-overs: sessions that do as they are told ----

sub prepare { my $self = shift; return $self->{program}->prepare(@_); }
sub acquire { my $self = shift; return $self->{program}->acquire(@_); }
sub held { my $self = shift; return $self->{program}->held(@_); }
sub release { my $self = shift; return $self->{program}->release(@_); }
sub forget { my $self = shift; return $self->{program}->forget(@_); }
sub stop { my $self = shift; return $self->{program}->stop; }

1;
