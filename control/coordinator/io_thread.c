#include "control/coordinator/io_thread.h"

#include "control/net/loop.h"
#include "dataplane/base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct job {
	struct job *next;
	io_call work, done;
	void *context;
	bool is_quiet;
};

struct queue {
	struct job *first, **last;
};

struct io_thread {
	struct loop *loop;
	pthread_t thread;
	pthread_mutex_t lock; /* of the fields below */
	pthread_cond_t changed;
	struct queue waiting, ended;
	bool must_stop;
	bool is_telling; /* a call of tell is posted */
};

static void append(struct queue *q, struct job *j)
{
	j->next = NULL;
	*q->last = j;
	q->last = &j->next;
}

static struct job *take_all(struct queue *q)
{
	struct job *all = q->first;

	q->first = NULL;
	q->last = &q->first;
	return all;
}

static void collect(struct io_thread *t, bool is_told)
{
	pthread_mutex_lock(&t->lock);
	struct job *j = take_all(&t->ended);
	if (is_told)
		t->is_telling = false;
	pthread_mutex_unlock(&t->lock);
	while (j != NULL) {
		struct job *next = j->next;

		if (j->done != NULL)
			j->done(j->context);
		free(j);
		j = next;
	}
}

/* On the loop's thread. */
static void tell(void *context)
{
	collect(context, true);
}

void io_thread_collect(struct io_thread *t)
{
	collect(t, false);
}

static void *work(void *context)
{
	struct io_thread *t = context;

	pthread_mutex_lock(&t->lock);
	for (;;) {
		while (t->waiting.first == NULL && !t->must_stop)
			pthread_cond_wait(&t->changed, &t->lock);
		struct job *j = t->waiting.first;
		if (j == NULL)
			break;
		t->waiting.first = j->next;
		if (j->next == NULL)
			t->waiting.last = &t->waiting.first;
		pthread_mutex_unlock(&t->lock);
		j->work(j->context);
		pthread_mutex_lock(&t->lock);
		bool is_quiet = j->is_quiet; /* the loop may free it then */
		append(&t->ended, j);
		if (!is_quiet && !t->is_telling && !t->must_stop) {
			t->is_telling = true;
			/* Not under the lock, which is what the loop takes first. */
			pthread_mutex_unlock(&t->lock);
			CHECK(loop_post_mt(t->loop, tell, t) == 0);
			pthread_mutex_lock(&t->lock);
		}
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

int io_thread_create(struct io_thread **out, struct loop *l)
{
	struct io_thread *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return -ENOMEM;
	t->loop = l;
	t->waiting.last = &t->waiting.first;
	t->ended.last = &t->ended.first;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	int rc = pthread_create(&t->thread, NULL, work, t);
	if (rc != 0) {
		free(t);
		return -rc;
	}
	*out = t;
	return 0;
}

static void post(struct io_thread *t, io_call work_call, io_call done, void *context, bool is_quiet)
{
	struct job *j = calloc(1, sizeof(*j));

	CHECK(j != NULL);
	*j = (struct job){NULL, work_call, done, context, is_quiet};
	pthread_mutex_lock(&t->lock);
	bool is_over = t->must_stop;
	if (!is_over)
		append(&t->waiting, j);
	pthread_mutex_unlock(&t->lock);
	pthread_cond_signal(&t->changed);
	if (!is_over)
		return;
	/* A `done` of destroy asked for more: the thread has ended. */
	work_call(context);
	if (done != NULL)
		done(context);
	free(j);
}

void io_thread_post(struct io_thread *t, io_call work_call, io_call done, void *context)
{
	post(t, work_call, done, context, false);
}

void io_thread_post_quiet(struct io_thread *t, io_call work_call, io_call done, void *context)
{
	post(t, work_call, done, context, true);
}

void io_thread_destroy(struct io_thread *t)
{
	if (t == NULL)
		return;
	pthread_mutex_lock(&t->lock);
	t->must_stop = true;
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	tell(t);
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
	free(t);
}
