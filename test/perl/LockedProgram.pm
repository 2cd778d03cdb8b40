# Programs under zklock-run that write down when they live.
#
#	my $jobs = LockedProgram->new("$dir/log");
#	my $run = $jobs->start($node, '/lock', '--', $jobs->job('first', 60));
#	$jobs->begins('first');
#	kill 'KILL', $run->pid;
#	is($run->status, 'signal 9');
#	$run->deadline - clock_gettime(CLOCK_BOOTTIME);	# its program has so many seconds
#
# A job writes a line every 10 ms, with the time of a clock that all have in common.
# One whose name has "stubborn" in it does not end at SIGTERM, but writes that down.

package LockedProgram;

use strict;
use warnings;

use Carp;
use File::Basename;
use IPC::Run;

use PostgreSQL::Test::Utils;
use ZklockTest;

sub new
{
	my ($class, $log) = @_;
	my $script = dirname($log) . '/job';

	append_to_file($script, <<'EOS') unless -e $script;
use Time::HiRes qw(clock_gettime usleep CLOCK_MONOTONIC);
my ($log, $name, $seconds, $status) = @ARGV;
open my $file, '>>', $log or die;
$file->autoflush(1);
$SIG{TERM} = sub { printf $file "%.3f %s term\n", clock_gettime(CLOCK_MONOTONIC), $name; }
  if $name =~ /stubborn/;
my $end = clock_gettime(CLOCK_MONOTONIC) + $seconds;
while ((my $now = clock_gettime(CLOCK_MONOTONIC)) < $end)
{
	printf $file "%.3f %s\n", $now, $name;
	usleep(10_000);
}
exit($status // 0);
EOS
	return bless { log => $log, script => $script }, $class;
}

# The words of a job's command, and the same as a line for the shell
sub job
{
	my ($self, @args) = @_;

	return ('perl', $self->{script}, $self->{log}, @args);
}

sub line
{
	my ($self, @args) = @_;

	return join ' ', map { "'$_'" } $self->job(@args);
}

sub lines
{
	my ($self) = @_;

	return -e $self->{log} ? split(/\n/, slurp_file($self->{log})) : ();
}

sub begins
{
	my ($self, $name) = @_;

	return wait_for(sub { scalar grep { / \Q$name\E$/ } $self->lines }, "$name begins");
}

# Seconds between the last sign of life of one, or of another one whose name begins so,
# and the first one of the next
sub distance
{
	my ($self, $first, $next) = @_;
	my ($end) = sort { $b <=> $a } map { /^(\S+) \Q$first\E(?: |$)/ } $self->lines;
	my ($begin) = map { /^(\S+) \Q$next\E$/ } $self->lines;

	return $begin - $end;
}

# The words of zklock-run's command
sub command
{
	my ($self, $node, @args) = @_;

	return ('zklock-run', '-d', $node->connstr('postgres'), @args);
}

sub start
{
	my ($self, $node, @args) = @_;

	return $self->start_command($self->command($node, @args));
}

# Starts a command that becomes zklock-run.  Unlike a test, it does not ignore SIGPIPE.
sub start_command
{
	my ($self, @words) = @_;
	my ($out, $err) = ('', '');
	my $run = bless { out => \$out, err => \$err }, 'LockedProgram::Run';

	$run->{harness} = IPC::Run::start(\@words, '<', \undef, '>', \$out, '2>', \$err,
		init => sub { $SIG{PIPE} = 'DEFAULT'; });
	$run->{pid} = $run->{harness}{KIDS}[0]{PID};
	return $run;
}

# Status, and what was said on both channels
sub run_it
{
	my ($self, $node, @args) = @_;
	my $run = $self->start($node, @args);

	return ($run->status, $run->out, $run->err);
}

# All living processes: number, state, parent, name
sub processes
{
	my @all;

	foreach my $file (glob '/proc/[0-9]*/stat')
	{
		open my $stat, '<', $file or next;
		my $line = <$stat> // next;
		push @all, { pid => $1, name => $2, state => $3, parent => $4 }
		  if $line =~ /^(\d+) \((.*)\) (\S) (\d+)/ && $3 ne 'Z';
	}
	return @all;
}

package LockedProgram::Run;

sub pid { return $_[0]{pid}; }
sub out { return ${ $_[0]{out} }; }
sub err { return ${ $_[0]{err} }; }

# When the program is told to end if the lock is not renewed, in seconds of CLOCK_BOOTTIME:
# what its guards go by, as the first thing in the memory that they share with zklock-run
# (guard.c).  0 while there is none.
sub deadline
{
	my ($self) = @_;

	$self->{shared} //= $self->_shared_memory // return 0;
	open my $memory, '<:raw', '/proc/' . $self->pid . '/mem' or return 0;
	my $bytes = '';
	sysseek $memory, $self->{shared}, 0;
	sysread $memory, $bytes, 8;
	return length $bytes == 8 ? unpack('q', $bytes) / 1000 : 0;
}

sub _shared_memory
{
	my ($self) = @_;

	open my $maps, '<', '/proc/' . $self->pid . '/maps' or return undef;
	my ($place) = map { /^([0-9a-f]+)-\S+ rw-s .*\/dev\/zero/ } <$maps>;
	no warnings "portable";
	return defined $place ? hex $place : undef;
}

# Takes in what it has said so far.
sub look
{
	my ($self) = @_;

	$self->{harness}->pump_nb;
	return $self;
}

# Waits for its end.
sub status
{
	my ($self) = @_;

	$self->{harness}->finish;
	my $status = $self->{harness}->full_result;
	return $status & 127 ? 'signal ' . ($status & 127) : $status >> 8;
}

# Its guards, as far as they are there: the outer one, and the inner one, which is the
# parent of the program.
sub guards
{
	my ($self) = @_;
	my @all = LockedProgram::processes();
	my %parent = map { $_->{pid} => $_->{parent} } @all;
	my %is_guard = map { $_->{pid} => 1 } grep { $_->{name} eq 'zklock-guard' } @all;
	my @guards =
	  grep { $parent{$_} == $self->pid || ($parent{ $parent{$_} } // 0) == $self->pid } keys %is_guard;
	my %has_program = map { $_->{parent} => 1 } grep { !$is_guard{ $_->{pid} } } @all;
	my ($inner) = grep { $has_program{$_} } @guards;
	my ($outer) = grep { !$has_program{$_} } @guards;

	return ($outer, $inner);
}

1;
