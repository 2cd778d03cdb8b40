/*
 * options.c
 *	  The command line of zklock-run.
 *
 * Owns whether it is quiet.  What PostgreSQL can check, such as intervals for it, it checks.
 */
#include <ctype.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "run/options.h"
#include "wire/version.h"

#define DEFAULT_GRACE_MS	10000

static bool is_quiet = false;

static const char help[] =
"zklock-run runs a program while it has a distributed lock.\n"
"\n"
"Usage:\n"
"  zklock-run [OPTION]... LOCK -- PROGRAM [ARGUMENT]...\n"
"\n"
"Options:\n"
"      --timeout=INTERVAL   wait for the lock no longer than that\n"
"      --try                do not wait for the lock\n"
"      --once=PERIOD        run once in that period, on one of all servers\n"
"      --zone=ZONE          time zone of the period (default: UTC)\n"
"      --guarantee=WORD     at_most_once (default), or at_least_once\n"
"      --at-most=TIME       end the program after that time\n"
"      --grace=TIME         time between SIGTERM and SIGKILL (default: 10s, or if\n"
"                           the lock cannot be kept, a 24th of the session timeout)\n"
"      --quiet              say nothing if others have the lock or the period\n"
"  -h, --host=HOST, -p, --port=PORT, -U, --username=NAME, -d, --dbname=DBNAME\n"
"                           connection, as for psql\n"
"  -V, --version, -?, --help\n"
"\n"
"TIME is a number and ms, s (default), min, h or d.  INTERVAL and PERIOD are\n"
"intervals of PostgreSQL.  The program has the lock's name and fencing token in\n"
"its environment, as ZKLOCK_NAME and ZKLOCK_TOKEN.  What it leaves running when it\n"
"ends is ended, too, before the lock is given up.\n"
"\n"
"The exit status is that of the program; or 75 if another one has the lock, 69 if\n"
"that could not be found out, 64, 77 or 78 if it cannot be had.\n";

void
zkl_options_say(const char *format,...)
{
	va_list		args;
	char		line[2048];

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "zklock-run: %s\n", line);
}

bool
zkl_options_is_quiet(void)
{
	return is_quiet;
}

static void refuse(const char *message, const char *what) __attribute__((noreturn));

static void
refuse(const char *message, const char *what)
{
	zkl_options_say(message, what);
	fprintf(stderr, "Try \"zklock-run --help\" for more information.\n");
	exit(ZKL_RUN_USAGE);
}

/* "90", "1.5h", "200 ms" in ms */
static int64_t
read_time(const char *option, const char *text)
{
	static const struct
	{
		const char *name;
		double		ms;
	}			units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"min", 60000}, {"h", 3600000},
	{"d", 86400000}};
	char	   *end;
	double		number = strtod(text, &end);
	size_t		i;

	while (isspace((unsigned char) *end))
		end++;
	for (i = 0; end != text && i < sizeof(units) / sizeof(*units); i++)
	{
		if (strcmp(end, units[i].name) == 0 && number >= 0 && number * units[i].ms < 1e15)
			return (int64_t) (number * units[i].ms);
	}
	zkl_options_say("invalid time for --%s: \"%s\"", option, text);
	refuse("a time is such as \"90 s\" or \"2h\"%s", "");
}

typedef enum
{
	TIMEOUT = 256, TRY, ONCE, ZONE, GUARANTEE, AT_MOST, GRACE, QUIET
} Option;

static const struct option known[] = {
	{"timeout", required_argument, NULL, TIMEOUT},
	{"try", no_argument, NULL, TRY},
	{"once", required_argument, NULL, ONCE},
	{"zone", required_argument, NULL, ZONE},
	{"guarantee", required_argument, NULL, GUARANTEE},
	{"at-most", required_argument, NULL, AT_MOST},
	{"grace", required_argument, NULL, GRACE},
	{"quiet", no_argument, NULL, QUIET},
	{"host", required_argument, NULL, 'h'},
	{"port", required_argument, NULL, 'p'},
	{"username", required_argument, NULL, 'U'},
	{"dbname", required_argument, NULL, 'd'},
	{"version", no_argument, NULL, 'V'},
	{"help", no_argument, NULL, '?'},
	{NULL, 0, NULL, 0}
};

static void
take_guarantee(ZklRunOptions *o, const char *word)
{
	o->at_least_once = strcmp(word, "at_least_once") == 0;
	if (!o->at_least_once && strcmp(word, "at_most_once") != 0)
		refuse("invalid guarantee: \"%s\"", word);
}

static void
take_option(ZklRunOptions *o, int option, char *argument)
{
	switch (option)
	{
		case TIMEOUT:
		case TRY:
			if (o->timeout != NULL)
				refuse("--timeout and --try exclude each other%s", "");
			o->timeout = option == TRY ? "0" : argument;
			break;
		case ONCE:
			o->period = argument;
			break;
		case ZONE:
			o->zone = argument;
			break;
		case GUARANTEE:
			take_guarantee(o, argument);
			break;
		case AT_MOST:
			o->at_most_ms = read_time("at-most", argument);
			if (o->at_most_ms == 0)
				refuse("--at-most must be positive%s", "");
			break;
		case GRACE:
			o->grace_ms = o->lost_grace_ms = read_time("grace", argument);
			break;
		case QUIET:
			is_quiet = true;
			break;
		case 'h':
			o->host = argument;
			break;
		case 'p':
			o->port = argument;
			break;
		case 'U':
			o->user = argument;
			break;
		case 'd':
			o->dbname = argument;
			break;
		case 'V':
			printf("zklock-run (zklock) %s\n", ZKL_VERSION);
			exit(0);
		default:
			refuse("unrecognized option%s", "");
	}
}

static bool
is_help(const char *argument)
{
	return strcmp(argument, "-?") == 0 || strcmp(argument, "--help") == 0;
}

ZklRunOptions
zkl_options_read(int argc, char **argv)
{
	ZklRunOptions o = {.zone = "UTC",.grace_ms = DEFAULT_GRACE_MS,.lost_grace_ms = -1};
	bool		of_period = false;
	int			option;

	if (argc > 1 && is_help(argv[1]))
	{
		fputs(help, stdout);
		exit(0);
	}
	opterr = 0;
	while ((option = getopt_long(argc, argv, "+h:p:U:d:V", known, NULL)) != -1)
	{
		if (option == '?')
			refuse("invalid option or missing argument: \"%s\"", argv[optind - 1]);
		of_period |= option == ZONE || option == GUARANTEE;
		take_option(&o, option, optarg);
	}
	if (of_period && o.period == NULL)
		refuse("--zone and --guarantee need --once%s", "");
	if (optind == argc)
		refuse("no lock is given%s", "");
	o.lock = argv[optind++];
	if (optind == argc || strcmp(argv[optind], "--") != 0)
		refuse("\"--\" must follow the lock, before the program%s", "");
	if (++optind == argc)
		refuse("no program is given%s", "");
	o.program = argv + optind;
	return o;
}
