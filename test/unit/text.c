/*
 * text.c
 *	  Text for the tests of whatever reads UTF-8.
 *
 * Owns nothing.  Must not use what it helps to test.
 */
#include "text.h"

size_t
text_encode(uint32_t code, char *bytes)
{
	if (code < 0x80)
	{
		bytes[0] = (char) code;
		return 1;
	}
	if (code < 0x800)
	{
		bytes[0] = (char) (0xC0 | code >> 6);
		bytes[1] = (char) (0x80 | (code & 63));
		return 2;
	}
	if (code < 0x10000)
	{
		bytes[0] = (char) (0xE0 | code >> 12);
		bytes[1] = (char) (0x80 | (code >> 6 & 63));
		bytes[2] = (char) (0x80 | (code & 63));
		return 3;
	}
	bytes[0] = (char) (0xF0 | code >> 18);
	bytes[1] = (char) (0x80 | (code >> 12 & 63));
	bytes[2] = (char) (0x80 | (code >> 6 & 63));
	bytes[3] = (char) (0x80 | (code & 63));
	return 4;
}
