/*
 * test_fixtures.c
 *	  The znodes that each version has written: ../fixtures/VERSION/znodes has
 *	  lines of path and data, see test/t/205_fixtures.pl.
 */
#define _GNU_SOURCE				/* memrchr */
#include <glob.h>

#include "unit.h"
#include "znode/znode.h"

#define FIXTURES	"../fixtures/" "*" "/znodes"

/* The directories, each with so many requests of a dialect */
static const struct
{
	const char *directory;
	ZklDialect	dialect;
	int			exclusive;
	int			shared;
}			directories[] = {
	{"/rw", ZKL_DIALECT_CURATOR_RW, 1, 1},
	{"/shared", ZKL_DIALECT_CURATOR_RW, 0, 1},
	{"/mutex", ZKL_DIALECT_CURATOR_MUTEX, 1, 0},
	{"/kazoo", ZKL_DIALECT_KAZOO, 1, 0},
	{"/kazoo/shared", ZKL_DIALECT_KAZOO, 0, 1},
	{"/lead", ZKL_DIALECT_LATCH, 1, 0},
	{"/sem/leases", ZKL_DIALECT_PERMIT, 3, 0},
	{"/sem/locks", ZKL_DIALECT_CURATOR_MUTEX, 1, 0},
	{"/barrier", ZKL_DIALECT_MEMBER, 0, 1},
	{"/asked", ZKL_DIALECT_CURATOR_RW, 1, 0},
	{"/broken", ZKL_DIALECT_CURATOR_RW, 1, 0},
	{"/kept", ZKL_DIALECT_CURATOR_RW, 1, 0}
};

static void
check_data(const char *path, ZklDialect dialect, const char *data)
{
	size_t		length = strlen(data);
	char		who[100];
	ZklNodeData owner;

	if (!zkl_dialect_marks(dialect))
	{
		CHECK_MSG(strcmp(data, "leader 1") == 0, "%s has %s", path, data);
		return;
	}
	CHECK_MSG(zkl_node_data_parse(data, length, &owner), "%s has %s", path, data);
	CHECK(strcmp(owner.server, "recorder1") == 0);
	CHECK(strcmp(owner.database, "postgres") == 0);
	CHECK(strcmp(owner.usename, "postgres") == 0);
	CHECK(strncmp(owner.application_name, "session ", 8) == 0);
	CHECK(strcmp(owner.lifetime, strstr(path, "/mutex/") == path ?
				 "transaction" : "session") == 0);
	CHECK(owner.pid > 0 && owner.since > 0 && owner.timeout_ms > 0);
	CHECK(zkl_node_data_breaking(data, length) == (strstr(path, "/broken/") == path));
	CHECK(zkl_node_data_revoking(data, length, who, sizeof(who)) ==
		  (strstr(path, "/asked/") == path));
	CHECK(!zkl_node_data_downgrading(data, length));
}

/* Looks at a line if it is of the directory; counts what it finds. */
static void
check_line(char *line, int d, int found[2])
{
	char	   *data = strchr(line, '\t');
	char	   *name = data != NULL ? memrchr(line, '/', data - line) : NULL;
	ZklLockMode mode;
	ZklSeq		seq;
	bool		has_uuid;
	ZklUuid		uuid;

	if (name == NULL ||
		(size_t) (name - line) != strlen(directories[d].directory) ||
		strncmp(line, directories[d].directory, name - line) != 0)
		return;
	*data++ = '\0';
	if (zkl_znode_parse(directories[d].dialect, name + 1, &mode, &seq, &has_uuid, &uuid))
	{
		CHECK_MSG(has_uuid, "%s has no unique id", line);
		CHECK_MSG(zkl_znode_is_like(name + 1, strlen(name + 1)), "%s is like none", line);
		found[mode == ZKL_SHARED]++;
		check_data(line, directories[d].dialect, data);
	}
	data[-1] = '\t';
}

static void
check_file(const char *file)
{
	size_t		d;

	for (d = 0; d < sizeof(directories) / sizeof(directories[0]); d++)
	{
		FILE	   *lines = fopen(file, "r");
		char		line[2000];
		int			found[2] = {0};

		if (!CHECK_MSG(lines != NULL, "%s cannot be read", file))
			return;
		while (fgets(line, sizeof(line), lines) != NULL)
		{
			line[strcspn(line, "\n")] = '\0';
			check_line(line, (int) d, found);
		}
		fclose(lines);
		CHECK_MSG(found[0] == directories[d].exclusive &&
				  found[1] == directories[d].shared,
				  "%s: %s has %d exclusive and %d shared requests", file,
				  directories[d].directory, found[0], found[1]);
	}
}

static void
fixtures_are_read(void)
{
	glob_t		files;
	size_t		i;

	if (!CHECK(glob(FIXTURES, 0, NULL, &files) == 0))
		return;
	for (i = 0; i < files.gl_pathc; i++)
		check_file(files.gl_pathv[i]);
	globfree(&files);
}

/* The mark of a downgrade is there for a moment only, so it is made here. */
static void
downgrades_are_read(void)
{
	static const char old[] = "{\"downgrading\":true,\"zklock\":1,\"server\":\"s\"}";
	static const char data[] = "{\"zklock\":1,\"server\":\"s\"}";
	char		text[ZKL_MAX_NODE_DATA];
	size_t		length = zkl_node_data_downgrade(data, strlen(data), text, sizeof(text));

	CHECK_MSG(length == strlen(old) && memcmp(text, old, length) == 0,
			  "it is %.*s", (int) length, text);
	CHECK(zkl_node_data_downgrading(old, strlen(old)));
}

int
main(void)
{
	unit_start();
	RUN(fixtures_are_read);
	RUN(downgrades_are_read);
	return unit_finish();
}
