#pragma once

/*
 * job_checkpoint_io: decisions of the checkpoint rules whose work blocks: done on the I/O thread,
 * answered later.
 *
 * A checkpoint wakes both threads as seldom as its order of steps allows: the directory of the next
 * one is made when an old one is deleted, and what nobody waits for is told with the next thing.
 *
 * Place    control/coordinator, part of the job master.
 * Thread   the loop's.
 * Errors   are the rules' answers; logged.
 */

struct checkpoint_decision;
struct job_master;

void job_io_draw_id(struct job_master *jm, const struct checkpoint_decision *d);
void job_io_prepare(struct job_master *jm, const struct checkpoint_decision *d);
void job_io_write_metadata(struct job_master *jm, const struct checkpoint_decision *d);
void job_io_index_add(struct job_master *jm, const struct checkpoint_decision *d);
void job_io_index_remove(struct job_master *jm, const struct checkpoint_decision *d);
void job_io_delete(struct job_master *jm, const struct checkpoint_decision *d);

/* The job ends: no directory stays that was made ahead. */
void job_io_end(struct job_master *jm);
