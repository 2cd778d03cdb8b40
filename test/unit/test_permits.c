/*
 * test_permits.c
 *	  The decision of who holds a lease of a semaphore: case by case, and
 *	  against a naive count over random queues.
 */
#include "core/decide.h"
#include "unit.h"

#define MAX_CHILDREN	16

static ZklDecision
decision(uint32_t own, size_t nforeign, uint32_t strangers, ZklSeq unknown_from,
		 uint32_t max)
{
	static const ZklContender foreign[] = {
		{.seq = 1}, {.seq = 3}, {.seq = 5}, {.seq = 10}, {.seq = 12}
	};
	ZklPermitView view = {own, foreign, nforeign, strangers, unknown_from};

	return zkl_decide_permit(&view, 10, max);
}

static void
cases(void)
{
	/* alone, and with others of ours ahead */
	CHECK_INT(decision(0, 0, 0, ZKL_SEQ_NONE, 1), ZKL_DECISION_GRANT);
	CHECK_INT(decision(1, 0, 0, ZKL_SEQ_NONE, 1), ZKL_DECISION_BEHIND_OWN);
	CHECK_INT(decision(2, 0, 0, ZKL_SEQ_NONE, 3), ZKL_DECISION_GRANT);
	CHECK_INT(decision(3, 0, 0, ZKL_SEQ_NONE, 3), ZKL_DECISION_BEHIND_OWN);

	/* others, ahead and behind; of equal numbers neither is let in */
	CHECK_INT(decision(0, 3, 0, ZKL_SEQ_NONE, 4), ZKL_DECISION_GRANT);
	CHECK_INT(decision(0, 3, 0, ZKL_SEQ_NONE, 3), ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT(decision(0, 4, 0, ZKL_SEQ_NONE, 4), ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT(decision(0, 5, 0, ZKL_SEQ_NONE, 5), ZKL_DECISION_GRANT);
	CHECK_INT(decision(2, 3, 0, ZKL_SEQ_NONE, 5), ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT(decision(2, 3, 0, ZKL_SEQ_NONE, 6), ZKL_DECISION_GRANT);

	/* what is no lease takes the place of one, as Curator counts it */
	CHECK_INT(decision(0, 0, 1, ZKL_SEQ_NONE, 1), ZKL_DECISION_BEHIND_FOREIGN);
	CHECK_INT(decision(1, 1, 1, ZKL_SEQ_NONE, 3), ZKL_DECISION_BEHIND_FOREIGN);

	/* who is not known may be ahead, unless those known are enough */
	CHECK_INT(decision(0, 0, 0, 9, 1), ZKL_DECISION_LIST);
	CHECK_INT(decision(0, 0, 0, 10, 1), ZKL_DECISION_GRANT);
	CHECK_INT(decision(1, 0, 0, 0, 1), ZKL_DECISION_BEHIND_OWN);
	CHECK_INT(decision(0, 1, 0, 0, 1), ZKL_DECISION_BEHIND_FOREIGN);
}

typedef struct Child
{
	bool		own;
	bool		alive;			/* a foreign one may be gone, and yet listed */
} Child;

/*
 * Numbers are places.  Foreign ones from "unknown_from" on are not named.  A
 * grant must be right, and whoever is right and knows all gets it.
 */
static void
against_a_count(void)
{
	int			round;

	for (round = 0; round < 200000; round++)
	{
		Child		child[MAX_CHILDREN];
		ZklContender foreign[MAX_CHILDREN];
		ZklPermitView view = {0};
		uint32_t	max = 1 + unit_random_below(6);
		ZklSeq		me = unit_random_below(MAX_CHILDREN);
		uint32_t	ahead = 0;
		bool		exact = true;
		ZklDecision said;
		ZklSeq		seq;

		view.foreign = foreign;
		view.unknown_from = unit_random() & 1 ? ZKL_SEQ_NONE :
			unit_random_below(MAX_CHILDREN);
		for (seq = 0; seq < MAX_CHILDREN; seq++)
		{
			Child	   *c = &child[seq];

			c->own = seq == me || (unit_random() & 1);
			c->alive = c->own || unit_random_below(4) > 0;
			if (seq < me)
			{
				ahead += c->alive;
				view.own += c->own;
			}
			if (c->own)
				continue;
			if (seq < view.unknown_from)
				foreign[view.nforeign++].seq = seq;
			exact &= seq > me || (c->alive && seq < view.unknown_from);
		}
		exact &= view.unknown_from >= me;
		said = zkl_decide_permit(&view, me, max);
		if (said == ZKL_DECISION_GRANT)
			CHECK(ahead < max);
		if (exact)
			CHECK((said == ZKL_DECISION_GRANT) == (ahead < max));
		if (said == ZKL_DECISION_BEHIND_OWN)
			CHECK(ahead >= max);
	}
}

int
main(void)
{
	unit_start();
	RUN(cases);
	RUN(against_a_count);
	return unit_finish();
}
