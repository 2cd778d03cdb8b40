# pg_cron on two servers, which schedule the same job: zk_run_once() and
# zk_run_exclusive() let one of them run it, also through an outage of ZooKeeper.

use strict;
use warnings;

use Test::More;

use PostgreSQL::Test::Utils;
use ZklockTest;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
chomp(my $libdir = qx{$pg_config --pkglibdir});
plan skip_all => 'pg_cron is not installed: see dev/setup.sh'
  unless -e "$libdir/pg_cron.so";

my $test = ZklockTest->new(
	session_timeout => '4s',
	conf => <<'EOC');
shared_preload_libraries = 'zklock, pg_cron'
cron.database_name = 'postgres'
cron.use_background_workers = on
cron.log_run = on
EOC
my ($one, $two) = $test->nodes;
$_->safe_psql('postgres', <<'EOS') foreach $one, $two;
CREATE EXTENSION pg_cron;
CREATE TABLE done (job text, at timestamptz DEFAULT clock_timestamp());
EOS
my @nodes = ($one, $two);

# How often all servers together have run a job
sub runs
{
	my ($job) = @_;
	my $runs = 0;

	$runs += $test->look($_, "SELECT count(*) FROM done WHERE job = '$job'") foreach @nodes;
	return $runs;
}

# Waits until each server has started a job so often since, with that end.
sub started_ok
{
	my ($job, $status, $times) = @_;

	foreach my $node (@nodes)
	{
		ok($test->look_until($node,
				"SELECT count(*) >= $times FROM cron.job_run_details d JOIN cron.job USING (jobid)"
				  . " WHERE jobname = '$job' AND status = '$status'", 't'),
			$node->name . ": $job: $status");
	}
	return;
}

sub schedule
{
	my ($job, $call) = @_;

	$_->safe_psql('postgres', "SELECT cron.schedule('$job', '* * * * *', \$job\$CALL $call\$job\$)")
	  foreach @nodes;
	return;
}

$_->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS zklock') foreach @nodes;
schedule('once', q{zk_run_once('/cron/once', '1 day', $$INSERT INTO done VALUES ('once')$$)});
schedule('alone', q{zk_run_exclusive('/cron/alone', $$INSERT INTO done VALUES ('alone')$$)});

started_ok($_, 'succeeded', 1) foreach 'once', 'alone';
is(runs('once'), 1, 'one server runs it, the other one skips it');
is(runs('alone'), 2, 'under a lock both run it');
my $logs = join '', map { slurp_file($_->logfile) } @nodes;
like($logs, qr{cron job \d+: NOTICE: "/cron/once": run by server}, 'the log of pg_cron says who ran it');
like($logs, qr{cron job \d+: NOTICE: "/cron/once": skipped: server "server\d" ran it at}, 'and why it is skipped');

# ---- an outage ----

$_->safe_psql('postgres', "SELECT cron.unschedule(jobname) FROM cron.job") foreach @nodes;
$test->zk->stop;
schedule('after', q{zk_run_once('/cron/after', '1 day', $$INSERT INTO done VALUES ('after')$$)});
started_ok('after', 'failed', 1);
is(runs('after'), 0, 'without ZooKeeper nobody runs it');
$test->zk->start;
$test->wait_connected($_) foreach @nodes;
started_ok('after', 'succeeded', 1);
is(runs('after'), 1, 'afterwards one server does');
$_->safe_psql('postgres', "SELECT cron.unschedule(jobname) FROM cron.job") foreach @nodes;
$test->finish;
