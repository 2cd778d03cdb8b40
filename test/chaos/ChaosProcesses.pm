# The processes of a PostgreSQL server, as Linux shows them, for a chaos run to
# kill and to stop: it must find them when the server itself cannot be asked.

package ChaosProcesses;

use strict;
use warnings;

use PostgreSQL::Test::Utils;

sub children
{
	my ($pid) = @_;
	my $path = "/proc/$pid/task/$pid/children";

	return () unless -e $path;
	return split ' ', eval { slurp_file($path) } // '';
}

sub descendants
{
	my ($pid) = @_;

	return map { ($_, descendants($_)) } children($pid);
}

sub title
{
	my ($pid) = @_;
	my $title = -e "/proc/$pid/cmdline"
	  ? eval { slurp_file("/proc/$pid/cmdline") } // ''
	  : '';

	return $title =~ tr/\0/ /r;
}

# zklock's worker of a server, and its session process; undef if not there
sub worker
{
	my ($postmaster) = @_;

	return (grep { title($_) =~ /^postgres: .*zklock/ } children($postmaster))[0];
}

sub session_process
{
	my ($postmaster) = @_;
	my $worker = worker($postmaster) or return undef;

	return (grep { title($_) =~ /zklock_session/ } children($worker))[0];
}

# The backends of clients
sub backends
{
	my ($postmaster) = @_;

	return grep {
		title($_) =~ /^postgres: .* postgres \S+ (idle|SELECT|INSERT|COMMIT|BEGIN|ROLLBACK|SET)/
	} children($postmaster);
}

# Kills all processes of a server at once, as the end of its host does, and
# returns when they are gone.  Stopped first, nobody gets a word out.
sub kill9_all
{
	my ($postmaster) = @_;

	kill 'STOP', $postmaster;
	my @pids = ($postmaster, descendants($postmaster));
	kill 'KILL', @pids;
	select undef, undef, undef, 0.01 while grep { is_alive($_) } @pids;
	return;
}

# False for a zombie too
sub is_alive
{
	my ($pid) = @_;
	my $stat = -e "/proc/$pid/stat" ? eval { slurp_file("/proc/$pid/stat") } : '';

	return ($stat // '') =~ /\) [^ZX] /;
}

1;
