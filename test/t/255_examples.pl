# The programs in examples/, with their real drivers, on two servers at once: one runs,
# the other one waits; what ends the one lets the other one go on; and who has lost the
# lock does nothing more.

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
my $user = $one->safe_psql('postgres', 'SELECT current_user');
my $root = $test->session($one);
my $lock = '/examples/mails';

system('cp', '-r', Document->path('examples'), "$dir/") == 0 or die 'no examples';
foreach my $node ($one, $two)
{
	append_to_file("$dir/" . $node->name,
		"[db1]\nhost=" . $node->host . "\nport=" . $node->port . "\ndbname=postgres\n");
}

sub have { return system("command -v $_[0] >/dev/null 2>&1") == 0; }

sub npm_install
{
	local $ENV{npm_config_cache} = "$dir/npm";
	return have('npm')
	  && run_log([ 'npm', 'install', '--silent', '--no-audit', '--no-fund', '--prefix',
			"$dir/examples/node" ]);
}

my $driver = '/usr/share/java/postgresql.jar';
my %examples = (
	python => {
		there => sub { system("python3 -c 'import psycopg' 2>/dev/null") == 0 },
		command => sub { ('python3', "$dir/examples/python/mails.py", 'service=db1') },
	},
	node => {
		there => \&npm_install,
		command => sub {
			('node', "$dir/examples/node/mails.js",
				'postgresql:///postgres?host=' . $_[0]->host . '&port=' . $_[0]->port . "&user=$user");
		},
	},
	java => {
		there => sub { -e $driver },
		command => sub {
			('java', '-cp', $driver, "$dir/examples/java/Mails.java",
				'jdbc:postgresql://127.0.0.1:' . $_[0]->port . "/postgres?user=$user");
		},
	},
	shell => {
		there => sub { 1 },
		command => sub { ("$dir/examples/shell/mails.sh", 'service=db1') },
		once => 1,
	});

# Starts a program; "in" is the pipe to it, "out" the file that it writes.
my $started = 0;

sub start
{
	my ($node, @command) = @_;
	my $p = { out => "$dir/out" . ++$started };

	local $ENV{PGSERVICEFILE} = "$dir/" . $node->name;
	$p->{harness} = IPC::Run::start(\@command, '<pipe', $p->{in} = IO::Handle->new, '>&', $p->{out});
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

# Ends its input; its exit status
sub finish
{
	my ($p) = @_;

	close $p->{in};
	$p->{harness}->finish;
	return $p->{harness}->full_result >> 8;
}

sub waits_ok
{
	my ($p, $name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	$test->wait_queue($lock, 2);
	unlike(said($p), qr/locked/, $name);
	return;
}

sub free_ok
{
	my ($name) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	ok(wait_for(sub { $root->query("SELECT zk_try_lock('$lock')") eq 't' }, $name), $name);
	$root->query("SELECT zk_unlock('$lock')");
	return;
}

foreach my $name (sort keys %examples)
{
  SKIP:
	{
		my %is = %{ $examples{$name} };
		skip "no driver for $name: see dev/setup.sh", 13 unless $is{there}->();

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
		if ($is{once}) { $second->{harness}->finish; }
		else { print { $second->{in} } "bob\n"; }
		isnt(finish($second), 0, "$name: a lost lock ends it");
		like(said($second), $is{once} ? qr/is gone/ : qr/40001|lost/, "$name: it says why");
		unlike(said($second), qr/bob/, "$name: and sends nothing more");
		free_ok("$name: the lock is free");

		my $third = start($one, $is{command}->($one));
		says($third, qr/^locked \d+$/m, "$name: one more");
		$root->query("SELECT pg_terminate_backend(pid) FROM zk_locks WHERE path = '$lock' AND pid <> pg_backend_pid()");
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
	skip 'no systemd-analyze: see dev/setup.sh', 1 unless have('systemd-analyze');
	my @units = map { "$dir/examples/systemd/mails.$_" } 'service', 'timer';
	my ($out, $err) = run_command([ 'systemd-analyze', 'verify', '--man=no', @units ]);
	is($err, '', 'systemd accepts the units');
}
my ($line) = slurp_file("$dir/examples/systemd/mails.service") =~ /^ExecStart=(.*)$/m;
my ($ok) = slurp_file("$dir/examples/systemd/mails.service") =~ /^SuccessExitStatus=(.*)$/m;
append_to_file("$dir/send-mails", "#!/bin/sh\necho begun\nread -r customer\necho done\n");
chmod 0755, "$dir/send-mails";
$line =~ s{/usr/local/bin/send-mails}{$dir/send-mails} or die 'another program';
my $first = start($one, 'sh', '-c', $line);
says($first, qr/^begun$/m, 'the command of the service runs');
my $second = start($two, 'sh', '-c', $line);
is(finish($second), $ok, 'elsewhere it does not, which counts as success');
print { $first->{in} } "alice\n";
is(finish($first), 0, 'it ends');
is(finish(start($two, 'sh', '-c', $line)), 0, 'later there is nothing to do');

$root->close;
$test->finish;
