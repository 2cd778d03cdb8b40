/*
 * zxid.c
 *	  Whether a transaction id that ZooKeeper answers can be believed.
 *
 * Owns m->zxid: what the manager remembers of transaction ids.  Runs in the
 * worker (and in tests), takes no locks, knows neither PostgreSQL nor
 * ZooKeeper.
 *
 * Fencing tokens are made of these ids, so a server that has seen one refuses
 * all smaller ones for good.  But one absurd id (from a garbled answer, say)
 * must not make it refuse the whole ensemble from then on.  The upper 32 bits
 * count elections.  If an answer is many elections ahead of all earlier ones,
 * it does not count; the server believes it only if the next connection says
 * the like.
 */
#include "core/zxid.h"

/* The greatest that a token has room for */
#define GREATEST		(INT64_MAX / ZKL_TOKENS_PER_ZXID)

#define ELECTIONS(n)	((int64_t) (n) << 32)

/* How far the first answer may be ahead of the greatest seen id, or of 0 */
#define NEAR			ELECTIONS(64)
#define NEAR_NOTHING	ELECTIONS(65536)

bool
zkl_zxid_is_absurd(ZklManager *m, int64_t zxid)
{
	int64_t		near = m->zxid.seen != 0 ? NEAR : NEAR_NOTHING;
	bool		confirmed = m->zxid.doubted != 0 &&
	zxid >= m->zxid.doubted && zxid - m->zxid.doubted < NEAR;

	m->zxid.doubted = 0;
	if (zxid <= 0 || zxid > GREATEST)
		return true;
	if (zxid < m->zxid.seen || zxid - m->zxid.seen < near || confirmed)
		return false;
	m->zxid.doubted = zxid;
	return true;
}

bool
zkl_zxid_went_back(const ZklManager *m, int64_t zxid)
{
	return zxid < m->zxid.seen && !ZKL_MUTANT(BACKWARDS_ZXID);
}

bool
zkl_zxid_is_of_later_election(const ZklManager *m, int64_t zxid)
{
	return zxid / ELECTIONS(1) > m->zxid.seen / ELECTIONS(1);
}

void
zkl_zxid_withhold(ZklManager *m)
{
	if (!m->zxid.withheld)
		m->zxid.before = m->zxid.seen;
	m->zxid.withheld = true;
}

void
zkl_zxid_disclose(ZklManager *m)
{
	m->zxid.withheld = false;
}

int64_t
zkl_zxid_told(const ZklManager *m)
{
	return m->zxid.withheld ? m->zxid.before : m->zxid.seen;
}

bool
zkl_zxid_is_known(const ZklManager *m, int64_t zxid)
{
	return zxid > 0 && zxid <= m->zxid.seen;
}

void
zkl_zxid_believe(ZklManager *m, int64_t zxid)
{
	m->zxid.seen = zxid;
}
