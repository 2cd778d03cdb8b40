/*
 * by_name.c
 *	  Which slot to look at for a lock: a table that is mapped directly by a hash
 *	  of name and dialect.
 *
 * Owns the table.  Backends write and read it.  Takes no locks: each place is
 * one atomic number.
 *
 * Must not know what a slot is.
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "port/atomics.h"
#include "port/pg_bitutils.h"
#include "shared/by_name.h"
#include "shared/settings.h"

/* So few locks share a place with another one */
#define PLACES_PER_REQUEST	4

#define NO_SLOT	PG_UINT32_MAX

static pg_atomic_uint32 *places = NULL;

static uint32
number_of_places(void)
{
	return pg_nextpower2_32(PLACES_PER_REQUEST * (uint32) zkl_max_requests);
}

Size
zkl_by_name_size(void)
{
	return mul_size(number_of_places(), sizeof(pg_atomic_uint32));
}

void
zkl_by_name_attach(void *memory)
{
	places = memory;
}

void
zkl_by_name_init(void)
{
	uint32		i;

	for (i = 0; i < number_of_places(); i++)
		pg_atomic_init_u32(&places[i], NO_SLOT);
}

static pg_atomic_uint32 *
place_of(const char *path, ZklDialect dialect)
{
	uint32		hash = hash_combine(hash_bytes((const unsigned char *) path,
											   (int) strlen(path)),
									(uint32) dialect);

	return &places[hash & (number_of_places() - 1)];
}

void
zkl_by_name_note(const char *path, ZklDialect dialect, int slotno)
{
	pg_atomic_uint32 *place = place_of(path, dialect);

	/* Reads alone leave it in the caches of all processors. */
	if (pg_atomic_read_u32(place) != (uint32) slotno)
		pg_atomic_write_u32(place, (uint32) slotno);
}

int
zkl_by_name_find(const char *path, ZklDialect dialect)
{
	return (int) pg_atomic_read_u32(place_of(path, dialect));
}
