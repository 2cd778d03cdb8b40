/*
 * message.h
 *	  What is under way on a connection: requests, answers and events.
 */
#ifndef ZKL_MODEL_MESSAGE_H
#define ZKL_MODEL_MESSAGE_H

#include "tree.h"

#define RC_NO_WATCHER	(-121)

typedef enum RequestKind
{
	REQUEST_WRITE,
	REQUEST_GET,
	REQUEST_LIST,
	REQUEST_UNWATCH,
	REQUEST_SYNC,
	REQUEST_CLOSE
} RequestKind;

typedef struct Request
{
	struct Request *next;
	RequestKind kind;
	ZklSendKind send;			/* if a manager sends it */
	uint64_t	tag;
	int64_t		at;				/* when it arrives at the server */
	bool		committed;
	int32_t		refused;		/* it is answered so, done or not */
	bool		watch;			/* UNWATCH: of the children */
	bool		single;
	const char *path;
	Op		   *ops;
	size_t		nops;
} Request;

/* An answer or an event on its way to the client */
typedef struct Frame
{
	struct Frame *next;
	int64_t		at;				/* when it arrives */
	bool		is_event;
	ZklEventKind event;
	const char *path;
	uint64_t	tag;
	ZklReply	reply;
} Frame;

/* What a manager sends, with copies of all strings */
extern Request *message_make_request(const ZklAction *action);
extern void message_free_request(Request *request);

/* Answers a GET, LIST or UNWATCH from a copy of the tree. */
extern void message_read(const Request *request, int copy, Watcher *who,
						 ZklReply *reply);

/* All strings of it are its own. */
extern void message_free_frame(Frame *frame);

#endif							/* ZKL_MODEL_MESSAGE_H */
