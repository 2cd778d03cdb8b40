/*
 * root.c
 *	  The settings of the root: their format, and what this server knows of them.
 *
 * Owns ctl_root, ctl_root_state and the format of the znode.  The worker writes,
 * backends copy.  Takes no locks.
 *
 * Must not know what follows if the settings differ.
 */
#include "postgres.h"

#include "shared/control.h"
#include "shared/root.h"
#include "shared/settings.h"
#include "utils/json.h"
#include "znode/node_data.h"
#include "znode/zkapi.h"

/* ---- the format ---- */

void
zkl_root_put(StringInfo out, const ZklRoot *root)
{
	appendStringInfo(out, "{\"zklock\":\"settings\",\"protocol\":%d,\"dialects\":",
					 ZKL_ZNODE_PROTOCOL);
	escape_json(out, root->dialects);
	if (root->is_changing)
	{
		appendStringInfoString(out, ",\"changing\":");
		escape_json(out, root->changing);
	}
	appendStringInfoChar(out, '}');
}

/* A list as this server would have written it; of another one nothing is known. */
static bool
read_list(ZklJsonReader *r, char *list)
{
	char		text[ZKL_MAX_DIALECTS + 5]; /* a longer one is cut in here */

	if (!zkl_json_string(r, text, sizeof(text)) ||
		zkl_dialect_check_list(text) != NULL)
		return false;
	zkl_dialect_normalize(text, list);
	return strcmp(text, list) == 0;
}

typedef struct RootRead
{
	ZklRoot    *root;
	bool		ours;
	bool		protocol;
	bool		dialects;
} RootRead;

static bool
read_root_member(ZklJsonReader *r, const char *key, void *to)
{
	RootRead   *found = to;
	int64		protocol;

	if (strcmp(key, "zklock") == 0)
		return found->ours = zkl_json_word(r, "\"settings\"");
	if (strcmp(key, "protocol") == 0)
		return found->protocol = zkl_json_integer(r, 1, ZKL_ZNODE_PROTOCOL, &protocol);
	if (strcmp(key, "dialects") == 0)
		return found->dialects = read_list(r, found->root->dialects);
	if (strcmp(key, "changing") == 0)
		return found->root->is_changing = read_list(r, found->root->changing);
	return zkl_json_skip_value(r);
}

bool
zkl_root_read(const char *data, Size length, ZklRoot *root)
{
	RootRead	found = {root, false, false, false};

	memset(root, 0, sizeof(*root));
	return zkl_json_object(data, length, read_root_member, &found) &&
		found.ours && found.protocol && found.dialects;
}

const char *
zkl_root_own_dialects(void)
{
	static char own[ZKL_MAX_DIALECTS + 1];

	zkl_dialect_normalize(zkl_dialects, own);
	return own;
}

/* ---- in shared memory ---- */

ZklRootState
zkl_root_state(void)
{
	return (ZklRootState) pg_atomic_read_u32(&zkl_control->ctl_root_state);
}

bool
zkl_root_copy(ZklRoot *root, int32 *rc)
{
	uint32		number;
	bool		known;

	do
	{
		number = zkl_changes_so_far(&zkl_control->ctl_changes);
		*root = zkl_control->ctl_root;
		*rc = zkl_control->ctl_root_rc;
		known = zkl_control->ctl_root_known;
	} while (zkl_changes_since(&zkl_control->ctl_changes, number));
	return known;
}

static void
set_state(ZklRootState state)
{
	pg_atomic_write_u32(&zkl_control->ctl_root_state, (uint32) state);
	pg_memory_barrier();
}

void
zkl_root_publish(const ZklRoot *root, int32 rc)
{
	zkl_changes_begin(&zkl_control->ctl_changes);
	if (root != NULL)
	{
		zkl_control->ctl_root = *root;
		zkl_control->ctl_root_known = true;
	}
	zkl_control->ctl_root_rc = rc;
	zkl_changes_end(&zkl_control->ctl_changes);
	set_state(root == NULL ? ZKL_ROOT_UNREADABLE :
			  root->is_changing ||
			  strcmp(root->dialects, zkl_root_own_dialects()) != 0 ?
			  ZKL_ROOT_DIFFERS : ZKL_ROOT_SAME);
}

void
zkl_root_forget(void)
{
	set_state(ZKL_ROOT_UNKNOWN);
}

/* ---- requests ---- */

bool
zkl_root_is_internal(const char *path, bool guard)
{
	return guard || path[1] == '.';
}

bool
zkl_root_concerns(ZklDialect dialect, const char *path, bool guard)
{
	return dialect < ZKL_LOCK_DIALECTS && !zkl_root_is_internal(path, guard);
}

bool
zkl_root_is_awaited(const ZklSlot *slot)
{
	return zkl_root_state() == ZKL_ROOT_UNKNOWN && !slot->s_holder.taken &&
		zkl_root_concerns((ZklDialect) slot->s_request.dialect,
						  slot->s_request.path, slot->s_request.guard);
}
