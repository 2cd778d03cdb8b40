# What every version has written into ZooKeeper is read by this one.  The folders
# of test/fixtures/ have all kinds of znodes, and what a server of that version
# answered about them: the present version answers the same.  And what it writes
# itself has the form that the fixtures of its own version have.
#
# A new version, or one that writes something else before its release, records
# its fixtures with ZKLOCK_RECORD=1 in the environment: they are written to
# fixtures/ in the work directory of the test.  Look at them, and copy them.
# test_fixtures.c of the unit tests looks at what SQL does not show.
#
# There are none of the slots in shared memory: a worker meets only slots that
# its own library has written, because another library needs another postmaster.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Path qw(make_path);
use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use ZklockTest;

my ($version) =
  slurp_file(Document->path('zklock.control')) =~ /^default_version = '(.*)'$/m;
my $conf = "zklock.dialects = '/kazoo=kazoo, /mutex=curator_mutex'\n";
my $test = ZklockTest->new(
	servers => 1,
	prefix => 'recorder',
	session_timeout => '20s',
	conf => $conf);
my ($recorder) = $test->nodes;
my $reader = $test->new_node('reader', session_timeout => '20s', conf => $conf);
$reader->start;
$reader->safe_psql('postgres', 'CREATE EXTENSION zklock');
$test->wait_connected($reader);
my $zk = $test->zk->client;

# Below the root, all znodes: lines of path and data
sub znodes
{
	return map {
		my $data = $zk->try_get($_);
		defined $data ? s{^/zklock}{}r . "\t$data" : ()
	} $zk->tree('/zklock');
}

# ---- what is asked about the znodes ----

my @queues = qw(/rw /shared /mutex /kazoo /kazoo/shared /sem /asked /broken /kept);
my @questions = (
	(map {
			'SELECT position, granted, mode, server, datname, pid, usename,'
			  . " application_name, znode FROM zk_queue('$_')"
	} @queues),
	(map { "SELECT zk_try_lock('$_')" } grep { $_ ne '/sem' } @queues),
	"SELECT zk_try_lock_shared('/rw')",
	"SELECT zk_try_lock_shared('/shared')",
	"SELECT zk_try_lock_shared('/kazoo/shared')",
	"SELECT zk_try_acquire_permits('/sem', max_permits => 2)",
	"SELECT zk_try_acquire_permits('/free', 2, max_permits => 2)",
	"SELECT id, znode FROM zk_leader('/lead')",
	"SELECT zk_once('/job/key', key => 'run 1')",
	"SELECT zk_once('/job/key', key => 'run 2')",
	"SELECT zk_once('/job/period', '36500 days'::interval)",
	q(SELECT ok FROM zk_healthcheck() WHERE check_name IN ('dialects', 'znode protocol')),
	"SELECT * FROM zk_servers WHERE server = 'recorder1'",
	"SELECT zk_barrier_enter('/barrier', 2, '1min')");

sub answers
{
	my $s = $test->session($reader);
	my @answers;

	$s->query("SET TimeZone = 'UTC'");
	foreach my $question (@questions)
	{
		push @answers, map { "$question: $_" } split /\n/, $s->query($question);
		$s->query('SELECT zk_unlock_all()');
	}
	$s->close;
	return @answers;
}

# ---- the present version writes all kinds of znodes ----

my %s;
foreach my $name (qw(rw rw2 shared mutex kazoo kazoo2 sem sem2 lead asked asker broken breaker kept barrier))
{
	$s{$name} = $test->session($recorder, application_name => "session $name");
}
$s{rw}->query("SELECT zk_lock('/rw')");
$test->enqueue($s{rw2}, "SELECT zk_lock_shared('/rw')", '/rw');
$s{shared}->query("SELECT zk_lock_shared('/shared')");
$s{mutex}->query("BEGIN; SELECT zk_xact_lock('/mutex', at_most => '1 day')");
$s{kazoo}->query("SELECT zk_lock('/kazoo')");
$s{kazoo2}->query("SELECT zk_lock_shared('/kazoo/shared')");
$s{sem}->query("SELECT zk_acquire_permits('/sem', 2, max_permits => 2)");
$test->enqueue($s{sem2}, "SELECT zk_acquire_permits('/sem', max_permits => 2)", '/sem/leases');
$s{lead}->query("SELECT zk_lead('/lead', id => 'leader 1')");
$s{asked}->query("SET zklock.on_release_request = 'notice'; SELECT zk_lock('/asked')");
$s{asker}->query("SELECT zk_request_release('/asked')");
$s{broken}->query("SELECT zk_lock('/broken')");
$s{kept}->query("SELECT zk_lock('/kept', at_least => '1 hour'), zk_unlock('/kept')");
$s{kept}->query("SELECT zk_once('/job/key', key => 'run 1')");
$s{kept}->query("SELECT zk_once('/job/period', '36500 days'::interval)");
$s{barrier}->send("SELECT zk_barrier_enter('/barrier', 2)");
$s{breaker}->send("SELECT zk_break_lock('/broken')");
my @written;
wait_for(
	sub {
		@written = znodes();
		return
		  (grep { m{^/broken/.*break} } @written)
		  && (grep { m{^/barrier/} } @written)
		  && !grep { m{^/\.once/.*\d{10}\t} } @written;
	},
	'all is written');
my @answered = answers();

# Without what differs from run to run
sub form
{
	return join "\n", sort map {
		s/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/UUID/gr =~
		  s/[0-9a-f]{16}/ID/gr =~
		  s/"(host|postgresql|version)":"[^"]*"/"$1":"TEXT"/gr =~
		  s/,"waited":\d+//gr =~ s/-?\d+/N/gr
	} grep { !m{^/\.fleet/} || /recorder/ } @_;
}

my $folder = Document->path("test/fixtures/$version");
if ($ENV{ZKLOCK_RECORD})
{
	$folder = abs_path('.') . "/fixtures/$version";
	make_path($folder);
	unlink "$folder/znodes", "$folder/answers";
	append_to_file("$folder/znodes", join('', map { "$_\n" } @written));
	append_to_file("$folder/answers", join('', map { "$_\n" } @answered));
	diag "recorded in $folder";
}
is(form(@written),
	form(split /\n/, slurp_file("$folder/znodes")),
	'what this version writes has the form of its fixtures');

# ---- what each version has written ----

$_->close foreach values %s;
$test->stop_looking($recorder);
$recorder->stop;
foreach my $fixtures (sort(glob Document->path('test/fixtures') . '/*'),
	$ENV{ZKLOCK_RECORD} ? $folder : ())
{
	my ($name) = $fixtures =~ m{([^/]+)$};

	$test->stop_looking($reader);
	$reader->stop;
	wait_for(
		sub {
			eval { $zk->delete_tree('/zklock'); };
			return !$zk->stat('/zklock');
		},
		'the root is empty');
	foreach (split /\n/, slurp_file("$fixtures/znodes"))
	{
		my ($path, $data) = split /\t/, $_, 2;

		$zk->create("/zklock$path", $data);
	}
	$reader->start;
	$test->wait_connected($reader);
	is(join("\n", answers()), slurp_file("$fixtures/answers") =~ s/\n\z//r,
		"$name: what it has written is understood");
}

# The fixtures stay in ZooKeeper.
$test->finish(leaks => 0);
