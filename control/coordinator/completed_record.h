#pragma once

/*
 * completed_record: a completed checkpoint between its three forms: what the rules remember, what
 * the durable list holds, and what its own `_metadata` says.
 *
 * Place    control/coordinator.
 * Thread   any.
 * Errors   0, -ENOMEM, -EBADMSG with one line.
 */

#include "control/coordinator/completed_checkpoint.h"

#include "control/proto/durable.pb-c.h"

struct task_state;

enum { COMPLETED_TEXT_BYTES = 1024 };

struct metadata;

/* The properties as bits, for records and `_metadata`. */
uint32_t completed_properties_pack(const struct checkpoint_properties *p);
void completed_properties_unpack(uint32_t bits, struct checkpoint_properties *p);

/* `record` borrows from `c`. */
void completed_record_fill(Weir__CompletedRecord *record, const struct completed_checkpoint *c);
struct completed_checkpoint *completed_record_read(const Weir__CompletedRecord *record);

/* From what metadata_read gave. */
int completed_from_metadata(const struct metadata *m, const char *directory,
		struct completed_checkpoint **out, char text[COMPLETED_TEXT_BYTES]);

/* Adds the files that a task_state names, each once. */
void completed_add_state_files(struct file_list *files, const struct task_state *t);
/* The same of an encoded one. */
int completed_add_files(struct file_list *files, const uint8_t *state, size_t state_bytes,
		char text[COMPLETED_TEXT_BYTES]);
