# Credentials are introduced, changed and taken away as docs/procedures.md says, on
# three servers that want the same locks all the time, and pass them on by messages: no
# lock is lost, no two sessions hold one, and while ZooKeeper checks no access control
# lists, no request fails.  In the end, all have a key for messages that nobody could
# read.  Otherwise a server without them is refused where another one has
# them, and in the wrong order it does not connect: as the page says.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use PeerForger;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Procedure;
use Workload;
use ZklockTest;

my $test = ZklockTest->new(
	servers => 3,
	session_timeout => '10s',
	conf => "zklock.commit_wait = '3min'\n");
my ($one, $two, $three) = $test->nodes;
my %services = (db1 => $one, db2 => $two, db3 => $three);
my $dir = rel2abs(PostgreSQL::Test::Utils::tempdir());
my @zk1 = ('zk1.example.com:2181' => $test->zk->connect_string);
my $outsider = $test->zk->client;
write_secret("$dir/$_", "digest:zklock:$_\n") foreach 'first', 'second';
$test->set($_,
	peer_address => '127.0.0.1',
	peer_port => PostgreSQL::Test::Cluster::get_free_port()) foreach $test->nodes;
my %czxids;

# The procedures of the page, with these credentials; undef: none
sub servers
{
	my ($name, @services) = @_;
	my $list = join ' ', sort { $a cmp $b } @services;
	my $procedure = Procedure->new('docs/procedures.md',
		'Change the servers',
		'"db1 db2 db3"' => "\"$list\"",
		'/etc/zklock/credentials' => $name ? "$dir/$name" : '');

	$procedure->services(map { $_ => $services{$_} } @services);
	return $procedure->start(0);
}

sub lists
{
	my ($name, @further) = @_;

	return Procedure->new('docs/procedures.md',
		'Change the ACLs',
		@zk1, 'zklock:secret' => 'zklock:' . ($name // 'second'), @further)->start(0);
}

# The last step: another key, which all have, and which nobody else can read
sub has_another_key
{
	my ($name) = @_;
	my $client = $test->zk->new_client;
	my $stat;

	$client->authenticate("zklock:$name") if $name;
	$client->delete(PeerForger->znode);
	ok(wait_for(
			sub { ($stat = $client->stat(PeerForger->znode)) && !$czxids{ $stat->{czxid} }++ },
			'another key'),
		'another key');
	like(join(' ', @{ $client->acl(PeerForger->znode) }),
		$name ? qr/^31:digest:zklock:\S+$/ : qr/^31:world:anyone$/, 'with its rights');
	$test->look_until($_, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'messages'",
		't', 'messages on ' . $_->name) foreach $test->nodes;
	$client->quit;
	return;
}

# Does one step after the other while all servers want the same locks.  A step
# is code, or starts a shell.
sub under_load
{
	my ($what, @steps) = @_;
	my $shell;
	my $after = 0;
	my $lost = join ' ', map { $test->status($_, 'sessions_lost') } $test->nodes;

	my $seen = Workload::run_beside(
		$test,
		tick => sub {
			my ($started) = @_;

			return if $started < 100 || ($shell && !$shell->has_ended);
			is($shell->status, 0, "$shell->{name} ends well") or diag $shell->output
			  if $shell;
			undef $shell;
			my $step = shift @steps // return;
			$shell = $step->();
			undef $shell unless ref $shell;
			$after = 0;
			return;
		},
		until => sub { !@steps && !$shell && ++$after > 300 });
	is($seen->{overlaps}, 0, "$what: no two sessions held a lock");
	is(join(' ', map { $test->status($_, 'sessions_lost') } $test->nodes),
		$lost, "$what: no ZooKeeper session was lost");
	return $seen->{errors};
}

# Whether somebody without the credentials can write; "names" are of znodes
sub can_write
{
	return join ' ', grep {
		eval { $outsider->create("/zklock/$_/x"); $outsider->delete("/zklock/$_/x"); 1 }
	} @_;
}

my @places = ('.servers', '.fleet', '.once', 'workload');
my $s = $test->session($one);
is($s->query("SELECT zk_once('/c/job', key => 'a')"), 't', 'a job runs');
$s->close;

# ---- introduced server by server

my $holder = $test->session($one);
my $other = $test->session($two);
my $token = $holder->query("SELECT zk_lock('/c/held')");
is(servers('first', 'db1')->status, 0, 'the first server gets credentials');
is($holder->query("SELECT zk_fencing_token('/c/held')"), $token, 'and keeps its lock');
$holder->query("SELECT zk_lock('/c-new/held')");
is($other->error("SELECT zk_lock('/c-new/held')"), '42501', 'a new directory is its own');
is($other->query("SELECT zk_try_lock('/c/held')"), 'f', 'older ones are for all');
is($other->query("SELECT zk_try_lock('/c-other/held'), zk_unlock('/c-other/held')"),
	't|t', 'and so are those of others');
my $errors = under_load('introduced', sub { servers('first', keys %services) });
delete $errors->{42501};
is_deeply($errors, {}, 'introduced: requests get no other errors than 42501');
is($other->query("SELECT zk_try_lock('/c-new/held')"), 'f', 'then it may queue everywhere');
isnt(can_write(@places), '', 'older znodes are not protected yet');
is_deeply(under_load('lists', sub { lists('first') }),
	{}, 'lists: no request fails while the lists are changed');
is(can_write(@places), '', 'lists: all znodes are protected');
is($holder->query("SELECT zk_unlock('/c/held'), zk_unlock('/c-new/held')"), 't|t',
	'lists: what was held all the time is released');
has_another_key('first');

# ---- changed in the wrong way

chmod 0640, "$dir/second";
my $connects = $test->status($three, 'connects');
my $refused = servers('second', 'db3');
isnt($refused->status, 0, 'a file that others could read: the script ends');
like($refused->output, qr/^db3: .* are not used: .*0600 or less/m, 'and says why');
is($test->status($three, 'state, connects'), "connected|$connects", 'the server goes on');
chmod 0600, "$dir/second";
isnt(servers('second', 'db3')->status, 0, 'changed on one server: the script ends');
ok($test->look_until($three,
		"SELECT last_error LIKE '%: not allowed to create this server''s node%' FROM zk_status",
		't', 'the reason'),
	'and zk_status says why');
is($test->status($three, 'state, connects'), "connected|$connects", 'the server goes on, too');
$test->set($three, auth_file => "$dir/first");
ok($test->look_until($three, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'settings'",
		't', 'the old ones'),
	'and with the old ones it has no fault');

# ---- changed, and taken away, without a check

sub check
{
	my ($skip) = @_;

	$test->zk->set_skip_acl($skip);
	$test->zk->restart;
	return;
}

my $before = $holder->query("SELECT zk_lock('/c/held')");
foreach my $name ('second', undef)
{
	my $what = $name ? 'changed' : 'taken away';
	my @list = $name ? () : ('auth::cdrwa,world:anyone:r' => 'world:anyone:cdrwa');

	is_deeply(
		under_load(
			$what,
			sub { check('yes') },
			sub { servers($name, keys %services) },
			sub { lists($name, @list) },
			sub { check('no') }),
		{},
		"$what: no request fails");
	is($holder->query("SELECT zk_fencing_token('/c/held')"), $before,
		"$what: a lock was held all the time");
	has_another_key($name);
	is(can_write(@places), $name ? '' : "@places", "$what: all znodes have the new list");
	is($test->look($one, "SELECT ok FROM zk_healthcheck() WHERE check_name = 'access control'"),
		't', "$what: zk_healthcheck");
	is($other->query("SELECT zk_once('/c/job', key => 'a')"), 'f',
		"$what: what has run is known");
}
$_->close foreach $holder, $other;
$test->finish;
