/*
 * notice.c
 *	  Telling the client that the release of a lock of its was requested.
 *
 * Owns what this backend knows of that.  Run by backends, before and after
 * statements, and when a transaction is aborted; not when it commits.
 * Takes slots' mutexes through slot.h, one at a time.
 *
 * Must not know how a release is requested, nor when a hold ends.
 */
#include "postgres.h"

#include "backend/hold.h"
#include "backend/notice.h"
#include "backend/text.h"
#include "shared/control.h"
#include "shared/settings.h"
#include "shared/slot.h"

static void
tell_release_request(const ZklHold *hold, const ZklSlot *slot, bool drained)
{
	char		asker[4 * ZKL_MAX_ASKER_TEXT + 1];

	zkl_text_to_ascii(slot->s_answer.asker, strlen(slot->s_answer.asker), asker,
					  sizeof(asker));
	ereport(NOTICE,
			(errmsg("release of distributed lock \"%s\" was requested",
					zkl_text_for_client(hold->name)),
			 drained ?
			 errdetail("This server is being drained.") :
			 asker[0] != '\0' ?
			 errdetail("It was requested by %s.", asker) :
			 errdetail("It was requested by a client other than zklock."),
			 errhint("This session still holds the lock and should release it as soon as it can.")));
}

/* Walks through the holds only after a release request on this server. */
void
zkl_notice_tell(void)
{
	static uint64 looked_at = 0;
	uint64		requests = pg_atomic_read_u64(&zkl_control->ctl_release_requests);
	int			i;

	if (requests == looked_at)
		return;
	for (i = 0; i < lengthof(zkl_holds); i++)
	{
		dlist_iter	iter;

		dlist_foreach(iter, &zkl_holds[i])
		{
			ZklHold    *hold = dlist_container(ZklHold, link, iter.cur);
			ZklSlot		slot;
			bool		drained;

			zkl_slot_copy(hold->grant.slotno, &slot);
			if (slot.s_state != ZKL_SLOT_GRANTED ||
				(slot.s_answer.asked_zxid == hold->told_zxid &&
				 slot.s_drain == hold->told_drain))
				continue;
			drained = slot.s_drain != hold->told_drain;
			hold->told_zxid = slot.s_answer.asked_zxid;
			hold->told_drain = slot.s_drain;
			if (slot.s_request.on_release_request != ZKL_ON_REQUEST_IGNORE)
				tell_release_request(hold, &slot, drained);
		}
	}
	looked_at = requests;
}
