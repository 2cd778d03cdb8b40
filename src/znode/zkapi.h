/*
 * zkapi.h
 *	  What ZooKeeper can be asked, and what it answers, in the words of all
 *	  programs: the core, the worker, the session process, and backends.
 *
 * Types and constants only.  The numbers of the enums travel over the link (see
 * wire/wire.h); those of the result codes are ZooKeeper's.
 */
#ifndef ZKL_ZNODE_ZKAPI_H
#define ZKL_ZNODE_ZKAPI_H

#include <stdbool.h>
#include <stdint.h>

/* ---- operations ---- */

typedef enum ZklSendKind
{
	ZKL_SEND_MULTI,				/* a transaction of several */
	ZKL_SEND_CREATE_CONTAINER,
	ZKL_SEND_DELETE,			/* any version */
	ZKL_SEND_GET,				/* with a watch, if watch */
	ZKL_SEND_LIST,				/* with a watch on the children, if watch */
	ZKL_SEND_UNWATCH,
	ZKL_SEND_UNWATCH_CHILDREN,
	ZKL_SEND_SYNC,				/* reads behind it are as new as this */
	ZKL_SEND_GET_ACL			/* who has which rights to a znode */
} ZklSendKind;

/* The operations of a transaction */
typedef enum ZklMultiKind
{
	ZKL_MULTI_SET,
	ZKL_MULTI_DELETE,
	ZKL_MULTI_CREATE,			/* ephemeral sequential */
	ZKL_MULTI_CREATE_EPHEMERAL, /* the name as given */
	ZKL_MULTI_CHECK,			/* that it exists, in this version */
	ZKL_MULTI_CREATE_PERSISTENT,	/* not the core's; see errand_layout.h */
	ZKL_MULTI_CREATE_PRIVATE,	/* not the core's: ephemeral, and read only
								 * with our credentials */
	ZKL_MULTI_CREATE_SECRET		/* likewise, persistent */
} ZklMultiKind;

/* ---- answers ---- */

#define ZKL_RC_OK			0
#define ZKL_RC_NONODE		(-101)
#define ZKL_RC_NOAUTH		(-102)
#define ZKL_RC_BADVERSION	(-103)
#define ZKL_RC_NODEEXISTS	(-110)
#define ZKL_RC_NOTEMPTY		(-111)
#define ZKL_RC_UNKNOWN		(-4)	/* what stands for any lost reply */

/*
 * Whether a code tells of the session only, and not of what was asked:
 * SESSIONEXPIRED, AUTHFAILED, CLOSING, SESSIONMOVED
 */
static inline bool
zkl_zkapi_is_of_session(int32_t rc)
{
	return rc == -112 || rc == -115 || rc == -116 || rc == -118;
}

/*
 * Whether a code says that nothing was done, not only that nothing is known:
 * ZooKeeper's API errors, but for those about the session; and -8, by which its
 * client refuses to send at all.
 */
static inline bool
zkl_zkapi_is_definite(int32_t rc)
{
	return rc == -8 || (rc <= -101 && !zkl_zkapi_is_of_session(rc));
}

/* ---- the connection ---- */

#define ZKL_PASSWORD_BYTES	16	/* of a session */

/* The scheme whose credentials name the ensemble, and not the client */
#define ZKL_SCHEME_ENSEMBLE	"ensemble"

/* Who may do what with the znodes that a server creates */
typedef enum ZklAccess
{
	ZKL_ACCESS_ALL,				/* everybody may write */
	ZKL_ACCESS_READ,			/* without our credentials: read only */
	ZKL_ACCESS_PRIVATE			/* likewise: nothing */
} ZklAccess;

typedef enum ZklTls
{
	ZKL_TLS_OFF,
	ZKL_TLS_VERIFY_CA,			/* any server that a trusted CA vouches for */
	ZKL_TLS_VERIFY_FULL			/* its certificate names the host, too */
} ZklTls;

#endif							/* ZKL_ZNODE_ZKAPI_H */
