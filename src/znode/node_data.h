/*
 * node_data.h
 *	  What stands in znodes: JSON, and what zklock writes in it.
 *
 * All that read return whether what they look for is there, and then stand behind it.
 */
#ifndef ZKL_ZNODE_NODE_DATA_H
#define ZKL_ZNODE_NODE_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- json ---- */

/*
 * JSON: reading what is of unknown origin, and writing; and characters of UTF-8.
 */

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

/* A value of any kind; of arrays and objects only the nesting is checked */
extern bool zkl_json_skip_value(ZklJsonReader *r);

/*
 * Calls "member" for each member of an object, which reads its value.  Long
 * keys are cut: they are none that anybody knows.  True: the whole text is
 * such an object, and member always returned true.
 */
typedef bool (*ZklJsonMember) (ZklJsonReader *r, const char *key, void *to);

extern bool zkl_json_object(const char *text, size_t length,
							ZklJsonMember member, void *to);

/* A member that is a field of a struct */
typedef enum ZklJsonType
{
	ZKL_JSON_STRING,			/* an array of char; cut if it is longer */
	ZKL_JSON_BOOL,
	ZKL_JSON_INT,				/* int32_t; COUNT: not negative */
	ZKL_JSON_COUNT,
	ZKL_JSON_INT64,				/* int64_t; COUNT64: not negative */
	ZKL_JSON_COUNT64
} ZklJsonType;

typedef struct ZklJsonField
{
	const char *key;
	ZklJsonType type;
	size_t		offset;
	size_t		size;
} ZklJsonField;

#define ZKL_JSON_FIELD(key, type, of, field) \
	{key, type, offsetof(of, field), sizeof(((of *) 0)->field)}

/* Reads the value of a key; *known says whether it is that of a field. */
extern bool zkl_json_field(ZklJsonReader *r, const char *key,
						   const ZklJsonField *fields, size_t nfields,
						   void *to, bool *known);

/* ---- writing ---- */

/* ---- characters ---- */

/*
 * Strict UTF-8: no overlong forms, no surrogates, nothing past U+10FFFF.  Length in
 * bytes of the character at text, of which "left" bytes may be read; 0 if they do not
 * begin with a whole, valid one.  *code is its number.
 */
extern size_t zkl_json_character(const char *text, size_t left, uint32_t *code);

#endif							/* ZKL_ZNODE_NODE_DATA_H */
