#pragma once

/* metadata_internal: the head of the file, shared by its two directions. */

#include <stdint.h>

/* All numbers little endian. */
struct metadata_head {
	char magic[8];
	uint32_t version;
	uint32_t crc;
	uint64_t size;
};

_Static_assert(sizeof(struct metadata_head) == 24, "the layout in the file");

#define METADATA_MAGIC "WEIRMETA"
