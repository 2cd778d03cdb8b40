/*
 * result.h
 *	  ZooKeeper's result codes, as far as zklock tells them apart.
 */
#ifndef ZKL_ZNODE_RESULT_H
#define ZKL_ZNODE_RESULT_H

#include <stdbool.h>
#include <stdint.h>

#define ZKL_RC_OK			0
#define ZKL_RC_NONODE		(-101)
#define ZKL_RC_NOAUTH		(-102)
#define ZKL_RC_BADVERSION	(-103)
#define ZKL_RC_NODEEXISTS	(-110)
#define ZKL_RC_NOTEMPTY		(-111)
#define ZKL_RC_UNKNOWN		(-4)	/* what stands for any lost reply */

/* Whether a code tells of the session only, and not of what was asked */
extern bool zkl_result_is_of_session(int32_t rc);

/* Whether a code says that nothing was done, not only that nothing is known */
extern bool zkl_result_is_definite(int32_t rc);

#endif							/* ZKL_ZNODE_RESULT_H */
