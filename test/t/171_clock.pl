# The wall clock does not matter (row 29; 172 moves it).  Who looks at it can be
# seen in the source: the core looks at no clock at all, and of the rest only
# what shows a time to people does.  Leases, limits and pauses are measured by one
# clock that nobody sets or slews (173 does), waits by CLOCK_MONOTONIC.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename;
use Test::More;

my $source = dirname(abs_path(__FILE__)) . '/../../src';

# What reads the wall clock, in libc and in PostgreSQL; clock_gettime is told
# by its argument, in the source.
my $wall = qr/gettimeofday|GetCurrent\w*Timestamp\w*|timestamptz_now
	|GetSQLCurrent\w+|\btime\s*\(|CLOCK_REALTIME|TimestampDifference\w*
	|\bnow\(\)|clock_timestamp/x;

# File => what it needs the wall clock for
my %allowed = (
	'backend/acquire.c' => 'requested_at of zk_locks',
	'worker/worker_slot.c' => 'granted_at of zk_locks',
	'worker/events.c' => 'granted_at of zk_queue(), as long after requested_at',
	'worker/report.c' => 'the times that a trace shows, and of lost reservations, in the log',
	'worker/answers.c' => 'until when a lock is reserved or kept, in the log and in an error',
	'backend/refusal.c' => 'until when a reservation lasts, in an error',
	'functions/views.c' => 'held_until and promised_until of zk_locks',
	'shared/status.c' => 'since when there has been no connection, for people',
	'functions/queuefuncs.c' => 'held_until of zk_queue()',
	'shared/lockstats.c' => 'stats_reset of zk_stat_server',
	'worker/identity.c' => 'last_error_at of zk_status',
	'functions/fleetcheck.c' => 'how far it is from that of ZooKeeper\'s leader',
	'functions/healthcheck.c' => 'when writes were lost, and certificates expire, for people',
	'backend/errand.c' => 'whether a statement is still the same, which needs no order');

# Clocks that nobody sets.  On some releases instr_time is the processor's counter,
# which may start again when a virtual machine is moved.
my $steady = qr/CLOCK_(?:MONOTONIC|BOOTTIME)\w*|INSTR_TIME\w*|instr_time/;
my %steady = (
	'shared/boottime.c' => 'CLOCK_BOOTTIME CLOCK_MONOTONIC_RAW',
	'shared/steady.h' => 'CLOCK_BOOTTIME CLOCK_MONOTONIC',
	'backend/wait.c' => 'CLOCK_MONOTONIC',
	'run/clock.c' => 'CLOCK_MONOTONIC_RAW',
	'session/zk.c' => 'CLOCK_MONOTONIC');

my @files = map { glob "$source/$_" } '*.[ch]', '*/*.[ch]';
cmp_ok(scalar(@files), '>', 40, 'all sources are looked at');
my $users = 0;
foreach my $file (@files)
{
	my $name = $file =~ s{^\Q$source\E/}{}r;
	open my $handle, '<', $file or die "$file: $!";
	my $text = do { local $/; <$handle> };

	$text =~ s{/\*.*?\*/}{}gs;
	$text =~ s{"(?:[^"\\]|\\.)*"}{""}g;
	my @seen = $text =~ /($wall)/g;
	$users++ if @seen;
	my %read = map { $_ => 1 } $text =~ /\b($steady)\b/g;
	# Nobody measures a time with it.
	@seen = grep { /Difference/ } @seen if $allowed{$name};
	is(join(' ', @seen),
		'', "$name: no wall clock" . ($allowed{$name} ? " but for $allowed{$name}" : ''));
	is(join(' ', sort keys %read), $steady{$name} // '', "$name: steady clocks");
}
is($users, scalar(keys %allowed), 'the pattern finds those that have leave');

# Its own objects, whatever the source looks like
my @objects = glob "$source/core/*.o";
foreach my $object (@objects)
{
	my $name = basename($object);
	my @called = grep { !/ zkl_/ } split /\n/, qx{nm -u '$object'};

	is(join("\n", grep { /clock|time|stamp/i } @called),
		'', "core/$name: no clock");
}

done_testing();
