# zklock-run where it may make a cgroup: dev/test.sh has one for it, if root runs it and
# there are cgroups of version 2.  It ends those who leave their process group, their session
# and their parent again and again.

use strict;
use warnings;

use Test::More;

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $cgroup = $ENV{ZKLOCK_TEST_CGROUP};
plan skip_all => 'there is no cgroup for it' unless $cgroup && -e "$cgroup/cgroup.kill";

my $test = ZklockTest->new(servers => 1, session_timeout => '4s');
my ($one) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $jobs = LockedProgram->new("$dir/log");
append_to_file("$dir/chain", <<'EOS');
use POSIX qw(setsid);
do { setsid() } until fork;
EOS

# Starts it in that cgroup.
sub start
{
	my (@args) = @_;

	return $jobs->start_command('sh', '-c', "echo 0 >$cgroup/cgroup.procs && exec \"\$@\"", 'sh',
		$jobs->command($one, '--grace=200ms', @args));
}

sub made
{
	my @made = glob "$cgroup/zklock-run.*";

	return scalar @made;
}

sub place_of
{
	my ($pid) = @_;

	return (slurp_file("/proc/$pid/cgroup") =~ m{^0::(?:.*)/(.*)$}m)[0];
}

my $run = start('/a', '--', 'sh', '-c', $jobs->line('a', 60));
$jobs->begins('a');
my ($inner) = ($run->guards)[1];
my ($program) = grep { $_->{parent} == $inner } LockedProgram::processes();
is(place_of($program->{pid}), 'zklock-run.' . $run->pid, 'the program has a cgroup');
is(place_of($_), 'own', 'zklock-run and its guards are not in it') foreach $run->pid, $run->guards;
kill 'TERM', $run->pid;
is($run->status, 143, 'it ends');
is(made(), 0, 'and so does the cgroup');

$run = start('/b', '--', 'sh', '-c', $jobs->line('b', 60));
$jobs->begins('b');
kill 'KILL', $run->pid;
wait_for(sub { !made() }, 'the guards remove the cgroup, too');
$run->status;

# It is on its way to another process when it is found.
$run = start('/chain', '--', 'perl', "$dir/chain");
wait_for(sub { !$run->look->{harness}->pumpable }, 'a chain of processes ends');
is($run->status, 0, 'after the program');
like($run->err, qr/ended what "perl" had left running/, 'which is said');
is(made(), 0, 'with its cgroup');
$test->finish;
