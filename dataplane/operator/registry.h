#pragma once

/*
 * registry: from the `type:` of a job file to the operator table.
 *
 * Place    operator; linked by all three programs, no DPDK.
 * Thread   control thread only.
 * Memory   tables are static, or live in a shared object that is never unloaded.
 */

#include "dataplane/operator/operator.h"

/* The built-in operator of that name, or NULL. */
const struct weir_operator *registry_find(const char *name);

/* The i-th built-in operator in name order; NULL behind the last. */
const struct weir_operator *registry_at(uint32_t index);

/* Opens a user's shared object and finds the operator in it; name NULL takes the first.  0, or
 * -errno with a text: -ENOENT no such file or operator, -ENOEXEC no weir_plugin symbol,
 * -EPROTO built against another abi_version or a smaller table. */
int registry_load(const char *path, const char *name, const struct weir_operator **out,
		char error[WEIR_ERROR_BYTES]);
