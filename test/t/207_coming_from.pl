# Each call of zklock in the tables of docs/coming-from.md works, for a role that has
# the grants of docs/install.md and no others.  The calls of a cell run in its order, in
# one session, and leave nothing but reservations, also of tickets.  "token" is what the latest
# zk_reserve() has returned.

use strict;
use warnings;

use Test::More;

use Document;
use ZklockTest;

my $test = ZklockTest->new(servers => 1);
my ($node) = $test->nodes;
my $page = Document->new('docs/coming-from.md');
my $call = qr/(?:CALL )?zk_\w+\(.*\)/;

$node->safe_psql('postgres', 'CREATE ROLE batch_role LOGIN');
$node->safe_psql('postgres', $_->{sql})
  foreach grep { $_->{sql} =~ /^GRANT (?:EXECUTE|SELECT) ON .* TO batch_role;$/s }
  map { Document::statements($_->{text}) } Document->new('docs/install.md')->blocks('sql');

my $session = $test->session($node, user => 'batch_role');
my ($token, %reserved);
my $calls = 0;

sub run
{
	my ($text) = @_;
	my $sql = $text =~ s/\btoken\b/$token/r;
	my $result = $session->send($sql =~ /^CALL/ ? $sql : "SELECT $sql")->result;
	my $value = $result->{rows}[0][0] // '';

	is($result->{error} ? $result->{error}{message} : '', '', "$text: no error");
	unlike($session->messages, qr/^WARNING/m, "$text: nor a warning");
	isnt($value, '', "$text: a result");
	isnt($value, 'f', "$text: which is not false");
	($token, $reserved{$1}) = ($value, $value) if $sql =~ /^zk_reserve\('([^']+)'/;
	delete $reserved{$1} if $sql =~ /^zk_cancel_reservation\('([^']+)'/;
	return $calls++;
}

foreach my $row ($page->text =~ /^\|(.*)\|\s*$/mg)
{
	my (undef, $ours) = split /\|/, $row;

	foreach my $code ($ours =~ /`([^`]*)`/g)
	{
		if ($code =~ /^$call$/)
		{
			run($code);
		}
		else
		{
			like($code, qr/^zk_fence$|^zklock-run /, "$code: not a call");
		}
	}
}
cmp_ok($calls, '>', 30, 'the page has calls');

# What it names without arguments
foreach my $name ($page->text =~ /`(zk_\w+)`/g)
{
	is($node->safe_psql('postgres', "SELECT count(*) > 0 FROM pg_proc WHERE proname = '$name'"),
		't', "$name() exists");
}

$session->query("SELECT zk_cancel_reservation('$_', $reserved{$_})") foreach sort keys %reserved;
$session->query('SELECT zk_cancel_reservation(path, token) FROM zk_tickets WHERE token IS NOT NULL');
$test->look_until($node, 'SELECT count(*) FROM zk_locks', 0, 'no lock is left');
$session->close;
$test->finish;
