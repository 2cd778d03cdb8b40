/*
 * draw.h
 *	  The sizes of a seed.
 */
#ifndef SIM_DRAW_H
#define SIM_DRAW_H

#include "base.h"

/* One of the numbers given */
#define DRAW(...) \
	draw((const Time[]) {__VA_ARGS__}, \
		 (int) (sizeof((const Time[]) {__VA_ARGS__}) / sizeof(Time)))

extern Time draw(const Time *from, int n);

extern void draw_ensemble(void);
extern void draw_hosts(void);

#endif							/* SIM_DRAW_H */
