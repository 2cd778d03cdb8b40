/*
 * arena.c
 *	  All memory of a world in one place.
 *
 * Owns the arena.  Must not know what is in it.
 *
 * A block is found by any address in it, so each word of a state that is such an
 * address is taken for a pointer.  Blocks are numbered in the order in which they are
 * met.  A number that only looks like a pointer costs a chance to find two states
 * equal, no more.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "arena.h"
#include "../sim/base.h"

#define GRANULE		16
#define ARENA		((char *) 0x5A0000000000)
#define ARENA_SIZE	((size_t) 1 << 28)
#define GRANULES	(ARENA_SIZE / GRANULE)
#define CLASSES		512			/* of sizes; what is larger is not used again */
#define LEFT_OUT	128
#define ALSO		1024

/* In front of each block */
typedef struct Header
{
	size_t		size;			/* of the block, in granules */
	struct Header *next;		/* free: of this size */
} Header;

_Static_assert(sizeof(Header) == GRANULE, "blocks are aligned");

/* Put aside and back, too */
static size_t used;
static Header *spare[CLASSES];

typedef struct Range
{
	const char *from;
	const char *to;
} Range;

typedef struct Walk
{
	Range		left_out[LEFT_OUT];
	size_t		nleft_out;
	const void *also[ALSO];
	size_t		nalso;
	uint64_t	round;
	uint32_t	nblocks;
	const Header *queue[1 << 16];
	uint64_t	hash[4];
} Walk;

/* Not: these never change once the arena is there. */
static Walk *walk;
static uint32_t *start_of;		/* granule to the first one of its block */
static uint64_t *visits;		/* of blocks: round << 32 | their number */

/* ---- blocks ---- */

static void
map(void)
{
	if (mmap(ARENA, ARENA_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS |
			 MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) != ARENA)
		abort();
	start_of = calloc(GRANULES, sizeof(*start_of));
	visits = calloc(GRANULES, sizeof(*visits));
	walk = calloc(1, sizeof(*walk));
	if (start_of == NULL || visits == NULL || walk == NULL)
		abort();
}

void *
arena_alloc(size_t size)
{
	size_t		n = (size + GRANULE - 1) / GRANULE + (size == 0);
	Header	   *header = n < CLASSES ? spare[n] : NULL;
	size_t		first;
	size_t		i;

	if (header != NULL)
	{
		spare[n] = header->next;
		return memset(header + 1, 0, n * GRANULE);
	}
	if (used + (n + 1) * GRANULE > ARENA_SIZE)
		abort();
	header = (Header *) (ARENA + used);
	header->size = n;
	first = used / GRANULE + 1;
	start_of[first - 1] = 0;
	for (i = 0; i < n; i++)
		start_of[first + i] = (uint32_t) first;
	used += (n + 1) * GRANULE;
	return memset(header + 1, 0, n * GRANULE);
}

void
arena_free(void *memory)
{
	Header	   *header = (Header *) memory - 1;

	if (memory == NULL || header->size >= CLASSES)
		return;
	header->next = spare[header->size];
	spare[header->size] = header;
}

void *
take(size_t size)
{
	return arena_alloc(size);
}

void
put_back(const void *memory)
{
	(void) memory;
}

void
memory_begin(void)
{
	if (start_of == NULL)
		map();
	used = 0;
	memset(spare, 0, sizeof(spare));
}

/* ---- images ---- */

struct Image
{
	size_t		used;
	Header	   *spare[CLASSES];
	size_t		room;
	char	   *arena;
	char		variables[];
};

#define VARIABLES	((size_t) (arena_last - arena_first))

Image *
arena_save(Image *image)
{
	if (image == NULL)
	{
		image = malloc(sizeof(Image) + VARIABLES);
		if (image == NULL)
			abort();
		image->room = 0;
		image->arena = NULL;
	}
	if (image->room < used)
	{
		image->room = used * 2;
		free(image->arena);
		image->arena = malloc(image->room);
		if (image->arena == NULL)
			abort();
	}
	image->used = used;
	memcpy(image->arena, ARENA, used);
	memcpy(image->spare, spare, sizeof(spare));
	memcpy(image->variables, arena_first, VARIABLES);
	return image;
}

void
arena_restore(const Image *image)
{
	memcpy(ARENA, image->arena, image->used);
	memcpy(arena_first, image->variables, VARIABLES);
	memcpy(spare, image->spare, sizeof(spare));
	used = image->used;
}

/*
 * In a search, depth first, blocks that are in an image stay what they are.  Behind any
 * other way to a state they must be found anew.
 */
void
arena_find_blocks(void)
{
	size_t		granule = 0;

	while (granule * GRANULE < used)
	{
		const Header *header = (const Header *) (ARENA + granule * GRANULE);
		size_t		i;

		start_of[granule] = 0;
		for (i = 1; i <= header->size; i++)
			start_of[granule + i] = (uint32_t) granule + 1;
		granule += 1 + header->size;
	}
}

/* ---- the hash ---- */

void
arena_leave_out(const void *memory, size_t size)
{
	size_t		i;

	if (walk->nleft_out == LEFT_OUT)
		abort();

	/* In order */
	for (i = walk->nleft_out++; i > 0 && walk->left_out[i - 1].from > (const char *) memory; i--)
		walk->left_out[i] = walk->left_out[i - 1];
	walk->left_out[i].from = memory;
	walk->left_out[i].to = (const char *) memory + size;
}

void
arena_also(const void *pointer)
{
	if (walk->nalso == ALSO)
		abort();
	walk->also[walk->nalso++] = pointer;
}

/* The number of a block that is met, and how far in it the address is */
static inline uint64_t
number_of(uint64_t word)
{
	uint64_t	granule = (word - (uint64_t) ARENA) / GRANULE;
	uint64_t	first = start_of[granule];

	if (first == 0)
		return word;
	if (visits[first] >> 32 != walk->round)
	{
		if (walk->nblocks == sizeof(walk->queue) / sizeof(walk->queue[0]))
			abort();
		walk->queue[walk->nblocks++] = (const Header *) (ARENA + (first - 1) * GRANULE);
		visits[first] = walk->round << 32 | walk->nblocks;
	}
	return (visits[first] & UINT32_MAX) << 32 | (word - (uint64_t) ARENA - first * GRANULE);
}

static inline uint64_t
read_word(const char *from)
{
	uint64_t	word;

	memcpy(&word, from, sizeof(word));
	return word - (uint64_t) ARENA < used ? number_of(word) : word;
}

static inline uint64_t
mix(uint64_t hash, uint64_t word)
{
	hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
	return hash ^ hash >> 29;
}

/* In four strands, which a processor can mix at the same time */
static void
scan_words(const char *from, const char *to)
{
	uint64_t	a = walk->hash[0];
	uint64_t	b = walk->hash[1];
	uint64_t	c = walk->hash[2];
	uint64_t	d = walk->hash[3];

	for (; from + 4 * sizeof(uint64_t) <= to; from += 4 * sizeof(uint64_t))
	{
		a = mix(a, read_word(from));
		b = mix(b, read_word(from + 8));
		c = mix(c, read_word(from + 16));
		d = mix(d, read_word(from + 24));
	}
	for (; from + sizeof(uint64_t) <= to; from += sizeof(uint64_t))
		a = mix(a, read_word(from));
	walk->hash[0] = a;
	walk->hash[1] = b;
	walk->hash[2] = c;
	walk->hash[3] = d;
}

/* The first that is left out there or behind that */
static size_t
first_behind(const char *from)
{
	size_t		low = 0;
	size_t		high = walk->nleft_out;

	while (low < high)
	{
		size_t		middle = (low + high) / 2;

		if (walk->left_out[middle].from < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void
scan(const char *from, const char *to)
{
	size_t		i;

	for (i = first_behind(from); i < walk->nleft_out && walk->left_out[i].from < to; i++)
	{
		scan_words(from, walk->left_out[i].from);
		from = walk->left_out[i].to;
	}
	scan_words(from, to);
}

/* What is left out, or also there, is said anew for each hash. */
uint64_t
arena_hash(void)
{
	uint32_t	i;

	walk->round++;
	walk->nblocks = 0;
	memset(walk->hash, 0, sizeof(walk->hash));
	scan(arena_first, arena_last);
	scan_words((const char *) walk->also, (const char *) (walk->also + walk->nalso));
	for (i = 0; i < walk->nblocks; i++)
	{
		const char *block = (const char *) (walk->queue[i] + 1);

		scan(block, block + walk->queue[i]->size * GRANULE);
	}
	walk->nleft_out = walk->nalso = 0;
	return mix(mix(mix(walk->hash[0], walk->hash[1]), walk->hash[2]), walk->hash[3]);
}
