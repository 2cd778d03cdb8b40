/*
 * survey.c
 *	  Reading many znodes, a few at a time.
 *
 * Owns the DSM segment of a survey while the worker reads.  Run by backends.
 * Takes no locks; waits as wait.c does.
 *
 * Must not know what the znodes are.
 *
 * If several reads cannot be answered together, because the answers are too long
 * or because one of the reads ends the connection, each is repeated by itself.
 */
#include "postgres.h"

#include "backend/long_answer.h"
#include "backend/refusal.h"
#include "backend/survey.h"
#include "backend/wait.h"
#include "shared/settings.h"
#include "shared/status.h"
#include "znode/result.h"

#define FIRST_ROOM	((Size) 64 * 1024)

static void
survey_context(void *name)
{
	errcontext("while looking at all distributed locks");
}

static dsm_segment *
make_survey(bool list, char *const *paths, int n, Size room)
{
	Size		size = 0;
	dsm_segment *segment;
	ZklSurvey  *survey;
	char	   *at;
	int			i;

	for (i = 0; i < n; i++)
		size += strlen(paths[i]) + 1;
	segment = dsm_create(offsetof(ZklSurvey, paths) + size + room, 0);
	survey = dsm_segment_address(segment);
	survey->list = list;
	survey->nreads = (uint32) n;
	survey->paths_size = size;
	at = survey->paths;
	for (i = 0; i < n; i++)
		at = stpcpy(at, paths[i]) + 1;
	return segment;
}

/* Returns the bytes that the answers take, or 0 with ZooKeeper's result code. */
static Size
wait_for_survey(dsm_segment *segment, int32 *rc)
{
	ZklTarget	all = {"", "", ZKL_DIALECT_CURATOR_RW};
	ZklDeadlines at;
	ZklSlot		answer;

	*rc = ZKL_RC_OK;
	zkl_wait_begin_answer(&at, ZKL_FOREVER, zkl_status_connect_timeout_ms(), false);
	zkl_wait_for_answer(&all, ZKL_KIND_SURVEY, dsm_segment_handle(segment),
						survey_context, &at, &answer);
	if (answer.s_state == ZKL_SLOT_GRANTED)
		return 0;
	if (answer.s_answer.error == ZKL_ERROR_TOO_LARGE)
		return answer.s_answer.dsm_size;
	if (answer.s_answer.error != ZKL_ERROR_ZOOKEEPER)
		zkl_refusal_raise_failed("", answer.s_answer.error, answer.s_answer.zkrc);
	*rc = answer.s_answer.zkrc;
	return 0;
}

/* One read by itself gets all the room that it needs. */
static Size
room_for(int n, Size needed)
{
	return n == 1 && needed <= ZKL_LONG_ANSWER_MAX ? needed + needed / 4 : 0;
}

/*
 * Returns a palloc'd copy of the answers; NULL, with a result code: there are
 * none.
 */
static char *
read_survey(bool list, char *const *paths, int n, ZklEntries *answers, int32 *rc)
{
	Size		room = FIRST_ROOM;

	for (;;)
	{
		dsm_segment *segment = make_survey(list, paths, n, room);
		Size		needed = wait_for_survey(segment, rc);
		char	   *copy = NULL;

		if (needed == 0 && *rc == ZKL_RC_OK)
		{
			zkl_survey_layout_answers(dsm_segment_address(segment),
									  dsm_segment_map_length(segment), answers);
			copy = MemoryContextAllocHuge(CurrentMemoryContext, answers->size + 1);
			memcpy(copy, answers->base, answers->size);
			answers->base = copy;
		}
		dsm_detach(segment);
		if (needed == 0)
			return copy;
		room = room_for(n, needed);
		if (room == 0)
		{
			*rc = ZKL_RC_TOO_LONG;
			return NULL;
		}
	}
}

static bool
next_answer(ZklEntries *answers, ZklSurveyAnswer *answer)
{
	return zkl_entries_get(answers, &answer->rc, sizeof(int32)) &&
		zkl_entries_get(answers, &answer->ctime_ms, sizeof(int64)) &&
		zkl_entries_get(answers, &answer->session_id, sizeof(int64)) &&
		zkl_entries_get_bytes(answers, &answer->bytes, &answer->length);
}

static void
read_part(bool list, char *const *paths, int n, int number,
		  void (*fn) (void *arg, const ZklSurveyAnswer *answer), void *arg)
{
	ZklSurveyAnswer answer = {number};
	ZklEntries	answers;
	char	   *copy = read_survey(list, paths, n, &answers, &answer.rc);
	int			i;

	if (copy == NULL && n == 1)
		fn(arg, &answer);
	for (i = 0; i < n && copy == NULL && n > 1; i++)
		read_part(list, &paths[i], 1, number + i, fn, arg);
	for (i = 0; i < n && copy != NULL; i++)
	{
		answer.number = number + i;
		if (!next_answer(&answers, &answer))
			elog(ERROR, "the answer of the zklock worker is cut off");
		fn(arg, &answer);
	}
	if (copy != NULL)
		pfree(copy);
}

void
zkl_survey_read(bool list, char *const *paths, int n,
				void (*fn) (void *arg, const ZklSurveyAnswer *answer),
				void *arg)
{
	Assert(n <= ZKL_SURVEY_READS);
	read_part(list, paths, n, 0, fn, arg);
}
