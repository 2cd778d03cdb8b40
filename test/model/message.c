/*
 * message.c
 *	  What is under way on a connection: requests, answers and events.
 *
 * Owns nothing; makes them, and answers those that only read.  Must not know
 * how long they are under way.
 */
#include "memory.h"
#include "message.h"

/* ---- requests ---- */

static void
copy_multi(Request *request, const ZklAction *action)
{
	size_t		i;

	request->nops = action->nmulti;
	request->ops = take(action->nmulti * sizeof(Op));
	for (i = 0; i < action->nmulti; i++)
	{
		const ZklMultiOp *from = &action->multi[i];
		Op		   *op = &request->ops[i];

		op->kind = from->kind == ZKL_MULTI_SET ? OP_SET :
			from->kind == ZKL_MULTI_DELETE ? OP_DELETE :
			from->kind == ZKL_MULTI_CHECK ? OP_CHECK : OP_CREATE;
		op->path = take_string(from->path);
		op->data = take_copy(from->data, from->data_length);
		op->length = from->data_length;
		op->version = from->version;
		op->ephemeral = from->kind != ZKL_MULTI_CREATE_PERSISTENT;
		op->sequential = from->kind == ZKL_MULTI_CREATE;
	}
}

static void
copy_single(Request *request, const ZklAction *action)
{
	request->single = true;
	request->nops = 1;
	request->ops = take(sizeof(Op));
	request->ops->kind = action->send == ZKL_SEND_DELETE ? OP_DELETE :
		OP_CREATE;
	request->ops->path = take_string(action->path);
	request->ops->version = -1;
	request->ops->container = true;
}

Request *
message_make_request(const ZklAction *action)
{
	static const RequestKind kinds[] = {
		[ZKL_SEND_MULTI] = REQUEST_WRITE,
		[ZKL_SEND_CREATE_CONTAINER] = REQUEST_WRITE,
		[ZKL_SEND_DELETE] = REQUEST_WRITE,
		[ZKL_SEND_GET] = REQUEST_GET,
		[ZKL_SEND_LIST] = REQUEST_LIST,
		[ZKL_SEND_UNWATCH] = REQUEST_UNWATCH,
		[ZKL_SEND_UNWATCH_CHILDREN] = REQUEST_UNWATCH,
		[ZKL_SEND_SYNC] = REQUEST_SYNC
	};
	Request    *request = take(sizeof(Request));

	request->kind = kinds[action->send];
	request->send = action->send;
	request->tag = action->tag;
	request->watch = request->kind == REQUEST_UNWATCH ?
		action->send == ZKL_SEND_UNWATCH_CHILDREN : action->watch;
	if (action->path != NULL)
		request->path = take_string(action->path);
	if (action->send == ZKL_SEND_MULTI)
		copy_multi(request, action);
	else if (request->kind == REQUEST_WRITE)
		copy_single(request, action);
	return request;
}

void
message_free_request(Request *request)
{
	size_t		i;

	for (i = 0; i < request->nops; i++)
	{
		put_back(request->ops[i].path);
		put_back(request->ops[i].data);
	}
	put_back(request->ops);
	put_back(request->path);
	put_back(request);
}

/* ---- reads ---- */

static void
read_list(const char *path, int copy, const Node *node, ZklReply *reply)
{
	const char **children = take(((size_t) node->nchildren + 1) *
								 sizeof(char *));
	Path	   *child;

	for (child = tree_children(path); child; child = child->sibling)
		if (child->node[copy].exists)
			children[reply->nchildren++] = take_string(child->name);
	reply->children = children;
	reply->stat = node->stat;
}

void
message_read(const Request *request, int copy, Watcher *who, ZklReply *reply)
{
	Node	   *node = tree_copy(request->path, copy);

	if (request->kind == REQUEST_UNWATCH)
	{
		if (node == NULL || !watch_remove(request->watch ? &node->child_watch :
										  &node->data_watch, who))
			reply->rc = RC_NO_WATCHER;
	}
	else if (node == NULL)
		reply->rc = ZKL_RC_NONODE;
	else if (request->kind == REQUEST_GET)
	{
		if (request->watch)
			watch_add(&node->data_watch, who);
		reply->stat = node->stat;
		reply->data = take_copy(node->data, node->length);
		reply->data_length = node->length;
	}
	else
	{
		if (request->watch)
			watch_add(&node->child_watch, who);
		read_list(request->path, copy, node, reply);
	}
}

/* ---- frames ---- */

void
message_free_frame(Frame *frame)
{
	ZklReply   *reply = &frame->reply;
	size_t		i;

	for (i = 0; i < reply->nchildren; i++)
		put_back(reply->children[i]);
	for (i = 0; reply->results && i < reply->nresults; i++)
		put_back(reply->results[i].path);
	put_back(reply->children);
	put_back(reply->results);
	put_back(reply->data);
	put_back(frame->path);
	put_back(frame);
}
