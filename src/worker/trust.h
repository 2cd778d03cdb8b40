/*
 * trust.h
 *	  What the session process needs for TLS: whom to trust, and who we are.
 *	  Worker only.
 */
#ifndef ZKL_WORKER_TRUST_H
#define ZKL_WORKER_TRUST_H

#include "lib/stringinfo.h"
#include "shared/status.h"
#include "shared/settings.h"
#include "wire/wire.h"

typedef struct ZklTrust
{
	ZklTls		tls;
	StringInfoData ca;			/* the others, too: PEM, empty without TLS */
	StringInfoData certificate;
	StringInfoData key;
} ZklTrust;

/* Reads the files that the settings name.  Returns NULL, or what is wrong. */
extern const char *zkl_trust_read(ZklTrust *trust, const ZklTlsSettings *settings);

/* The end of a START frame */
extern void zkl_trust_put(ZklTrust *trust, ZklWireBuffer *out);

/* What a CONNECTED frame says of TLS */
extern void zkl_trust_get_tls(ZklWireReader *body, ZklTlsStatus *tls);

/*
 * Appends a file's content to "content".  A secret is read only if its owner and
 * its permissions keep it one.  Returns NULL, or what is wrong, which names the
 * setting and the file.
 */
extern const char *zkl_trust_read_file(const char *setting, const char *path,
									   bool secret, StringInfo content);

#endif							/* ZKL_WORKER_TRUST_H */
