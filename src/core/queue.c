/*
 * queue.c
 *	  The decision which contender holds a lock.
 *
 * Owns nothing: the caller says what it knows of a queue.  Runs in the worker
 * (and in tests), takes no locks, knows neither PostgreSQL nor ZooKeeper.
 */
#include "core/assert.h"
#include "core/queue.h"

/* The number of contenders in foreign[] with a number of at most seq */
static size_t
count_up_to(const ZklContender *foreign, size_t nforeign, ZklSeq seq)
{
	size_t		low = 0,
				high = nforeign;

	while (low < high)
	{
		size_t		middle = low + (high - low) / 2;

		if (foreign[middle].seq <= seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

ptrdiff_t
zkl_queue_nearest(const ZklContender *foreign, size_t nforeign,
				  ZklLockMode mode, ZklSeq seq)
{
	size_t		i = count_up_to(foreign, nforeign, seq);

	if (ZKL_MUTANT(STRING_ORDER) && mode == ZKL_SHARED)
		return -1;
	while (i-- > 0)
	{
		if (zkl_mode_conflicts(foreign[i].mode, mode))
			return (ptrdiff_t) i;
	}
	return -1;
}

ZklDecision
zkl_queue_decide(const ZklQueueView *view, ZklLockMode mode, ZklSeq seq,
				 size_t *blocker)
{
	ptrdiff_t	nearest = zkl_queue_nearest(view->foreign, view->nforeign,
											mode, seq);
	bool		behind_own = view->own_ahead != ZKL_SEQ_NONE;

	if (nearest >= 0 &&
		(!behind_own || view->foreign[nearest].seq > view->own_ahead))
	{
		*blocker = (size_t) nearest;
		return ZKL_DECISION_BEHIND_FOREIGN;
	}
	if (behind_own)
		return ZKL_DECISION_BEHIND_OWN;
	if (view->unknown_from < seq)
		return ZKL_DECISION_LIST;
	if (view->tainted && mode == ZKL_EXCLUSIVE)
		return ZKL_DECISION_LIST;
	return ZKL_DECISION_GRANT;
}

static bool
goes_before(const ZklContender *a, const ZklContender *b)
{
	if (a->seq != b->seq)
		return a->seq < b->seq;
	return a->mode == ZKL_EXCLUSIVE && b->mode == ZKL_SHARED;
}

static void
sift_down(ZklContender *heap, size_t root, size_t n)
{
	for (;;)
	{
		size_t		child = 2 * root + 1;
		ZklContender swap;

		if (child >= n)
			return;
		if (child + 1 < n && goes_before(&heap[child], &heap[child + 1]))
			child++;
		if (!goes_before(&heap[root], &heap[child]))
			return;
		swap = heap[root];
		heap[root] = heap[child];
		heap[child] = swap;
		root = child;
	}
}

/* A heap sort: qsort() may allocate memory, and listings can be long. */
void
zkl_queue_sort(ZklContender *contenders, size_t n)
{
	size_t		i;

	for (i = n / 2; i-- > 0;)
		sift_down(contenders, i, n);
	for (i = n; i-- > 1;)
	{
		ZklContender swap = contenders[0];

		contenders[0] = contenders[i];
		contenders[i] = swap;
		sift_down(contenders, 0, i);
	}
}
