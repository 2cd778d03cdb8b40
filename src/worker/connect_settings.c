/*
 * connect_settings.c
 *	  The settings of the connection: what their files contain, which are in use,
 *	  and the trial of new ones.
 *
 * Owns the settings that are in use, and the process that tries others.  Runs in the
 * worker only; takes no locks but through identity.c.  It must not know what the
 * present connection does, nor what the credentials are used for.  No message shows
 * a line of a file.
 */
#include "postgres.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shared/boottime.h"
#include "shared/control.h"
#include "shared/status.h"
#include "storage/fd.h"
#include "utils/memutils.h"
#include "wire/wire.h"
#include "worker/answers.h"
#include "worker/connect_settings.h"
#include "worker/identity.h"
#include "worker/link.h"
#include "worker/report.h"
#include "worker/supervisor.h"
#include "worker/worker.h"
#include "znode/zkapi.h"

/* ---- credentials ---- */

/*
 * Reads the files that settings name: "zklock.auth_file" and those of TLS.
 *
 * It must not know what the credentials are used for.  No message shows a line of a
 * file.
 */

/* ---- files ---- */

#define MOST_BYTES		(1024 * 1024)

/*
 * The rule that PostgreSQL has for its own key file: it is ours, and no other user
 * can read it; or it is root's, and only a group that we are in can read it, too.
 */
static const char *
fault_of_secret(const struct stat *st)
{
	if (st->st_uid != geteuid() && st->st_uid != 0)
		return "must be owned by the database user or root";
	if (st->st_mode & (st->st_uid == 0 ? S_IWGRP | S_IXGRP | S_IRWXO :
					   S_IRWXG | S_IRWXO))
		return "must have permissions 0600 or less if it is owned by the database user, or 0640 or less if it is owned by root";
	return NULL;
}

/* Judges the open file: its name could lead to another one by now. */
static const char *
fault_of_file(int fd, bool secret)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return psprintf("could not be examined: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return "is not a regular file";
	if (st.st_size > MOST_BYTES)
		return psprintf("is larger than %d bytes", MOST_BYTES);
	return secret ? fault_of_secret(&st) : NULL;
}

static const char *
read_all(int fd, StringInfo content)
{
	char		bytes[4096];
	ssize_t		n;

	do
	{
		n = read(fd, bytes, sizeof(bytes));
		if (n > 0)
			appendBinaryStringInfo(content, bytes, (int) n);
	} while (n > 0 && content->len <= MOST_BYTES);
	explicit_bzero(bytes, sizeof(bytes));
	if (n < 0)
		return psprintf("could not be read: %s", strerror(errno));
	if (memchr(content->data, '\0', (size_t) content->len) != NULL)
		return "is not a text file";
	return NULL;
}

/*
 * Appends a file's content to "content".  A secret is read only if its owner and
 * its permissions keep it one.  Returns NULL, or what is wrong, which names the
 * setting and the file.
 */
static const char *
credentials_read_file(const char *setting, const char *path, bool secret,
					  StringInfo content)
{
	const char *wrong;

	/* A pipe must not hold the worker up. */
	int			fd = OpenTransientFile(path, O_RDONLY | O_NONBLOCK | PG_BINARY);

	if (fd < 0)
		return psprintf("could not open \"%s\" \"%s\": %s", setting, path,
						strerror(errno));
	wrong = fault_of_file(fd, secret);
	if (wrong == NULL)
		wrong = read_all(fd, content);
	CloseTransientFile(fd);
	return wrong != NULL ? psprintf("\"%s\" \"%s\" %s", setting, path, wrong) :
		NULL;
}

/* ---- credentials ---- */

#define ACL		"acl"

/* Returns what is wrong with one line, or NULL. */
static const char *
take_line(ZklCredentials *credentials, char *line)
{
	const char *colon = strchr(line, ':');

	if (colon == NULL || colon == line)
		return "must hold lines scheme:credentials";
	if (strncmp(line, ACL ":", strlen(ACL ":")) != 0)
	{
		credentials->lines = lappend(credentials->lines, line);
		return NULL;
	}
	if (strcmp(colon + 1 + strspn(colon + 1, " "), "private") != 0)
		return "has a line \"acl:\" other than \"acl: private\"";
	credentials->is_private = true;
	return NULL;
}

/* Whether one of the lines is a secret of ours, and not the ensemble's name */
static bool
name_us(const ZklCredentials *credentials)
{
	ListCell   *cell;

	foreach(cell, credentials->lines)
	{
		const char *line = lfirst(cell);

		if (strncmp(line, ZKL_SCHEME_ENSEMBLE ":",
					strlen(ZKL_SCHEME_ENSEMBLE ":")) != 0)
			return true;
	}
	return false;
}

static const char *
take_lines(ZklCredentials *credentials)
{
	char	   *next = credentials->content.data;
	const char *wrong = NULL;
	char	   *line;

	while (wrong == NULL && (line = strsep(&next, "\r\n")) != NULL)
	{
		if (line[0] != '\0')
			wrong = take_line(credentials, line);
	}
	if (wrong == NULL && credentials->lines == NIL)
		wrong = "must hold lines scheme:credentials";
	if (wrong == NULL && credentials->is_private && !name_us(credentials))
		wrong = "has a line \"acl: private\", which needs credentials such as digest:user:secret";
	return wrong;
}

/*
 * Reads "zklock.auth_file"; an empty path gives no lines.  Returns NULL, or what is
 * wrong: then a connection without credentials would be wrong, too.  The caller wipes
 * them in the end, also if something is wrong.
 */
static const char *
credentials_read(ZklCredentials *credentials, const char *auth_file)
{
	const char *wrong;

	memset(credentials, 0, sizeof(*credentials));
	initStringInfo(&credentials->content);
	if (auth_file[0] == '\0')
		return NULL;
	wrong = credentials_read_file("zklock.auth_file", auth_file, true,
								  &credentials->content);
	if (wrong != NULL)
		return wrong;
	wrong = take_lines(credentials);
	return wrong == NULL ? NULL :
		psprintf("\"zklock.auth_file\" \"%s\" %s", auth_file, wrong);
}

static void
credentials_wipe(ZklCredentials *credentials)
{
	explicit_bzero(credentials->content.data,
				   (size_t) credentials->content.len);
}

/* ---- connect_settings ---- */

/* The settings of a connection, with what the files that they name contain. */

static const char *
read_if_set(const char *setting, const char *path, bool secret,
			StringInfo content)
{
	return path[0] == '\0' ? NULL :
		credentials_read_file(setting, path, secret, content);
}

/* Returns NULL, or what is wrong. */
static const char *
read_tls_files(ZklConnectSettings *settings)
{
	const ZklTlsSettings *tls = &settings->tls;
	const char *wrong = zkl_settings_tls_fault(tls);

	if (tls->mode == ZKL_TLS_OFF)
		return NULL;
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_ca_file", tls->ca_file, false,
							&settings->ca);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_cert_file", tls->cert_file, false,
							&settings->certificate);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_key_file", tls->key_file, true,
							&settings->key);
	return wrong;
}

static void
copy_values(ZklConnectSettings *settings)
{
	ZklTlsSettings tls = zkl_settings_tls();

	settings->connect_string = pstrdup(zkl_connect_string);
	settings->auth_file = pstrdup(zkl_auth_file != NULL ? zkl_auth_file : "");
	settings->tls.mode = tls.mode;
	settings->tls.ca_file = pstrdup(tls.ca_file);
	settings->tls.cert_file = pstrdup(tls.cert_file);
	settings->tls.key_file = pstrdup(tls.key_file);
}

/* The present values of the variables, and reads the files.  To be freed. */
static ZklConnectSettings *
connect_settings_read(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext,
												  "zklock connection settings",
												  ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	ZklConnectSettings *settings = palloc0(sizeof(ZklConnectSettings));

	settings->context = context;
	copy_values(settings);
	initStringInfo(&settings->ca);
	initStringInfo(&settings->certificate);
	initStringInfo(&settings->key);
	settings->fault = credentials_read(&settings->credentials,
									   settings->auth_file);
	if (settings->fault == NULL)
		settings->fault = read_tls_files(settings);
	MemoryContextSwitchTo(old);
	return settings;
}

/* Wipes the secrets, too. */
static void
connect_settings_free(ZklConnectSettings *settings)
{
	credentials_wipe(&settings->credentials);
	explicit_bzero(settings->key.data, (size_t) settings->key.len);
	MemoryContextDelete(settings->context);
}

static bool
same_text(const char *a, const char *b)
{
	return a == NULL || b == NULL ? a == b : strcmp(a, b) == 0;
}

static bool
same_content(const StringInfoData *a, const StringInfoData *b)
{
	return a->len == b->len && memcmp(a->data, b->data, (size_t) a->len) == 0;
}

/* Whether all is the same: values, contents, and faults */
static bool
connect_settings_equal(const ZklConnectSettings *a,
					   const ZklConnectSettings *b)
{
	return same_text(a->connect_string, b->connect_string) &&
		same_text(a->auth_file, b->auth_file) &&
		a->tls.mode == b->tls.mode &&
		same_text(a->tls.ca_file, b->tls.ca_file) &&
		same_text(a->tls.cert_file, b->tls.cert_file) &&
		same_text(a->tls.key_file, b->tls.key_file) &&
		same_text(a->fault, b->fault) &&
		same_content(&a->credentials.content, &b->credentials.content) &&
		same_content(&a->ca, &b->ca) &&
		same_content(&a->certificate, &b->certificate) &&
		same_content(&a->key, &b->key);
}

/* ---- trial: tries new settings of the connection beside the present one ---- */

/*
 * It must not know what the present connection does, nor when the settings are taken
 * over.
 *
 * To try settings is to begin a ZooKeeper session with them, to look whether the
 * chroot exists and whether znodes like this server's may be deleted below the root,
 * and to close that session.  Nothing less shows that a host is found, is trusted,
 * takes the credentials, and has a quorum.  One host that works is enough.  If none
 * does, all are tried again after a while: perhaps a host is not up yet, or a file
 * is being written.
 */

#define PAUSE			10000000
#define READ_SIZE		(16 * 1024)
#define WRITE_PAUSE		10000	/* for a process that does not read yet */

typedef enum
{
	IDLE,
	PAUSING,
	LOOKING,					/* waits for the chroot */
	DELETING,					/* waits for the delete of a znode that never
								 * was */
	CLOSING
} TrialPhase;

static TrialPhase phase = IDLE;
static int64 due = 0;			/* the end of the phase */
static int	host_number = 0;
static char host[ZKL_MAX_HOST];
static ZklWireStep step;		/* how far the attempt at it has come */
static pid_t pid = 0;
static pgsocket link_socket = PGINVALID_SOCKET;
static ZklWireBuffer input;
static ZklWireBuffer output;
static bool works;				/* CLOSING: the host has shown all that it
								 * must */
static ZklConnectSettings *tried = NULL;	/* in this round, or the last one */
static ZklTrialResult result;	/* of this tick */
static char *fault = NULL;		/* of the last round, in TopMemoryContext */
static bool is_news;			/* and of no round before */
static char *host_fault = NULL; /* of the first host of this round, likewise */

static void
set_fault(char **where, const char *text)
{
	if (*where != NULL)
		pfree(*where);
	*where = text != NULL ? MemoryContextStrdup(TopMemoryContext, text) : NULL;
}

static void
stop_program(void)
{
	if (link_socket != PGINVALID_SOCKET)
	{
		zkl_link_watch_too(ZKL_LINK_TRIAL, PGINVALID_SOCKET);
		close(link_socket);
	}
	link_socket = PGINVALID_SOCKET;
	if (pid != 0)
	{
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	pid = 0;
	zkl_wire_buffer_free(&input);
	zkl_wire_buffer_free(&output);
}

static void
forget_tried(void)
{
	if (tried != NULL)
		connect_settings_free(tried);
	tried = NULL;
}

void
zkl_trial_end(void)
{
	stop_program();
	forget_tried();
	phase = IDLE;
	set_fault(&fault, NULL);
	set_fault(&host_fault, NULL);
}

/* Tries the present settings, until they work, or that begins or ends anew. */
static void
trial_begin(void)
{
	zkl_trial_end();
	phase = PAUSING;
	due = 0;
}

/* The last round's fault stays: so it is not told again. */
void
zkl_trial_put_off(void)
{
	if (phase == IDLE)
		return;
	stop_program();
	set_fault(&host_fault, NULL);
	phase = PAUSING;
	due = 0;
}

bool
zkl_trial_is_pending(void)
{
	return phase != IDLE;
}

/* Why they have not, or NULL; and whether the round before said something else */
static const char *
trial_fault(void)
{
	return fault;
}

static bool
trial_fault_is_news(void)
{
	return is_news;
}

/* What was tried, right after it failed; or works, for the caller to free */
static const ZklConnectSettings *
trial_settings(void)
{
	return tried;
}

static ZklConnectSettings *
trial_take_settings(void)
{
	ZklConnectSettings *taken = tried;

	tried = NULL;
	return taken;
}

static void
end_round(int64 now)
{
	is_news = fault == NULL || strcmp(fault, host_fault) != 0;
	set_fault(&fault, host_fault);
	set_fault(&host_fault, NULL);
	phase = PAUSING;
	due = now + PAUSE;
	result = ZKL_TRIAL_FAILED;
}

/* Returns what is wrong, or NULL. */
static const char *
start_program(void)
{
	int			rc;

	(void) zkl_launch_put_start(&output, 1, host, tried, false);
	rc = zkl_link_spawn_program(&link_socket, &pid);
	if (rc != 0)
		return psprintf("could not start zklock_session: %s", strerror(rc));
	zkl_link_watch_too(ZKL_LINK_TRIAL, link_socket);
	return NULL;
}

/* Goes on with the next host after one has failed, or with the first. */
static void
try_host(int64 now, const char *last_fault)
{
	for (;;)
	{
		const char *next = zkl_hosts_nth(tried->connect_string, host_number);

		stop_program();
		if (last_fault != NULL && host_fault == NULL)
			set_fault(&host_fault, last_fault);
		if (next == NULL)
		{
			end_round(now);
			return;
		}
		host_number++;
		strlcpy(host, next, sizeof(host));
		step = ZKL_WIRE_STEP_NONE;
		phase = LOOKING;
		due = now + ZKL_HOST_TRIAL_MS * INT64CONST(1000);
		last_fault = start_program();
		if (last_fault == NULL)
			return;
	}
}

static void
begin_round(int64 now)
{
	forget_tried();
	tried = connect_settings_read();
	host_number = 0;
	if (tried->fault == NULL)
		try_host(now, NULL);
	else
	{
		set_fault(&host_fault, tried->fault);
		end_round(now);
	}
}

static void
send_request(ZklSendKind kind, const char *path)
{
	size_t		frame = zkl_wire_begin(&output, ZKL_WIRE_SEND, 1, 1, 0);

	zkl_wire_put_u8(&output, (uint8) kind);
	zkl_wire_put_text(&output, path);
	zkl_wire_put_u8(&output, 0);
	zkl_wire_end(&output, frame);
}

static void
close_session(int64 now, int32 rc)
{
	if (!works && host_fault == NULL)
		set_fault(&host_fault, zkl_diagnosis_of(rc, host));
	zkl_wire_end(&output, zkl_wire_begin(&output, ZKL_WIRE_CLOSE, 1, 0, 0));
	phase = CLOSING;
	due = now + ZKL_CLOSING_TIME;
}

/*
 * Without the right to look at it, the chroot exists, too.  From version 3.6 on,
 * ZooKeeper asks for the right to delete before it looks for the znode
 * (PrepRequestProcessor.java).  Where there is no directory yet, this shows nothing.
 */
static void
take_sight(int64 now, int32 rc)
{
	if (phase == LOOKING && (rc == ZKL_RC_OK || rc == ZKL_RC_NOAUTH))
	{
		phase = DELETING;
		send_request(ZKL_SEND_DELETE, psprintf("%s/.servers/0", zkl_root));
		return;
	}
	works = phase == DELETING && (rc == ZKL_RC_OK || rc == ZKL_RC_NONODE);
	close_session(now, rc);
}

static void
take_end(int64 now, const char *why)
{
	if (phase != CLOSING || !works)
	{
		try_host(now, why);
		return;
	}
	stop_program();
	phase = IDLE;
	result = ZKL_TRIAL_WORKS;
}

static void
take_farewell(int64 now, ZklWireReader *body)
{
	ZklWireGone reason = (ZklWireGone) zkl_wire_get_u8(body);

	take_end(now, zkl_diagnosis_of_gone(reason, body));
}

static void
take_frames(int64 now)
{
	ZklWireHeader header;
	ZklWireReader body;
	int			got;

	while ((got = zkl_wire_peek(&input, &header, &body)) > 0)
	{
		switch (header.type)
		{
			case ZKL_WIRE_STEP:
				step = (ZklWireStep) zkl_wire_get_u8(&body);
				break;
			case ZKL_WIRE_CONNECTED:
				send_request(ZKL_SEND_GET, "/");
				break;
			case ZKL_WIRE_REPLY:
				take_sight(now, header.rc);
				break;
			case ZKL_WIRE_GONE:
				take_farewell(now, &body);
				return;
			case ZKL_WIRE_LOG:
				zkl_tracefile_take_log(&body);
				break;
			default:
				break;
		}
		zkl_wire_consume(&input, sizeof(header) + header.length);
	}
	if (got < 0)
		take_end(now, "malformed frame from zklock_session");
}

/* Writes and reads what is possible.  False: the process is gone. */
static bool
exchange(void)
{
	ssize_t		n = 1;

	if (output.end > output.start)
	{
		n = send(link_socket, output.data + output.start,
				 output.end - output.start, MSG_NOSIGNAL);
		if (n > 0)
			zkl_wire_consume(&output, (size_t) n);
	}
	while (n > 0 && zkl_wire_reserve(&input, READ_SIZE))
	{
		n = recv(link_socket, input.data + input.end, READ_SIZE, 0);
		if (n > 0)
			input.end += (size_t) n;
	}
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

static void
attend_to_host(int64 now)
{
	int			number = host_number;
	bool		runs = exchange();

	take_frames(now);

	/* A frame may have ended this process: "runs" is not about the next. */
	if (phase == IDLE || phase == PAUSING || host_number != number)
		return;
	if (!runs)
		take_end(now, zkl_diagnosis_of_crash(step));
	else if (now >= due)
		take_end(now, zkl_diagnosis_of_late(step, host));
}

/* Goes on with the trial. */
static ZklTrialResult
trial_tick(int64 now)
{
	result = ZKL_TRIAL_GOES_ON;
	if (phase == PAUSING && now >= due)
		begin_round(now);
	else if (phase != IDLE && phase != PAUSING)
		attend_to_host(now);
	return result;
}

int64
zkl_trial_timer(void)
{
	if (phase == IDLE)
		return -1;
	return output.end > output.start ? zkl_boottime_us() + WRITE_PAUSE : due;
}

/* ---- in_use ---- */

/*
 * Which settings of the connection are in use, and when others take their place.
 *
 * Runs in the worker only; takes no locks but through identity.c.  It must not know
 * connections, nor how settings are tried.
 *
 * A session can be lost by settings that do not work: so other ones are tried first
 * (trial), and until they work, these are used for all connections.  That is also so
 * if a file has changed: a reload tries it, or the next connection does.  Without a
 * session there is nothing to lose, and without settings that could be read nothing
 * to use instead.
 */

static ZklConnectSettings *used = NULL;

const ZklConnectSettings *
zkl_in_use_settings(void)
{
	return used;
}

/* The same hosts stay in turn. */
static void
use(ZklConnectSettings *settings)
{
	zkl_trial_end();
	if (used == NULL || strcmp(used->connect_string, settings->connect_string) != 0)
		zkl_hosts_parse(settings->connect_string);
	if (used != NULL)
		connect_settings_free(used);
	used = settings;
}

/* What was learned of connections with other settings is forgotten. */
static void
change_to(ZklConnectSettings *settings)
{
	use(settings);
	zkl_attempt_start_anew();
	zkl_fleet_entry_renew();
}

void
zkl_in_use_take_wanted(void)
{
	change_to(connect_settings_read());
}

static bool
is_worth_a_trial(void)
{
	return used != NULL && used->fault == NULL &&
		zkl_control->ctl_status.session_id != 0;
}

bool
zkl_in_use_try(void)
{
	if (!is_worth_a_trial())
		return false;
	trial_begin();
	return true;
}

bool
zkl_in_use_reload(void)
{
	ZklConnectSettings *wanted = connect_settings_read();

	if (used != NULL && connect_settings_equal(used, wanted) &&
		!zkl_reconnects_are_waiting())
	{
		connect_settings_free(wanted);
		zkl_trial_end();
		zkl_identity_note_settings(used->fault);
		return false;
	}
	zkl_identity_log_anew();
	if (zkl_in_use_try())
	{
		connect_settings_free(wanted);
		return false;
	}
	change_to(wanted);
	return true;
}

/* The variables are those that are in use, or there would be a trial. */
const char *
zkl_in_use_refresh(void)
{
	ZklConnectSettings *wanted;

	if (zkl_trial_is_pending())
		return used->fault;
	wanted = connect_settings_read();
	if (connect_settings_equal(used, wanted))
		connect_settings_free(wanted);
	else if (used->fault == NULL && (wanted->fault != NULL || is_worth_a_trial()))
	{
		connect_settings_free(wanted);
		trial_begin();
	}
	else
		use(wanted);
	if (!zkl_trial_is_pending())
		zkl_identity_note_settings(used->fault);
	return used->fault;
}

/* If what was tried is in use, a new trial would tell nothing new. */
static void
give_up_round(void)
{
	const char *fault = pstrdup(trial_fault());

	zkl_reconnects_failed(fault);
	if (!connect_settings_equal(used, trial_settings()))
	{
		zkl_identity_note_settings(fault);
		if (trial_fault_is_news())
			zkl_identity_note_error(ZKL_ABOUT_SETTINGS,
									psprintf("new settings of the connection are not used: %s",
											 fault));
		return;
	}
	zkl_trial_end();
	zkl_identity_note_settings(NULL);
	zkl_identity_note_error(ZKL_ABOUT_CONNECTION,
							psprintf("the connection is not replaced: %s", fault));
}

bool
zkl_in_use_tick(int64 now)
{
	switch (trial_tick(now))
	{
		case ZKL_TRIAL_GOES_ON:
			return false;
		case ZKL_TRIAL_FAILED:
			give_up_round();
			return false;
		case ZKL_TRIAL_WORKS:
			change_to(trial_take_settings());
			zkl_reconnects_move();
			return true;
	}
	return false;
}
