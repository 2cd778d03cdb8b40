/*
 * surveys.c
 *	  The worker's side of zk_fleet_locks(): a few reads at a time.
 *
 * Owns the slots of kind SURVEY between their submission and their answer.  Runs
 * in the worker only; takes no locks.  It decides nothing, and must not know
 * where the walk of the backend leads.
 *
 * One survey is under way at a time, whoever asked for it, and a survey has at
 * most ZKL_SURVEY_READS reads.  So the traffic of locks finds no more than these
 * ahead of it, and calls in several sessions take turns.  The worker keeps no
 * more of the answers than the backend has room for.
 *
 * If the connection ends under the same survey again and again, the survey may
 * be the reason.  Then it fails.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/survey_layout.h"
#include "utils/memutils.h"
#include "worker/segment.h"
#include "worker/surveys.h"
#include "worker/worker_slot.h"

#define MAX_LOSSES		1		/* of the connection, while it is under way */
#define RC_MARSHALLINGERROR	(-5)

typedef struct
{
	ZklTask		task;
	dsm_handle	segment;
	bool		list;
	uint32		nreads;
	char	   *paths;			/* a copy; NULL: the segment is of no use */
	ZklEntries	answers;		/* so far, in memory of our own */
	uint32		nanswered;
	int			losses;
} SurveyTask;

/* ---- the segment ---- */

static uint32
count_strings(const char *strings, Size size)
{
	uint32		n = 0;
	Size		i;

	for (i = 0; i < size; i++)
		n += strings[i] == '\0';
	return n;
}

/* Do not trust the lengths: a bad one must not crash the worker. */
static void
take_survey(void *address, Size size, void *arg)
{
	ZklSurvey  *survey = address;
	SurveyTask *task = arg;

	if (size < offsetof(ZklSurvey, paths) ||
		survey->paths_size == 0 ||
		survey->paths_size > size - offsetof(ZklSurvey, paths) ||
		survey->nreads == 0 || survey->nreads > ZKL_SURVEY_READS ||
		survey->paths[survey->paths_size - 1] != '\0' ||
		count_strings(survey->paths, survey->paths_size) != survey->nreads)
		return;
	task->list = survey->list;
	task->nreads = survey->nreads;
	zkl_survey_layout_answers(survey, size, &task->answers);
	task->answers.base = MemoryContextAllocHuge(TopMemoryContext,
												task->answers.size + 1);
	task->paths = MemoryContextAlloc(TopMemoryContext, survey->paths_size);
	memcpy(task->paths, survey->paths, survey->paths_size);
}

static Size
write_answers(void *address, Size size, void *arg)
{
	SurveyTask *task = arg;
	ZklEntries	answers;

	zkl_survey_layout_answers(address, size, &answers);
	zkl_entries_put(&answers, task->answers.base,
					Min(task->answers.used, task->answers.size));
	return size - answers.size + task->answers.used;
}

/* ---- the task ---- */

static bool
submit_survey(ZklTask *task, const ZklSlot *slot, bool restored)
{
	SurveyTask *survey = (SurveyTask *) task;

	survey->segment = slot->s_dsm;
	(void) zkl_segment_use(slot->s_dsm, take_survey, survey);
	if (survey->paths != NULL)
		return true;
	zkl_worker_slot_fail(task->slotno, ZKL_ERROR_SEGMENT, 0);
	return false;
}

static void
begin_survey(ZklTask *task)
{
	SurveyTask *survey = (SurveyTask *) task;
	const char *path = survey->paths;
	uint32		i;

	survey->answers.used = 0;
	survey->nanswered = 0;
	for (i = 0; i < survey->nreads; i++)
	{
		zkl_operation_send(task, i, survey->list ? ZKL_SEND_LIST : ZKL_SEND_GET,
						   path, false);
		path += strlen(path) + 1;
	}
}

static void
end_survey(ZklTask *task, bool connected)
{
	SurveyTask *survey = (SurveyTask *) task;

	pfree(survey->answers.base);
	pfree(survey->paths);
}

static void
fail_survey(SurveyTask *survey, int32 rc)
{
	zkl_worker_slot_fail(survey->task.slotno, ZKL_ERROR_ZOOKEEPER, rc);
	zkl_operation_end(&survey->task);
}

static void
lose_survey(ZklTask *task, bool was_busy)
{
	SurveyTask *survey = (SurveyTask *) task;

	if (was_busy && ++survey->losses > MAX_LOSSES)
		fail_survey(survey, ZKL_RC_UNKNOWN);
}

static void
put_names(ZklEntries *answers, const ZklReply *reply)
{
	uint32		length = 0;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
		length += (uint32) strlen(reply->children[i]) + 1;
	zkl_entries_put(answers, &length, sizeof(uint32));
	for (i = 0; i < reply->nchildren; i++)
		zkl_entries_put(answers, reply->children[i],
						strlen(reply->children[i]) + 1);
}

static void
put_reply(SurveyTask *survey, const ZklReply *reply, const ZklWireStat *stat)
{
	ZklEntries *answers = &survey->answers;
	int32		rc = reply->rc;

	zkl_entries_put(answers, &rc, sizeof(int32));
	zkl_entries_put(answers, &stat->ctime, sizeof(int64));
	zkl_entries_put(answers, &stat->ephemeral_owner, sizeof(int64));
	if (survey->list)
		put_names(answers, reply);
	else
		zkl_entries_put_bytes(answers, reply->data,
							  (uint32) Min(reply->data_length, ZKL_MAX_NODE_DATA));
}

/* ZooKeeper answers in the order of the reads. */
static void
take_survey_reply(ZklTask *task, uint32 part, const ZklReply *reply,
				  const ZklWireStat *stat)
{
	SurveyTask *survey = (SurveyTask *) task;

	if (reply->rc != ZKL_RC_OK && reply->rc != RC_MARSHALLINGERROR &&
		!zkl_result_is_definite(reply->rc))
	{
		if (!zkl_operation_retry(task))
			fail_survey(survey, reply->rc);
		return;
	}
	Assert(part == survey->nanswered);
	put_reply(survey, reply, stat);
	if (++survey->nanswered < survey->nreads)
		return;
	zkl_segment_answer(task->slotno, survey->segment, write_answers, survey);
	zkl_operation_end(task);
}

ZklTaskOwner zkl_surveys_owner = {
	.size = sizeof(SurveyTask),
	.one_at_a_time = true,
	.submit = submit_survey,
	.begin = begin_survey,
	.reply = take_survey_reply,
	.lost = lose_survey,
	.end = end_survey,
};
