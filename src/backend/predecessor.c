/*
 * predecessor.c
 *	  Who is ahead of a request that waits: the question to the worker, and the
 *	  answer in words.
 *
 * Owns nothing: the caller keeps the question.  Run by backends.  Takes no locks
 * but, through backend_slot.h, those of slots.
 *
 * Must not know why somebody wants to know.
 */
#include "postgres.h"

#include "backend/backend_slot.h"
#include "backend/predecessor.h"
#include "backend/subtransaction.h"
#include "backend/text.h"
#include "backend/under_way.h"
#include "lib/stringinfo.h"
#include "shared/entries.h"
#include "utils/timestamp.h"

#define NO_QUESTION		(-1)
#define ANSWER_SIZE		((Size) 8192)	/* data and names of two znodes fit */
#define MAX_SHOWN		256		/* bytes of a znode's data */
#define LAST_TIME		(END_TIMESTAMP / 1000)	/* in ms */

/* ---- the question ---- */

void
zkl_predecessor_init(ZklPredecessor *ahead)
{
	memset(ahead, 0, sizeof(*ahead));
	ahead->asked = NO_QUESTION;
}

/*
 * The descriptor of a segment that was refused belongs to the resource owner, so this
 * is called in a subtransaction.  The segment outlives it.
 */
static void
make_segment(void *arg)
{
	ZklPredecessor *ahead = (ZklPredecessor *) arg;

	ahead->segment = dsm_create(ANSWER_SIZE, 0);
	dsm_pin_mapping(ahead->segment);
}

/* If there is no memory for the answer, the wait goes on without it. */
static bool
can_make_segment(ZklPredecessor *ahead)
{
	if (zkl_subtransaction_run(make_segment, ahead) != NULL)
	{
		ahead->segment = NULL;
		return false;
	}
	dsm_unpin_mapping(ahead->segment);
	return true;
}

bool
zkl_predecessor_ask(ZklPredecessor *ahead, int slotno, const char *name, bool reads)
{
	ZklTarget	target = {0};
	const ZklSlotRequest *request = &zkl_slots[slotno].s_request;

	if (!zkl_under_way_has_own_slot() || !can_make_segment(ahead))
		return false;
	target.name = name;
	target.path = request->path;
	target.dialect = (ZklDialect) request->dialect;
	ahead->under_way = zkl_under_way_count();
	ahead->asked = zkl_under_way_claim(&target, ZKL_KIND_AHEAD);
	zkl_slots[ahead->asked].s_request.about = slotno;
	zkl_slots[ahead->asked].s_request.reads = reads;
	zkl_slots[ahead->asked].s_dsm = dsm_segment_handle(ahead->segment);
	zkl_under_way_submit(ahead->asked, false);
	return true;
}

bool
zkl_predecessor_is_answered(const ZklPredecessor *ahead)
{
	return ahead->asked == NO_QUESTION ||
		zkl_slot_peek(ahead->asked) != ZKL_SLOT_WAITING;
}

void
zkl_predecessor_forget(ZklPredecessor *ahead)
{
	if (ahead->asked != NO_QUESTION)
		zkl_under_way_abandon(ahead->under_way);
	if (ahead->segment != NULL)
		dsm_detach(ahead->segment);
	zkl_predecessor_init(ahead);
}

/* ---- the answer ---- */

static const char *
shown(const char *text, size_t size)
{
	return zkl_text_to_display(text, (int) strnlen(text, size));
}

/*
 * Another client: its znode has a text, or nothing readable, or was not read.  Views
 * hide both, as zkl_contender_add_server does.
 */
static const char *
znode_words(const ZklZnodeEntry *entry, bool names)
{
	const char *name = zkl_text_to_display(entry->name,
										   (int) entry->name_length);

	if (!names)
		return "another client";
	if (entry->data_length == 0 || entry->data_length > MAX_SHOWN)
		return psprintf("znode \"%s\"", name);
	return psprintf("znode \"%s\", which says \"%s\"", name,
					zkl_text_to_display(entry->data,
										(int) entry->data_length));
}

static const char *
user_words(const ZklNodeData *data)
{
	if (data->application_name[0] == '\0')
		return psprintf(" (user \"%s\")", shown(data->usename, sizeof(data->usename)));
	return psprintf(" (user \"%s\", application \"%s\")",
					shown(data->usename, sizeof(data->usename)),
					shown(data->application_name, sizeof(data->application_name)));
}

/* Since when it has, or wants, the lock.  Another client can write what it likes. */
static const char *
time_words(const ZklNodeData *data)
{
	int64		ms;

	if (data->since <= 0 || data->since >= LAST_TIME ||
		data->waited_ms < 0 || data->waited_ms >= LAST_TIME)
		return "an unknown time";
	ms = data->since + data->waited_ms;
	if (ms >= LAST_TIME)
		return "an unknown time";
	return timestamptz_to_str(time_t_to_timestamptz((pg_time_t) (ms / 1000)));
}

static const char *
queued_words(const ZklZnodeEntry *entry, bool names)
{
	ZklNodeData data;

	if (!zkl_node_data_parse(entry->data, entry->data_length, &data))
		return znode_words(entry, names);
	if (data.cached)
		return psprintf("server \"%s\", which may have it cached",
						shown(data.server, sizeof(data.server)));
	return psprintf("process %d of server \"%s\"%s since %s",
					data.pid, shown(data.server, sizeof(data.server)),
					names ? user_words(&data) : "",
					time_words(&data));
}

/*
 * The first entry is the nearest one; the second, if there is one, is the first of the
 * queue.  Several may hold permits of a semaphore.
 */
const char *
zkl_predecessor_words(const ZklPredecessor *ahead, const char *name, bool names)
{
	ZklEntries	list;
	ZklZnodeEntry nearest;
	ZklZnodeEntry first;
	StringInfoData words;
	bool		is_permit;

	if (ahead->asked == NO_QUESTION ||
		zkl_slot_peek(ahead->asked) != ZKL_SLOT_GRANTED)
		return NULL;
	zkl_entries_open(&list, dsm_segment_address(ahead->segment),
					 dsm_segment_map_length(ahead->segment));
	if (!zkl_entries_next(&list, &nearest))
		return NULL;
	initStringInfo(&words);
	is_permit = zkl_slots[ahead->asked].s_request.dialect == ZKL_DIALECT_PERMIT;
	if (!zkl_entries_next(&list, &first))
		first = nearest;
	if (!is_permit)
		appendStringInfo(&words, "Distributed lock \"%s\" is held by %s",
						 name, queued_words(&first, names));
	if (is_permit || first.name != nearest.name)
		appendStringInfo(&words, "%sThe nearest request ahead is that of %s",
						 is_permit ? "" : ".  ", queued_words(&nearest, names));
	if (nearest.seq > 2)
		appendStringInfo(&words, "; %lld requests are ahead", (long long) nearest.seq - 1);
	appendStringInfoChar(&words, '.');
	return zkl_text_for_client(words.data);
}
