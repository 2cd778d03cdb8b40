# The programs in examples/, with their real drivers, on two servers at once, as a role
# with the rights that their README names: one runs, the other one waits, without a
# snapshot; what ends the one lets the other one go on; and who has lost the lock does
# nothing more, and says so.  The constructs that they show release the lock at the end
# of the block, however it ends, and not only with the connection.

use strict;
use warnings;

use IPC::Run;
use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(conf => "listen_addresses = '127.0.0.1'\n", session_timeout => '4s');
my ($one, $two) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir('examples');
my $root = $test->session($one);
my $other = $test->session($two);
my $lock = '/examples/mails';

system('cp', '-r', Document->path('examples'), "$dir/") == 0 or die 'no examples';

# The first function is for those with a driver, the others are for zklock-run.
my ($rights) = slurp_file("$dir/examples/README.md") =~ /^The others need EXECUTE on (.*)/ms;
my ($for_driver, @for_run) = $rights =~ /`(zk_\w+)`/g;
my $for_run = join ', ', @for_run;
foreach my $node ($one, $two)
{
	append_to_file("$dir/" . $node->name,
		"[db1]\nhost=" . $node->host . "\nport=" . $node->port . "\ndbname=postgres\n");
	$node->safe_psql('postgres', 'CREATE ROLE driver LOGIN; CREATE ROLE runner LOGIN;'
		  . "GRANT EXECUTE ON ROUTINE $for_driver TO driver; GRANT EXECUTE ON ROUTINE $for_run TO runner");
}
my $user = 'driver';

sub have { return system("command -v $_[0] >/dev/null 2>&1") == 0; }

# Exit status of a command, and what it says
sub run_all
{
	my (@command) = @_;
	my $said = '';

	IPC::Run::run(\@command, '<', \undef, '>&', \$said);
	return ($? >> 8, $said);
}

# Without a registry there is no driver; any other failure is one of package.json.
sub npm_install
{
	return 0 unless have('npm');
	local $ENV{npm_config_cache} = "$dir/npm";
	my ($status, $said) = run_all('npm', 'install', '--loglevel=error', '--no-audit', '--no-fund',
		'--fetch-retries=1', '--fetch-timeout=60000', '--prefix', "$dir/examples/node");
	return 0
	  if $said =~ /\b(?:ECONNREFUSED|ECONNRESET|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|E\w*TIMEDOUT|E\w*TIMEOUT)\b/;
	is($status, 0, 'npm installs what package.json names') or diag $said;
	return 1;
}

# Programs that enter a block for each "begin", and leave it as the next line says
my %blocks = (python => <<'EOS', node => <<'EOS', java => <<'EOS');
import sys, psycopg
from mails import zk_lock
connection = psycopg.connect(sys.argv[1], autocommit=True)
while sys.stdin.readline():
    try:
        with zk_lock(connection, "/examples/mails") as lock:
            print("locked", lock.token(), flush=True)
            if sys.stdin.readline() == "fail\n":
                raise ValueError("fail")
        print("ended", flush=True)
    except Exception as error:
        print("error", getattr(error, "sqlstate", error), flush=True)
EOS
const { Client } = require('pg');
const { withLock } = require('./mails.js');
const lines = require('node:readline').createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const next = async () => (await lines.next()).value;
async function main() {
	const client = new Client({ connectionString: process.argv[2] });
	client.on('error', () => {});
	await client.connect();
	while (await next())
		try {
			const result = await withLock(client, '/examples/mails', async (lock) => {
				console.log('locked', lock.token);
				if (await next() === 'fail')
					throw new Error('fail');
				return 'ended';
			});
			console.log(result);
		} catch (error) {
			console.log('error', error.code ?? error.message);
		}
	await client.end();
}
main();
EOS
import java.io.*;
import java.sql.*;
class Blocks
{
	public static void main(String[] args) throws Exception
	{
		BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
		Connection connection = DriverManager.getConnection(args[0]);
		while (lines.readLine() != null)
		{
			try
			{
				try (Mails.ZkLock lock = new Mails.ZkLock(connection, "/examples/mails"))
				{
					System.out.println("locked " + lock.token());
					if (lines.readLine().equals("fail"))
						throw new Exception("fail");
				}
				System.out.println("ended");
			}
			catch (SQLException e) { System.out.println("error " + e.getSQLState()); }
			catch (Exception e) { System.out.println("error " + e.getMessage()); }
		}
	}
}
EOS

my $driver = '/usr/share/java/postgresql.jar';

sub node_url { return "postgresql:///postgres?host=@{[ $_[0]->host ]}&port=@{[ $_[0]->port ]}&user=$user"; }
sub java_url { return "jdbc:postgresql://127.0.0.1:@{[ $_[0]->port ]}/postgres?user=$user"; }

sub write_program
{
	my ($name, $text) = @_;

	append_to_file("$dir/examples/$name", $text);
	return "$dir/examples/$name";
}

sub compile_blocks
{
	system_or_bail('javac', '-d', "$dir/examples/java", "$dir/examples/java/Mails.java",
		write_program('java/Blocks.java', $blocks{java}));
	return ('java', '-cp', "$driver:$dir/examples/java", 'Blocks');
}

# What cron runs, with our paths
my ($cron) = slurp_file("$dir/examples/shell/mails.sh") =~
  m{^#\t\*/10 3-5 \* \* \*  (/usr/local/bin/mails.sh .*) </etc/mails/customers 2>&1 \| logger -t mails$}m
  or die 'another line of cron';
$cron =~ s{/usr/local/bin}{$dir/examples/shell};

my %examples = (
	python => {
		there => sub { system("python3 -c 'import psycopg' 2>/dev/null") == 0 },
		command => sub { ('python3', "$dir/examples/python/mails.py", 'service=db1') },
		blocks => sub { ('python3', write_program('python/blocks.py', $blocks{python}), 'service=db1') },
	},
	node => {
		there => \&npm_install,
		command => sub { ('node', "$dir/examples/node/mails.js", node_url($_[0])) },
		blocks => sub { ('node', write_program('node/blocks.js', $blocks{node}), node_url($_[0])) },
	},
	java => {
		there => sub { -e $driver },
		command => sub { ('java', '-cp', $driver, "$dir/examples/java/Mails.java", java_url($_[0])) },
		blocks => sub { (compile_blocks(), java_url($_[0])) },
	},
	shell => {
		there => sub { 1 },
		command => sub { ('sh', '-c', $cron) },
		once => 1,
	});

# A program that has ended does not end the test, too.
local $SIG{PIPE} = sub { };

# Starts a program; "in" is the pipe to it, "out" the file that it writes.
my $started = 0;

sub start
{
	my ($node, @command) = @_;
	my $p = { out => "$dir/out" . ++$started };

	local $ENV{PGSERVICEFILE} = "$dir/" . $node->name;
	local $ENV{PGUSER} = $user;
	$p->{limit} = IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default);
	$p->{harness} =
	  IPC::Run::start(\@command, '<pipe', $p->{in} = IO::Handle->new, '>&', $p->{out}, $p->{limit});
	$p->{in}->autoflush(1);
	return $p;
}

sub said { return slurp_file($_[0]{out}); }

sub says
{
	my ($p, $words, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(sub { said($p) =~ $words }, $name), $name) or diag said($p);
	return;
}

# Waits until it ends, but not forever; its exit status
sub status
{
	my ($p) = @_;

	$p->{limit}->start;
	eval { $p->{harness}->finish; 1 } or do { diag $@; $p->{harness}->kill_kill; };
	return $p->{harness}->full_result >> 8;
}

# The same, once it has read all
sub finish
{
	my ($p) = @_;

	close $p->{in};
	return status($p);
}

# A program on the second server waits, and holds back no VACUUM.
sub waits_ok
{
	my ($p, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$test->wait_queue($lock, 2);
	$test->look_until($two,
		"SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CALL zk_await_%'"
		  . " AND state = 'active' AND backend_xmin IS NULL",
		1, "$name, without a snapshot");
	unlike(said($p), qr/locked/, $name);
	return;
}

sub free_ok
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(sub { $other->query("SELECT zk_try_lock('$lock')") eq 't' }, $name), $name);
	$other->query("SELECT zk_unlock('$lock')");
	return;
}

sub end_session
{
	return $root->query("SELECT pg_terminate_backend(pid, 60000) FROM zk_locks"
		  . " WHERE path = '$lock' AND pid <> pg_backend_pid()");
}

# Tells such a program something; its answer
sub tell_it
{
	my ($p, $word) = @_;
	my $before = () = said($p) =~ /^(?:locked|ended|error)/mg;
	my @now;

	print { $p->{in} } "$word\n";
	wait_for(sub { @now = said($p) =~ /^((?:locked|ended|error).*)$/mg; @now > $before },
		"an answer to $word");
	return $now[-1];
}

# The ends of a block, in a program and a session that go on
sub test_blocks
{
	my ($name, @command) = @_;
	my $p = start($one, @command);

	like(tell_it($p, 'begin'), qr/^locked \d+$/, "$name: a block has the lock");
	is($other->query("SELECT zk_try_lock('$lock')"), 'f', "$name: which nobody else gets")
	  or $other->query("SELECT zk_unlock('$lock')");
	is(tell_it($p, 'end'), 'ended', "$name: the block ends");
	free_ok("$name: which releases the lock");
	like(tell_it($p, 'begin'), qr/^locked/, "$name: another block");
	is(tell_it($p, 'fail'), 'error fail', "$name: fails");
	free_ok("$name: which releases the lock, too");
	like(tell_it($p, 'begin'), qr/^locked/, "$name: a third one");
	$root->query("SELECT zk_break_lock('$lock')");
	is(tell_it($p, 'end'), 'error 40001', "$name: is told at its end that the lock was lost");
	like(tell_it($p, 'begin'), qr/^locked/, "$name: the session goes on");
	end_session();
	is(tell_it($p, 'fail'), 'error fail', "$name: without it, a block fails with its own error");
	is(finish($p), 0, "$name: that was all");
	return;
}

foreach my $name (sort keys %examples)
{
  SKIP:
	{
		my %is = %{ $examples{$name} };
		skip "no driver for $name: see dev/setup.sh (for node: or no registry)", 1 unless $is{there}->();
		$user = $is{once} ? 'runner' : 'driver';
		test_blocks($name, $is{blocks}->($one)) if $is{blocks};

		my $first = start($one, $is{command}->($one));
		says($first, qr/^locked \d+$/m, "$name: the first one has the lock");
		my $second = start($two, $is{command}->($two));
		waits_ok($second, "$name: the second one waits");
		print { $first->{in} } "alice\n";
		says($first, qr/^mail to alice$/m, "$name: it works");
		is(finish($first), 0, "$name: it ends");
		if ($is{once})
		{
			is(finish($second), 0, "$name: the other one does, too");
			like(said($second), qr/another run/, "$name: and says that there is nothing to do");
			unlike(said($second), qr/locked/, "$name: it has not begun");
			$root->query("SELECT zk_once_reset('$lock')");
			$second = start($two, $is{command}->($two));
		}
		says($second, qr/^locked \d+$/m, "$name: the second one has the lock");

		$root->query("SELECT zk_break_lock('$lock')");
		# A program under zklock-run ends by itself, and reads nothing more.
		print { $second->{in} } "bob\n" unless $is{once};
		isnt(status($second), 0, "$name: a lost lock ends it");
		like(said($second), $is{once} ? qr/is gone/ : qr/^40001 /m, "$name: it says why");
		unlike(said($second), qr/bob/, "$name: and sends nothing more");
		free_ok("$name: the lock is free");

		my $third = start($one, $is{command}->($one));
		says($third, qr/^locked \d+$/m, "$name: one more");
		end_session();
		print { $third->{in} } "carol\n";
		if ($is{once})
		{
			is(finish($third), 0, "$name: the end of its session is none of the program");
			like(said($third), qr/^mail to carol$/m, "$name: which goes on");
		}
		else
		{
			isnt(finish($third), 0, "$name: the end of its session ends it");
			unlike(said($third), qr/carol/, "$name: and it sends nothing more");
		}
		free_ok("$name: the lock is free again");
		$root->query("SELECT zk_once_reset('$lock')");
	}
}

# ---- the units of systemd ----

SKIP:
{
	skip 'no systemd-analyze: see dev/setup.sh', 2 unless have('systemd-analyze');
	my @units = map { "$dir/examples/systemd/mails.$_" } 'service', 'timer';
	my ($status, $said) = run_all('systemd-analyze', 'verify', '--man=no', @units);
	is($status, 0, 'systemd accepts the units');
	is($said, '', 'and has nothing to say about them');
}
my $unit = slurp_file("$dir/examples/systemd/mails.service");
my ($line) = $unit =~ /^ExecStart=(.*)$/m;
my ($ok) = $unit =~ /^SuccessExitStatus=(.*)$/m;
append_to_file("$dir/send-mails", "#!/bin/sh\necho begun\nread -r customer\necho done\n");
chmod 0755, "$dir/send-mails";
$line =~ s{/usr/local/bin/send-mails}{$dir/send-mails} or die 'another program';
my $first = start($one, 'sh', '-c', $line);
says($first, qr/^begun$/m, 'the command of the service runs');
my $second = start($two, 'sh', '-c', $line);
is(finish($second), $ok, 'elsewhere it does not, which counts as success');
unlike(said($second), qr/begun/, 'it has not begun');
print { $first->{in} } "alice\n";
is(finish($first), 0, 'it ends');
free_ok('which releases the lock');
$second = start($two, 'sh', '-c', $line);
is(finish($second), 0, 'later there is nothing to do');
unlike(said($second), qr/begun/, 'it has not begun then, either');
$root->query("SELECT zk_once_reset('$lock')");
$second = start($two, 'sh', '-c', $line);
says($second, qr/^begun$/m, 'on another day');
$root->query("SELECT zk_break_lock('$lock')");
isnt(status($second), 0, 'a lost lock ends it');
like(said($second), qr/is gone/, 'it says why');
unlike(said($second), qr/done/, 'it does nothing more');
$second = start($two, 'sh', '-c', $line);
says($second, qr/^begun$/m, 'the next call of the timer runs it again');
print { $second->{in} } "alice\n";
is(finish($second), 0, 'to its end');
is(finish(start($one, 'sh', '-c', $line)), 0, 'which is success elsewhere, too');
free_ok('the lock is free');

$_->close foreach $root, $other;
$test->finish;
