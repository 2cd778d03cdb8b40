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
 * Makes a UUID of version 8 (which marks it as zklock's) out of two numbers
 * that together never repeat: the 60 low bits of hi and the 62 low bits of lo
 * count.
 */
extern ZklUuid zkl_uuid_make(uint64_t hi, uint64_t lo);
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
