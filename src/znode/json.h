/*
 * json.h
 *	  Reading JSON of unknown origin, a piece at a time; and writing it.
 *
 * All that read return whether what they look for is there, and then stand behind it.
 */
#ifndef ZKL_ZNODE_JSON_H
#define ZKL_ZNODE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is still to be read */
typedef struct ZklJsonReader
{
	const char *at;
	const char *end;
} ZklJsonReader;

/* The character c, with white space around it */
extern bool zkl_json_take(ZklJsonReader *r, char c);

/* Exactly this text */
extern bool zkl_json_word(ZklJsonReader *r, const char *word);

/* A string, into a buffer of this size; cut at a character if it is longer */
extern bool zkl_json_string(ZklJsonReader *r, char *buf, size_t size);

/* An integer from min to max; a fraction or an exponent makes it none */
extern bool zkl_json_integer(ZklJsonReader *r, int64_t min, int64_t max,
							 int64_t *number);

/* The key of a member, with its colon; keys that are longer are none that we know */
#define ZKL_JSON_KEY		16
extern bool zkl_json_key(ZklJsonReader *r, char *key);

/* An object that is the whole text; read_value is to read the value of each member */
extern bool zkl_json_object(const char *text, size_t length,
							bool (*read_value) (ZklJsonReader *r, const char *key,
												void *arg),
							void *arg);

/* A string, a number or a word */
extern bool zkl_json_skip_scalar(ZklJsonReader *r);

/* A value of any kind; of arrays and objects only the nesting is checked */
extern bool zkl_json_skip_value(ZklJsonReader *r);

/*
 * Writing: each goes on at *at.  A string is at most "most" bytes once it is
 * escaped, key stands before it as it is, and the value ends at its NUL or after
 * "size" bytes.
 */
extern void zkl_json_put_bytes(char **at, const char *bytes, size_t length);
extern void zkl_json_put_number(char **at, int64_t number);
extern void zkl_json_put_string(char **at, const char *key, const char *value,
								size_t size, size_t most);

#endif							/* ZKL_ZNODE_JSON_H */
