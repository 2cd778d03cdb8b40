# What a lost lock does to a transaction, at its edges: a remote commit through
# postgres_fdw must not come before the check, whatever statement commits; who
# catches the cancel in an exception block is told; and a backend whose session
# lock is lost can still go, and takes its temporary tables along.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $test = ZklockTest->new(session_timeout => '2s');
my ($one, $two) = $test->nodes;

my ($host, $port) = ($one->host, $one->port);
my $user = $one->safe_psql('postgres', 'SELECT current_user');
$one->safe_psql('postgres', 'CREATE DATABASE remote');
$one->safe_psql('remote', 'CREATE TABLE kept (what text)');
$one->safe_psql('postgres', <<"EOS");
CREATE EXTENSION postgres_fdw;
CREATE SERVER remote FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'remote');
CREATE USER MAPPING FOR CURRENT_USER SERVER remote
	OPTIONS (user '$user', password_required 'false');
CREATE FOREIGN TABLE kept (what text) SERVER remote;
CREATE PROCEDURE keep(what text) LANGUAGE plpgsql AS
	'BEGIN INSERT INTO kept VALUES (what); COMMIT; END';
EOS

my $remote = $test->session($one);
$remote->query("SELECT zk_lock('/c/remote')");
$remote->query("INSERT INTO kept VALUES ('before')");

my $catcher = $test->session($one);
$catcher->query("BEGIN; SELECT zk_xact_lock('/c/caught')");
$catcher->send(<<'EOS');
DO 'BEGIN
	PERFORM pg_sleep(1000);
EXCEPTION WHEN query_canceled THEN
	RAISE NOTICE $$caught$$;
END'
EOS

# Telling must not fail, whatever the client can show.
$one->safe_psql('postgres',
	"CREATE DATABASE utf8 ENCODING 'UTF8' TEMPLATE template0"
	  . " LC_COLLATE 'C' LC_CTYPE 'C'");
$one->safe_psql('utf8', 'CREATE EXTENSION zklock');
my $latin = $test->session($one, dbname => 'utf8');
$latin->query("SET client_encoding = 'LATIN1'");
$latin->query("SET zklock.lost_lock_action = 'none'");
$latin->query("BEGIN; SAVEPOINT s; SELECT zk_xact_lock(U&'/c/\\65E5')");

my $untidy = $test->session($one);
$untidy->query("SELECT zk_lock('/c/untidy')");
$untidy->query('CREATE TEMPORARY TABLE left_over ()');
my $log = -s $one->logfile;

ok($test->lose_session($one, '/c/remote'), 'the session is lost');

is($remote->error("INSERT INTO kept VALUES ('alone')"),
	'40001', 'a statement of its own does not commit');
is($remote->error("CALL keep('in a procedure')"),
	'40001', 'nor does a procedure');
is($remote->error("BEGIN; INSERT INTO kept VALUES ('in a block'); COMMIT"),
	'40001', 'nor does a block');
$remote->query('ROLLBACK');
is($one->safe_psql('remote', 'SELECT string_agg(what, $$,$$) FROM kept'),
	'before', 'and nothing was committed remotely');

$catcher->result;
like($catcher->messages, qr{caught}, 'the cancel can be caught');
like($catcher->messages, qr{/c/caught.* lost}, 'by who is told why');
is($catcher->error('COMMIT'), '40001', 'but does not get through');

is($latin->error('ROLLBACK TO s'), '', 'a rollback succeeds in any encoding');
like($latin->messages, qr{"/c/\\xE6\\x97\\xA5" was lost}, 'and tells');
is($latin->error('COMMIT'), '', 'so that the transaction can go on');

$untidy->close;
$test->look_until($one,
	q{SELECT count(*) FROM pg_class WHERE relname = 'left_over'},
	0, 'the temporary table goes with its session');
unlike(slurp_file($one->logfile, $log), qr{FATAL},
	'which ends without an error');
like(slurp_file($one->logfile, $log),
	qr{distributed lock "/c/untidy" of process \d+ was lost},
	'the log names the locks that were lost');

$_->close foreach $remote, $catcher, $latin;
$test->finish;
