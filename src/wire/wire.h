/*
 * wire.h
 *	  Messages between the worker and zklock_session, over a socketpair.
 *
 * Compiled into both programs; it knows neither PostgreSQL nor ZooKeeper's client.
 * Both ends run on one host, so integers travel in native byte order.  They
 * should come from one build.  To find out, the session process compares the
 * protocol's number in START, and says GONE if it has another one.  So the
 * header, the beginning of START, and GONE are the same in all protocols.
 *
 * A message is a ZklWireHeader followed by "length" bytes of body.  In a body, a
 * string is a uint32 length, that many bytes, and no terminator; the reader hands
 * strings out as pointers into the frame.
 *
 * Every frame carries the generation of the connection that it belongs to.
 * One session process serves one generation (given by ZKL_WIRE_START); a
 * request of another generation comes back as ZKL_WIRE_REPLY with rc
 * ZKL_RC_UNSENT and is not executed.
 */
#ifndef ZKL_WIRE_WIRE_H
#define ZKL_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "znode/zkapi.h"

/* Descriptors of the session process; it closes the second one. */
#define ZKL_WIRE_LINK_FD	3
#define ZKL_WIRE_PROGRAM_FD 4	/* its own file */

/* The largest body that either side accepts, in bytes. */
#define ZKL_WIRE_MAX_BODY	(16 * 1024 * 1024)

typedef enum ZklWireType
{
	/*
	 * worker -> session process
	 *
	 * START, always first and only once: u32 ZKL_LINK_PROTOCOL, string hosts
	 * (one host:port, with the chroot if any), i64 session id (0: a new one),
	 * string password (empty, or ZKL_PASSWORD_BYTES), u32 session timeout in
	 * ms, u32 number of credentials, for each of them string scheme and
	 * string secret, u8 whether only those who have them may read our znodes,
	 * u8 whether LOG frames are wanted, u8 ZklTls, and three strings of PEM,
	 * empty without TLS: the certificates to trust, our own with its chain,
	 * its key (empty: none).
	 */
	ZKL_WIRE_START = 1,

	/*
	 * SEND, an operation for ZooKeeper, which REPLY answers: u8 ZklSendKind.
	 * Then, of a MULTI, u32 count, and per operation u8 ZklMultiKind, string
	 * path, string data, i32 version; of all others string path, u8 whether a
	 * read sets a watch.
	 */
	ZKL_WIRE_SEND,
	ZKL_WIRE_PING,				/* no body; PONG answers it, with its tag */
	ZKL_WIRE_CLOSE,				/* close the ZooKeeper session, then exit 0 */
	ZKL_WIRE_ASK_VERSION,		/* no body; of the ZooKeeper server, for which
								 * VERSION comes, or nothing */
	ZKL_WIRE_WANT_LOG,			/* u8 whether LOG frames are wanted from now
								 * on */

	/*
	 * session process -> worker
	 *
	 * CONNECTED: i64 session id, string password, u32 negotiated session
	 * timeout in ms, string version of zklock_session, u32 its
	 * ZKL_LINK_PROTOCOL; then of TLS: string version and string cipher, empty
	 * without TLS, and until when our certificate, the CA that vouches for
	 * the server and the server's certificate are valid: three i64, in
	 * seconds since 1970 (0: there is none); then u8 ZklAccess, and string
	 * the address of our end of the connection, in digits.
	 */
	ZKL_WIRE_CONNECTED = 64,

	/*
	 * GONE, the last frame before it exits: u8 reason (ZklWireGone), string
	 * explanation for the log.  The results of unanswered requests are
	 * unknown.
	 */
	ZKL_WIRE_GONE,

	/*
	 * REPLY, to the SEND with the header's tag; the header's rc is
	 * ZooKeeper's result code (0: success), or ZKL_RC_UNSENT.  The body
	 * depends on the kind.  It is present only if rc is 0, and of a MULTI
	 * also if ZooKeeper refused it.
	 *
	 * MULTI: u32 count, then per operation i32 rc, string created path (empty
	 * unless it was a create and succeeded), u8 has_stat, [stat] (of a set
	 * whose batch succeeded).  GET: string data, stat.  LIST: u32 count, that
	 * many strings, stat.  GET_ACL: the same, each string being the rights in
	 * decimal, a colon, the scheme, a colon, and the id.  Others: nothing.
	 *
	 * A stat is i64 czxid, i64 mzxid, i64 ctime (ms), i64 mtime (ms), i64
	 * ephemeralOwner, i32 version, i32 version of the rights.
	 */
	ZKL_WIRE_REPLY,
	ZKL_WIRE_EVENT,				/* u8 ZklWireEvent, string path */
	ZKL_WIRE_PONG,
	ZKL_WIRE_LOG,				/* string: what the ZooKeeper client says */
	ZKL_WIRE_STEP,				/* u8 ZklWireStep: how far it has come, each
								 * at most once and before CONNECTED */
	ZKL_WIRE_VERSION			/* string, such as 3.8.0 */
} ZklWireType;

/* What an attempt to connect has behind it */
typedef enum ZklWireStep
{
	ZKL_WIRE_STEP_NONE = 0,
	ZKL_WIRE_STEP_STARTED,		/* zklock_session has read START */
	ZKL_WIRE_STEP_RESOLVED,		/* it knows the host's addresses */
	ZKL_WIRE_STEP_ACCEPTED		/* the host has accepted the network
								 * connection */
} ZklWireStep;

typedef enum ZklWireEvent
{
	ZKL_WIRE_EVENT_DELETED = 1,
	ZKL_WIRE_EVENT_CHANGED,		/* data of a node */
	ZKL_WIRE_EVENT_CHILDREN,
	ZKL_WIRE_EVENT_OTHER		/* created, or the watch is lost: look again */
} ZklWireEvent;

typedef enum ZklWireGone
{
	ZKL_WIRE_GONE_DISCONNECTED = 1, /* the connection broke */
	ZKL_WIRE_GONE_UNREACHABLE,	/* no address of the host accepted us */
	ZKL_WIRE_GONE_EXPIRED,		/* the ZooKeeper session is gone */
	ZKL_WIRE_GONE_AUTH_FAILED,
	ZKL_WIRE_GONE_CLOSED,		/* because of CLOSE, and acknowledged */
	ZKL_WIRE_GONE_DISTRUSTED,	/* a certificate cannot be used, or one side
								 * refuses the other's */
	ZKL_WIRE_GONE_UNSUITABLE	/* the server is not ZooKeeper */
} ZklWireGone;

/* The request had another generation, and was not executed. */
#define ZKL_RC_UNSENT	(-1000)

typedef struct ZklWireHeader
{
	uint32_t	length;			/* of the body, in bytes */
	uint32_t	type;			/* ZklWireType */
	uint32_t	generation;		/* of the connection */
	int32_t		rc;				/* REPLY: ZooKeeper's result code */
	uint64_t	tag;			/* names a request; its REPLY has the same */
} ZklWireHeader;

typedef struct ZklWireStat
{
	int64_t		czxid;
	int64_t		mzxid;
	int64_t		ctime;			/* ms since 1970 */
	int64_t		mtime;
	int64_t		ephemeral_owner;
	int32_t		version;
	int32_t		acl_version;
} ZklWireStat;

/*
 * A growing byte buffer: bytes [start, end) of data are in use.  Memory comes
 * from malloc.  If an allocation fails, "failed" is set: puts do nothing any
 * longer, and the owner gives up the link.
 */
typedef struct ZklWireBuffer
{
	char	   *data;
	size_t		start;
	size_t		end;
	size_t		capacity;
	bool		failed;
} ZklWireBuffer;

/* Reads a body; reading past its end sets "bad" and yields zeros. */
typedef struct ZklWireReader
{
	const char *next;
	size_t		left;
	bool		bad;
} ZklWireReader;

extern void zkl_wire_buffer_free(ZklWireBuffer *buf);
extern void zkl_wire_consume(ZklWireBuffer *buf, size_t n);

/* Makes room for n more bytes behind "end"; false when memory is out. */
extern bool zkl_wire_reserve(ZklWireBuffer *buf, size_t n);

/*
 * Writing: begin a frame, put its fields, end it, which fills in the length.
 * begin returns the frame's offset from "start", which end needs.
 */
extern size_t zkl_wire_begin(ZklWireBuffer *buf, ZklWireType type,
							 uint32_t generation, uint64_t tag, int32_t rc);
extern void zkl_wire_put_u8(ZklWireBuffer *buf, uint8_t value);
extern void zkl_wire_put_u32(ZklWireBuffer *buf, uint32_t value);
extern void zkl_wire_put_i32(ZklWireBuffer *buf, int32_t value);
extern void zkl_wire_put_i64(ZklWireBuffer *buf, int64_t value);
extern void zkl_wire_put_string(ZklWireBuffer *buf, const char *bytes,
								size_t length);
extern void zkl_wire_put_text(ZklWireBuffer *buf, const char *text);
extern void zkl_wire_put_stat(ZklWireBuffer *buf, const ZklWireStat *stat);
extern void zkl_wire_end(ZklWireBuffer *buf, size_t frame);

/*
 * Reading: if buf starts with a whole frame, fills *header and *body (which
 * points into buf, valid until the caller consumes sizeof(*header) +
 * header->length bytes) and returns 1.  0: more bytes are needed.  -1: the
 * stream is garbage (a length over ZKL_WIRE_MAX_BODY).
 */
extern int	zkl_wire_peek(const ZklWireBuffer *buf, ZklWireHeader *header,
						  ZklWireReader *body);
extern uint8_t zkl_wire_get_u8(ZklWireReader *r);
extern uint32_t zkl_wire_get_u32(ZklWireReader *r);
extern int32_t zkl_wire_get_i32(ZklWireReader *r);
extern int64_t zkl_wire_get_i64(ZklWireReader *r);
extern const char *zkl_wire_get_string(ZklWireReader *r, uint32_t *length);
extern void zkl_wire_get_stat(ZklWireReader *r, ZklWireStat *stat);

#endif							/* ZKL_WIRE_WIRE_H */
