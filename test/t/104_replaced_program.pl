# The program of the session process is replaced under a running server, as the
# upgrade of a package does it (row 53): by renaming another file over it, and by
# deleting it.  Whichever process ends then, the server starts the program that it
# had when it started, and all locks stay.  A running program cannot be overwritten
# in place; but if it happens between two processes, the server says that the two
# do not fit, until it is restarted.

use strict;
use warnings;

use File::Copy qw(cp);
use Test::More;

use FakeSession;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(servers => 1, session_timeout => '10s');
my ($other) = $test->nodes;

# A server with a library of its own
my $fake = FakeSession->new;
my $node = $test->new_node('upgraded', session_timeout => '10s',
	conf => $fake->conf . "restart_after_crash = on\n");
my $program = "$fake->{dir}/zklock_session";

# First without the script that runs fakes
rename $program, "$program.script" or die "could not rename: $!";
link "$fake->{dir}/real", $program or die "could not link: $!";
$node->start;
$fake->create_extension($node);
$test->wait_connected($node);
my $file = join ':', (stat $program)[ 0, 1 ];

# The processes of this user that run the program of the server's start
sub processes
{
	return grep {
		my @run = stat "/proc/$_/exe";
		@run && "$run[0]:$run[1]" eq $file
	} map { m{^/proc/(\d+)$} } glob '/proc/[0-9]*';
}

# Ends processes of the server, and waits until it serves again.
sub replace
{
	my ($case, %signals) = @_;
	my %old = map { $_ => $test->status($node, $_) } qw(worker_pid session_pid);
	my $connects = $test->status($node, 'connects');

	kill $signals{$_}, $old{$_} foreach sort keys %signals;
	$test->look_until($node,
		"SELECT session_pid <> $old{session_pid} AND connects > $connects"
		  . " AND state = 'connected' FROM zk_status, zk_stat_server",
		't', "$case: replaced");
	my $new = $test->status($node, 'session_pid');
	is_deeply([ processes() ], [$new], "$case: the same program, run once");
	chomp(my $shown = qx{ps -o comm=,args= -p $new});
	like($shown, qr/^zklock_session\s+zklock_session$/, "$case: ps shows its name");
	is($test->status($node, 'worker_pid') != $old{worker_pid},
		exists $signals{worker_pid}, "$case: the worker");
	return;
}

# Ends the session process while locks are held.
sub locks_stay
{
	my ($what) = @_;

	foreach my $case ([ 'the session process', session_pid => 'KILL' ])
	{
		my ($name, %signals) = @$case;
		my $holder = $test->session($node);
		my $waiter = $test->session($other);
		my $id = $test->status($node, 'session_id');
		my $token = $holder->query("SELECT zk_lock('/program')");

		$name = "$what, $name ends";
		$test->enqueue($waiter, "SELECT zk_lock('/program')", '/program');
		replace($name, %signals);
		is($test->status($node, 'session_id, sessions_lost'), "$id|0",
			"$name: the same session");
		is($holder->query("SELECT zk_fencing_token('/program')"),
			$token, "$name: the lock is held");
		is($test->look($node, "SELECT zk_try_lock('/other', '1min')"),
			't', "$name: others are granted");
		$test->look($node, "SELECT zk_unlock('/other')");
		ok($test->still_waits($waiter), "$name: the waiter waits");
		$holder->query("SELECT zk_unlock('/program')");
		cmp_ok($waiter->value, '>', $token, "$name: and is granted");
		$waiter->query("SELECT zk_unlock('/program')");
		$_->close foreach $holder, $waiter;
	}
	return;
}

# ---- in place
like(
	join('', run_command([ 'cp', "$fake->{dir}/zklock.so", $program ])),
	qr/Text file busy/,
	'a running program cannot be overwritten');

# ---- by a program that is not compatible: it notes that it was started
append_to_file("$program.new", "#!/bin/sh\n: >'$fake->{dir}/met'\n");
chmod 0755, "$program.new";
rename "$program.new", $program or die "could not rename: $!";
locks_stay('replaced');

# ---- deleted
unlink $program;
locks_stay('deleted');

# ---- after a crash all processes but the postmaster are new
my ($old) = processes();
my $worker = $test->status($node, 'worker_pid');
$test->stop_looking($node);
kill 'KILL', $worker;
$test->wait_gone($old);
ok(wait_for(
		sub {
			my ($status, $state) = $node->psql('postgres', 'SELECT state FROM zk_status');
			return $status == 0 && $state eq 'connected';
		},
		'it connects'),
	'after a crash it connects');
is_deeply([ processes() ], [ $test->status($node, 'session_pid') ], 'with the same program');
ok(!-e "$fake->{dir}/met", 'the other one was never started');

# ---- a server that starts without its program says so
my $log = -s $node->logfile;
$test->stop_looking($node);
$node->stop;
ok(!$node->start(fail_ok => 1), 'without the program it does not start');
like(slurp_file($node->logfile, $log),
	qr/FATAL:  could not open file "\Q$program\E": No such file or directory\n.*DETAIL:  zklock connects/,
	'and says why');

# ---- overwritten between two processes: the program is of another release
rename "$program.script", $program or die "could not rename: $!";
$node->start;
$test->wait_connected($node);
$log = -s $node->logfile;
$fake->always('another protocol');
my $holder = $test->session($node);
my $id = $test->status($node, 'session_id');
my $starts = $fake->starts;
$holder->query("SELECT zk_lock('/program')");
kill 'KILL', $test->status($node, 'session_pid');
wait_for(sub { $fake->starts >= $starts + 3 }, 'it was tried again and again');
my $message = qr/zklock_session \S+ is not of the release of the library \(their link protocols are 3 and 4\): restart PostgreSQL/;
like($test->status($node, 'last_error'), qr/^$message/, 'zk_status says why');
is(scalar(() = slurp_file($node->logfile, $log) =~ /$message/g), 1, 'and the log, in one line');
isnt($test->status($node, 'state'), 'connected', 'it does not connect');
$fake->never;
$test->wait_connected($node);
is($test->status($node, 'session_id'), $id, 'with one that fits, it goes on');
is($holder->query("SELECT zk_unlock('/program')"), 't', 'and holds its lock');
$holder->close;

# The worker was killed once.
$test->finish(crashes =>
	  qr/zklock worker.*was terminated by signal 9|all server processes terminated; reinitializing/);
