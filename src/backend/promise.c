/*
 * promise.c
 *	  Times that are told: until then nobody else gets the lock.
 *
 * Owns s_promised_until of slots, with worker_slot.c, which shortens it, and whether
 * this backend's client has gone.  Run by backends.  Takes s_mutex, a spinlock, one slot
 * at a time.
 *
 * Must not know what is promised, nor how the slot is released.
 *
 * ARGUMENT.md says why a promise holds (lemma 9).  Here it is decided by whose hand a
 * hold ends: the client's own ends a promise, any other keeps it.
 */
#include "postgres.h"

#include "backend/promise.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "replication/walsender.h"
#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/gate.h"
#include "shared/slot.h"
#include "storage/ipc.h"
#include "storage/pmsignal.h"

/* Of libpq/libpq.h, which includes headers of GSSAPI that need not be installed */
extern bool pq_check_connection(void);

static bool made_any = false;	/* this backend has told a time, ever */
static bool client_is_gone = false;
static int	exit_code = 0;

/* ---- told ---- */

/* A reservation has no holder; a lock whose end has been set earlier goes on. */
bool
zkl_promise_make(int slotno, uint32 generation, int64 token, int64 *until)
{
	ZklSlot    *slot = &zkl_slots[slotno];
	int64		now = zkl_boottime_ms();
	bool		held;

	SpinLockAcquire(&slot->s_mutex);
	held = slot->s_answer.token == token &&
		zkl_lease_same_generation(slot->s_record.generation, generation);
	if (slot->s_state == ZKL_SLOT_RELEASED)
	{
		held = held && slot->s_request.lifetime == ZKL_LIFETIME_RESERVATION &&
			!zkl_slot_is_lost_kept(slot);
		*until = Min(*until, slot->s_keep_until);
	}
	else
	{
		held = held && slot->s_state == ZKL_SLOT_GRANTED;
		if (slot->s_until != 0)
			*until = Min(*until, slot->s_until);
	}
	held = held && *until > now;
	if (held)
		slot->s_promised_until = Max(slot->s_promised_until, *until);
	SpinLockRelease(&slot->s_mutex);
	made_any |= held;
	return held;
}

void
zkl_promise_tell_loss(int slotno, int64 token)
{
	ZklSlot    *slot = &zkl_slots[slotno];

	SpinLockAcquire(&slot->s_mutex);
	if (zkl_slot_is_lost_kept(slot) && slot->s_answer.token == token)
		slot->s_lost_until = 0;
	SpinLockRelease(&slot->s_mutex);
	zkl_dirty_set(slotno, ZKL_WAKE_AT_LEISURE);
}

/* ---- by whose hand a hold ends ---- */

/*
 * COPY takes the loss of its client for an error, and aborts the transaction before the
 * process ends.  Looked at only if a time was told: it asks the kernel.
 */
void
zkl_promise_note_abort(void)
{
	if (made_any && !client_is_gone && MyProcPort != NULL && !proc_exit_inprogress)
		client_is_gone = !pq_check_connection();
}

void
zkl_promise_note_exit(int code)
{
	exit_code = code;
}

/*
 * The client releases a lock, ends its transaction, or says good-bye.  Nobody who means
 * to do the last leaves a transaction open: that is a pooler, whose client has gone.  A
 * walsender ends like a client that says good-bye, whatever has happened.
 */
bool
zkl_promise_ends_by_holder(int slotno)
{
	if (client_is_gone)
		return false;
	if (!proc_exit_inprogress)
		return true;
	return pgStatSessionEndCause == DISCONNECT_NORMAL && exit_code == 0 && !am_walsender &&
		zkl_slots[slotno].s_request.lifetime != ZKL_LIFETIME_TRANSACTION &&
		PostmasterIsAlive();
}
