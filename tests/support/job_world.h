#pragma once

/*
 * job_world: one coordinator on a directory of its own, and TaskManagers that only pretend.
 *
 * Place    tests only.
 * Thread   the test's, which turns the loop.
 * Life     job_world_init, { the test }, job_world_fini: as fixtures of a suite.
 */

#include "control/coordinator/coordinator.h"
#include "tests/support/fake_task_manager.h"

#include <criterion/criterion.h>

/* Of the present test. */
extern char directory[];
extern struct config *config;
extern struct loop *loop;
extern struct coordinator *coordinator;
extern struct fake_task_manager *tm;
extern struct job_master *job;

/* A generator (make) and two subtasks that count (count). */
extern const char counting[];

#define WAIT_UNTIL(condition)                                                                      \
	do {                                                                                       \
		for (int round_ = 0; round_ < 3000 && !(condition); round_++)                      \
			loop_turn(loop, 2000000);                                                  \
		cr_assert(condition, "waited in vain");                                            \
	} while (0)

void job_world_init(void);
void job_world_fini(void);

/* A config key, as "KEY=%s". */
void set(const char *format, const char *value);
void start_coordinator(void);
void end_coordinator(void);
/* Another one on the same directory, with `tm` new; the jobs go on, `job` is one of them. */
void restart_coordinator(void);
/* Connects and registers. */
struct fake_task_manager *join(const char *id);
/* Of `tm`. */
const struct fake_record *record(void);
/* `job` is it then. */
int try_submit(const char *text, const char *restore, bool allow_rewind);
void submit(const char *text, const char *restore);
bool is_in(enum job_status status);
/* Every task of the job. */
bool all_run(void);
/* A running job whose newest checkpoint is at least `id`. */
void run_to(int64_t id);
/* In the directories of that pattern, below `directory`. */
uint32_t count_metadata(const char *below);
uint32_t count_checkpoints(void);
void newest_metadata(char path[256]);
/* The last byte is gone. */
void tear(const char *path);
