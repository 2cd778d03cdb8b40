/*
 * errand_segment.c
 *	  Reads an errand from its segment, and writes the answers there.
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
	char	   *paths;
} Taken;

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
copy_errand(void *address, Size size, void *arg)
{
	ZklErrand  *errand = address;
	Taken	   *taken = arg;
	ZklErrand  *what = taken->what;
	char	   *paths;

	if (size < offsetof(ZklErrand, answer))
		return;
	memcpy(what, errand, offsetof(ZklErrand, answer));
	if (what->n == 0 ||
		what->n > (zkl_errand_layout_is_read(what) ? ZKL_ERRAND_READS : 1) ||
		what->room > size || what->paths_size == 0 || what->paths_size > size ||
		zkl_errand_layout_size(what->n, what->room, what->paths_size) > size)
		return;
	paths = MemoryContextAlloc(TopMemoryContext, what->paths_size);
	memcpy(paths, zkl_errand_layout_answer_in(errand, what->room, what->n),
		   what->paths_size);
	what->length = Min(what->length, ZKL_MAX_ERRAND_DATA);
	if (paths[what->paths_size - 1] == '\0' &&
		count_strings(paths, what->paths_size) == what->n)
		taken->paths = paths;
	else
		pfree(paths);
}

char *
zkl_errand_segment_take(dsm_handle handle, ZklErrand *what)
{
	Taken		taken = {what, NULL};

	(void) zkl_segment_use(handle, copy_errand, &taken);
	return taken.paths;
}

/*
 * Data that is too long is cut.  Of too many names, some may be missing.  What is read
 * here comes from "what", which was checked: a backend can write into the segment.
 */
void
zkl_errand_segment_put(ZklErrand *errand, const ZklErrand *what, uint32 number,
					   const ZklReply *reply, const ZklWireStat *stat,
					   uint64 fingerprint)
{
	ZklErrandAnswer *answer = zkl_errand_layout_answer_in(errand, what->room, number);
	Size		size = reply->data_length;
	size_t		i;

	answer->rc = reply->rc;
	answer->connection = zkl_control->ctl_status.connects;
	if (stat != NULL)
	{
		answer->stat.czxid = stat->czxid;
		answer->stat.mzxid = stat->mzxid;
		answer->stat.ctime = stat->ctime;
		answer->stat.mtime = stat->mtime;
		answer->stat.session_id = stat->ephemeral_owner;
		answer->stat.version = stat->version;
	}
	answer->fingerprint = fingerprint;
	answer->nchildren = (uint32) reply->nchildren;
	if (size > 0)
		memcpy(answer->bytes, reply->data, Min(size, what->room));
	for (i = 0; i < reply->nchildren; i++)
	{
		Size		length = strlen(reply->children[i]) + 1;

		if (size + length <= what->room)
			memcpy(answer->bytes + size, reply->children[i], length);
		size += length;
	}
	answer->size = size;
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
