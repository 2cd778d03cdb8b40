/*
 * peer_key.c
 *	  The key with which the servers of a fleet sign what they tell each other.
 *
 * Owns the key, and the context of the hash function.  Runs in the worker only; takes
 * no locks.  It must not know what is signed.
 *
 * The key is made of the credentials that all servers of a fleet share.  So it is
 * neither in ZooKeeper's data, nor known to those who can only read there, and a
 * server without the credentials cannot make it.  Making it is slow on purpose, as
 * the secret may be a short one: PBKDF2-HMAC-SHA-256 (RFC 8018).
 */
#include "postgres.h"

#include "common/hmac.h"
#include "common/sha2.h"
#include "shared/settings.h"
#include "utils/memutils.h"
#include "utils/resowner.h"
#include "wire/peer.h"
#include "worker/credentials.h"
#include "worker/peer_key.h"

#define ITERATIONS	16384
#define SALT		"zklock peers 1 "	/* the root's path follows */

static pg_hmac_ctx * hash = NULL;
static bool known = false;
static uint8 key[PG_SHA256_DIGEST_LENGTH];
static uint8 made_of[PG_SHA256_DIGEST_LENGTH];	/* a MAC of the secrets, by
												 * the key */

/*
 * PostgreSQL wants an owner, and the worker has none; this one lasts.  Without OpenSSL
 * (src/common/hmac.c), the memory is the current context's.
 */
static void
make_hash(void)
{
	ResourceOwner before = CurrentResourceOwner;
	MemoryContext old = MemoryContextSwitchTo(TopMemoryContext);

	CurrentResourceOwner = ResourceOwnerCreate(NULL, "zklock messages");
	hash = pg_hmac_create(PG_SHA256);
	CurrentResourceOwner = before;
	MemoryContextSwitchTo(old);
}

/* HMAC-SHA-256 */
static bool
mac_of(const void *secret, size_t secret_length, const void *bytes, size_t length,
	   uint8 *mac)
{
	if (hash == NULL)
		make_hash();
	return hash != NULL && pg_hmac_init(hash, secret, secret_length) == 0 &&
		pg_hmac_update(hash, bytes, length) == 0 &&
		pg_hmac_final(hash, mac, PG_SHA256_DIGEST_LENGTH) == 0;
}

/* The first and only block of PBKDF2 */
static bool
derive(const char *secrets, size_t length)
{
	StringInfoData salt;
	uint8		block[PG_SHA256_DIGEST_LENGTH];
	bool		good;

	initStringInfo(&salt);
	appendStringInfo(&salt, SALT "%s", zkl_root);
	appendBinaryStringInfo(&salt, "\0\0\0\1", 4);	/* the block's number */
	good = mac_of(secrets, length, salt.data, (size_t) salt.len, block);
	memcpy(key, block, sizeof(key));
	for (int i = 1; i < ITERATIONS && good; i++)
	{
		good = mac_of(secrets, length, block, sizeof(block), block);
		for (size_t j = 0; j < sizeof(key); j++)
			key[j] ^= block[j];
	}
	explicit_bzero(block, sizeof(block));
	return good && mac_of(key, sizeof(key), secrets, length, made_of);
}

static bool
is_made_of(const char *secrets, size_t length)
{
	uint8		mac[PG_SHA256_DIGEST_LENGTH];

	return known && mac_of(key, sizeof(key), secrets, length, mac) &&
		memcmp(mac, made_of, sizeof(mac)) == 0;
}

static int
compare_lines(const ListCell *a, const ListCell *b)
{
	return strcmp(lfirst(a), lfirst(b));
}

/* Whatever their order in the file */
static void
join_lines(StringInfo secrets, ZklCredentials *credentials)
{
	ListCell   *cell;

	initStringInfo(secrets);

	/* Moved memory would not be wiped: more than enough. */
	enlargeStringInfo(secrets, credentials->content.len + 64);
	list_sort(credentials->lines, compare_lines);
	foreach(cell, credentials->lines)
		appendStringInfo(secrets, "%s\n", (const char *) lfirst(cell));
}

static const char *
make_from(ZklCredentials *credentials)
{
	StringInfoData secrets;

	if (!zkl_credentials_name_us(credentials))
		return "The connection to ZooKeeper uses no credentials from \"zklock.auth_file\".";
	join_lines(&secrets, credentials);
	if (!is_made_of(secrets.data, (size_t) secrets.len))
		known = derive(secrets.data, (size_t) secrets.len);
	explicit_bzero(secrets.data, (size_t) secrets.len);
	return known ? NULL : "HMAC-SHA-256 is not available.";
}

const char *
zkl_peer_key_make(const char *auth_file)
{
	ZklCredentials credentials;
	const char *wrong = zkl_credentials_read(&credentials, auth_file);

	wrong = wrong != NULL ? psprintf("The credentials cannot be used: %s.", wrong) : make_from(&credentials);
	zkl_credentials_wipe(&credentials);
	if (wrong != NULL)
		zkl_peer_key_forget();
	return wrong;
}

void
zkl_peer_key_forget(void)
{
	known = false;
	explicit_bzero(key, sizeof(key));
}

bool
zkl_peer_key_sign(const uint8 *datagram, uint8 *mac)
{
	return known && mac_of(key, sizeof(key), datagram, ZKL_PEER_SIGNED, mac);
}
