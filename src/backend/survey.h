/*
 * survey.h
 *	  Reading many znodes, a few at a time.
 */
#ifndef ZKL_BACKEND_SURVEY_H
#define ZKL_BACKEND_SURVEY_H

#include "shared/survey_layout.h"

typedef struct ZklSurveyAnswer
{
	int			number;			/* of the path */
	int32		rc;				/* ZooKeeper's result code; if it is not
								 * ZKL_RC_OK, the rest is empty */
	int64		ctime_ms;		/* these two only if the data was read */
	int64		session_id;		/* its ephemeralOwner */
	const char *bytes;			/* the data, cut to ZKL_MAX_NODE_DATA; or the
								 * names of the children, each with its NUL */
	uint32		length;
} ZklSurveyAnswer;

/* What stands for the result of a list that is too long to be read */
#define ZKL_RC_TOO_LONG		(-5)

/*
 * Reads up to ZKL_SURVEY_READS znodes: lists their children, or reads their
 * data.  Calls fn for each answer, in the order of the paths; fn may read others.
 * A path that cannot be read is no error, but 08006 is raised if ZooKeeper does
 * not answer.
 */
extern void zkl_survey_read(bool list, char *const *paths, int n,
							void (*fn) (void *arg, const ZklSurveyAnswer *answer),
							void *arg);

#endif							/* ZKL_BACKEND_SURVEY_H */
