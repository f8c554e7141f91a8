/* Any bytes as a _metadata file: refused or read, never worse.  The checksum is put right first, so
 * that the message behind it is reached. */

#include "control/metadata/metadata.h"

#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/task_state.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 24, CRC_AT = 12, SIZE_AT = 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_states(const struct metadata *m)
{
	char text[TASK_STATE_TEXT_BYTES];

	for (uint32_t i = 0; i < m->vertex_count; i++) {
		for (uint32_t k = 0; k < m->vertices[i].subtask_count; k++) {
			struct metadata_bytes bytes = m->vertices[i].subtasks[k].state;
			struct task_state *t;

			if (task_state_decode(&t, bytes.data, bytes.size, text) == 0)
				task_state_free(t);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char text[METADATA_TEXT_BYTES];
	struct metadata *m;
	uint8_t *file = malloc(HEAD_BYTES + size);
	uint32_t version = METADATA_VERSION, crc = crc32c(0, data, size);
	uint64_t bytes = size;

	if (metadata_decode(&m, data, size, "fuzz", text) == 0)
		metadata_free(m);
	memcpy(file, "WEIRMETA", 8);
	memcpy(file + 8, &version, sizeof(version));
	memcpy(file + CRC_AT, &crc, sizeof(crc));
	memcpy(file + SIZE_AT, &bytes, sizeof(bytes));
	memcpy(file + HEAD_BYTES, data, size);
	if (metadata_decode(&m, file, HEAD_BYTES + size, "fuzz", text) == 0) {
		read_states(m);
		metadata_free(m);
	}
	free(file);
	return 0;
}
