#pragma once

/*
 * params: text of a job file -> values of an operator's parameter table.
 *
 * Place    operator; linked by all three programs.
 * Thread   any; no state.
 * Errors   0 or -EINVAL, with one line that names the parameter, what stands there and what was
 *          expected.
 */

#include "dataplane/operator/operator.h"

/* One `key: text` pair of a job file. */
struct param_text {
	const char *name, *text; /* borrowed by the values made from them */
};

/* Reads one text as `param` wants it. */
int param_parse(const struct weir_param *param, const char *text, struct weir_value *value,
		char error[WEIR_ERROR_BYTES]);

/* Fills `values` (op->param_count of them): given texts, else presets.  -EINVAL: unknown key,
 * missing one, or bad text; `*culprit` is the index in `given`, or UINT32_MAX when missing. */
int params_resolve(const struct weir_operator *op, const struct param_text *given, uint32_t count,
		struct weir_value *values, uint32_t *culprit, char error[WEIR_ERROR_BYTES]);
