/*
 * result.c
 *	  ZooKeeper's result codes.
 *
 * Must not know which operation was answered.
 */
#include "znode/result.h"

bool
zkl_result_is_definite(int32_t rc)
{
	/*
	 * ZooKeeper's API errors, but for those about the session; and -8, by
	 * which its client refuses to send at all.
	 */
	return rc == -8 || (rc <= -101 && rc != -112 && rc != -115 &&
						rc != -116 && rc != -118);
}
