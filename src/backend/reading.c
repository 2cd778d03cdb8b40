/*
 * reading.c
 *	  Reading many znodes, ZKL_ERRAND_READS at a time.
 *
 * Owns the errands by which the worker reads.  Run by backends.  Takes no locks;
 * waits as wait.c does.
 *
 * Must not know what the znodes are.
 *
 * If an answer is too long, or one of the reads ends the connection again and
 * again, each read without an answer is repeated by itself.
 */
#include "postgres.h"

#include "backend/reading.h"
#include "backend/refusal.h"
#include "utils/memutils.h"

#define FIRST_ROOM	((Size) 4096)	/* for the names in a directory */

typedef struct
{
	ZklErrandKind kind;
	const ZklTarget *directory;
	const char *const *names;
	ZklReadingTaker take;
	void	   *arg;
} Reading;

static void read_part(const Reading *reading, int first, int n, Size room);

static void
give_answer(const Reading *reading, int number, bool alone, Size room,
			ZklErrandAnswer *answer)
{
	bool		cut = answer->size > room && reading->kind == ZKL_ERRAND_LIST;

	if ((cut && answer->size <= ZKL_LONGEST_LISTING) ||
		(answer->rc == ZKL_RC_UNKNOWN && !alone))
	{
		read_part(reading, number, 1, Max(room, answer->size + answer->size / 4));
		return;
	}
	if (cut)
		answer->rc = ZKL_RC_TOO_LONG;
	answer->size = answer->rc == ZKL_RC_OK ? Min(answer->size, room) : 0;
	reading->take(reading->arg, number, answer);
}

/* No segment is left while answers are taken: others may be read then. */
static void
read_part(const Reading *reading, int first, int n, Size room)
{
	Size		stride = zkl_errand_layout_stride(room);
	ZklErrand  *errand = zkl_errand_make_reads(reading->kind, reading->directory,
											   reading->names + first, n, room);
	ZklDeadlines at;
	char	   *answers;
	int			i;

	errand->large = true;
	zkl_errand_begin(&at);
	(void) zkl_errand_try(errand, reading->directory, &at);
	answers = MemoryContextAllocHuge(CurrentMemoryContext, n * stride);
	memcpy(answers, &errand->answer, n * stride);
	zkl_errand_free(errand);
	for (i = 0; i < n; i++)
		give_answer(reading, first + i, n == 1, room,
					(ZklErrandAnswer *) (answers + i * stride));
	pfree(answers);
}

void
zkl_reading_each(ZklErrandKind kind, const ZklTarget *directory,
				 const char *const *names, int n, ZklReadingTaker take, void *arg)
{
	Reading		reading = {kind, directory, names, take, arg};
	MemoryContext old = CurrentMemoryContext;
	MemoryContext moment = AllocSetContextCreate(old, "zklock reading",
												 ALLOCSET_DEFAULT_SIZES);
	int			first;

	MemoryContextSwitchTo(moment);
	for (first = 0; first < n; first += ZKL_ERRAND_READS)
	{
		read_part(&reading, first, Min(n - first, ZKL_ERRAND_READS),
				  kind == ZKL_ERRAND_GET ? ZKL_MAX_NODE_DATA : FIRST_ROOM);
		MemoryContextReset(moment);
	}
	MemoryContextSwitchTo(old);
	MemoryContextDelete(moment);
}

void
zkl_reading_check(const ZklTarget *directory, const ZklErrandAnswer *answer)
{
	if (answer->rc != ZKL_RC_OK && answer->rc != ZKL_RC_TOO_LONG &&
		!zkl_result_is_definite(answer->rc))
		zkl_refusal_raise_failed(directory->name, ZKL_ERROR_ZOOKEEPER, answer->rc);
}
