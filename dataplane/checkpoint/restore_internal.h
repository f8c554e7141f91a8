#pragma once

/* restore_internal: what restore.c (one snapshot) and restore_rescaled.c (several) share. */

#include "dataplane/checkpoint/restore.h"

__attribute__((format(printf, 3, 4))) int restore_refuse(
		char *text, int status, const char *format, ...);

/* Whether the handle is what the operator declares; -EINVAL, -ENOSPC. */
int restore_check_declared(const struct task_state *t, const struct state_handle *h,
		const struct declared_state *s, char *text);

/* Reads a handle and puts it into the memory of `s`; keyed entries are added to what is there. */
int restore_put_state(const char *directory, const struct declared_state *s,
		const struct state_handle *h, char *text);

/* The declared state of a handle, or -EINVAL: nobody declares it. */
int restore_find_declared(const struct task_state *t, const struct state_handle *h,
		const struct declared_state *states, uint32_t count,
		const struct declared_state **out, char *text);
