# The processes of zklock-run: its guards are replaced, and what the program has started ends
# with it.  What zklock-run was given, such as signals to ignore, reaches the program.  257
# has all ways of killing and stopping them, and 258 terminals.

use strict;
use warnings;

use Test::More;

use LockedProgram;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '4s');
my ($one, $two) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir();
my $jobs = LockedProgram->new("$dir/log");
$_->safe_psql('postgres', <<'EOS') foreach $one, $two;
CREATE ROLE batch LOGIN;
GRANT EXECUTE ON FUNCTION zk_try_reserve, zk_once, zk_time TO batch;
GRANT EXECUTE ON PROCEDURE zk_await_reservation TO batch;
EOS

my @batch = ('-U', 'batch', '--quiet', '--grace=1s');
sub command { return $jobs->command($_[0], @batch, @_[ 1 .. $#_ ]); }
sub start { return $jobs->start_command(command(@_)); }
sub begins { return $jobs->begins(@_); }

# A job that does not end before this file is there
sub gate { return "until [ -e '$dir/$_[0]' ]; do sleep 0.02; done"; }
sub open_gate { return append_to_file("$dir/$_[0]", ''); }

# Both guards, once they are there
sub guards
{
	my ($run, $but) = @_;
	my @guards;

	wait_for(
		sub {
			@guards = $run->guards;
			return 2 == grep { defined && $_ != ($but // 0) } @guards;
		},
		'two guards');
	return @guards;
}

sub is_free
{
	my ($lock, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return is($test->look($one, "SELECT count(*) FROM zk_locks WHERE path = '$lock' AND state = 'kept'"),
		0, $name);
}

# ---- a guard that dies

my @least = ('--once=1 day', '--guarantee=at_least_once', '/least', '--');
my $run = start($one, @least, 'sh', '-c', gate('least'));
my ($outer, $inner) = guards($run);
kill 'KILL', $outer;
my ($next) = guards($run, $outer);
isnt($next, $outer, 'a guard that was killed is replaced');
kill 'KILL', $next;
guards($run, $next);
open_gate('least');
is($run->status, 0, 'the program ends as it wants to');
is($run->err, '', 'nothing is said of that');
my ($status, $out, $err) = $jobs->run_it($two, @batch, @least, 'echo', 'again');
is("$status $out", '0 ', 'its run was recorded');
$run = start($one, '/inner', '--', 'sh', '-c', $jobs->line('child', 60) . ' & ' . gate('never'));
begins('child');
($outer, $inner) = guards($run);
kill 'KILL', $inner;
is($run->status, 137, 'the program ends with its parent, the inner guard');
like($run->err, qr/the guard of "sh" was killed, and with it the program/, 'which is said');
is_free('/inner', 'the lock is given up');

# ---- a guard that is stopped

$run = start($one, '/stopped', '--', 'sh', '-c', gate('stopped') . '; exit 4');
kill 'STOP', guards($run);
open_gate('stopped');
is($run->status, 4, 'guards that are stopped go on');

# ---- nobody hears what zklock-run says

my $unheard = join ' ', map { "'$_'" }
  command($one, '--at-most=200ms', '/unheard', '--', $jobs->job('unheard', 60));
$jobs->start_command('bash', '-c', "{ $unheard; echo \$? >'$dir/unheard'; } 2> >(exec 0<&-)")->status;
is(slurp_file("$dir/unheard"), "143\n", 'a closed standard error does not end it');

# ---- the connection

$run = start($one, '/files', '--', 'sh', '-c', $jobs->line('files', 0.01) . '; ' . gate('files'));
begins('files');
my @sockets = map {
	my $pid = $_;
	scalar grep { (readlink $_) =~ /^socket:/ } glob "/proc/$pid/fd/*";
} guards($run), $run->pid;
is("@sockets", '0 0 1', 'no guard has the connection');
open_gate('files');
$run->status;

# ---- all that the program has started

# A program that has a child in another process group, and one in another session, to
# which nobody listens; it goes on behind a gate.
sub start_family
{
	my ($name, @options) = @_;
	my ($group, $session) =
	  map { $jobs->line("stubborn $name $_", 60) . ' >/dev/null 2>&1' } qw(group session);
	my $run = start($one, '--grace=200ms', @options, "/$name", '--', 'bash', '-c',
		"set -m; $group & setsid $session & " . gate($name) . '; exit 5');

	begins("stubborn $name $_") foreach qw(group session);
	return $run;
}

sub are_gone
{
	my ($name, $what) = @_;
	my @left;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	foreach my $file (glob '/proc/[0-9]*/cmdline')
	{
		open my $in, '<', $file or next;
		push @left, $file if (<$in> // '') =~ /\Q$dir\E.*stubborn \Q$name\E/s;
	}
	return is("@left", '', $what);
}

my $holder = $test->session($two);
$run = start_family('family');
$holder->query("SELECT zk_break_lock('/family')");
is($run->status, 143, 'the end of the lock ends the program');
are_gone('family', 'and all that it has started');
is(scalar(grep { /family (group|session) term/ } $jobs->lines), 2, 'with one SIGTERM to each');

$run = start_family('rest');
open_gate('rest');
is($run->status, 5, 'a program leaves processes');
are_gone('rest', 'they end before the lock is given up');
like($run->err, qr/ended what "bash" had left running/, 'which is said');
is_free('/rest', 'then it is given up');
$run = start($one, '/late', '--', 'sh', '-c', '(sleep 0.1; echo late) & echo early');
is($run->status, 0, 'they may end by themselves');
is($run->out, "early\nlate\n", 'for a moment');
is($run->err, '', 'without a word');

# One that leaves its parent, its process group and its session again and again
append_to_file("$dir/chain", 'use POSIX qw(setsid); do { setsid() } until fork;');
$run = start($one, '--grace=200ms', '/chain', '--', 'perl', "$dir/chain");
wait_for(sub { !$run->look->{harness}->pumpable }, 'a chain of processes ends');
is($run->status, 0, 'after the program');

# What the shell had started that became zklock-run is not the program's.
my $stranger = join ' ', map { "'$_'" } command($one, '/stranger', '--', 'true');
$run = $jobs->start_command('sh', '-c', "sh -c 'sleep 2; echo stranger' & exec $stranger");
is($run->status, 0, 'a child that it was given');
is($run->out, "stranger\n", 'lives on');

# ---- signals that are ignored

# The signals from 1 to 31 that the program ignores
sub ignored
{
	my ($ignored) = @_;
	my ($run) = $jobs->start_command('perl', '-e', "\$SIG{\$_} = 'IGNORE' foreach qw($ignored); exec \@ARGV",
		command($one, '/ignored', '--', 'grep', 'SigIgn', '/proc/self/status'));

	return 'hangs' unless wait_for(sub { !$run->look->{harness}->pumpable }, "it ends in spite of $ignored");
	$run->status;
	return hex(($run->out =~ /([0-9a-f]+)$/)[0]) & 0x7fffffff;
}
is(ignored(''), 0, 'the program ignores no signal');
is(ignored('CHLD'), 0, 'zklock-run needs SIGCHLD');
is(ignored('HUP INT PIPE'), 1 | 2 | 1 << 12, 'others stay ignored');
$holder->query("SELECT zk_lock('/nohup')");
$run = $jobs->start_command('nohup', command($one, '/nohup', '--', 'sh', '-c', 'kill -HUP $$; exit 6'));
$test->wait_waiting($one, '/nohup', 1);
kill 'HUP', $run->pid;
$holder->query("SELECT zk_unlock('/nohup')");
is($run->status, 6, 'nohup');
$holder->close;
$test->finish;
