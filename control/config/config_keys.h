#pragma once

/*
 * config_keys: the table of everything a config file, a job file's `config:` or -D may set.
 *
 * Place    control/config; help, reading, checking and printing all walk this table.
 * Thread   any; the table is constant.
 * Names    Flink 1.20's where the thing is the same (flink-semantics 23), weir.* for our own.
 *
 * A key that Flink has and this version cannot do yet is in the table with the one value that it
 * does do; another value is refused by name.  A new key is a new row in config_keys.c.
 */

#include "dataplane/operator/operator.h"

/* Which programs look at a key. */
enum {
	CONFIG_COORDINATOR = 1,
	CONFIG_TASKMANAGER = 2,
	CONFIG_CLI = 4,
};

/* A form beyond its type: NULL when `text` has it, else what was expected. */
typedef const char *(*config_form)(const char *text);

struct config_key {
	struct weir_param param; /* name, type, preset (NULL: not set), bounds, choices, help */
	uint32_t programs;
	const char *old_names; /* "a|b", still read, or NULL */
	const char *supported; /* the only value this version can do, or NULL: any */
	char separator;	       /* a list: between its items; else 0 */
	config_form form;      /* or NULL */
};

uint32_t config_keys_count(void);
const struct config_key *config_key_at(uint32_t index);

/* The key of that name, or that old name.  false: there is none. */
bool config_key_find(const char *name, uint32_t *index);

/* It says something of one job, not of a process. */
bool config_key_is_of_job(uint32_t index);

/* The name that was probably meant, or NULL. */
const char *config_key_nearest(const char *name);
