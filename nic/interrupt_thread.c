#include "nic/interrupt_thread.h"

#include <errno.h>
#include <rte_alarm.h>
#include <semaphore.h>

enum { AT_ONCE_US = 1 };

struct request {
	int (*call)(uint16_t port_id);
	uint16_t port_id;
	int rc;
	sem_t done;
};

static void answer(void *context)
{
	struct request *r = context;

	r->rc = r->call(r->port_id);
	(void)sem_post(&r->done);
}

int interrupt_thread_call(int (*call)(uint16_t port_id), uint16_t port_id)
{
	struct request r = {.call = call, .port_id = port_id};

	(void)sem_init(&r.done, 0, 0);
	if (rte_eal_alarm_set(AT_ONCE_US, answer, &r) != 0)
		return call(port_id); /* no such thread: nobody hears of a peer either */
	while (sem_wait(&r.done) != 0 && errno == EINTR) {
	}
	(void)sem_destroy(&r.done);
	return r.rc;
}
