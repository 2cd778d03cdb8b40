/*
 * wing.h
 *	  What a wing may call in the core.
 *
 * Of the core's structs it writes none.  Reads are sent so that the window of reads
 * knows them; whether their answers tell anything, zkl_reads_reply_tells says.
 */
#ifndef ZKL_CORE_WING_H
#define ZKL_CORE_WING_H

#include "core/cache.h"
#include "core/host.h"
#include "core/janitor.h"
#include "core/node.h"
#include "core/owner.h"
#include "core/queue.h"
#include "core/reads.h"
#include "core/reads_reply.h"
#include "core/request.h"
#include "core/session.h"
#include "core/write.h"

#endif							/* ZKL_CORE_WING_H */
