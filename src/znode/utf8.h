/*
 * utf8.h
 *	  Strict reading of UTF-8: no overlong forms, no surrogates, nothing past
 *	  U+10FFFF.
 */
#ifndef ZKL_ZNODE_UTF8_H
#define ZKL_ZNODE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/*
 * Length in bytes of the character at text, of which "left" bytes may be read;
 * 0 if they do not begin with a whole, valid one.  *code is its number.
 */
static inline size_t
zkl_utf8_decode(const char *text, size_t left, uint32_t *code)
{
	static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *byte = (const unsigned char *) text;
	size_t		length;
	size_t		i;

	if (left == 0)
		return 0;
	if (byte[0] < 0x80)
	{
		*code = byte[0];
		return 1;
	}
	if (byte[0] < 0xC0 || byte[0] > 0xF7)
		return 0;
	length = byte[0] < 0xE0 ? 2 : byte[0] < 0xF0 ? 3 : 4;
	if (left < length)
		return 0;
	*code = byte[0] & (0x7F >> length);
	for (i = 1; i < length; i++)
	{
		if ((byte[i] & 0xC0) != 0x80)
			return 0;
		*code = *code << 6 | (byte[i] & 0x3F);
	}
	if (*code < smallest[length] || *code > 0x10FFFF ||
		(*code >= 0xD800 && *code <= 0xDFFF))
		return 0;
	return length;
}

#endif							/* ZKL_ZNODE_UTF8_H */
