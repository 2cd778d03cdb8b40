# The processes of a PostgreSQL server, as Linux shows them, for a chaos run to
# kill, to stop and to start: it must find them when the server itself cannot be
# asked.

package ChaosProcesses;

use strict;
use warnings;

use Time::HiRes qw(usleep);

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
	usleep(10_000) while grep { is_alive($_) } @pids;
	return;
}

# Starts a server after whatever ended it.  Its postmaster may still be a zombie
# for a while, or have left backends behind: PostgreSQL waits for neither.
sub start_again
{
	my ($node) = @_;

	foreach (1 .. 60)
	{
		return if $node->start(fail_ok => 1);
		undef $node->{_pid};
		usleep(500_000);
	}
	die $node->name . " does not start again\n";
}

# False for a zombie too
sub is_alive
{
	my ($pid) = @_;
	my $stat = -e "/proc/$pid/stat" ? eval { slurp_file("/proc/$pid/stat") } : '';

	return ($stat // '') =~ /\) [^ZX] /;
}

1;
