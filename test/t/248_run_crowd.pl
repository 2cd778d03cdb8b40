# A hundred programs under zklock-run at the same time, for a minute, as an ordinary role,
# with the defaults of zklock-run and of zklock: while twenty busy processes for each
# processor leave little time to them, to the server and to ZooKeeper, none is ended.

use strict;
use warnings;

use List::Util qw(min);
use POSIX qw(mkfifo);
use Test::More;
use Time::HiRes qw(clock_gettime usleep CLOCK_BOOTTIME);

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $programs = 100;
my $seconds = 60;
chomp(my $processors = `nproc`);

# Each has a connection, and PostgreSQL's default leaves 97 to ordinary roles.
my $test = ZklockTest->new(
	servers => 1,
	session_timeout => '10s',
	max_requests => 1000,
	conf => "max_connections = 130\n");
my ($node) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $jobs = LockedProgram->new("$dir/log");

$node->safe_psql('postgres', <<'EOS');
CREATE ROLE batch LOGIN;
GRANT EXECUTE ON FUNCTION zk_try_reserve TO batch;
GRANT EXECUTE ON PROCEDURE zk_await_reservation TO batch;
EOS

# Among sessions, not processes, the kernel may share time out: so each has its own, as
# with cron.
my $loop = 'POSIX::setsid(); $parent = getppid; while (getppid == $parent) { 1 for 1 .. 1e5 }';
my @busy = map { IPC::Run::start([ 'perl', '-MPOSIX', '-e', $loop ]) } 1 .. 20 * $processors;

# They end when somebody opens that to write.
mkfifo("$dir/end", 0600) or die "could not make a pipe: $!";
my @runs = map {
	$jobs->start_command('setsid',
		$jobs->command($node, '-U', 'batch', "/crowd/$_", '--', 'cat', "$dir/end"))
} 1 .. $programs;
wait_for(sub { $programs == grep { $_->deadline > 0 } @runs }, 'all have their locks');

# Looks how near the end was each time that it was moved.
my (%deadline, @left);
my $until = clock_gettime(CLOCK_BOOTTIME) + $seconds;
while (clock_gettime(CLOCK_BOOTTIME) < $until)
{
	foreach my $run (@runs)
	{
		my $deadline = $run->deadline;

		push @left, $deadline{ $run->pid } - clock_gettime(CLOCK_BOOTTIME)
		  if $deadline != ($deadline{ $run->pid } // $deadline);
		$deadline{ $run->pid } = $deadline;
	}
	usleep(10_000);
}
my $load = slurp_file('/proc/loadavg') =~ s/ .*//sr;
open my $pipe, '>', "$dir/end" or die "could not open the pipe: $!";
close $pipe;
is(join(' ', map { $_->status } @runs), join(' ', (0) x $programs), 'no program was ended')
  or diag map { $_->err } @runs;
diag sprintf('the load was %s; the end of a program was moved %d times, by then %.2f s away at least',
	$load, scalar @left, min(@left));
$_->kill_kill foreach @busy;
$test->finish;
