/*
 * input.c
 *	  The inputs of a fuzzer, as bytes.
 *
 * Owns the changes of the present one.
 */
#include <stdio.h>
#include <string.h>

#include "input.h"

static uint8_t changes[INPUT_DRAWS];
static uint8_t file[INPUT_MOST];

void
input_read(const uint8_t *bytes, size_t n, Input *input)
{
	size_t		i;

	memset(input, 0, sizeof(*input));
	for (i = 0; i < 8 && i < n; i++)
		input->seed |= (uint64_t) bytes[i] << 8 * i;
	input->changes = bytes + 8;
	input->n = n > 8 ? (n - 8) / 4 : 0;
}

bool
input_read_file(const char *name, Input *input)
{
	FILE	   *f = fopen(name, "rb");
	size_t		n;

	if (f == NULL)
		return false;
	n = fread(file, 1, sizeof(file), f);
	fclose(f);
	input_read(file, n, input);
	return n > 0;
}

const uint8_t *
input_spread(const Input *input)
{
	size_t		i;

	if (input->n == 0)
		return NULL;
	memset(changes, 0, sizeof(changes));
	for (i = 0; i < input->n; i++)
	{
		const uint8_t *record = input->changes + 4 * i;
		uint32_t	place = (uint32_t) record[0] | (uint32_t) record[1] << 8 |
		(uint32_t) record[2] << 16;

		changes[place % INPUT_DRAWS] = record[3];
	}
	return changes;
}
