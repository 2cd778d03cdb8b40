/*
 * pulse.h
 *	  Whether the session process, and the server behind it, still answer.
 *	  Worker only.
 *
 * Times are in µs of CLOCK_BOOTTIME throughout; timeout is the ZooKeeper
 * session's, and busy tells whether anybody waits for a lock or holds one.
 */
#ifndef ZKL_WORKER_PULSE_H
#define ZKL_WORKER_PULSE_H

typedef enum ZklPulse
{
	ZKL_PULSE_GOOD,
	ZKL_PULSE_PING_DUE,
	ZKL_PULSE_PROCESS_SILENT,
	ZKL_PULSE_SERVER_SILENT
} ZklPulse;

/* Another process was started; it is connected. */
extern void zkl_pulse_begin(int64 now);
extern void zkl_pulse_connected(void);

/* It said something. */
extern void zkl_pulse_heard(int64 now);

/* A ping, or an operation, went out; an operation was answered. */
extern void zkl_pulse_pinged(int64 now);
extern void zkl_pulse_sent(int64 now);
extern void zkl_pulse_answered(int64 now);

/* Of a process that is connected; and when to ask again at the latest */
extern ZklPulse zkl_pulse_check(int64 now, int64 timeout, bool busy);
extern int64 zkl_pulse_timer(int64 timeout, bool busy);

/* Whether it is time for another process, by the requests that it has had */
extern bool zkl_pulse_worn_out(void);

#endif							/* ZKL_WORKER_PULSE_H */
