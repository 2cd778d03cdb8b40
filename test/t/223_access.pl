# zk_healthcheck() tells who has other credentials, and which directory they left behind,
# while each call fails with 42501: on an open root, a server with credentials makes
# directories that others cannot use; credentials are corrected, and a directory stays.
#
# It also tells which releases of ZooKeeper lose writes, as the log does.

use strict;
use warnings;

use File::Spec::Functions qw(rel2abs);
use Test::More;

use PostgreSQL::Test::Utils;
use TcpProxy;
use ZklockTest;

my $test = ZklockTest->new(
	net => TcpProxy->new,
	route => { framed => 0 },
	session_timeout => '10s');
my ($one, $two) = $test->nodes;
my $dir = rel2abs(PostgreSQL::Test::Utils::tempdir());

write_secret("$dir/$_", "digest:zklock:$_\n") foreach 'right', 'wrong';
write_secret("$dir/private", "digest:zklock:right\nacl: private\n");

# Polls until a check says that.
sub check_ok
{
	my ($node, $check, $ok, $pattern, $what) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return ok(
		$test->look_until($node,
			"SELECT ok IS NOT DISTINCT FROM $ok AND detail ~ '$pattern' FROM zk_healthcheck()"
			  . " WHERE check_name = '$check'",
			't', $what),
		$what)
	  || diag $test->look($node, "SELECT ok, detail FROM zk_healthcheck() WHERE check_name = '$check'");
}

sub access_ok
{
	my ($node, @rest) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	return check_ok($node, 'access control', @rest);
}

sub refused_ok
{
	my ($session, $name, $znode) = @_;

	local $Test::Builder::Level = $Test::Builder::Level + 1;
	is($session->error("SELECT zk_lock('$name')"), '42501', "$name is refused");
	like($session->messages, qr/^ZooKeeper answered NOAUTH .* It is about znode "\Q$znode\E"/m,
		'and the error names the znode');
	return;
}

my $first = $test->session($one);
my $second = $test->session($two);

# ---- an open root

$first->query("SELECT zk_lock('/open/a'), zk_unlock('/open/a')");
access_ok($_, 'true', '^This server has no credentials\.  .* read: 0\.$', $_->name . ': no credentials')
  foreach $one, $two;

# ---- one server has credentials: all else is as before

$test->connects_with($two, 'with credentials', auth_file => "$dir/wrong");
access_ok($two, 'false',
	'^This server has credentials\.  .* read: 0\.  Servers with other credentials, or without: "server1"\.'
	  . '  Give all servers the same "zklock.auth_file"\.$',
	'it tells who has none');
access_ok($one, 'false', 'read: 1, with the sessions "0x\w+"\.  Give all', 'who tells of it, too');
$second->query("SELECT zk_lock('/shut/a'), zk_lock('/open/b')");
refused_ok($first, '/shut/a', '/zklock/shut/a');
access_ok($one, 'false', 'Znode "/zklock/shut/a" does not let this server in, .*setAcl',
	'the directory is named');

# ---- the wrong ones of two; who may not read

$test->connects_with($one, 'with other credentials', auth_file => "$dir/right");
access_ok($_, 'false', 'read: 1, with the sessions "0x\w+"\.  Give all', $_->name . ': different ones')
  foreach $one, $two;
$test->connects_with($one, 'also private', auth_file => "$dir/private");
access_ok($one, 'false', 'only with them\.  .* read: 1, ', 'private ones');

# ---- corrected, and a directory stays

$test->connects_with($two, 'the same as the other one', auth_file => "$dir/right");
access_ok($two, 'true', '^This server has credentials\.  .* read: 0\.$', 'corrected');
$second->query('SELECT zk_unlock_all()');
refused_ok($second, '/shut/a', '/zklock/shut/a');
access_ok($two, 'false', 'read: 0\.  Znode "/zklock/shut/a" does not let this server in', 'what is left');
my $owner = $test->zk->new_client;
$owner->authenticate('zklock:wrong');
foreach my $directory ('/zklock/open/b', '/zklock/shut/a')
{
	# Its own former znodes, which the server may not delete either
	$owner->delete("$directory/$_") foreach $owner->ls($directory);
	$owner->delete($directory);
}
$owner->delete('/zklock/shut');
$owner->quit;
access_ok($two, 'true', 'read: 0\.$', 'deleted');
$second->query("SELECT zk_lock('/shut/a'), zk_unlock('/shut/a')");
access_ok($_, 'true', 'read: 0\.$', $_->name . ': all is well') foreach $one, $two;

# Rights count by all entries of a list.
my $guard = $test->zk->new_client;
$guard->authenticate('zklock:right');
my ($ours) = grep { /digest/ } @{ $guard->acl('/zklock/shut/a') };
$guard->set_acl('/zklock/shut/a', '1:world:anyone', $ours =~ s/^\d+/28/r);
access_ok($two, 'true', 'read: 0\.$', 'some for all, some for the server');
$guard->set_acl('/zklock/shut/a', '1:world:anyone', $ours =~ s/^\d+/20/r);
access_ok($two, 'false', 'Znode "/zklock/shut/a" does not let', 'not the one to delete');
$guard->set_acl('/zklock/shut/a', $ours);
$guard->quit;
$_->close foreach $first, $second;

# ---- releases of ZooKeeper

my %releases = (
	'3.8.0' => 'false',
	'3.9.3' => 'false',
	'3.9.4' => 'true',
	'3.10.0' => 'true',
	'4.0.1' => 'true');
SKIP:
{
	skip 'nobody asks for it through TLS', 1
	  if $ENV{ZKLOCK_TEST_TLS}
	  && check_ok($one, 'zookeeper version', 'NULL', '^With TLS, .* is not asked', 'with TLS');

	foreach my $release (sort keys %releases)
	{
		my $good = $releases{$release} eq 'true';
		my $connects = $test->status($one, 'connects');

		$test->net->release('*', $release);
		$test->net->reset('server1-zk');
		$test->look_until($one, "SELECT connects > $connects FROM zk_stat_server", 't', 'again');
		check_ok($one, 'zookeeper version', $releases{$release},
			"^The ZooKeeper server \"127\\.0\\.0\\.1:[0-9]+\" has version $release\\."
			  . ($good ? '$' : '  Releases before 3\.9\.4 lose writes.*two holders\.  Upgrade'),
			$release);
		is(slurp_file($one->logfile) =~ /has version \Q$release\E$/m ? 'false' : 'true',
			$releases{$release}, 'as the log has it');
	}
	$test->net->release('*', '?');
	my $connects = $test->status($one, 'connects');
	$test->net->reset('server1-zk');
	$test->look_until($one, "SELECT connects > $connects FROM zk_stat_server", 't', 'again');
	check_ok($one, 'zookeeper version', 'NULL', 'does not tell its version', 'none');
}

$test->finish;
