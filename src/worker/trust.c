/*
 * trust.c
 *	  What the session process needs for TLS: whom to trust, and who we are; and
 *	  what it tells of a connection.
 *
 * Owns nothing.  Runs in the worker only; takes no locks.  It must not know TLS:
 * what is in the files, the session process finds out.
 *
 * The files are read for each connection, so that a renewed certificate is used
 * from the next one on.
 */
#include "postgres.h"

#include "shared/named_file.h"
#include "utils/timestamp.h"
#include "worker/trust.h"

static const char *
read_if_set(const char *setting, const char *path, bool secret,
			StringInfo content)
{
	return path[0] == '\0' ? NULL :
		zkl_named_file_read(setting, path, secret, content);
}

const char *
zkl_trust_read(ZklTrust *trust, const ZklTlsSettings *settings)
{
	const char *wrong = zkl_tls_settings_fault(settings);

	trust->tls = settings->mode;
	initStringInfo(&trust->ca);
	initStringInfo(&trust->certificate);
	initStringInfo(&trust->key);
	if (trust->tls == ZKL_TLS_OFF)
		return NULL;
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_ca_file", settings->ca_file, false,
							&trust->ca);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_cert_file", settings->cert_file, false,
							&trust->certificate);
	if (wrong == NULL)
		wrong = read_if_set("zklock.tls_key_file", settings->key_file, true,
							&trust->key);
	return wrong;
}

void
zkl_trust_put(ZklTrust *trust, ZklWireBuffer *out)
{
	zkl_wire_put_u8(out, trust->tls);
	zkl_wire_put_text(out, trust->ca.data);
	zkl_wire_put_text(out, trust->certificate.data);
	zkl_wire_put_text(out, trust->key.data);
}

static void
get_text(ZklWireReader *body, char *text, size_t size)
{
	uint32_t	length;
	const char *bytes = zkl_wire_get_string(body, &length);

	strlcpy(text, pnstrdup(bytes, length), size);
}

/* 0: there is none.  PostgreSQL's timestamps go beyond all that certificates say. */
static TimestampTz
get_time(ZklWireReader *body)
{
	int64		seconds = zkl_wire_get_i64(body);

	return seconds == 0 || body->bad ? 0 :
		time_t_to_timestamptz((pg_time_t) seconds);
}

void
zkl_trust_get_tls(ZklWireReader *body, ZklTlsStatus *tls)
{
	get_text(body, tls->version, sizeof(tls->version));
	get_text(body, tls->cipher, sizeof(tls->cipher));
	tls->certificate_until = get_time(body);
	tls->ca_until = get_time(body);
	tls->server_until = get_time(body);
}
