# docs/outages.md shows what an operator sees of an outage of ZooKeeper: here are
# the same outages, and the server's log and the messages of its sessions are those
# of the page, line by line.  Times, addresses and numbers differ, and so may the
# reasons that the network gives; messages that were left out are counted in 095.

use strict;
use warnings;

use IPC::Run ();
use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $net = TcpProxy->new;
my $test =
  ZklockTest->new(net => $net, servers => 1, session_timeout => '10s');
my ($node) = $test->nodes;
my $page = Document->new('docs/outages.md');
my ($short, $locks, $long, $messages, $lost) = map { $_->{text} } $page->blocks('text');

# The lines of a log or of psql, without what differs from run to run
sub normalised
{
	my ($text) = @_;
	my @lines;

	foreach my $line (split /\n/, $text)
	{
		next if $line =~ /about the connection w\w+ not logged/;
		$line =~ s/^.*?(?=[A-Z]+:  )//;
		$line =~ s/(could not connect to|connection to) "[^"]*".*/$1/;
		$line =~ s/"[^"]*:\d+"/"HOST"/g;
		$line =~ s/\d+/N/g;
		push @lines, $line unless @lines && $lines[-1] eq $line;
	}
	return \@lines;
}

# Makes an outage, and compares its log.
sub outage_ok
{
	my ($what, $expected, $during) = @_;
	my $begin = -s $node->logfile;
	my $again = 'DETAIL:  The previous lease ended';

	$net->refuse('server1-zk');
	$test->look_until($node,
		'SELECT state FROM zk_locks WHERE path = $$/batch/nightly$$',
		'unconfirmed', "$what: the lease ends");
	$during->();
	$net->pass('server1-zk');
	ok(wait_for(sub { slurp_file($node->logfile, $begin) =~ /$again/ }, 'it is over'),
		"$what: it is over");
	return is_deeply(normalised(slurp_file($node->logfile, $begin)),
		normalised($expected), "$what: the log is that of the page");
}

my $holder = $test->session($node);
$holder->query("SELECT zk_lock('/batch/nightly')");

outage_ok(
	'a short outage', $short,
	sub {
		my ($out, $err);

		# Both messages are logged, too; here they are the client's.
		IPC::Run::run(
			[ 'psql', '-XAtq', '-d', $node->connstr('postgres'),
				'-c', "SET log_min_messages = 'fatal'",
				'-c', "SET zklock.answer_timeout = '200ms'",
				'-c', "SET lock_timeout = '1s'",
				'-c', "SELECT zk_lock('/batch/other')" ],
			'>', \$out, '2>', \$err);
		is_deeply(normalised($err), normalised($messages),
			'a session sees the messages of the page');
		($out, $err) =
		  run_command([ 'psql', '-X', '-d', $node->connstr('postgres'), '-P', 'footer=off',
				'-c', "SELECT path, state FROM zk_locks WHERE path = '/batch/nightly'" ]);
		is($out =~ s/ +$//mgr =~ s/\n+\z/\n/r, $locks, 'and zk_locks shows what the page has');
	});
$holder->query("SET log_min_messages = 'fatal'");
$holder->send('SELECT pg_sleep(1000)');
outage_ok('a long outage', $long,
	sub { $test->wait_queue('/batch/nightly', 0); });
is($holder->sqlstate, '40001', 'the statement of the holder ends');
my $error = $holder->result->{error};
is("ERROR:  $error->{message}\nDETAIL:  $error->{detail}\nHINT:  $error->{hint}\n",
	$lost, 'with the error of the page');

$holder->close;
$test->finish;
