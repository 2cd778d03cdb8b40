/*
 * text.h
 *	  Text for the tests of whatever reads UTF-8.
 */
#ifndef ZKL_TEXT_H
#define ZKL_TEXT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Encodes any number below 2^21 in the shortest form, valid or not; returns its
 * length, at most four bytes.
 */
extern size_t text_encode(uint32_t code, char *bytes);

#endif							/* ZKL_TEXT_H */
