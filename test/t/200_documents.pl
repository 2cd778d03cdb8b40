# Runs each example of README.md and docs/: every block that says ```sql, page by
# page and in the order of the page, each statement for itself.  A block that
# begins with "-- on another server" runs there; one with commands of psql is
# given to psql.  A comment behind a statement that begins with true, false,
# NULL, a number or ERROR and an SQLSTATE, or that is one word, is the result.
# A superuser runs the examples.  But those of the pages in %grants are run by a
# role that has the grants that a page shows and no others, except blocks that
# begin with "-- as a superuser".  Where a page speaks of other sessions, %company
# has what they do.

use strict;
use warnings;

use Test::More;

use Document;
use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new;
my ($one, $two) = $test->nodes;

# What the examples take for granted
my $surroundings = <<'EOS';
CREATE PROCEDURE run_nightly_job() LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE archive_in_steps() LANGUAGE sql AS 'SELECT 1';
CREATE PROCEDURE prepare_migration() LANGUAGE sql AS 'SELECT 1';
CREATE TABLE orders ();
ALTER TABLE orders OWNER TO batch_role;
CREATE SCHEMA cron;
CREATE FUNCTION cron.schedule(name text, schedule text, command text)
RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN EXECUTE command; RETURN 1; END $$;
EOS
$one->safe_psql('postgres', 'CREATE ROLE batch_role LOGIN');

# Whose examples a role runs, and which page shows its grants
my %grants = (
	'README.md' => 'README.md',
	'docs/jobs.md' => 'docs/install.md',
	'docs/locks.md' => 'docs/install.md');

# By what a block contains, what sessions of the other server do meanwhile: they
# "hold" something from before the block on, or "join" it.
my %company = (
	"zk_lock('/billing/export', '5s')" => [ hold => "zk_lock('/billing/export')" ],
	"zk_barrier('/import/start', 3" => [ join => ("zk_barrier('/import/start', 3)") x 2 ],
	"zk_barrier('/migrations/42', 3" => [ join => ("zk_barrier('/migrations/42', 3)") x 2 ]);

# The result that a comment names; undef if it names none
sub expected
{
	my ($comment) = @_;

	return "error $1" if $comment =~ /^ERROR (\w{5})\b/;
	return undef unless $comment =~ /^(true|false|NULL|\d+)(?:[:;,].*)?$/
	  || $comment =~ /^(\S+)$/;
	return { true => 't', false => 'f', NULL => '' }->{$1} // $1;
}

sub run_statement
{
	my ($session, $statement, $name) = @_;
	my $expected = expected($statement->{comment});
	my $answer = $session->send($statement->{sql})->result;
	my $error = $answer->{error};
	my $result = $error ? "error $error->{sqlstate}" : join "\n",
	  map { join '|', map { $_ // '' } @$_ } @{ $answer->{rows} };

	if (defined $expected)
	{
		is($result, $expected, $name);
	}
	else
	{
		ok(!$error, $name) or diag "$result: $error->{message}";
	}
	unlike($session->messages, qr/^WARNING/m, "$name: without a warning") if $statement->{sql} =~ /^VACUUM/;
	return;
}

sub run_psql
{
	my ($text, $dbname, $role, $name) = @_;
	my ($status, $out, $err) = $one->psql($dbname, $text,
		on_error_stop => 1, extra_params => [ $role ? ('-U', $role) : () ]);

	is($status, 0, $name) or diag $err;
	return;
}

# Grants in that database what the page shows for the role.
sub grant
{
	my ($page, $dbname, $role) = @_;
	my @grants = grep { $_->{sql} =~ /^GRANT (?:EXECUTE|SELECT) ON .* TO $role;$/s }
	  map { Document::statements($_->{text}) } Document->new($page)->blocks('sql');

	ok(scalar @grants, "$page shows grants for $role");
	$one->safe_psql($dbname, $_->{sql}) foreach @grants;
	$one->safe_psql($dbname, "GRANT USAGE ON SCHEMA cron TO $role");
	return;
}

# Starts the sessions of %company for a block.
sub gather
{
	my ($block) = @_;
	my @company;

	foreach my $text (grep { index($block->{text}, $_) >= 0 } sort keys %company)
	{
		my ($how, @calls) = @{ $company{$text} };
		foreach my $call (@calls)
		{
			push @company, $test->session($two)->send("SELECT $call");
			$company[-1]->value if $how eq 'hold';
		}
	}
	return @company;
}

# Waits for them, and ends them.
sub dismiss
{
	foreach my $session (@_)
	{
		$session->value;
		$session->close;
	}
	return;
}

sub run_statements
{
	my ($block, $session, $name) = @_;
	my $number = 0;

	foreach my $statement (Document::statements($block->{text}))
	{
		$number++;
		run_statement($session, $statement, "$name, statement $number");
	}
	return;
}

# The page makes the role itself, as a new user has none.
sub forget_role
{
	my ($dbname, $by) = @_;

	$_->close foreach @{ $by->{role} };
	$one->safe_psql($dbname, 'DROP OWNED BY batch_role; DROP ROLE batch_role');
	return;
}

sub meet_role
{
	my ($dbname, $by) = @_;

	$one->safe_psql($dbname, 'CREATE TABLE orders (); ALTER TABLE orders OWNER TO batch_role');
	$by->{role} = [ $test->session($one, dbname => $dbname, user => 'batch_role') ];
	return;
}

sub run_block
{
	my ($page, $block, $dbname, $role, $by) = @_;
	my $name = "$page, line $block->{line}";
	my $where = $block->{text} =~ /^-- on another server/ ? 1 : 0;
	$role = undef if $block->{text} =~ /^-- (?:as a superuser|on another server)/;
	my $sessions = $role ? $by->{role} : $by->{superuser};
	my @company = gather($block);

	$one->safe_psql($dbname, 'DROP EXTENSION zklock')
	  if $block->{text} =~ /^CREATE EXTENSION zklock\b/m;
	forget_role($dbname, $by) if $block->{text} =~ /^CREATE ROLE batch_role\b/m;
	if ($block->{text} =~ /^\s*\\|\\gset/m)
	{
		run_psql($block->{text}, $dbname, $role, "$name: psql");
		run_psql($block->{text} =~ s/^SELECT zk_enqueue.*\n//r =~ s/'1 min'/'100 ms'/r,
			$dbname, $role, "$name: psql, without a ticket in time")
		  if $block->{text} =~ /zk_await_ticket/;
	}
	else
	{
		run_statements($block, $sessions->[$where], $name);
	}
	dismiss(@company);
	meet_role($dbname, $by) if $block->{text} =~ /^CREATE ROLE batch_role\b/m;
	return;
}

sub run_page
{
	my ($page, $dbname) = @_;
	my @blocks = Document->new($page)->blocks('sql') or return;

	$one->safe_psql('postgres', "CREATE DATABASE $dbname");
	$one->safe_psql($dbname, "CREATE EXTENSION zklock; $surroundings");
	my $role = $grants{$page} ? 'batch_role' : undef;
	ok(scalar(grep { $_->{text} =~ /^CREATE ROLE $role\b/m } @blocks), "$page makes the role that it speaks of")
	  if $role && $grants{$page} eq $page;
	my %sessions = (superuser => [
			$test->session($one, dbname => $dbname), $test->session($two) ]);
	if ($role)
	{
		grant($grants{$page}, $dbname, $role);
		$sessions{role} = [ $test->session($one, dbname => $dbname, user => $role) ];
	}
	run_block($page, $_, $dbname, $role, \%sessions) foreach @blocks;
	$_->close foreach map { @$_ } values %sessions;
	$test->wait_connected($_) foreach $one, $two;
	$test->look_until($_, 'SELECT count(*) FROM zk_locks',
		0, "$page leaves no lock on " . $_->name)
	  foreach $one, $two;
	$one->safe_psql('postgres', "DROP DATABASE $dbname WITH (FORCE)");
	return;
}

my $number = 0;
run_page($_, 'page' . ++$number) foreach Document::for_users();
$test->finish;
