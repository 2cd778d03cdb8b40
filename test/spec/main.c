/*
 * main.c
 *	  Reads traces, and says which line breaks which rule.
 *
 *	  validate --rules
 *	  validate FILE ...
 *
 * Exit status 1: a rule is broken; 2: nothing was checked.
 *
 * A FILE is what the simulation prints with -t; or the zklock.trace of one server, and
 * FILE.old is read before it; or ZooKeeper's log, as txnlog.pl prints it.  Several of
 * them are merged by the times that begin their lines: then all clocks are one.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "validate.h"

#define MOST_FILES	32
#define MOST_LINE	1200

typedef struct Source
{
	const char *name;
	FILE	   *file;
	FILE	   *next;			/* behind it: the file whose old part it is */
	long		number;
	char		line[MOST_LINE];
	int			server;
	int64_t		at;
	const char *text;			/* behind time and server; NULL: no more */
} Source;

static Source sources[MOST_FILES];
static int	nsources;
static long nlines;

/* "2026-11-29 01:46:47.123456 UTC text", or what the simulation prints */
static bool
take_apart(Source *s)
{
	struct tm	tm = {0};
	double		seconds;
	int			micros;
	int			at = 0;

	if (sscanf(s->line, "%d-%d-%d %d:%d:%d.%d %*s %n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
			   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &micros, &at) == 7 && at > 0)
	{
		tm.tm_year -= 1900;
		tm.tm_mon--;
		s->server = (int) (s - sources);
		s->at = (int64_t) timegm(&tm) * 1000000 + micros;
		s->text = s->line + at;
	}
	else if (sscanf(s->line, "%lf host %d %n", &seconds, &s->server, &at) == 2 && at > 0)
	{
		s->at = (int64_t) (seconds * 1e6 + 0.5);
		s->text = s->line + at;
	}
	else if (sscanf(s->line, "%lf %n", &seconds, &at) == 1 && at > 0)
	{
		s->at = (int64_t) (seconds * 1e6 + 0.5);
		s->text = s->line + at;
	}
	else
		return false;
	if (strncmp(s->text, "zk ", 3) == 0)
		s->server = -1;
	return s->server == -1 || strncmp(s->text, "in ", 3) == 0 ||
		strncmp(s->text, "out ", 4) == 0 || strncmp(s->text, "process ", 8) == 0;
}

/* The next line that is one of a trace */
static void
advance(Source *s)
{
	s->text = NULL;
	for (;;)
	{
		s->server = -2;
		if (fgets(s->line, sizeof(s->line), s->file) != NULL)
		{
			s->number++;
			s->line[strcspn(s->line, "\n")] = '\0';
			if (take_apart(s))
				return;
		}
		else if (s->next != NULL)
		{
			s->file = s->next;
			s->next = NULL;
			s->number = 0;
		}
		else
			break;
	}
	s->text = NULL;
}

static bool
open_source(const char *name)
{
	Source	   *s = &sources[nsources++];
	char		old[4096];

	snprintf(old, sizeof(old), "%s.old", name);
	s->name = name;
	s->next = fopen(name, "r");
	if (s->next == NULL)
	{
		perror(name);
		return false;
	}
	s->file = fopen(old, "r");
	if (s->file == NULL)
	{
		s->file = s->next;
		s->next = NULL;
	}
	advance(s);
	return true;
}

/* Of the same time, the log comes first: what a server does follows from it. */
static Source *
earliest(void)
{
	Source	   *first = NULL;
	int			i;

	for (i = 0; i < nsources; i++)
	{
		Source	   *s = &sources[i];

		if (s->text != NULL &&
			(first == NULL || s->at < first->at ||
			 (s->at == first->at && s->server == -1 && first->server != -1)))
			first = s;
	}
	return first;
}

static int
read_all(void)
{
	Source	   *s;

	spec_begin();
	while ((s = earliest()) != NULL)
	{
		const char *wrong = spec_line(s->server, s->at, s->text);

		nlines++;
		if (wrong != NULL)
		{
			printf("%s%s:%ld: %s\n%s\n", s->name, s->next != NULL ? ".old" : "", s->number,
				   wrong, s->line);
			return 1;
		}
		advance(s);
	}
	if (spec_count(SPEC_WORKERS) == 0)
	{
		printf("nothing was checked: in none of the files does a worker begin\n"
			   "restart a server, or end its worker, with zklock.trace on\n");
		return 2;
	}
	printf("%ld lines, %ld of them of workers whose beginning is not there: "
		   "the rules allow all that the others did, %ld grants among them\n",
		   nlines, spec_count(SPEC_UNKNOWN), spec_count(SPEC_GRANTS));
	return 0;
}

int
main(int argc, char **argv)
{
	int			i;

	if (argc == 2 && strcmp(argv[1], "--rules") == 0)
	{
		spec_print();
		return 0;
	}
	if (argc < 2 || argc > MOST_FILES)
	{
		fprintf(stderr, "usage: validate --rules | validate FILE ...\n");
		return 2;
	}
	for (i = 1; i < argc; i++)
		if (!open_source(argv[i]))
			return 2;
	return read_all();
}
