/*
 * agenda.c
 *	  Virtual time: who is to act when.
 *
 * Owns the clock and a heap of what is to come.  Must not know what any of it
 * means.
 */
#include <stdlib.h>

#include "agenda.h"

int64_t		agenda_now = 1000000;

static AgendaEntry *heap = NULL;
static size_t count = 0;
static size_t room = 0;
static uint64_t orders = 0;

static bool
goes_before(const AgendaEntry *a, const AgendaEntry *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void
agenda_add(int64_t at, AgendaKind kind, uint32_t who)
{
	AgendaEntry entry = {at, ++orders, kind, who};
	size_t		i = count++;

	if (count > room)
	{
		room = room * 2 + 1024;
		heap = realloc(heap, room * sizeof(AgendaEntry));
		if (heap == NULL)
			abort();
	}
	for (; i > 0 && goes_before(&entry, &heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = entry;
}

bool
agenda_take(int64_t until, AgendaEntry *entry)
{
	AgendaEntry last;
	size_t		i = 0;

	if (count == 0 || heap[0].at > until)
		return false;
	*entry = heap[0];
	agenda_now = entry->at;
	last = heap[--count];
	for (;;)
	{
		size_t		child = 2 * i + 1;

		if (child + 1 < count && goes_before(&heap[child + 1], &heap[child]))
			child++;
		if (child >= count || !goes_before(&heap[child], &last))
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return true;
}
