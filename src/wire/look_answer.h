/*
 * look_answer.h
 *	  What zklock_session says if it only looks at a host.
 *
 * A backend starts it so, with the arguments host:port[/chroot] and "plain" or "tls". It
 * says, on descriptor ZKL_WIRE_LINK_FD, a letter for each step that it has behind it, and
 * in the end GOOD, or BAD and what is wrong, in words.
 */
#ifndef ZKL_WIRE_LOOK_ANSWER_H
#define ZKL_WIRE_LOOK_ANSWER_H

#define ZKL_LOOK_PLAIN		"plain"
#define ZKL_LOOK_TLS		"tls"	/* to accept the connection is all that
									 * the host has to do */

#define ZKL_LOOK_STARTED	's'
#define ZKL_LOOK_RESOLVED	'r'
#define ZKL_LOOK_ACCEPTED	'a'
#define ZKL_LOOK_GOOD		'+'
#define ZKL_LOOK_BAD		'-'

#define ZKL_LOOK_FD			3	/* ZKL_WIRE_LINK_FD */

#endif							/* ZKL_WIRE_LOOK_ANSWER_H */
