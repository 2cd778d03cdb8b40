/*
 * errand_segment.c
 *	  Reads an errand from its segment, and writes the answer there.
 *
 * Owns nothing: the segment belongs to the backend.  Runs in the worker only;
 * takes no locks.  It must not know how an errand is carried out.
 */
#include "postgres.h"

#include "shared/control.h"
#include "utils/memutils.h"
#include "worker/errand_segment.h"
#include "worker/segment.h"

typedef struct
{
	ZklErrand  *what;
	char	   *path;
} Taken;

static void
copy_errand(void *address, Size size, void *arg)
{
	ZklErrand  *errand = address;
	Taken	   *taken = arg;
	Size		strings = size - offsetof(ZklErrand, answer);

	/* Do not trust the lengths: a bad one must not crash the worker. */
	if (size < offsetof(ZklErrand, answer) || errand->room > strings ||
		errand->path_length >= strings - errand->room)
		return;
	memcpy(taken->what, errand, offsetof(ZklErrand, answer));
	taken->what->length = Min(errand->length, ZKL_MAX_ERRAND_DATA);
	taken->path = MemoryContextAlloc(TopMemoryContext,
									 errand->path_length + 1);
	memcpy(taken->path, zkl_errand_layout_path(errand), errand->path_length + 1);
}

char *
zkl_errand_segment_take(dsm_handle handle, ZklErrand *what)
{
	Taken		taken = {what, NULL};

	(void) zkl_segment_use(handle, copy_errand, &taken);
	return taken.path;
}

/* The parts of an answer */
typedef struct
{
	const ZklReply *reply;
	const ZklWireStat *stat;
	uint64		fingerprint;
} Answer;

static void
put_answer(void *address, Size size, void *arg)
{
	ZklErrand  *errand = address;
	const Answer *answer = arg;
	const ZklReply *reply = answer->reply;
	Size		room = Min(errand->room, size - offsetof(ZklErrand, answer));
	size_t		i;

	errand->rc = reply->rc;
	errand->connection = zkl_control->ctl_status.connects;
	if (answer->stat != NULL)
	{
		errand->stat.czxid = answer->stat->czxid;
		errand->stat.mzxid = answer->stat->mzxid;
		errand->stat.ctime = answer->stat->ctime;
		errand->stat.mtime = answer->stat->mtime;
		errand->stat.session_id = answer->stat->ephemeral_owner;
		errand->stat.version = answer->stat->version;
	}
	errand->fingerprint = answer->fingerprint;
	errand->nchildren = (uint32) reply->nchildren;
	errand->size = reply->data_length;
	if (reply->data_length > 0 && reply->data_length <= room)
		memcpy(errand->answer, reply->data, reply->data_length);
	for (i = 0; i < reply->nchildren; i++)
	{
		Size		length = strlen(reply->children[i]) + 1;

		if (errand->size + length <= room)
			memcpy(errand->answer + errand->size, reply->children[i], length);
		errand->size += length;
	}
}

void
zkl_errand_segment_put(dsm_handle handle, const ZklReply *reply,
					   const ZklWireStat *stat, uint64 fingerprint)
{
	Answer		answer = {reply, stat, fingerprint};

	(void) zkl_segment_use(handle, put_answer, &answer);
}

/* The sum of each name's FNV-1a hash, so that their order does not count */
uint64
zkl_errand_segment_fingerprint(const ZklReply *reply)
{
	uint64		sum = reply->nchildren;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
	{
		const char *c;
		uint64		hash = UINT64CONST(14695981039346656037);

		for (c = reply->children[i]; *c != '\0'; c++)
			hash = (hash ^ (uint8) *c) * UINT64CONST(1099511628211);
		sum += hash;
	}
	return sum;
}
