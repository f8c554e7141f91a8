#pragma once

/*
 * coordinator_script: the words that coordinator scripts are made of.
 *
 * Place    tests/scenario, behind scenario_coordinator.
 */

#include "tests/scenario/coordinator_world.h"

bool coordinator_setting_is(const char *word);
bool coordinator_setting(void *world, const struct scenario_line *l);
/* Checks the settings as a whole and starts the world. */
bool coordinator_start(void *world);
bool coordinator_event(void *world, const struct scenario_line *l);
bool coordinator_assertion(void *world, const struct scenario_line *l);
bool coordinator_end(void *world);

/* "src.1", and "src.1@2" when `attempt` is not NULL. */
bool script_subtask(
		struct world *w, const char *word, uint32_t *subtask, struct attempt_id *attempt);
/* Adds "src.0" or "src.0..2" to a set by subtask. */
bool script_subtasks(struct world *w, const char *word, bool *set);
bool script_id(struct world *w, const char *word, int64_t *id);
/* The index of that name; malformed when it is not there. */
bool script_find(struct world *w, const struct named *list, uint32_t count, const char *name,
		uint32_t *index);
/* "a,b" to a list of files. */
bool script_files(struct world *w, const char *names, struct file_list *files);
/* A name of section 9 without its prefix. */
bool script_reason(const char *word, enum checkpoint_failure_reason *reason);
bool script_shared(struct world *w, const char *names, struct shared_list *shared);

/* The rest of the line, from that word on, is "none". */
bool script_is_none(const struct scenario_line *l, uint32_t from);

/* ---- coordinator_contents.c ---- */

bool script_assert_options(struct world *w, const struct scenario_line *l);
bool script_assert_finished(struct world *w, const struct scenario_line *l);
