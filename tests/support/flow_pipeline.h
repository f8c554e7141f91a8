#pragma once

/*
 * flow_pipeline: the flow-metering job in one thread: source, parse and window, one harness each,
 * and what comes out of the window.
 *
 * A snapshot of it is what a checkpoint holds: the state of all three between two batches.
 */

#include "dataplane/operator/packet/flow_record.h"
#include "tests/support/operator_harness.h"

struct flow_pipeline {
	struct harness *source, *parse, *window;
	const char *const *files; /* handed out in order, NULL ends */
	uint32_t file_index;
	int64_t watermark_ns;
	bool is_over;
	struct flow_row *rows;
	uint32_t row_count, row_max;
};

struct flow_pipeline_snapshot {
	struct harness_snapshot *source, *parse, *window;
	uint32_t file_index;
};

struct flow_pipeline_config {
	const char *const *files;
	const char *path; /* parameter; the first file when NULL */
	const char *window_size, *out_of_orderness; /* NULL: "60 s", "1 s" */
	const struct flow_pipeline_snapshot *restore; /* NULL: from the start */
};

void flow_pipeline_open(struct flow_pipeline *p, const struct flow_pipeline_config *config);
/* One batch of at most `records_max` packets through all of it; false: nothing more, or failed. */
bool flow_pipeline_step(struct flow_pipeline *p, uint32_t records_max);
void flow_pipeline_run(struct flow_pipeline *p);
void flow_pipeline_save(struct flow_pipeline *p, struct flow_pipeline_snapshot *s);
void flow_pipeline_snapshot_free(struct flow_pipeline_snapshot *s);
void flow_pipeline_close(struct flow_pipeline *p);

/* Rows of both runs as one sorted set equal `whole`'s. */
bool flow_rows_are_equal(const struct flow_pipeline *whole, const struct flow_pipeline *first,
		uint32_t first_count, const struct flow_pipeline *second);
