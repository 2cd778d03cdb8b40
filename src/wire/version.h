/*
 * version.h
 *	  The version of zklock, and of the messages between its programs.
 *
 * Compiled into the library and into zklock_session.
 */
#ifndef ZKL_WIRE_VERSION_H
#define ZKL_WIRE_VERSION_H

/* The release; the same as in META.json */
#define ZKL_VERSION			"1.0.0"

/* Grows when the messages in wire.h change: see test/check-wire.pl. */
#define ZKL_LINK_PROTOCOL	1

#endif							/* ZKL_WIRE_VERSION_H */
