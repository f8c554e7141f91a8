#pragma once

/*
 * task_parts: the channels of a task under script, and what was in flight in them.
 *
 * Place    tests/scenario; used by task_world.c and by what reads lines.
 */

#include "tests/scenario/task_world.h"

/* ---- task_lines.c ---- */

bool task_lines_create(struct task_world *w);
void task_lines_destroy(struct task_world *w);
void task_lines_arrive(struct task_world *w, const struct element *e);
/* Takes the one that arrived first among those whose channel is not blocked; false: there is
 * none, or the task takes nothing. */
bool task_lines_take(struct task_world *w);
bool task_lines_is_blocked(const struct task_world *w, uint32_t channel);
/* The number in a record, which has `bytes` bytes for it. */
void task_label_write(uint8_t *record, uint32_t bytes, uint32_t number);
uint32_t task_label_read(const uint8_t *record, uint32_t bytes);

/* ---- task_in_flight.c ---- */

bool task_in_flight_create(struct task_world *w);
/* Notes what the writer has been given since; to be called after every turn. */
void task_in_flight_look(struct task_world *w);
/* The checkpoint was aborted or declined. */
void task_in_flight_forget(struct task_world *w, int64_t id);
/* Labels of the buffers that the writer was given for that checkpoint, by channel. */
void task_in_flight_labels(struct task_world *w, int64_t id, bool is_output,
		struct scenario_text *labels);

/* ---- task_outputs.c ---- */

bool task_outputs_create(struct task_world *w);
void task_outputs_destroy(struct task_world *w);
/* Consumers that are not blocked take what there is.  True when something moved. */
bool task_outputs_move(struct task_world *w);
