/*
 * text.h
 *	  Text between the database's encoding and the UTF-8 of names and znodes.
 */
#ifndef ZKL_BACKEND_TEXT_H
#define ZKL_BACKEND_TEXT_H

/*
 * Converts a lock's name of "length" bytes to UTF-8 and checks it: error 22023
 * that says which rule it breaks.  Returns a palloc'd string.
 */
extern char *zkl_text_name_to_utf8(const char *name, int length);

/*
 * Copies a string into "size" bytes of UTF-8, cut at a character; what cannot
 * be converted becomes "?".  Never an error.
 */
extern void zkl_text_copy_to_utf8(char *to, size_t size, const char *from);

/*
 * The palloc'd form to show of "length" bytes that should be UTF-8: control
 * characters, broken ones and such as the database's encoding lacks are shown
 * as \xNN.  Never an error.
 */
extern char *zkl_text_to_display(const char *text, int length);

/*
 * A name of "length" bytes of UTF-8, with each byte of what is not ASCII as
 * \xNN, cut to fit.  Allocates nothing and cannot fail.
 */
extern void zkl_text_to_ascii(const char *name, size_t length, char *buf,
							  size_t size);

/*
 * What a message to the client may repeat of a text in the database's encoding:
 * the text itself if the client's encoding has all of its characters, else its
 * UTF-8 as zkl_text_to_ascii writes it, palloc'd.  So the message cannot fail,
 * and with it what it is about.  Never an error.  Also in an aborted
 * transaction, where no conversion is looked up, and a text that needs one has
 * its own bytes as \xNN.
 */
extern const char *zkl_text_for_client(const char *text);

#endif							/* ZKL_BACKEND_TEXT_H */
