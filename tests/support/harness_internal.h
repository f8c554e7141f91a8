#pragma once

/* harness_internal: what the parts of operator_harness share. */

#include "tests/support/harness_state.h"
#include "tests/support/operator_harness.h"

enum { HARNESS_FILES_MAX = 16, HARNESS_PUBLISHES_MAX = 4096 };

struct harness_publish {
	char *from, *to;
	uint64_t tag;
};

struct harness {
	struct weir_context_head head; /* first, see weir_services_of */
	const struct weir_operator *op;
	struct weir_info info;
	struct weir_value *values;
	struct weir_declaration declaration;
	struct harness_table states[WEIR_STATES_MAX];
	uint64_t counters[WEIR_COUNTERS_MAX];
	void *self;
	char attempt_id[33];
	bool opened, failed;
	char error[WEIR_ERROR_BYTES];
	uint64_t now_ns, not_before_ns;
	int64_t out_watermark, last_barrier;
	uint32_t room, output_count;
	uint8_t *output;
	size_t output_bytes, output_bytes_max;
	char *event;
	uint32_t event_count;
	int files[HARNESS_FILES_MAX]; /* descriptor + 1; 0 free */
	struct weir_packet_port *port;
	uint32_t port_use; /* who has it */
	struct journal_port *journals;
	uint64_t disk_bytes;
	uint32_t publish_count, publishes_left;
	int publish_status;
	struct harness_publish publishes[HARNESS_PUBLISHES_MAX];
};

struct harness_snapshot {
	int64_t checkpoint_id;
	uint32_t state_count;
	struct harness_table states[WEIR_STATES_MAX];
	uint64_t counters[WEIR_COUNTERS_MAX];
};

const struct weir_services *harness_services(void);
/* Closes files and drops publishes, as the death of a process does. */
void harness_files_forget(struct harness *h);

static inline struct weir_context *harness_context(struct harness *h)
{
	return (struct weir_context *)(void *)h;
}
