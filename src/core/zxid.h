/*
 * zxid.h
 *	  Whether a transaction id that ZooKeeper answers can be believed.
 */
#ifndef ZKL_CORE_ZXID_H
#define ZKL_CORE_ZXID_H

#include "core/state.h"

/*
 * Whether the id of a batch that was just acknowledged cannot be right, as
 * far as this one answer can tell.  Call this once per answer.
 */
extern bool zkl_zxid_is_absurd(ZklManager *m, int64_t zxid);

/* Whether the id is smaller than one that was believed before */
extern bool zkl_zxid_went_back(const ZklManager *m, int64_t zxid);

/*
 * The id of a znode of ours, on a proved connection: the node is older than
 * the beat that proved it, so its id was acknowledged.
 */
extern bool zkl_zxid_is_known(const ZklManager *m, int64_t zxid);

/* From now on this id is the greatest seen. */
extern void zkl_zxid_believe(ZklManager *m, int64_t zxid);

/*
 * Until an election is dealt with, the host is told the greatest id from before it.
 * Nothing is granted meanwhile.
 */
extern void zkl_zxid_withhold(ZklManager *m);
extern void zkl_zxid_disclose(ZklManager *m);
extern int64_t zkl_zxid_told(const ZklManager *m);

/* Whether there was an election since the greatest id that was seen */
extern bool zkl_zxid_is_of_later_election(const ZklManager *m, int64_t zxid);

#endif							/* ZKL_CORE_ZXID_H */
