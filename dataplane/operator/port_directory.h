#pragma once

/*
 * port_directory: where operators find packet ports; implemented at the edge (nic/packet_ports).
 *
 * Place    operator; borrowed by every chain of the process.
 * Thread   the control thread.
 * Errors   NULL, and one line.
 */

#include "dataplane/operator/operator.h"

struct port_directory {
	/* Those of one subtask number run on one worker, and each has its own part of the port. */
	struct weir_packet_port *(*acquire)(struct port_directory *d, const char *name,
			uint32_t subtask_index, enum weir_port_use use,
			char error[WEIR_ERROR_BYTES]);
	void (*release)(struct port_directory *d, struct weir_packet_port *port,
			enum weir_port_use use);
};
