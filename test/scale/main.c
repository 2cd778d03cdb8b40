/*
 * main.c
 *	  Many servers on one ZooKeeper, in virtual time.
 *
 *	  scale [name=value ...]	see "settings"; times are in ms
 *
 * Prints one line of name=value pairs.  Fails if a lock is held twice, if
 * anybody is left waiting, if anything is left behind, or if an acquire costs
 * more requests than "most" says.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agenda.h"
#include "scale.h"

#define LONGEST_END		60000000	/* µs until all must be at rest */
#define A_MOMENT		100000	/* until the last answers have come */

Options		options = {
	.servers = 20,.backends = 5,.names = 50,
	.think = 50000,.hold = 5000,
	.max_requests = 1000,.max_directories = 4096,.timeout_ms = 10000,
	.latency = 200,.batch_cost = 50,.operation_cost = 10,.read_cost = 20,
	.warmup = 1e6,.duration = 1e6,.seed = 1,.most = 1e9
};

typedef struct Setting
{
	const char *name;
	double	   *value;			/* one of these two */
	uint32_t   *number;
	double		scale;
} Setting;

static const Setting settings[] = {
	{"servers", NULL, &options.servers, 1},
	{"backends", NULL, &options.backends, 1},
	{"names", NULL, &options.names, 1},
	{"skew", &options.skew, NULL, 1},
	{"own", &options.own, NULL, 1},
	{"think", &options.think, NULL, 1000},
	{"hold", &options.hold, NULL, 1000},
	{"max_requests", NULL, &options.max_requests, 1},
	{"max_directories", NULL, &options.max_directories, 1},
	{"timeout", NULL, &options.timeout_ms, 1},
	{"latency", &options.latency, NULL, 1000},
	{"batch_cost", &options.batch_cost, NULL, 1000},
	{"operation_cost", &options.operation_cost, NULL, 1000},
	{"read_cost", &options.read_cost, NULL, 1000},
	{"reap", &options.reap, NULL, 1000},
	{"warmup", &options.warmup, NULL, 1000},
	{"duration", &options.duration, NULL, 1000},
	{"seed", NULL, &options.seed, 1},
	{"most", &options.most, NULL, 1}
};

void
broken(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	printf("broken at %.6f s: ", (double) agenda_now / 1e6);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	exit(1);
}

/* "hold=forever" is the one that is no number. */
static bool
set_option(const char *argument)
{
	const char *value = strchr(argument, '=');
	size_t		i;

	if (strcmp(argument, "hold=forever") == 0)
		return options.for_ever = true;
	for (i = 0; value != NULL && i < sizeof(settings) / sizeof(*settings); i++)
	{
		const Setting *s = &settings[i];

		if (strncmp(argument, s->name, strlen(s->name)) != 0 ||
			argument + strlen(s->name) != value)
			continue;
		if (s->number != NULL)
			*s->number = (uint32_t) strtoul(value + 1, NULL, 10);
		else
			*s->value = strtod(value + 1, NULL) * s->scale;
		return true;
	}
	return false;
}

static void
run_until(int64_t end, bool (*enough) (void))
{
	AgendaEntry entry;

	while ((enough == NULL || !enough()) && agenda_take(end, &entry))
	{
		switch (entry.kind)
		{
			case AGENDA_BACKEND:
				backend_step(entry.who);
				break;
			case AGENDA_SERVE:
				zookeeper_serve(&servers[entry.who].connection);
				break;
			case AGENDA_DELIVER:
				server_deliver(&servers[entry.who]);
				break;
			case AGENDA_TIMER:
				server_timer(&servers[entry.who]);
				break;
			case AGENDA_REAP:
				zookeeper_reap(entry.who);
				break;
		}
	}
}

/* Nobody asks any more: what is held is let go, what is asked for is given. */
static void
wind_up(void)
{
	backends_stop();
	run_until(agenda_now + LONGEST_END, servers_at_rest);
	if (!servers_at_rest())
		broken("somebody is left waiting");
	run_until(agenda_now + A_MOMENT, NULL);
	servers_check();
	zookeeper_check_empty();
}

int
main(int argc, char **argv)
{
	int64_t		begin;
	int			i;

	for (i = 1; i < argc; i++)
	{
		if (!set_option(argv[i]))
		{
			fprintf(stderr, "scale: what is \"%s\"?\n", argv[i]);
			return 2;
		}
	}
	if (options.for_ever)
		options.names = options.servers * options.backends;
	zookeeper_begin();
	servers_begin();
	backends_begin();
	figures_begin();

	begin = agenda_now + options.timeout_ms * 1000 + (int64_t) options.warmup;
	run_until(begin, NULL);
	figures_start();
	run_until(begin + (int64_t) options.duration, NULL);
	figures_stop();
	wind_up();
	figures_print();
	if (figures_requests() > options.most)
	{
		printf("more than %.2f requests per acquire\n", options.most);
		return 1;
	}
	return 0;
}
