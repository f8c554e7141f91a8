#pragma once

/*
 * loop: the event loop of a control thread: timers, readable descriptors, signals, and calls that
 * other threads post.
 *
 * Place    net; the only folder that knows libevent and sockets.
 * Thread   one loop, one thread; loop_post_mt and loop_stop_mt from any.
 * Memory   handles belong to who made them and are destroyed before the loop.
 * Time     delays are relative, monotonic nanoseconds; libevent's resolution (1 ms and less).
 * Errors   0 or -errno from create.  The process ignores SIGPIPE from then on.
 * Life     create, { handles }, run until stop, { handles destroyed }, destroy.
 */

#include <stdint.h>

struct loop;
struct loop_timer;
struct loop_watch;
struct loop_signal;

typedef void (*loop_call)(void *context);

int loop_create(struct loop **out);
void loop_destroy(struct loop *l);

/* Runs until loop_stop_mt. */
void loop_run(struct loop *l);
/* Runs what is ready, waiting at most that long for it; for tests. */
void loop_turn(struct loop *l, uint64_t wait_ns);
void loop_stop_mt(struct loop *l);

/* `call` runs on the loop's thread, in the order posted.  -ENOMEM. */
int loop_post_mt(struct loop *l, loop_call call, void *context);

/* A timer fires once for each set. */
int loop_timer_create(struct loop_timer **out, struct loop *l, loop_call fire, void *context);
void loop_timer_set(struct loop_timer *t, uint64_t delay_ns);
void loop_timer_clear(struct loop_timer *t);
void loop_timer_destroy(struct loop_timer *t);

/* Calls while `fd`, which stays the caller's, is readable. */
int loop_watch_create(
		struct loop_watch **out, struct loop *l, int fd, loop_call readable, void *context);
void loop_watch_destroy(struct loop_watch *w);

int loop_signal_create(struct loop_signal **out, struct loop *l, int signal_number,
		loop_call raised, void *context);
void loop_signal_destroy(struct loop_signal *s);
