/*
 * dialect.c
 *	  Which dialect a lock has, by the beginning of its name.
 *
 * Pure functions of their arguments: every process may call them, they keep no
 * state and take no locks.  What a dialect means is znode.c's.
 */
#include <string.h>

#include "znode/dialect.h"
#include "znode/znode.h"

static const char *const names[ZKL_LOCK_DIALECTS] = {
	[ZKL_DIALECT_CURATOR_RW] = "curator_rw",
	[ZKL_DIALECT_CURATOR_MUTEX] = "curator_mutex",
	[ZKL_DIALECT_KAZOO] = "kazoo",
};

/* A piece of the list */
typedef struct Piece
{
	const char *start;
	size_t		length;
} Piece;

const char *
zkl_dialect_name(ZklDialect dialect)
{
	return names[dialect];
}

static Piece
trim(const char *start, const char *end)
{
	Piece		piece;

	while (start < end && *start == ' ')
		start++;
	while (start < end && end[-1] == ' ')
		end--;
	piece.start = start;
	piece.length = (size_t) (end - start);
	return piece;
}

static bool
same(Piece a, const char *b, size_t length)
{
	return a.length == length && memcmp(a.start, b, length) == 0;
}

/*
 * Takes the next entry off the list.  False: there is none.  A dialect that
 * does not exist is ZKL_LOCK_DIALECTS; an entry without "=" has no path.
 */
static bool
next_entry(const char **list, Piece *path, size_t *dialect)
{
	const char *start = *list;
	const char *end = start + strcspn(start, ",");
	const char *equals = end;
	Piece		word;

	if (*start == '\0')
		return false;
	*list = *end == ',' ? end + 1 : end;
	while (equals > start && equals[-1] != '=')
		equals--;
	word = trim(equals, end);
	*path = trim(start, equals > start ? equals - 1 : start);
	for (*dialect = 0; *dialect < ZKL_LOCK_DIALECTS; (*dialect)++)
	{
		if (same(word, names[*dialect], strlen(names[*dialect])))
			break;
	}
	return true;
}

/* Whether the path has an entry further on, too */
static bool
comes_again(const char *list, Piece path)
{
	Piece		other;
	size_t		dialect;

	while (next_entry(&list, &other, &dialect))
	{
		if (same(other, path.start, path.length))
			return true;
	}
	return false;
}

const char *
zkl_dialect_check_list(const char *list)
{
	Piece		path;
	size_t		dialect;
	const char *why;

	if (strlen(list) > ZKL_MAX_DIALECTS)
		return "The list must have at most 1000 bytes.";
	if (list[strspn(list, " ")] == '\0')
		return NULL;
	while (next_entry(&list, &path, &dialect))
	{
		if (path.length == 0)
			return "Each entry must be a path, \"=\" and a dialect, with commas "
				"between the entries.";
		if (dialect == ZKL_LOCK_DIALECTS)
			return "The dialects are \"curator_rw\", \"curator_mutex\" and "
				"\"kazoo\".";
		why = same(path, "/", 1) ? NULL :
			zkl_name_check(path.start, path.length);
		if (why != NULL)
			return why;
		if (comes_again(list, path))
			return "No path may have more than one entry.";
		if (list[0] == '\0' && list[-1] == ',')
			return "The list must not end with a comma.";
	}
	return NULL;
}

/* Whether the name is that path, or below it */
static bool
is_below(const char *name, Piece path)
{
	if (same(path, "/", 1))
		return true;
	return strncmp(name, path.start, path.length) == 0 &&
		(name[path.length] == '\0' || name[path.length] == '/');
}

ZklDialect
zkl_dialect_find(const char *list, const char *name)
{
	ZklDialect	found = ZKL_DIALECT_CURATOR_RW;
	size_t		longest = 0;
	Piece		path;
	size_t		dialect;

	while (next_entry(&list, &path, &dialect))
	{
		if (path.length > longest && is_below(name, path))
		{
			found = (ZklDialect) dialect;
			longest = path.length;
		}
	}
	return found;
}

/* ---- lists compared ---- */

/* In the order of bytes, so that a path comes before those below it */
static int
compare_paths(Piece path, const char *other)
{
	size_t		length = strlen(other);
	size_t		common = path.length < length ? path.length : length;
	int			order = memcmp(path.start, other, common);

	return order != 0 ? order :
		(path.length > length) - (path.length < length);
}

/*
 * Replaces "next" by the first path in the list that comes behind "last" and
 * before "next"; an empty one is none yet.
 */
static void
find_next_path(const char *list, const char *last, char *next)
{
	Piece		path;
	size_t		dialect;

	while (next_entry(&list, &path, &dialect))
	{
		if (path.length == 0 || path.length > ZKL_MAX_NAME ||
			compare_paths(path, last) <= 0 ||
			(next[0] != '\0' && compare_paths(path, next) >= 0))
			continue;
		memcpy(next, path.start, path.length);
		next[path.length] = '\0';
	}
}

void
zkl_dialect_normalize(const char *list, char *buf)
{
	char		path[ZKL_MAX_NAME + 1] = "";
	size_t		length = 0;

	buf[0] = '\0';
	for (;;)
	{
		char		next[ZKL_MAX_NAME + 1] = "";
		const char *pieces[] = {",", next, "=", NULL};
		ZklDialect	dialect;
		size_t		i;

		find_next_path(list, path, next);
		if (next[0] == '\0')
			return;
		memcpy(path, next, sizeof(path));
		dialect = zkl_dialect_find(list, path);
		if (dialect == zkl_dialect_find(buf, path))
			continue;
		pieces[3] = names[dialect];
		for (i = length == 0; i < 4; i++)
		{
			memcpy(buf + length, pieces[i], strlen(pieces[i]) + 1);
			length += strlen(pieces[i]);
		}
	}
}

bool
zkl_dialect_next_change(const char *a, const char *b, char *path)
{
	for (;;)
	{
		char		next[ZKL_MAX_NAME + 1] = "";

		find_next_path(a, path, next);
		find_next_path(b, path, next);
		if (next[0] == '\0')
			return false;
		memcpy(path, next, sizeof(next));
		if (zkl_dialect_find(a, path) != zkl_dialect_find(b, path))
			return true;
	}
}

bool
zkl_dialect_has_entry(const char *list, const char *path)
{
	Piece		entry;
	size_t		dialect;

	while (next_entry(&list, &entry, &dialect))
	{
		if (same(entry, path, strlen(path)))
			return true;
	}
	return false;
}
