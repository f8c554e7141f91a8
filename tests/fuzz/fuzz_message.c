/* fuzz_message: any bytes as a control message.  The checksum is made to fit, or nothing would
 * ever get behind it. */

#include "control/proto/message.h"
#include "dataplane/base/crc.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

		/* What was accepted can be sent on. */
		if (message_pack(e, &again, &bytes) == 0)
			free(again);
		message_free(e);
	}
	free(frame);
	return 0;
}
