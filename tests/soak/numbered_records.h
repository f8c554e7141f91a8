#pragma once

/*
 * numbered_records: operators whose records say which they are, so that one that is lost, comes
 * twice or comes too early is named: channel, stream and number.
 *
 * Place    tests; linked into barrier-seeds, and a plug-in for real processes.  It
 *          includes the operator table and libc, no more.
 *
 * Streams are numbered, and so are the records of each: 0, 1, 2 ...  A record's size, key and bytes
 * follow from both, under a seed.  Each subtask of the source makes some of the streams; a record
 * also says which subtask handed it on last.
 */

#include "dataplane/operator/operator.h"

enum {
	NUMBERED_STREAMS_MAX = 8,
	NUMBERED_COUNT_MAX = 1024, /* records of a stream */
	NUMBERED_WORDS = NUMBERED_COUNT_MAX / 64,
};

/* The parameters that all of them have, in this order. */
enum numbered_param {
	NUMBERED_SEED,
	NUMBERED_STREAMS,
	NUMBERED_COUNT,   /* of each stream */
	NUMBERED_LARGEST, /* bytes of a record */
	NUMBERED_TINY,    /* some are smaller than their identity: forward edges only */
	NUMBERED_DELAY,   /* 0, or up to four times that time after each record taken or made */
	NUMBERED_ORDER,   /* what is before it: enum numbered_order */
	NUMBERED_FAIL_AT, /* fails when it has taken so many; 0: never */
	NUMBERED_SHARE,   /* all subtasks get all records: each hands its share on */
	NUMBERED_RESULT,  /* directory for what there is in the end, or "" */
	NUMBERED_PARAMS,
};

enum numbered_order {
	NUMBERED_IN_ANY_ORDER,
	NUMBERED_STREAM_ORDER, /* numbers of a stream grow by one */
	NUMBERED_KEY_ORDER,    /* those of a key do */
	NUMBERED_REPEATS,      /* at least once: any of them may come again */
};

/* What the file of a consumer holds, RESULT/UID-SUBTASK-of-PARALLELISM: a bit for each record that
 * it has.  One that had finished at a checkpoint does not write it again after a restore, and an
 * attempt with another parallelism that came to nothing must not have overwritten it. */
struct numbered_result {
	uint64_t records, digest;
	uint64_t seen[NUMBERED_STREAMS_MAX][NUMBERED_WORDS];
};

/* NULL behind the last: source, pass and sink for edges by key, pass and sink for the others. */
const struct weir_operator *weir_plugin(uint32_t index);

enum numbered_operator {
	NUMBERED_SOURCE,
	NUMBERED_PASS,       /* by key, with keyed state */
	NUMBERED_SINK,
	NUMBERED_PASS_ANY,   /* over any other edge, with a list */
	NUMBERED_SINK_ANY,
};

/* What a record adds to a digest. */
uint64_t numbered_digest(uint64_t seed, uint32_t stream, uint32_t number);
