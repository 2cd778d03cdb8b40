/*
 * named_file.h
 *	  Reads the files that settings name.  For the worker.
 */
#ifndef ZKL_SHARED_NAMED_FILE_H
#define ZKL_SHARED_NAMED_FILE_H

#include "lib/stringinfo.h"

/*
 * Appends a file's content to "content".  A secret is read only if its owner and
 * its permissions keep it one.  Returns NULL, or what is wrong, which names the
 * setting and the file.
 */
extern const char *zkl_named_file_read(const char *setting, const char *path,
									   bool secret, StringInfo content);

#endif							/* ZKL_SHARED_NAMED_FILE_H */
