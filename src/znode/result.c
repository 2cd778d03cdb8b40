/*
 * result.c
 *	  ZooKeeper's result codes.
 *
 * Must not know which operation was answered.
 */
#include "znode/result.h"

/* SESSIONEXPIRED, AUTHFAILED, CLOSING, SESSIONMOVED */
bool
zkl_result_is_of_session(int32_t rc)
{
	return rc == -112 || rc == -115 || rc == -116 || rc == -118;
}

/*
 * ZooKeeper's API errors, but for those about the session; and -8, by which its
 * client refuses to send at all.
 */
bool
zkl_result_is_definite(int32_t rc)
{
	return rc == -8 || (rc <= -101 && !zkl_result_is_of_session(rc));
}
