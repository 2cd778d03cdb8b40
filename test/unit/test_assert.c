/*
 * test_assert.c
 *	  What the core relies on is looked at: a core that is wrong does not go on.
 *
 * Each case breaks something in a child process, which must end at that assertion.
 */
#include <signal.h>
#include <sys/wait.h>

#include "core/host.h"
#include "core/state.h"
#include "core/write.h"
#include "unit.h"
#include "world.h"

/* Runs it in a child, and checks with which words on stderr that ends. */
static void
check_ends(void (*wrong) (void), const char *words)
{
	char		said[4096];
	size_t		n = 0;
	ssize_t		got;
	int			ends[2];
	int			status;
	pid_t		child;

	fflush(stdout);
	if (!CHECK(pipe(ends) == 0) || !CHECK((child = fork()) >= 0))
		return;
	if (child == 0)
	{
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		wrong();
		_exit(0);
	}
	close(ends[1]);
	while (n < sizeof(said) - 1 && (got = read(ends[0], said + n, sizeof(said) - 1 - n)) > 0)
		n += (size_t) got;
	said[n] = '\0';
	close(ends[0]);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT,
			  "it ends with status %d", status);
	CHECK_MSG(strstr(said, words) != NULL, "it says: %s", said);
}

/* ---- what the host must not do ---- */

static void
submit_twice(void)
{
	World	   *w = world_ready();
	uint32_t	r = world_submit(w, "/a", 1, ZKL_EXCLUSIVE);
	ZklDemand	demand = {.name = "/a",.owner = 1,.sibling = -1,.data = ""};

	zkl_manager_event(w->worker.m, INT64_MAX / 2,
					  ZKL_EVENT(SUBMIT,.request = r,.demand = &demand));
}

static void
number_too_large(void)
{
	World	   *w = world_ready();

	zkl_manager_event(w->worker.m, INT64_MAX / 2,
					  ZKL_EVENT(OVERDUE,.request = WORLD_REQUESTS));
}

static void
clock_goes_back(void)
{
	World	   *w = world_ready();

	zkl_manager_flush(w->worker.m, 0);
}

static void
host(void)
{
	check_ends(submit_twice, "!zkl_manager_knows(m, request)");
	check_ends(number_too_large, "event->request < m->config.max_requests");
	check_ends(clock_goes_back, "now >= m->now");
}

/* ---- what the core relies on of itself ---- */

static void
link_twice(void)
{
	ZklList		list;
	ZklLink		link = {0};

	zkl_list_init(&list);
	zkl_list_append(&list, &link);
	zkl_list_append(&list, &link);
}

static void
unpin_twice(void)
{
	ZklLock		lock = {.pins = 1};

	zkl_operations_unpin(&lock);
	zkl_operations_unpin(&lock);
}

static void
answer_to_no_batch(void)
{
	World	   *w = world_ready();

	(void) zkl_batches_take(w->worker.m);
}

static void
itself(void)
{
	check_ends(link_twice, "link->next == NULL");
	check_ends(unpin_twice, "lock->pins > 0");
	check_ends(answer_to_no_batch, "m->batches.n > 0");
}

int
main(void)
{
	unit_start();
	RUN(host);
	RUN(itself);
	return unit_finish();
}
