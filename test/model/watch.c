/*
 * watch.c
 *	  ZooKeeper's watches: who is to be told, once, what happens to a node.
 *
 * Owns nothing but the number of them.  Must not know nodes.
 */
#include "memory.h"
#include "watch.h"

uint32_t	watches_set;

void
watch_add(Watch **watches, Watcher *who)
{
	Watch	   *watch = *watches;

	while (watch != NULL && watch->who != who)
		watch = watch->next;
	if (watch != NULL)
		return;
	watch = take(sizeof(Watch));
	watch->next = *watches;
	watch->who = who;
	*watches = watch;
	who->watches++;
	watches_set++;
}

bool
watch_remove(Watch **watches, Watcher *who)
{
	Watch	   *watch;

	while ((watch = *watches) != NULL && watch->who != who)
		watches = &watch->next;
	if (watch == NULL)
		return false;
	*watches = watch->next;
	who->watches--;
	watches_set--;
	put_back(watch);
	return true;
}

void
watch_drop(Watch **watches)
{
	while (*watches != NULL)
		(void) watch_remove(watches, (*watches)->who);
}

void
watch_fire(Watch **watches, ZklEventKind kind, const char *path)
{
	while (*watches != NULL)
	{
		Watcher    *who = (*watches)->who;

		(void) watch_remove(watches, who);
		watcher_event(who, kind, path);
	}
}

void
watch_fire_both(Watch **data, Watch **children, const char *path)
{
	const Watch *watch;

	for (watch = *children; watch != NULL; watch = watch->next)
		watch_add(data, watch->who);
	watch_drop(children);
	watch_fire(data, ZKL_EVENT_DELETED, path);
}
