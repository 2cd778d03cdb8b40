/*
 * late.c
 *	  Writes whose connection is gone, and which may still be carried out.
 *
 * Owns them.  Must not know what clients are for.
 */
#include "ensemble.h"

/* A write whose connection is gone, and which may still be carried out */
typedef struct Late
{
	struct Late *next;
	Time		at;
	int64_t		session;
	Request    *request;
} Late;

void
late_forget(int64_t session)
{
	Late	  **late = &ens.late_writes;

	while (*late != NULL)
	{
		if ((*late)->session == session)
			*late = (*late)->next;
		else
			late = &(*late)->next;
	}
}

void
late_keep(const Conn *c, Request *requests, Time *at)
{
	Late	  **end = &ens.late_writes;
	Request    *request;

	while (*end != NULL)
		end = &(*end)->next;
	for (request = requests; request != NULL; request = request->next)
	{
		Late	   *late;

		if ((request->kind != REQUEST_WRITE &&
			 request->kind != REQUEST_CLOSE) || request->committed)
			continue;
		*at += once_in(3) ? some_delay(ens.net) : below(ens.late + 1);
		late = take(sizeof(Late));
		late->at = *at;
		late->session = c->session;
		late->request = request;
		*end = late;
		end = &late->next;
	}
}

Time
late_due(void)
{
	const Late *late;
	Time		due = NEVER;

	for (late = ens.late_writes; late != NULL; late = late->next)
		due = late->at < due ? late->at : due;
	return ens.leader < 0 ? NEVER : due;
}

Time *
late_first(void)
{
	Late	   *late = ens.late_writes;

	while (late != NULL && late->at > base.now)
		late = late->next;
	return late != NULL ? &late->at : NULL;
}

void
late_step(void)
{
	Late	  **late = &ens.late_writes;
	Late	   *found;
	Entry	   *entry;

	while ((*late)->at > base.now)
		late = &(*late)->next;
	found = *late;
	*late = found->next;
	trace("zk: late write of session #", found->session, 0, 0, 0, NULL);
	entry = conn_decide(found->session, found->request);
	if (entry != NULL)
		ensemble_append(entry);
}
