# The clocks of one server's machine run at a quarter of their speed, as if NTP
# slewed them: its lease ends before its locks pass to another server all the same,
# and zk_healthcheck() tells.  Its machine sleeps: the lease ends, and comes back.

use strict;
use warnings;

use Cwd qw(abs_path);
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use PostgreSQL::Test::Utils;
use ZklockTest;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my $dir = abs_path(PostgreSQL::Test::Utils::tempdir('slewed'));

# What the kernel would do to these clocks; it reads from a file since when, at
# which rate, how long the machine slept, and the length of a tick.
append_to_file("$dir/slewed.c", <<'EOS');
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

enum { SINCE_NS, RATE_PPM, SLEPT_NS, TICK_US, NUMBERS };

static volatile const int64_t *numbers;

__attribute__((constructor)) static void
open_numbers(void)
{
	const char *name = getenv("SLEWED_CLOCK");
	int			fd = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
	void	   *map = mmap(NULL, NUMBERS * sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);

	if (map != MAP_FAILED)
		numbers = map;
	if (fd >= 0)
		close(fd);
}

static int64_t
kernel_ns(clockid_t clock)
{
	struct timespec t;

	syscall(SYS_clock_gettime, clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

int
clock_gettime(clockid_t clock, struct timespec *t)
{
	int64_t		ns;

	if (numbers == NULL || (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME))
		return (int) syscall(SYS_clock_gettime, clock, t);
	ns = kernel_ns(clock);
	if (numbers[SINCE_NS] != 0)
		ns += (kernel_ns(CLOCK_MONOTONIC) - numbers[SINCE_NS]) / 1000000 *
			numbers[RATE_PPM];
	if (clock == CLOCK_BOOTTIME)
		ns += numbers[SLEPT_NS];
	t->tv_sec = ns / INT64_C(1000000000);
	t->tv_nsec = ns % INT64_C(1000000000);
	return 0;
}

int
adjtimex(struct timex *state)
{
	int			result = (int) syscall(SYS_adjtimex, state);

	if (result >= 0 && numbers != NULL && numbers[TICK_US] != 0)
		state->tick = numbers[TICK_US];
	return result;
}
EOS
chomp(my $compiler = qx{$pg_config --cc});
system_or_bail("$compiler -O2 -Wall -Werror -fPIC -shared -o $dir/slewed.so $dir/slewed.c");

# In place: the processes have it mapped.
my %numbers = (since => 0, rate => 0, slept => 0, tick => 0);

sub set_clock
{
	%numbers = (%numbers, @_);
	open my $file, '+>>', "$dir/numbers" or die "$dir/numbers: $!";
	close $file;
	open $file, '+<', "$dir/numbers" or die "$dir/numbers: $!";
	syswrite $file, pack('q4', @numbers{qw(since rate slept tick)})
	  or die "$dir/numbers: $!";
	close $file;
	return;
}

set_clock();
my $test = ZklockTest->new(servers => 2);
my ($one, $two) = $test->nodes;
$test->stop_looking($one);
{
	local $ENV{LD_PRELOAD} = "$dir/slewed.so";
	local $ENV{SLEWED_CLOCK} = "$dir/numbers";
	$one->restart;
}
$test->wait_connected($one);
my $health = "SELECT ok, detail FROM zk_healthcheck() WHERE check_name = 'clock rate'";
like($test->look($one, $health), qr/^t\|The system corrects the rate of its clock by -?\d+\.\d ppm\.$/,
	'the rate of the clock');

# ---- slewed

set_clock(
	since => int(clock_gettime(CLOCK_MONOTONIC) * 1e9),
	rate => -750_000,
	tick => 9_994);
like($test->look($one, $health), qr/^f\|.* by -[56]\d\d\.\d ppm\.  Either the hardware's rate /,
	'a rate that is corrected by more than 500 ppm');
set_clock(tick => 10_006);
like($test->look($one, $health), qr/^f\|.* by [56]\d\d\.\d ppm\.  Either /, 'by as much the other way');
set_clock(tick => 0);

my $slow = $test->session($one);
my $commits = $test->session($one);
my $next = $test->session($two);
$slow->query("SELECT zk_lock('/slow')");
$commits->query("SET zklock.commit_wait = 0; BEGIN; SELECT zk_xact_lock('/commit')");
$test->enqueue($next, "SELECT zk_lock('/slow') > 0", '/slow');

# It is stopped, and with its session process the connection is gone.
my $worker = $test->status($one, 'worker_pid');
my $lease = "SELECT lease_remaining <= '0' FROM zk_status";
my $lapses = $test->status($one, 'lapses');
kill 'STOP', $worker;
kill 'KILL', $test->status($one, 'session_pid');
is($next->value, 't', 'the lock passes to the other server');
is($test->look($one, $lease), 't', 'when the lease of the slow one has ended');
is($commits->error('COMMIT'), '40001', 'which commits no more');
kill 'CONT', $worker;
$test->look_until($one,
	"SELECT state = 'connected' AND lapses > $lapses FROM zk_status, zk_stat_server",
	't', 'the slow one goes on');
$slow->query("SELECT zk_unlock('/slow')");
$_->query('SELECT zk_unlock_all()') foreach $slow, $next;

# ---- asleep

$slow->query("SELECT zk_lock('/asleep')");
$lapses = $test->status($one, 'lapses');
set_clock(slept => 3600 * 1e9);
$test->look_until($one, "SELECT lapses > $lapses FROM zk_stat_server", 't', 'an hour of sleep ends the lease');
$test->look_until($one, "SELECT lease_remaining > '0' FROM zk_status", 't', 'until it is renewed');
is($slow->query("SELECT zk_fencing_token('/asleep') > 0"), 't',
	'nothing is lost, as ZooKeeper has not ended the session');
$slow->query("SELECT zk_unlock('/asleep')");

is($slow->query("SELECT zk_lock('/bounded', at_most => '10min') > 0"), 't', 'a lock with a limit');
set_clock(slept => 7200 * 1e9);
$test->look_until($one, "SELECT state FROM zk_locks WHERE path = '/bounded'", 'lost',
	'an hour of sleep is more than ten minutes');
$_->close foreach $slow, $commits, $next;

$test->finish;
