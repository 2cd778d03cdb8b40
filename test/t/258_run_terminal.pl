# zklock-run at a terminal, started by an interactive shell: the program reads the
# terminal, Ctrl-C ends it, Ctrl-Z suspends it with its lock, and the shell's job control
# treats it as it does any other command.

use strict;
use warnings;

use IPC::Run;
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
GRANT EXECUTE ON FUNCTION zk_try_reserve TO batch;
GRANT EXECUTE ON PROCEDURE zk_await_reservation TO batch;
EOS

# ---- a person at a terminal

$ENV{PS1} = 'ready> ';
$ENV{TERM} = 'dumb';
$ENV{HISTFILE} = '/dev/null';
my ($typed, $shown) = ('', '');
my $shell = IPC::Run::start([ 'bash', '--norc', '--noprofile', '--noediting', '-i' ],
	'<pty<', \$typed, '>pty>', \$shown, '2>&1');

# Types a text once the terminal shows what matches; what was shown before does not count.
sub sees
{
	my ($pattern, $what, $text) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	my $seen = wait_for(sub { $shell->pump_nb; return $shown =~ $pattern; }, $what);
	ok($seen, $what) or diag "shown: $shown";
	$shown = '';
	if (defined $text)
	{
		$typed .= $text;
		$shell->pump while length $typed;
	}
	return;
}

# A command line with zklock-run
sub typed
{
	my ($lock, @program) = @_;

	return join ' ', map { /^[\w\/=.-]+$/ ? $_ : "'$_'" }
	  $jobs->command($one, '-U', 'batch', '--quiet', '--grace=200ms', $lock, '--', @program);
}

my $reader = typed('/reader', 'sh', '-c', 'echo b"egin"s; while read -r line; do echo "has read $line"; done');
sees(qr/ready> /, 'a shell', "$reader; echo status=\$?\n");
sees(qr/begins/, 'a program runs', "one line\n");
sees(qr/has read one line/, 'it reads the terminal', "\cD");
sees(qr/status=0/, 'until its end', "$reader\n");
sees(qr/begins/, 'once more', "\cC");

# ---- Ctrl-C

sees(qr/ready> /, 'Ctrl-C ends it', "echo status=\$?\n");
sees(qr/status=130/, 'as the shell sees', "echo d\"on\"e\n");
sees(qr/done/, 'the shell goes on');
my $waiting = typed('/script', 'sh', '-c', 'echo b"egin"s; sleep 60');
append_to_file("$dir/script", "$waiting\necho after status=\$?\n");
$typed = "bash $dir/script\n";
sees(qr/begins/, 'a script runs it', "\cC");
sees(qr/^((?!after).)*ready> /s, 'Ctrl-C ends the script before its next command', "echo status=\$?\n");
sees(qr/status=130/, 'as the shell sees');

# ---- Ctrl-Z

sub renewals
{
	return $test->look($one,
		"SELECT coalesce(max(extract(epoch FROM query_start)), 0) FROM pg_stat_activity"
		  . " WHERE usename = 'batch'");
}

$typed = "$reader; echo status=\$?\n";
sees(qr/begins/, 'a program runs', "\cZ");
sees(qr/Stopped.*ready> /s, 'Ctrl-Z suspends it', "jobs\n");
my $other = $jobs->start($two, '--quiet', '/reader', '--', $jobs->job('other', 0.1));
$test->wait_waiting($two, '/reader', 1);
my $since = $test->look($one, 'SELECT extract(epoch FROM clock_timestamp())');

# It would have ended after 4 s (the session timeout), and the reservation after 5.2 s.
wait_for(sub { renewals() > $since + 6 }, 'its lock is renewed');
is(scalar(grep { /other/ } $jobs->lines), 0, 'nobody else has the lock');
sees(qr/Stopped/, 'it is still suspended', "fg\n");
sees(qr/while read/, 'the shell continues it', "another line\n");
sees(qr/has read another line/, 'it reads on', "\cD");
sees(qr/ready> /, 'until its end');
is($other->status, 0, 'then another one has the lock');

# A program that takes its time: the shell must not read the terminal beside it.
append_to_file("$dir/late",
	'$SIG{TSTP} = sub { sleep 1; syswrite STDOUT, "late\n"; kill STOP => $$; };'
	  . 'syswrite STDOUT, "begins\n"; sleep 60 while 1;');
$typed = typed('/late', 'perl', "$dir/late") . "\n";
sees(qr/begins/, 'a program that handles Ctrl-Z', "\cZ");
sees(qr/late.*Stopped.*ready> /s, 'is suspended when it has done so', "fg\n");
sees(qr/perl/, 'it goes on', "\cC");
sees(qr/ready> /, 'until its end');

# One that heeds no Ctrl-Z, and later stops by itself, is not what the Ctrl-Z was for, once
# zklock-run was suspended otherwise.
sub wait_renewals
{
	my $last = renewals();

	foreach (1 .. 2)
	{
		wait_for(sub { renewals() > $last }, 'zklock-run has looked for signals');
		$last = renewals();
	}
	return;
}

sub state_of
{
	my ($of) = @_;

	return join '', map { $_->{state} } grep { $_->{pid} == $of } LockedProgram::processes();
}

append_to_file("$dir/stays",
	'$SIG{TSTP} = sub { syswrite STDOUT, "stays\n" };'
	  . '$SIG{USR1} = sub { kill STOP => $$; syswrite STDOUT, "ends\n"; exit };'
	  . 'syswrite STDOUT, "begins $$\n"; sleep 60 while 1;');
$typed = typed('/stays', 'perl', "$dir/stays") . "\n";
wait_for(sub { $shell->pump_nb; $shown =~ /begins (\d+)/ }, 'a program runs');
my ($stays) = $shown =~ /begins (\d+)/;
my $run = getpgrp $stays;
sees(qr/begins/, 'a program that heeds no Ctrl-Z', "\cZ");
sees(qr/stays/, 'goes on');
wait_renewals();
kill 'TSTP', $run;
sees(qr/Stopped.*ready> /s, 'zklock-run alone is suspended', "fg\n");
sees(qr/perl/, 'and goes on');
wait_renewals();
kill 'USR1', $stays;
wait_for(sub { state_of($stays) eq 'T' }, 'then the program stops by itself');
wait_renewals();
isnt(state_of($run), 'T', 'for which zklock-run is not suspended');
kill 'CONT', $stays;
sees(qr/ends\s.*ready> /s, 'the program goes on to its end');

# It is killed while it is suspended.
$typed = typed('/killed', 'sh', '-c', 'echo b"egin"s $$; sleep 60') . "\n";
wait_for(sub { $shell->pump_nb; $shown =~ /begins (\d+)/ }, 'a program runs');
my ($pid) = $shown =~ /begins (\d+)/;
sees(qr/begins/, 'a program runs', "\cZ");
sees(qr/Stopped.*ready> /s, 'Ctrl-Z suspends it');
kill 'KILL', $pid;
$test->wait_queue('/killed', 0);
$typed = "wait %%; echo status=\$?\n";
sees(qr/status=137/, 'a program that was killed while suspended has ended');

# zklock-run is killed while it is suspended; a child in another session is not suspended.
append_to_file("$dir/gone",
	'setsid ' . $jobs->line('stubborn gone session', 60) . ' & ' . $jobs->line('stubborn gone', 60));
$typed = typed('/gone', 'sh', "$dir/gone") . "\n";
$shell->pump while length $typed;
$jobs->begins('stubborn gone session');
$jobs->begins('stubborn gone');
sees(qr/gone/, 'a program runs', "\cZ");
sees(qr/Stopped.*ready> /s, 'Ctrl-Z suspends it', "kill -9 `jobs -p`\n");
$other = $jobs->start($two, '--quiet', '/gone', '--', $jobs->job('after', 0.1));
sees(qr/ready> /, 'zklock-run is killed');
is($other->status, 0, 'another one has the lock');
cmp_ok($jobs->distance('stubborn gone', 'after'), '>', 0, 'when the program is dead');

# ---- in the background

$typed = "$reader &\n";
sees(qr/begins/, 'a program in the background');
wait_for(
	sub {
		$typed = "jobs\n" unless length $typed;
		$shell->pump_nb;
		return $shown =~ /Stopped/;
	},
	'it wants to read the terminal');
sees(qr/Stopped/, 'it is suspended when it wants to read the terminal', "fg\n");
sees(qr/while read/, 'until it comes to the foreground', "third line\n");
sees(qr/has read third line/, 'where it reads', "\cD");
sees(qr/ready> /, 'until its end');

# ---- a pipeline

$typed = typed('/pipe', 'sh', '-c', 'echo from the program; sleep 0.2')
  . " | (cat; read -r line </dev/tty; echo \"the other has read \$line\")\n";
sees(qr/from the program/, 'a pipeline', "fourth line\n");
sees(qr/the other has read fourth line/, 'another program of it reads the terminal', "exit\n");
$shell->finish;
$test->finish;
