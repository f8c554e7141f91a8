/* fuzz_message: any bytes as a control message.  The checksum is made to fit, or nothing would
 * ever get behind it. */

#include "control/proto/message.h"
#include "dataplane/base/crc.h"
#include "dataplane/checkpoint/task_state.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* States travel in messages as bytes that the message knows nothing of. */
static void read_state(ProtobufCBinaryData state)
{
	char text[TASK_STATE_TEXT_BYTES];
	struct task_state *t;

	if (task_state_decode(&t, state.data, state.len, text) == 0)
		task_state_free(t);
}

static void read_states(const Weir__Envelope *e)
{
	if (e->body_case == WEIR__ENVELOPE__BODY_ACKNOWLEDGE_CHECKPOINTS) {
		const Weir__AcknowledgeCheckpoints *a = e->acknowledge_checkpoints;

		for (size_t i = 0; i < a->n_acks; i++)
			read_state(a->acks[i]->state);
	} else if (e->body_case == WEIR__ENVELOPE__BODY_SUBMIT_TASKS) {
		for (size_t i = 0; i < e->submit_tasks->n_tasks; i++)
			read_state(e->submit_tasks->tasks[i]->state);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *frame = malloc(MESSAGE_HEAD_BYTES + size);
	uint32_t crc = crc32c(0, data, size);
	Weir__Envelope *e = NULL;

	for (int i = 0; i < 4; i++) {
		frame[i] = (uint8_t)(size >> 8 * i);
		frame[4 + i] = (uint8_t)(crc >> 8 * i);
	}
	if (size > 0)
		memcpy(frame + MESSAGE_HEAD_BYTES, data, size);
	if (message_unpack(frame, MESSAGE_HEAD_BYTES + size, &e) == 0) {
		uint8_t *again;
		size_t bytes;

		read_states(e);
		/* What was accepted can be sent on. */
		if (message_pack(e, &again, &bytes) == 0)
			free(again);
		message_free(e);
	}
	free(frame);
	return 0;
}
