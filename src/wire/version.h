/*
 * version.h
 *	  The versions of zklock, of its SQL script, and of the messages between its
 *	  programs.
 *
 * Compiled into the library and into zklock_session.
 */
#ifndef ZKL_WIRE_VERSION_H
#define ZKL_WIRE_VERSION_H

/* The release; the same as in META.json */
#define ZKL_VERSION			"1.0.0"

/* Of the extension's SQL script; the same as default_version in zklock.control */
#define ZKL_SCRIPT			"1.0"

/*
 * The oldest script that the library serves.  No release had version 0.9; tests
 * make up a script of an older release.
 */
#define ZKL_OLDEST_SCRIPT	"0.9"

/* Grows when the messages in wire.h change: see test/check-wire.pl. */
#define ZKL_LINK_PROTOCOL	3

#endif							/* ZKL_WIRE_VERSION_H */
