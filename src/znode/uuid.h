/*
 * uuid.h
 *	  UUIDs: the unique ids in the names of znodes.
 */
#ifndef ZKL_ZNODE_UUID_H
#define ZKL_ZNODE_UUID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define ZKL_UUID_BYTES		16
#define ZKL_UUID_TEXT		36	/* characters of a UUID in text form */
#define ZKL_UUID_HEX		32	/* the same without dashes */
#define ZKL_UUID_COUNT_BITS	40

typedef struct ZklUuid
{
	uint8_t		bytes[ZKL_UUID_BYTES];
} ZklUuid;

static inline bool
zkl_uuid_equal(const ZklUuid *a, const ZklUuid *b)
{
	return memcmp(a->bytes, b->bytes, ZKL_UUID_BYTES) == 0;
}

/*
 * Makes a UUID of version 8, which marks it as zklock's, for a znode of a ZooKeeper
 * session.  "start" tells the worker processes of that session apart, and "count" the
 * znodes of one.  Of start, 18 bits count, and ZKL_UUID_COUNT_BITS of count.
 */
extern ZklUuid zkl_uuid_make(int64_t session, uint32_t start, uint64_t count);

/* The session that such an id names */
extern int64_t zkl_uuid_session(const ZklUuid *uuid);

/* Whether two ids are of one session, and of one start in it */
extern bool zkl_uuid_same_maker(const ZklUuid *a, const ZklUuid *b);
extern void zkl_uuid_format(const ZklUuid *uuid, char *text);	/* 36 + NUL */

/* Reads exactly 36 characters and the NUL, in lower case as we write them */
extern bool zkl_uuid_parse(const char *text, ZklUuid *uuid);
extern bool zkl_uuid_is_zklock(const ZklUuid *uuid);

/*
 * Reads the UUID at the start of a text, with dashes as we and Curator write
 * it, or without as kazoo does.  Capitals make it no UUID: to ZooKeeper, a name
 * in capitals is another name.
 */
extern bool zkl_uuid_parse_start(const char *text, bool dashes, ZklUuid *uuid);

#endif							/* ZKL_ZNODE_UUID_H */
