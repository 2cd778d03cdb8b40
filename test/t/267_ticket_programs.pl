# The consumers of tickets in examples/, with their real drivers, through PgBouncer in
# transaction mode: all that they wait for takes one connection.  They are killed while they
# wait, and behind a claim, and so is the server: others always get the lock in time, and
# the role finds what its program has left.

use strict;
use warnings;

use IPC::Run;
use Test::More;

use Document;
use PgBouncer;
use PostgreSQL::Test::Utils;
use ZklockTest;

plan skip_all => 'PgBouncer is not installed: see dev/setup.sh'
  unless PgBouncer->installed;

my $test = ZklockTest->new(session_timeout => '4s');
my ($one, $two) = $test->nodes;
my $dir = PostgreSQL::Test::Utils::tempdir('examples');
system('cp', '-r', Document->path('examples'), "$dir/") == 0 or die 'no examples';
$one->safe_psql('postgres',
	'CREATE ROLE consumer LOGIN; GRANT EXECUTE ON FUNCTION zk_enqueue_all TO consumer');
my $pooler = PgBouncer->new($one);
my $pool = $pooler->pool('transaction', 2, user => 'consumer');
$pooler->start;
my ($holder, $next) = map { $test->session($two) } 1 .. 2;
my $consumer = PgSession->new($pooler, dbname => $pool);

sub npm_install
{
	my $said = '';

	return 0 unless system('command -v npm >/dev/null 2>&1') == 0;
	local $ENV{npm_config_cache} = "$dir/npm";
	IPC::Run::run([ 'npm', 'install', '--loglevel=error', '--no-audit', '--no-fund', '--fetch-retries=1',
			'--fetch-timeout=60000', '--prefix', "$dir/examples/node" ], '<', \undef, '>&', \$said);
	return $? == 0;
}

my $url = "postgresql:///$pool?host=@{[ $pooler->host ]}&port=@{[ $pooler->port ]}&user=consumer";
my %examples = (
	python => {
		there => sub { system("/usr/bin/python3 -c 'import psycopg' 2>/dev/null") == 0 },
		command => [ '/usr/bin/python3', "$dir/examples/python/tickets.py", $url ],
	},
	node => { there => \&npm_install, command => [ 'node', "$dir/examples/node/tickets.js", $url ] });

# ---- programs

local $SIG{PIPE} = sub { };
my $started = 0;

sub start
{
	my (@command) = @_;
	my $p = { out => "$dir/out" . ++$started };

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
	my ($value) = said($p) =~ $words;
	return $value;
}

sub kill_it
{
	my ($p) = @_;

	$p->{harness}->signal('KILL');
	eval { $p->{harness}->finish; };
	return;
}

sub status
{
	my ($p) = @_;

	close $p->{in};
	$p->{limit}->start;
	eval { $p->{harness}->finish; 1 } or do { diag $@; $p->{harness}->kill_kill; };
	return $p->{harness}->full_result >> 8;
}

sub wait_state
{
	my ($path, $state) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(wait_for(sub { $consumer->query("SELECT state FROM zk_tickets WHERE path = '$path'") eq $state },
			"$path is $state"), "the ticket is $state");
}

# Lets those that are over be told.
sub forget_tickets
{
	$consumer->error("SELECT zk_claim_ticket($_)")
	  foreach split /\n/, $consumer->query('SELECT ticket FROM zk_tickets');
	return;
}

# Once a program waits for a ticket, which takes one server connection
sub waits_ok
{
	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok($test->look_until($one, 'SELECT count(*) FROM pg_stat_activity WHERE usename = \'consumer\''
			  . " AND query ~ 'FROM zk_claim_next' AND state = 'active' AND wait_event_type = 'Extension'",
			1, 'it waits'), $_[0]);
}

foreach my $name (sort keys %examples)
{
  SKIP:
	{
		my %is = %{ $examples{$name} };
		skip "no driver for $name: see dev/setup.sh (for node: or no registry)", 1 unless $is{there}->();
		my ($alice, $bob, $carol) = map { "/examples/mails/$name-$_" } qw(alice bob carol);
		my @command = @{ $is{command} };

		# ---- an error without an SQLSTATE
		my $p = start(@command[ 0 .. $#command - 1 ], 'postgresql:///postgres?host=/nowhere', "$name-bob");
		isnt(status($p), 0, "$name: without a server it fails");
		unlike(said($p), qr/^(?:None|undefined)\b/m, "$name: and says why");

		# ---- as it is meant
		$holder->query("SELECT zk_lock('$alice')");
		$p = start(@command, "$name-alice", "$name-bob");
		my $token = says($p, qr/^turn $bob (\d+)$/m, "$name: it has the turn that is to be had");
		print { $p->{in} } "hello\n";
		says($p, qr/^mail $bob hello$/m, "$name: and does its work");
		waits_ok("$name: then it waits");
		$holder->query("SELECT zk_unlock('$alice')");
		says($p, qr/^turn $alice \d+$/m, "$name: for the other one, whose turn comes");
		print { $p->{in} } "goodbye\n";
		is(status($p), 0, "$name: that was all");
		like(said($p), qr/^mail $alice goodbye$/m, "$name: all was done");

		# ---- a turn that lapses while the program is busy with another one
		$p = start(@command, "$name-alice", "$name-bob");
		my ($first) = says($p, qr/^turn (\S+) \d+$/m, "$name: of two turns at once it takes one");
		my $second = $first eq $alice ? $bob : $alice;
		wait_state($second, 'lapsed');
		print { $p->{in} } "one\n";
		says($p, qr/^turn $second \d+$/m, "$name: it has the other one again, which has lapsed");
		print { $p->{in} } "two\n";
		is(status($p), 0, "$name: and ends");
		like(said($p), qr/^mail $first one\n.*^mail $second two\n/ms, "$name: having done all");

		# ---- a ticket that the role has made elsewhere
		my $other = "/examples/mails/$name-other";
		$consumer->query("SELECT zk_enqueue_all(ARRAY['$other'], '1 min', '1 min')");
		wait_state($other, 'granted');
		$p = start(@command, "$name-bob");
		$token = says($p, qr/^turn $bob (\d+)$/m, "$name: one more has its turn");
		print { $p->{in} } "mine\n";
		is(status($p), 0, "$name: and ends");
		unlike(said($p), qr/turn $other/, "$name: without another program's turn");
		is($consumer->query("SELECT state FROM zk_tickets WHERE path = '$other'"), 'granted',
			"$name: which waits for it");
		$consumer->query('SELECT zk_withdraw(NULL)');
		forget_tickets();

		# ---- killed between grant and claim
		$holder->query("SELECT zk_lock('$alice')");
		$p = start(@command, "$name-alice");
		waits_ok("$name: one more waits");
		$test->enqueue($next, "SELECT zk_lock('$alice')", $alice);
		kill_it($p);
		$holder->query("SELECT zk_unlock('$alice')");
		wait_state($alice, 'granted');
		cmp_ok($next->value, '>', $token, "$name: killed while it waits: the next in line has the lock");
		$next->query("SELECT zk_unlock('$alice')");
		my $ticket = $consumer->query('SELECT ticket FROM zk_tickets');
		is($consumer->error("SELECT zk_claim_ticket($ticket)"), '55000', "$name: the ticket is over");
		like($consumer->messages, qr/Nobody claimed it in time/, "$name: why");

		# ---- killed behind the claim
		$p = start(@command, "$name-carol");
		$token = says($p, qr/^turn $carol (\d+)$/m, "$name: one more has its turn");
		$test->enqueue($next, "SELECT zk_lock('$carol')", $carol);
		kill_it($p);
		is($consumer->query('SELECT state, path, token FROM zk_tickets'), "claimed|$carol|$token",
			"$name: killed then: its role finds the token");
		is($consumer->query("SELECT zk_renew_reservation('$carol', $token, '2 s')"), 't', "$name: and can use it");
		cmp_ok($next->value, '>', $token, "$name: when its time is over, the next in line has the lock");
		$next->query("SELECT zk_unlock('$carol')");
		is($consumer->query('SELECT count(*) FROM zk_tickets'), 0, "$name: nothing is left of it");

		# ---- the server is killed
		$holder->query("SELECT zk_lock('$bob')");
		$p = start(@command, "$name-bob");
		waits_ok("$name: one more waits");
		$ticket = $consumer->query('SELECT ticket FROM zk_tickets');
		$test->stop_looking($one);
		$one->stop('immediate');
		isnt(status($p), 0, "$name: the end of its server ends it");
		$consumer->abandon;
		$one->start;
		$test->wait_connected($one);
		$consumer = PgSession->new($pooler, dbname => $pool);
		is($consumer->error("SELECT zk_claim_ticket($ticket)"), '55000', "$name: then its ticket is none");
		like($consumer->messages, qr/there is no ticket $ticket.*before it was restarted/s, "$name: which is told");
		$holder->query("SELECT zk_unlock('$bob')");
		$p = start(@command, "$name-bob");
		says($p, qr/^turn $bob \d+$/m, "$name: it can be started again");
		print { $p->{in} } "again\n";
		is(status($p), 0, "$name: and ends");
	}
}

$consumer->close;
$_->close foreach $holder, $next;
$pooler->stop;
$test->finish;
