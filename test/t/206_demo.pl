# dev/demo.sh tells its story, line by line; --keep leaves servers to which its psql
# commands connect, and on SIGINT everything is gone.

use strict;
use warnings;

use Test::More;

use Document;
use IPC::Run ();
use PostgreSQL::Test::Utils;

sub day { return int((time + 30) / 86400); }

my $day = day();
my ($out, $err) = ('', '');
my $demo = IPC::Run::start(
	[ Document->path('dev/demo.sh'), '--installed', '--keep' ],
	'<', \undef, '>', \$out, '2>', \$err,
	IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default));
$demo->pump until $out =~ /^psql .*berlin.*\n^psql .*paris.*\n/m || !$demo->pumpable;

my ($story, $commands) = $out =~ /^(== .*?)\n\n== Try it .*? ==\n(.*)/ms
  or diag $out, $err;
my @lines = split /\n/, $story =~ s/\[ *\d+\.\d s\]/[time]/gr =~ s/\b\d+\.\d s\b/TIME/gr;
my @expected = map { s/\n//r } readline DATA;
cmp_ok(scalar @lines, '<=', 40, 'the story has 40 lines at most');
# A day of zk_once() begins half a minute before midnight UTC.
$lines[-1] =~ s/true$/false/ if day() != $day;
is($lines[$_], $expected[$_], 'line ' . ($_ + 1) . ': ' . ($expected[$_] // 'none'))
  foreach 0 .. (@lines > @expected ? $#lines : $#expected);

my @pids;
my ($work) = $commands =~ m{-h (/\S+)/berlin };
foreach my $command (split /\n/, $commands)
{
	is(`$command -A -t -c "SELECT state FROM zk_status"`, "connected\n", $command);
}
foreach my $file (map { "$work/$_" } 'zookeeper.pid', 'berlin/postmaster.pid',
	'paris/postmaster.pid')
{
	push @pids, slurp_file($file) =~ /^(\d+)/;
}
is(kill(0, @pids), 3, 'all servers run');

$demo->signal('INT');
ok($demo->finish, 'SIGINT ends the demo');
is($err, '', 'without a message of an error');
ok(!-e $work, 'its directory is gone');
is(kill(0, @pids), 0, 'and so are its servers');
done_testing();

__DATA__
== The nightly job starts on both servers ==
[time] berlin: zk_try_xact_lock('/nightly') is true, it runs the job
[time] paris: zk_try_xact_lock('/nightly') is false, it skips the job

== kill -9 for all processes of berlin, in the middle of the job ==
[time] paris: waits in zk_xact_lock('/nightly')
[time] berlin: is dead
[time] paris: has the lock, TIME later, as the session timeout is 4 s
[time] paris: SELECT position, server, mode, usename FROM zk_queue('/nightly')
            position | server |   mode    | usename
           ----------+--------+-----------+---------
                   1 | paris  | exclusive | demo
[time] paris: COMMIT, the job is done (1 report)
[time] berlin: runs again, without the transaction that was under way (0 reports)

== ZooKeeper stops under a commit ==
[time] ZooKeeper: is dead, paris has the lock
[time] paris: COMMIT waits, as ZooKeeper does not confirm the lock
[time] ZooKeeper: starts again
[time] paris: COMMIT, after TIME (2 reports)

== Both servers want the summary, once a day ==
[time] berlin: zk_once('/summary', '1 day') is true
[time] paris: zk_once('/summary', '1 day') is false
