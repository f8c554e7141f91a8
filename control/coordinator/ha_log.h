#pragma once

/*
 * ha_log: what a coordinator must not forget of one job's checkpoints: the next id and the list of
 * completed ones (semantics 11.1, 11.2), in memory and in the log <ha>/<job id>/checkpoints.
 *
 * Place    control/coordinator, under ha_store.
 * Thread   one caller at a time; blocks.
 * Errors   0 or -errno; -EBADMSG: the log is damaged, `text` names it.  HA_LOG_MAYBE: nobody can
 *          say whether it was written.  After any other error of a change it is as if it had not
 *          been asked for.
 * Life     open, { any }*, close.  A file appears with the first change.
 */

#include "control/coordinator/record_log.h"

#include "control/proto/durable.pb-c.h"

#include <stdint.h>

struct ha_log;

enum { HA_LOG_MAYBE = 1, HA_LOG_TEXT_BYTES = RECORD_LOG_TEXT_BYTES };

/* `directory` is the job's and need not exist. */
int ha_log_open(struct ha_log **out, const char *directory, char text[HA_LOG_TEXT_BYTES]);
void ha_log_close(struct ha_log *l);

/* The first id that was never given out. */
int64_t ha_log_next_id(const struct ha_log *l);
int ha_log_set_next_id(struct ha_log *l, int64_t next);

int ha_log_add(struct ha_log *l, const Weir__CompletedRecord *record);
/* Durably; one that is not there is no error. */
int ha_log_remove(struct ha_log *l, int64_t id);
/* The same, durable with the next change. */
void ha_log_forget(struct ha_log *l, int64_t id);
/* Makes that durable now. */
int ha_log_settle(struct ha_log *l);
int ha_log_clear(struct ha_log *l);

/* By id; the array from malloc, the records freed by free_unpacked. */
void ha_log_read(const struct ha_log *l, Weir__CompletedRecord ***records, uint32_t *count);
