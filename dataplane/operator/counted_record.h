#pragma once

/* counted_record: the 16 bytes of the keyed-count job: what the generator makes, what is counted
 * and what the digest is taken of. */

#include <stdint.h>

struct counted_record {
	uint64_t key, value;
};
_Static_assert(sizeof(struct counted_record) == 16, "record layout");
