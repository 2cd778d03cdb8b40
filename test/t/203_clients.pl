# Runs the examples of other clients in README.md and docs/: each block that
# says ```java, each in a method of its own, and the blocks that say ```python,
# page by page in one program.  Of ```go only the syntax is looked at, if Go is
# installed.  What the examples take for granted is defined here.  Some of them
# call SQL, as does the shell command of docs/jobs.md.

use strict;
use warnings;

use Test::More;

use CuratorClient;
use Document;
use PostgreSQL::Test::Utils;
use Procedure;
use ZklockTest;

my $test = ZklockTest->new(servers => 1, conf => "listen_addresses = '127.0.0.1'\n");
my ($node) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir('examples');
my $user = $node->safe_psql('postgres', 'SELECT current_user');

# [ name, text ] of all blocks of a language
sub examples
{
	my ($language) = @_;
	my @examples;

	foreach my $page (Document::for_users())
	{
		push @examples, map { [ "$page, line $_->{line}", $_->{text} ] }
		  Document->new($page)->blocks($language);
	}
	return @examples;
}

# Starts a program; its output is read later.
sub start
{
	my (@command) = @_;

	open my $out, '-|', 'timeout', 120, @command or die "could not start: $!";
	return $out;
}

# ---- Java ----

my @java = examples('java');
my $methods = '';
my $calls = '';
foreach my $number (0 .. $#java)
{
	$methods .= "static void example$number() throws Exception\n{\n$java[$number][1]}\n";
	$calls .= "run($number, Examples::example$number);\n";
}
append_to_file("$dir/Examples.java", <<"EOS");
import java.sql.*;
import java.util.*;
import org.apache.curator.framework.*;
import org.apache.curator.framework.recipes.barriers.*;
import org.apache.curator.framework.recipes.leader.*;
import org.apache.curator.framework.recipes.locks.*;
import org.apache.curator.retry.*;

public class Examples
{
	interface Example
	{
		void run() throws Exception;
	}

	static CuratorFramework client;
	static org.postgresql.ds.PGSimpleDataSource dataSource = new org.postgresql.ds.PGSimpleDataSource();

	static void stopSoon()
	{
	}

	static void closeBooks(Connection connection)
	{
	}

	$methods
	static void run(int number, Example example)
	{
		try
		{
			example.run();
			System.out.println(number + " is good");
		}
		catch (Exception error)
		{
			System.out.println(number + " " + error);
		}
	}

	public static void main(String[] arguments)
	{
		client = CuratorFrameworkFactory.newClient(arguments[0],
				new ExponentialBackoffRetry(100, 5));
		client.start();
		dataSource.setUrl(arguments[1]);
		$calls
		client.close();
	}
}
EOS
my $out = start(CuratorClient::compile($dir, "$dir/Examples.java"), 'Examples',
	$test->zk->connect_string,
	"jdbc:postgresql://127.0.0.1:@{[ $node->port ]}/postgres?user=$user");

# Of four members of the barrier, three are ours.
my @members = map { $test->session($node) } 1 .. 3;
$_->send("SELECT zk_barrier_enter('/jobs/start', 4, '1min')") foreach @members;
is($_->value, 't', 'a barrier starts with Curator') foreach @members;
$_->send("SELECT zk_barrier_leave('/jobs/start', '1min')") foreach @members;
is($_->value, 't', 'and ends') foreach @members;
my %said = map { /^(\d+) (.*)/ } readline $out;
close $out;
is($said{$_} // 'not run', 'is good', $java[$_][0]) foreach 0 .. $#java;
cmp_ok(@java, '>', 0, 'there are examples in Java');

# ---- Python ----

my @python = examples('python');
append_to_file("$dir/pg_service.conf",
	"[db1]\nhost=@{[ $node->host ]}\nport=@{[ $node->port ]}\ndbname=postgres\n");
append_to_file("$dir/examples.py", <<"EOS");
from kazoo.client import KazooClient
client = KazooClient(hosts="@{[ $test->zk->connect_string ]}")
client.start()
customers = ["one", "two"]
def send_mail(customer):
    pass
EOS
append_to_file("$dir/examples.py", "$_->[1]\nprint(\"$_->[0]\", flush=True)\n")
  foreach @python;
append_to_file("$dir/examples.py", "client.stop()\n");
$ENV{PGSERVICEFILE} = "$dir/pg_service.conf";
$out = start('/usr/bin/python3', "$dir/examples.py");
chomp(my @done = readline $out);
close $out;
is_deeply(\@done, [ map { $_->[0] } @python ], 'all examples in Python');
cmp_ok(@python, '>', 0, 'there are some');

# ---- the shell ----

append_to_file("$dir/export-invoices", "#!/bin/sh\necho \"exported\" \"\$@\"\n");
chmod 0755, "$dir/export-invoices" or die "could not chmod: $!";
$ENV{PATH} = "$dir:$ENV{PATH}";
my $procedure = Procedure->new('docs/jobs.md', 'Run a program');
$procedure->services(db1 => $node);
my $shell = $procedure->start(0);
is($shell->status, 0, 'the program under zklock-run ends well') or diag $shell->output;
like($shell->output, qr/^exported --all$/m, 'and has run');

# ---- Go ----

SKIP:
{
	my @go = examples('go');
	skip 'Go is not installed', scalar @go if system('which gofmt >/dev/null 2>&1') != 0;
	foreach my $number (0 .. $#go)
	{
		my $file = "$dir/example$number.go";
		append_to_file($file,
			"package examples\n\nfunc example() error {\n$go[$number][1]return nil\n}\n");
		is(system('gofmt', '-e', '-l', $file), 0, "$go[$number][0]: syntax");
	}
}

$test->finish;
