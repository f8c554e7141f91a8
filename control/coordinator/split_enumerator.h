#pragma once

/*
 * split_enumerator: the operator coordinator of kind "files": hands the files of a source out to
 * its subtasks, one at a time, and keeps what nobody has yet in the checkpoint (semantics 8.4).
 *
 * Place    control/coordinator, a rule: events in, messages out; files_list finds the files.
 * Thread   one owner.
 * Memory   heap, the paths.
 * Errors   0 or -errno; -EBADMSG for an event or a state that is none.
 * Life     create, (reset, set_files)*, { events, snapshots, next }*, destroy.
 *
 * A subtask asks "REQUEST" and is answered "FILE <path>" or "NO-MORE".  From the snapshot of
 * checkpoint n until that subtask acknowledges n, or n ends, it gets no answer (OC-1, OC-3): so a
 * file is either in the state of n here, or was handed out before the barrier and is in the
 * subtask's.  A file leaves the list when its message is taken, not when it is asked for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct split_enumerator;

enum { SPLIT_TEXT_BYTES = 4096 };

int split_enumerator_create(struct split_enumerator **out, uint32_t subtask_count);
void split_enumerator_destroy(struct split_enumerator *e);

/* All subtasks are new attempts.  `state` NULL: the job begins, nothing is listed. */
int split_enumerator_reset(struct split_enumerator *e, const uint8_t *state, size_t state_bytes);
/* False: it must be given its files. */
bool split_enumerator_is_listed(const struct split_enumerator *e);
/* Copies the paths; each shorter than SPLIT_TEXT_BYTES - 8 or -ENAMETOOLONG. */
int split_enumerator_set_files(struct split_enumerator *e, char *const *paths, uint32_t count);

/* What a subtask sent. */
int split_enumerator_on_event(
		struct split_enumerator *e, uint32_t subtask, const uint8_t *data, size_t bytes);

/* The next message to send; false: none now.  Taking it hands the file out. */
bool split_enumerator_next(
		struct split_enumerator *e, uint32_t *subtask, char text[SPLIT_TEXT_BYTES]);

/* OC-1: closes the gateways and gives the state (malloc'ed).  OC-4: one that has ended or is
 * older than another closes nothing. */
int split_enumerator_snapshot(struct split_enumerator *e, int64_t checkpoint_id,
		uint8_t **state, size_t *state_bytes);
/* OC-3 */
void split_enumerator_on_acknowledge(
		struct split_enumerator *e, uint32_t subtask, int64_t checkpoint_id);
/* OC-3: completed or aborted. */
void split_enumerator_on_ended(struct split_enumerator *e, int64_t checkpoint_id);
