#include "control/net/loop.h"

#include "control/net/loop_internal.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct post {
	struct post *next;
	loop_call call;
	void *context;
};

struct loop {
	struct event_base *base;
	struct event *wake; /* on wake_fd */
	int wake_fd;
	pthread_mutex_t lock; /* of the fields below */
	struct post *first, **last;
	bool must_stop;
};

struct loop_timer {
	struct event *event;
	loop_call fire;
	void *context;
};

struct loop_watch {
	struct event *event;
	loop_call readable;
	void *context;
};

struct loop_signal {
	struct event *event;
	loop_call raised;
	void *context;
};

struct event_base *loop_base(struct loop *l)
{
	return l->base;
}

static struct timeval timeval_of(uint64_t ns)
{
	uint64_t us = (ns + 999) / 1000;

	return (struct timeval){(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
}

/* ---- calls of other threads ---- */

static void on_wake(evutil_socket_t fd, short what, void *context)
{
	struct loop *l = context;
	uint64_t count;

	(void)what;
	if (read(fd, &count, sizeof(count)) < 0)
		CHECK(errno == EAGAIN || errno == EINTR);

	pthread_mutex_lock(&l->lock);
	struct post *p = l->first;
	bool must_stop = l->must_stop;
	l->first = NULL;
	l->last = &l->first;
	pthread_mutex_unlock(&l->lock);

	while (p != NULL) {
		struct post *next = p->next;

		p->call(p->context);
		free(p);
		p = next;
	}
	if (must_stop)
		event_base_loopbreak(l->base);
}

static void wake(struct loop *l)
{
	uint64_t one = 1;

	/* Full means that a wake-up is under way already. */
	if (write(l->wake_fd, &one, sizeof(one)) < 0)
		CHECK(errno == EAGAIN || errno == EINTR);
}

int loop_post_mt(struct loop *l, loop_call call, void *context)
{
	struct post *p = malloc(sizeof(*p));

	if (p == NULL)
		return -ENOMEM;
	*p = (struct post){NULL, call, context};
	pthread_mutex_lock(&l->lock);
	*l->last = p;
	l->last = &p->next;
	pthread_mutex_unlock(&l->lock);
	wake(l);
	return 0;
}

void loop_stop_mt(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	l->must_stop = true;
	pthread_mutex_unlock(&l->lock);
	wake(l);
}

/* ---- the loop ---- */

/* Checkpoint intervals may be a millisecond, so timers must not be rounded to that. */
static struct event_base *precise_base(void)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config == NULL)
		return NULL;
	if (event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER) == 0)
		base = event_base_new_with_config(config);
	event_config_free(config);
	return base;
}

int loop_create(struct loop **out)
{
	struct loop *l = calloc(1, sizeof(*l));

	if (l == NULL)
		return -ENOMEM;
	signal(SIGPIPE, SIG_IGN);
	l->last = &l->first;
	pthread_mutex_init(&l->lock, NULL);
	l->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	l->base = l->wake_fd < 0 ? NULL : precise_base();
	if (l->base != NULL)
		l->wake = event_new(l->base, l->wake_fd, EV_READ | EV_PERSIST, on_wake, l);
	if (l->wake == NULL || event_add(l->wake, NULL) != 0) {
		loop_destroy(l);
		return -ENOMEM;
	}
	*out = l;
	return 0;
}

void loop_destroy(struct loop *l)
{
	if (l == NULL)
		return;
	if (l->wake != NULL)
		event_free(l->wake);
	/* What a connection put off when it was closed still holds its memory. */
	if (l->base != NULL) {
		(void)event_base_loop(l->base, EVLOOP_NONBLOCK);
		event_base_free(l->base);
	}
	if (l->wake_fd >= 0)
		close(l->wake_fd);
	for (struct post *p = l->first, *next; p != NULL; p = next) {
		next = p->next;
		free(p);
	}
	pthread_mutex_destroy(&l->lock);
	free(l);
}

void loop_run(struct loop *l)
{
	event_base_loop(l->base, EVLOOP_NO_EXIT_ON_EMPTY);
}

static void on_turn_over(evutil_socket_t fd, short what, void *context)
{
	(void)fd;
	(void)what;
	(void)context;
}

void loop_turn(struct loop *l, uint64_t wait_ns)
{
	struct timeval tv = timeval_of(wait_ns);
	struct event *over = event_new(l->base, -1, EV_TIMEOUT, on_turn_over, NULL);

	CHECK(over != NULL && event_add(over, &tv) == 0);
	event_base_loop(l->base, EVLOOP_ONCE);
	event_free(over);
}

/* ---- timers ---- */

static void on_timer(evutil_socket_t fd, short what, void *context)
{
	struct loop_timer *t = context;

	(void)fd;
	(void)what;
	t->fire(t->context);
}

int loop_timer_create(struct loop_timer **out, struct loop *l, loop_call fire, void *context)
{
	struct loop_timer *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->fire = fire;
	t->context = context;
	t->event = event_new(l->base, -1, EV_TIMEOUT, on_timer, t);
	if (t->event == NULL) {
		free(t);
		return -ENOMEM;
	}
	*out = t;
	return 0;
}

void loop_timer_set(struct loop_timer *t, uint64_t delay_ns)
{
	struct timeval tv = timeval_of(delay_ns);

	CHECK(event_add(t->event, &tv) == 0);
}

void loop_timer_clear(struct loop_timer *t)
{
	event_del(t->event);
}

void loop_timer_destroy(struct loop_timer *t)
{
	if (t == NULL)
		return;
	event_free(t->event);
	free(t);
}

/* ---- descriptors ---- */

static void on_readable(evutil_socket_t fd, short what, void *context)
{
	struct loop_watch *w = context;

	(void)fd;
	(void)what;
	w->readable(w->context);
}

int loop_watch_create(
		struct loop_watch **out, struct loop *l, int fd, loop_call readable, void *context)
{
	struct loop_watch *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return -ENOMEM;
	w->readable = readable;
	w->context = context;
	w->event = event_new(l->base, fd, EV_READ | EV_PERSIST, on_readable, w);
	if (w->event == NULL || event_add(w->event, NULL) != 0) {
		loop_watch_destroy(w);
		return -ENOMEM;
	}
	*out = w;
	return 0;
}

void loop_watch_destroy(struct loop_watch *w)
{
	if (w == NULL)
		return;
	if (w->event != NULL)
		event_free(w->event);
	free(w);
}

/* ---- signals ---- */

static void on_signal(evutil_socket_t fd, short what, void *context)
{
	struct loop_signal *s = context;

	(void)fd;
	(void)what;
	s->raised(s->context);
}

int loop_signal_create(struct loop_signal **out, struct loop *l, int signal_number,
		loop_call raised, void *context)
{
	struct loop_signal *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->raised = raised;
	s->context = context;
	s->event = evsignal_new(l->base, signal_number, on_signal, s);
	if (s->event == NULL || event_add(s->event, NULL) != 0) {
		loop_signal_destroy(s);
		return -ENOMEM;
	}
	*out = s;
	return 0;
}

void loop_signal_destroy(struct loop_signal *s)
{
	if (s == NULL)
		return;
	if (s->event != NULL)
		event_free(s->event);
	free(s);
}
