/*
 * test_queue.c
 *	  The decision of who holds a lock, against a naive oracle that looks at
 *	  the whole queue: one case at a time, and whole queues until they are
 *	  empty.
 */
#include "core/queue.h"
#include "unit.h"

#define MAX_CHILDREN	24

/* One contender as the oracle sees it */
typedef struct Child
{
	ZklSeq		seq;
	ZklLockMode mode;
	int			owner;			/* of this server; -1: foreign */
	bool		named;			/* foreign: known to this server */
	bool		holds;
} Child;

typedef struct Queue
{
	Child		children[MAX_CHILDREN];
	int			n;
	ZklSeq		unknown_from;
	bool		tainted;
} Queue;

static bool
conflict(const Child *a, const Child *b)
{
	if (a->owner >= 0 && a->owner == b->owner)
		return false;
	return a->mode == ZKL_EXCLUSIVE || b->mode == ZKL_EXCLUSIVE;
}

/* Numbers that are close together, so that they meet; some are the same */
static void
random_queue(Queue *q)
{
	int			foreign_of_8 = (int) unit_random_below(9);
	int			shared_of_8 = (int) unit_random_below(9);
	int			owners = 1 + (int) unit_random_below(4);
	ZklSeq		base = unit_random() & 1 ? 0 : ZKL_SEQ_LIMIT - 20;
	int			i;

	q->n = 1 + (int) unit_random_below(MAX_CHILDREN);
	q->tainted = unit_random_below(4) == 0;
	q->unknown_from = unit_random() & 1 ? ZKL_SEQ_NONE :
		base + unit_random_below(40);
	for (i = 0; i < q->n; i++)
	{
		Child	   *c = &q->children[i];

		c->seq = base + unit_random_below(40);
		c->mode = (int) unit_random_below(8) < shared_of_8 ?
			ZKL_SHARED : ZKL_EXCLUSIVE;
		c->owner = (int) unit_random_below(8) < foreign_of_8 ? -1 :
			(int) unit_random_below((uint32_t) owners);
		c->named = c->owner >= 0 || c->seq < q->unknown_from;
		c->holds = false;
	}
}

/* What this server knows when it decides for one of its own */
static void
make_view(const Queue *q, const Child *me, ZklQueueView *view,
		  ZklContender *foreign)
{
	int			i;

	memset(view, 0, sizeof(*view));
	view->foreign = foreign;
	view->own_ahead = ZKL_SEQ_NONE;
	view->unknown_from = q->unknown_from;
	view->tainted = q->tainted;
	for (i = 0; i < q->n; i++)
	{
		const Child *c = &q->children[i];

		if (c->owner < 0 && c->named)
		{
			foreign[view->nforeign].seq = c->seq;
			foreign[view->nforeign].mode = c->mode;
			foreign[view->nforeign].zklock = false;
			foreign[view->nforeign].name = (uint32_t) i;
			view->nforeign++;
		}
		if (c->owner >= 0 && c->seq < me->seq && conflict(c, me) &&
			(view->own_ahead == ZKL_SEQ_NONE || c->seq > view->own_ahead))
			view->own_ahead = c->seq;
	}
	zkl_queue_sort(foreign, view->nforeign);
}

/* The nearest that me has to wait for among those known, or NULL */
static const Child *
oracle_blocker(const Queue *q, const Child *me)
{
	const Child *nearest = NULL;
	int			i;

	for (i = 0; i < q->n; i++)
	{
		const Child *c = &q->children[i];

		if (c == me || !c->named || !conflict(c, me))
			continue;
		if (c->owner >= 0 ? c->seq >= me->seq : c->seq > me->seq)
			continue;
		if (nearest == NULL || c->seq > nearest->seq)
			nearest = c;
	}
	return nearest;
}

static ZklDecision
oracle(const Queue *q, const Child *me, const Child *blocker)
{
	if (blocker)
		return blocker->owner >= 0 ? ZKL_DECISION_BEHIND_OWN :
			ZKL_DECISION_BEHIND_FOREIGN;
	if (q->unknown_from < me->seq)
		return ZKL_DECISION_LIST;
	if (q->tainted && me->mode == ZKL_EXCLUSIVE)
		return ZKL_DECISION_LIST;
	return ZKL_DECISION_GRANT;
}

/* Two local contenders never have one number, nor a local and a foreign one */
static bool
number_is_shared(const Queue *q, const Child *me)
{
	int			i;

	for (i = 0; i < q->n; i++)
		if (&q->children[i] != me && q->children[i].seq == me->seq &&
			q->children[i].owner >= 0)
			return true;
	return false;
}

static void
check_case(const Queue *q, const Child *me)
{
	ZklContender foreign[MAX_CHILDREN];
	ZklQueueView view;
	const Child *blocker = oracle_blocker(q, me);
	ZklDecision expected = oracle(q, me, blocker);
	ZklDecision got;
	size_t		at = 1000;

	make_view(q, me, &view, foreign);
	got = zkl_queue_decide(&view, me->mode, me->seq, &at);

	/* ahead of both a local and a foreign one of one number: either will do */
	if (blocker && blocker->seq == me->seq)
		CHECK_INT(got, ZKL_DECISION_BEHIND_FOREIGN);
	else if (blocker && got == ZKL_DECISION_BEHIND_FOREIGN)
		CHECK(at < view.nforeign && foreign[at].seq == blocker->seq);
	else if (blocker && got == ZKL_DECISION_BEHIND_OWN)
		CHECK_INT(view.own_ahead, blocker->seq);
	else
		CHECK_INT(got, expected);

	if (got == ZKL_DECISION_BEHIND_FOREIGN && CHECK(at < view.nforeign))
		CHECK(conflict(&q->children[foreign[at].name], me) &&
			  foreign[at].seq <= me->seq);
}

static void
decisions(void)
{
	int			i;

	for (i = 0; i < 60000; i++)
	{
		Queue		q;
		int			j;

		random_queue(&q);
		for (j = 0; j < q.n; j++)
		{
			if (q.children[j].owner >= 0 &&
				!number_is_shared(&q, &q.children[j]))
				check_case(&q, &q.children[j]);
		}
	}
}

static int
compare_contenders(const void *a, const void *b)
{
	const ZklContender *x = a;
	const ZklContender *y = b;

	if (x->seq != y->seq)
		return x->seq < y->seq ? -1 : 1;
	return (int) x->mode - (int) y->mode;
}

/* Sorted as qsort does; nothing lost or made up */
static void
sorting(void)
{
	static ZklContender got[3000];
	static ZklContender expected[3000];
	static bool seen[3000];
	int			i;

	for (i = 0; i < 600; i++)
	{
		size_t		n = unit_random_below(i % 100 == 0 ? 3000 : 40);
		uint32_t	range = 1 + unit_random_below(60);
		size_t		j;

		for (j = 0; j < n; j++)
		{
			got[j].seq = unit_random_below(range);
			got[j].mode = unit_random() & 1 ? ZKL_SHARED : ZKL_EXCLUSIVE;
			got[j].zklock = false;
			got[j].name = (uint32_t) j;
			expected[j] = got[j];
			seen[j] = false;
		}
		zkl_queue_sort(got, n);
		qsort(expected, n, sizeof(expected[0]), compare_contenders);
		for (j = 0; j < n; j++)
		{
			CHECK(compare_contenders(&got[j], &expected[j]) == 0);
			CHECK(got[j].name < n && !seen[got[j].name]);
			seen[got[j].name] = true;
		}
	}
}

static void
nearest(void)
{
	int			i;

	for (i = 0; i < 30000; i++)
	{
		ZklContender list[30];
		size_t		n = unit_random_below(30);
		ZklSeq		seq = unit_random_below(20);
		ZklLockMode mode = unit_random() & 1 ? ZKL_SHARED : ZKL_EXCLUSIVE;
		ptrdiff_t	expected = -1;
		ptrdiff_t	got;
		size_t		j;

		memset(list, 0, sizeof(list));
		for (j = 0; j < n; j++)
		{
			list[j].seq = unit_random_below(20);
			list[j].mode = unit_random() & 1 ? ZKL_SHARED : ZKL_EXCLUSIVE;
		}
		zkl_queue_sort(list, n);
		for (j = 0; j < n; j++)
			if (list[j].seq <= seq && zkl_mode_conflicts(list[j].mode, mode))
				expected = (ptrdiff_t) j;
		got = zkl_queue_nearest(list, n, mode, seq);
		if (!CHECK((got < 0) == (expected < 0)) || got < 0)
			continue;
		CHECK_INT(list[got].seq, list[expected].seq);
		CHECK(zkl_mode_conflicts(list[got].mode, mode));
	}
	CHECK_INT(zkl_queue_nearest(NULL, 0, ZKL_EXCLUSIVE, 5), -1);
}

/* Several servers, each with owners; a server number says who is foreign */
typedef struct Member
{
	ZklSeq		seq;
	ZklLockMode mode;
	int			server;
	int			owner;
	bool		holds;
	bool		left;
} Member;

static bool
members_conflict(const Member *a, const Member *b)
{
	if (a->server == b->server && a->owner == b->owner)
		return false;
	return a->mode == ZKL_EXCLUSIVE || b->mode == ZKL_EXCLUSIVE;
}

static ZklDecision
member_decides(const Member *members, int n, const Member *me,
			   ZklContender *foreign, size_t *at)
{
	ZklQueueView view;
	int			i;

	memset(&view, 0, sizeof(view));
	view.own_ahead = ZKL_SEQ_NONE;
	view.unknown_from = ZKL_SEQ_NONE;
	view.foreign = foreign;
	for (i = 0; i < n; i++)
	{
		const Member *c = &members[i];

		if (c->left || c == me)
			continue;
		if (c->server != me->server)
		{
			foreign[view.nforeign].seq = c->seq;
			foreign[view.nforeign].mode = c->mode;
			foreign[view.nforeign].name = (uint32_t) i;
			view.nforeign++;
		}
		else if (c->seq < me->seq && members_conflict(c, me) &&
				 (view.own_ahead == ZKL_SEQ_NONE || c->seq > view.own_ahead))
			view.own_ahead = c->seq;
	}
	zkl_queue_sort(foreign, view.nforeign);
	return zkl_queue_decide(&view, me->mode, me->seq, at);
}

static void
check_exclusion(const Member *members, int n, const Member *me)
{
	int			i;

	for (i = 0; i < n; i++)
		CHECK(&members[i] == me || members[i].left || !members[i].holds ||
			  !members_conflict(&members[i], me));
}

/* One pass over all that wait; false if nobody could be granted */
static bool
grant_some(Member *members, int n)
{
	ZklContender foreign[MAX_CHILDREN];
	bool		granted = false;
	int			i;

	memset(foreign, 0, sizeof(foreign));
	for (i = 0; i < n; i++)
	{
		Member	   *me = &members[i];
		size_t		at = 0;

		if (me->left || me->holds ||
			member_decides(members, n, me, foreign, &at) !=
			ZKL_DECISION_GRANT)
			continue;
		check_exclusion(members, n, me);
		me->holds = granted = true;
	}
	return granted;
}

/*
 * All servers see everything: no two conflicting holders at any time, and
 * somebody always holds until the queue is empty.  One owner asks once.
 */
static void
whole_queues(void)
{
	int			i;

	for (i = 0; i < 3000; i++)
	{
		Member		members[MAX_CHILDREN];
		int			n = 1 + (int) unit_random_below(MAX_CHILDREN);
		int			left = 0;
		int			j;

		memset(members, 0, sizeof(members));
		for (j = 0; j < n; j++)
		{
			members[j].seq = j * 3 + unit_random_below(3);
			members[j].mode = unit_random() & 1 ? ZKL_SHARED : ZKL_EXCLUSIVE;
			members[j].server = (int) unit_random_below(3);
			members[j].owner = j;
		}
		while (left < n)
		{
			bool		granted = grant_some(members, n);
			int			holders = 0;
			int			leaver;

			for (j = 0; j < n; j++)
				holders += members[j].holds && !members[j].left;
			if (!CHECK_MSG(granted || holders > 0, "stuck with %d of %d",
						   n - left, n))
				break;
			leaver = (int) unit_random_below((uint32_t) n);
			for (j = 0; j < n; j++, leaver = (leaver + 1) % n)
				if (!members[leaver].left && members[leaver].holds)
					break;
			members[leaver].left = true;
			left++;
		}
	}
}

/* The cases of the design, by hand */
static void
by_hand(void)
{
	ZklContender foreign[2] = {
		{.seq = 5,.mode = ZKL_EXCLUSIVE}, {.seq = 5,.mode = ZKL_SHARED}
	};
	ZklQueueView view = {
		.own_ahead = ZKL_SEQ_NONE,.foreign = foreign,
		.unknown_from = ZKL_SEQ_NONE
	};
	size_t		at;

	/* empty */
	CHECK_INT(zkl_queue_decide(&view, ZKL_EXCLUSIVE, 0, &at),
			  ZKL_DECISION_GRANT);

	/* a downgrading writer and its reader, one number */
	view.nforeign = 2;
	CHECK_INT(zkl_queue_decide(&view, ZKL_EXCLUSIVE, 6, &at),
			  ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT(zkl_queue_decide(&view, ZKL_SHARED, 6, &at),
			  ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT((int64_t) at, 0);

	/* an equal number never grants; a smaller one does */
	CHECK_INT(zkl_queue_decide(&view, ZKL_EXCLUSIVE, 5, &at),
			  ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT(zkl_queue_decide(&view, ZKL_EXCLUSIVE, 4, &at),
			  ZKL_DECISION_GRANT);

	/* only the reader is left */
	view.foreign = foreign + 1;
	view.nforeign = 1;
	CHECK_INT(zkl_queue_decide(&view, ZKL_SHARED, 6, &at),
			  ZKL_DECISION_GRANT);

	/* taint and unknown numbers stand against what they can hide */
	view.nforeign = 0;
	view.tainted = true;
	CHECK_INT(zkl_queue_decide(&view, ZKL_EXCLUSIVE, 6, &at),
			  ZKL_DECISION_LIST);
	CHECK_INT(zkl_queue_decide(&view, ZKL_SHARED, 6, &at),
			  ZKL_DECISION_GRANT);
	view.tainted = false;
	view.unknown_from = 6;
	CHECK_INT(zkl_queue_decide(&view, ZKL_EXCLUSIVE, 6, &at),
			  ZKL_DECISION_GRANT);
	CHECK_INT(zkl_queue_decide(&view, ZKL_SHARED, 7, &at),
			  ZKL_DECISION_LIST);
	view.own_ahead = 3;
	CHECK_INT(zkl_queue_decide(&view, ZKL_SHARED, 7, &at),
			  ZKL_DECISION_BEHIND_OWN);
}

int
main(void)
{
	unit_start();
	RUN(by_hand);
	RUN(decisions);
	RUN(nearest);
	RUN(sorting);
	RUN(whole_queues);
	return unit_finish();
}
