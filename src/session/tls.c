/*
 * tls.c
 *	  One connection over TLS: a socket on which only verified servers are
 *	  spoken to.
 *
 * Owns the context and the connection of OpenSSL, and is the only file that
 * knows it.  Runs in zklock_session only.  Takes no lock.  It must not know
 * ZooKeeper's protocol or its client.
 *
 * The error texts are for an administrator: they name the setting that is to be
 * changed.
 */
#include <stdio.h>
#include <string.h>

#include "session/tls.h"

static char error_text[512];
static bool distrusted;

static bool
fail(const char *text)
{
	snprintf(error_text, sizeof(error_text), "%s", text);
	return false;
}

const char *
zkl_tls_error(void)
{
	return error_text;
}

bool
zkl_tls_is_distrusted(void)
{
	return distrusted;
}

#ifdef ZKLOCK_OPENSSL

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#define CLOSED	"server closed the connection"

/* The error code of an alert is this and the alert's number. */
#define ALERT(number)	(SSL_AD_REASON_OFFSET + (number))

static SSL_CTX * context;
static SSL * ssl;
static short wants;
static const char *server_name;
static bool has_certificate;
static bool check_name;
static bool key_is_locked;
static bool was_asked;			/* the server wants to know who we are */
static bool heard;				/* something behind the handshake was read */
static int64_t certificate_until;	/* ours; in seconds since 1970 */

/* ----------
 * Whom to trust, and who we are
 * ----------
 */

/* The reason of OpenSSL's first error */
static const char *
reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_error());

	return text != NULL ? text : "unknown error";
}

static bool
fail_with_reason(const char *text)
{
	snprintf(error_text, sizeof(error_text), "%s: %s", text, reason());
	return false;
}

static BIO *
bio_of(const char *pem)
{
	return BIO_new_mem_buf(pem, (int) strlen(pem));
}

/* Whether a text was read to its end: nothing in it was wrong. */
static bool
was_last(void)
{
	return ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
}

static int64_t
seconds_of(const ASN1_TIME * time)
{
	ASN1_TIME  *epoch = ASN1_TIME_set(NULL, 0);
	int			days = 0;
	int			seconds = 0;

	if (epoch != NULL)
		(void) ASN1_TIME_diff(&days, &seconds, epoch, time);
	ASN1_TIME_free(epoch);
	return (int64_t) days * 86400 + seconds;
}

/* Of several certificates that need each other, the first one to end counts. */
static void
limit(int64_t *until, const X509 * certificate)
{
	int64_t		end = seconds_of(X509_get0_notAfter(certificate));

	if (*until == 0 || end < *until)
		*until = end;
}

/* Trusts the certificates of a text, and no others. */
static bool
load_ca(const char *pem)
{
	X509_STORE *store = SSL_CTX_get_cert_store(context);
	BIO		   *bio = bio_of(pem);
	X509	   *certificate;
	int			n = 0;

	while ((certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL)) != NULL)
	{
		n += X509_STORE_add_cert(store, certificate);
		X509_free(certificate);
	}
	BIO_free(bio);
	return (n > 0 && was_last()) ||
		fail_with_reason("could not load a certificate from \"zklock.tls_ca_file\"");
}

/* Our certificate comes first, then those that lead to a CA. */
static bool
load_certificate(const char *pem)
{
	BIO		   *bio = bio_of(pem);
	X509	   *certificate = PEM_read_bio_X509_AUX(bio, NULL, NULL, NULL);
	bool		good = certificate != NULL &&
	SSL_CTX_use_certificate(context, certificate) == 1;

	if (good)
		limit(&certificate_until, certificate);
	X509_free(certificate);
	while (good &&
		   (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL)) != NULL)
	{
		limit(&certificate_until, certificate);
		good = SSL_CTX_add1_chain_cert(context, certificate) == 1;
		X509_free(certificate);
	}
	BIO_free(bio);
	return (good && was_last()) ||
		fail_with_reason("could not load a certificate from \"zklock.tls_cert_file\"");
}

/* The process has no terminal on which to ask for a passphrase. */
static int
refuse_passphrase(char *buffer, int size, int writes, void *data)
{
	(void) buffer;
	(void) size;
	(void) writes;
	(void) data;
	key_is_locked = true;
	return -1;
}

static bool
load_key(char *pem)
{
	BIO		   *bio = bio_of(pem);
	EVP_PKEY   *key = PEM_read_bio_PrivateKey(bio, NULL, refuse_passphrase,
											  NULL);
	bool		read = key != NULL;
	bool		good = read && SSL_CTX_use_PrivateKey(context, key) == 1;

	EVP_PKEY_free(key);
	BIO_free(bio);
	OPENSSL_cleanse(pem, strlen(pem));
	if (key_is_locked)
		return fail("the key in \"zklock.tls_key_file\" is protected by a passphrase, which cannot be asked for: remove it with \"openssl pkey\"");
	if (!read)
		return fail_with_reason("could not load a private key from \"zklock.tls_key_file\"");
	return good || fail("the key in \"zklock.tls_key_file\" does not belong to the certificate in \"zklock.tls_cert_file\"");
}

/* Called when a server asks for a certificate. */
static int
note_question(SSL * connection, void *data)
{
	(void) connection;
	(void) data;
	was_asked = true;
	return 1;
}

static bool
make_context(void)
{
	context = SSL_CTX_new(TLS_client_method());
	if (context == NULL ||
		SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) != 1)
		return fail_with_reason("could not initialize OpenSSL");
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
	SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
#endif
	SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
					 SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_cb(context, note_question, NULL);
	return true;
}

bool
zkl_tls_begin(const ZklTlsTrust *trust)
{
	ERR_clear_error();
	if (!make_context())
		return false;
	check_name = trust->check_name;
	has_certificate = trust->certificate[0] != '\0';
	distrusted = !load_ca(trust->ca) ||
		(has_certificate && (!load_certificate(trust->certificate) ||
							 !load_key(trust->key)));
	return !distrusted;
}

/* ----------
 * The connection
 * ----------
 */

/* An address must be in the certificate as such; SNI is for names only. */
static bool
expect_name(void)
{
	unsigned char address[sizeof(struct in6_addr)];
	bool		is_address = inet_pton(AF_INET, server_name, address) == 1 ||
	inet_pton(AF_INET6, server_name, address) == 1;

	if (!is_address && SSL_set_tlsext_host_name(ssl, server_name) != 1)
		return false;
	if (!check_name)
		return true;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return is_address ?
		X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), server_name) == 1 :
		SSL_set1_host(ssl, server_name) == 1;
}

bool
zkl_tls_open(int fd, const char *name)
{
	SSL_free(ssl);
	ERR_clear_error();
	server_name = name;
	was_asked = heard = distrusted = false;
	ssl = SSL_new(context);
	if (ssl == NULL || SSL_set_fd(ssl, fd) != 1 || !expect_name())
		return fail_with_reason("could not initialize a TLS connection");
	SSL_set_connect_state(ssl);
	wants = POLLOUT;
	return true;
}

static void
explain_distrust(long result)
{
	const char *what = X509_verify_cert_error_string(result);

	distrusted = true;
	switch (result)
	{
		case X509_V_ERR_HOSTNAME_MISMATCH:
		case X509_V_ERR_IP_ADDRESS_MISMATCH:
			snprintf(error_text, sizeof(error_text),
					 "the server's certificate does not name \"%s\": check \"zklock.connect_string\", or the subject alternative names of the certificate",
					 server_name);
			break;
		case X509_V_ERR_CERT_HAS_EXPIRED:
		case X509_V_ERR_CERT_NOT_YET_VALID:
			snprintf(error_text, sizeof(error_text),
					 "the server's certificate is not valid now (%s): renew it, or check the clocks",
					 what);
			break;
		default:
			snprintf(error_text, sizeof(error_text),
					 "could not verify the server's certificate (%s): check \"zklock.tls_ca_file\"",
					 what);
	}
}

/* In TLS 1.3 such an answer comes after the handshake. */
static bool
is_about_certificate(int code)
{
	return was_asked && !heard &&
		((code >= ALERT(SSL_AD_BAD_CERTIFICATE) &&
		  code <= ALERT(SSL_AD_CERTIFICATE_UNKNOWN)) ||
		 code == ALERT(SSL_AD_UNKNOWN_CA) ||
		 code == ALERT(SSL_AD_ACCESS_DENIED) ||
		 code == ALERT(SSL_AD_HANDSHAKE_FAILURE) ||
		 code == ALERT(SSL_AD_CERTIFICATE_REQUIRED));
}

static void
explain_refusal(const char *what)
{
	distrusted = true;
	if (has_certificate)
		snprintf(error_text, sizeof(error_text),
				 "the server refused the certificate in \"zklock.tls_cert_file\" (%s)",
				 what);
	else
		fail("the server requires a client certificate: set \"zklock.tls_cert_file\" and \"zklock.tls_key_file\"");
}

static void
explain_protocol_error(void)
{
	int			code = ERR_GET_REASON(ERR_peek_error());

	if (!zkl_tls_is_open() && SSL_get_verify_result(ssl) != X509_V_OK)
		explain_distrust(SSL_get_verify_result(ssl));
	else if (is_about_certificate(code))
		explain_refusal(reason());
	else if (!zkl_tls_is_open() && code == SSL_R_WRONG_VERSION_NUMBER)
		fail("the server does not speak TLS on this port: \"zklock.connect_string\" must name its \"secureClientPort\"");
	else
		fail_with_reason(zkl_tls_is_open() ? "TLS error" :
						 "TLS handshake failed");
}

/* A server without TLS hangs up on a greeting that it does not understand. */
static void
explain_end(int os_error)
{
	bool		closed = os_error == 0 || os_error == ECONNRESET ||
	os_error == EPIPE;

	if (closed && was_asked && !has_certificate && !heard)
		explain_refusal(CLOSED);
	else if (closed && BIO_number_read(SSL_get_rbio(ssl)) == 0)
		fail(CLOSED " in the TLS handshake: \"zklock.connect_string\" must name its \"secureClientPort\", or the server failed: see its log");
	else
		fail(os_error == 0 ? CLOSED : strerror(os_error));
}

static ssize_t
outcome_of(int rc)
{
	int			os_error = errno;

	if (rc > 0)
		return rc;
	switch (SSL_get_error(ssl, rc))
	{
		case SSL_ERROR_WANT_READ:
			wants = POLLIN;
			return 0;
		case SSL_ERROR_WANT_WRITE:
			wants = POLLOUT;
			return 0;
		case SSL_ERROR_SSL:
			explain_protocol_error();
			return -1;
		case SSL_ERROR_SYSCALL:
			explain_end(os_error);
			return -1;
		default:
			explain_end(0);
			return -1;
	}
}

static void
prepare(void)
{
	ERR_clear_error();
	errno = 0;
}

ssize_t
zkl_tls_read(void *buffer, size_t size)
{
	ssize_t		n;

	prepare();
	n = outcome_of(SSL_read(ssl, buffer, (int) size));
	heard |= n > 0;
	return n;
}

ssize_t
zkl_tls_write(const void *bytes, size_t size)
{
	prepare();
	return outcome_of(SSL_write(ssl, bytes, (int) size));
}

short
zkl_tls_wants(void)
{
	return wants;
}

bool
zkl_tls_is_open(void)
{
	return SSL_is_init_finished(ssl);
}

/* The chain that was verified begins with the server's certificate. */
ZklTlsFacts
zkl_tls_facts(void)
{
	ZklTlsFacts facts = {SSL_get_version(ssl), SSL_get_cipher_name(ssl),
	certificate_until, 0, 0};

	STACK_OF(X509) * chain = SSL_get0_verified_chain(ssl);
	int			n = chain != NULL ? sk_X509_num(chain) : 0;

	if (n > 0)
		limit(&facts.server_until, sk_X509_value(chain, 0));
	for (int i = n > 1 ? 1 : 0; i < n; i++)
		limit(&facts.ca_until, sk_X509_value(chain, i));
	return facts;
}

#else							/* ZKLOCK_OPENSSL */

bool
zkl_tls_begin(const ZklTlsTrust *trust)
{
	(void) trust;
	return fail("zklock_session was built without OpenSSL");
}

bool
zkl_tls_open(int fd, const char *name)
{
	(void) fd;
	(void) name;
	return false;
}

ssize_t
zkl_tls_read(void *buffer, size_t size)
{
	(void) buffer;
	(void) size;
	return -1;
}

ssize_t
zkl_tls_write(const void *bytes, size_t size)
{
	(void) bytes;
	(void) size;
	return -1;
}

short
zkl_tls_wants(void)
{
	return 0;
}

bool
zkl_tls_is_open(void)
{
	return false;
}

ZklTlsFacts
zkl_tls_facts(void)
{
	ZklTlsFacts none = {"", "", 0, 0, 0};

	return none;
}

#endif							/* ZKLOCK_OPENSSL */
