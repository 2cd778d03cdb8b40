# The processes of a PostgreSQL server, as Linux shows them, for a chaos run to
# kill, to stop and to start: it must find them when the server itself cannot be
# asked.

package ChaosProcesses;

use strict;
use warnings;

use POSIX ();
use Time::HiRes qw(usleep);

use ChaosClient;
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
		title($_) =~ m{^postgres:\ .*\ postgres\ \S+\ (idle|SELECT|INSERT
			|COMMIT|BEGIN|ROLLBACK|SET)}x
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

# The longest time that a process did not sleep, by looking at it each
# millisecond: an upper bound for one turn of its loop, what it waited for a
# processor included.  Runs beside the code given.
sub longest_turn
{
	my ($pid, $code) = @_;

	pipe my $result, my $write;
	my $watcher = fork() // die "could not fork: $!";
	if ($watcher == 0)
	{
		my ($longest, $since, $sleeps) = (0, ChaosClient::now(), -1);
		my $done = 0;
		local $SIG{TERM} = sub { $done = 1; };

		while (!$done)
		{
			open my $status, '<', "/proc/$pid/status" or last;
			my $text = do { local $/ = undef; readline $status };
			my ($state) = $text =~ /^State:\s+(\w)/m;
			my ($count) = $text =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
			my $now = ChaosClient::now();

			$since = $now if $count != $sleeps || $state eq 'S';
			$longest = $now - $since if $now - $since > $longest;
			$sleeps = $count;
			usleep(1000);
		}
		syswrite $write, $longest;
		POSIX::_exit(0);
	}
	$code->();
	kill 'TERM', $watcher;
	sysread $result, my $longest, 100;
	waitpid $watcher, 0;
	return $longest;
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
