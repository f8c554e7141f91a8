#pragma once

/*
 * config: the values that hold, of every key of the table, and where each one came from.
 *
 * Place    control/config; made once by each program, then read by name.
 * Thread   one owner while it is filled; reading is free afterwards.
 * Memory   the config owns its texts; what a getter returns lives as long and as unchanged.
 * Errors   a file, option or job file that is wrong: -EINVAL (or -errno of the file) and one text;
 *          the config is then good for destroy only.  A name that is not in the table, or is of
 *          another type than the getter: a bug, CHECK.
 * Life     config_create, load_file, set_option*, (a job file adds its block), config_check, read,
 *          config_destroy.
 *
 * Of two values for one key the one of higher rank holds, whatever the order of the calls: option,
 * job file, config file, preset.  A key twice in one file is an error; of two options the last
 * holds.
 */

#include "control/config/config_error.h"
#include "control/config/config_keys.h"

#include <stdio.h>

enum config_origin { CONFIG_PRESET, CONFIG_FILE, CONFIG_JOB_FILE, CONFIG_OPTION };

struct config;
struct yaml_node;

int config_create(struct config **out);
int config_clone(const struct config *c, struct config **out);
/* NULL is accepted. */
void config_destroy(struct config *c);

int config_load_file(struct config *c, const char *path, struct config_error *error);

/* `name` stands for the file in messages. */
int config_load_text(struct config *c, const char *name, const char *text, size_t size,
		struct config_error *error);

/* One "key=value" behind -D. */
int config_set_option(struct config *c, const char *assignment, struct config_error *error);

/* The same of one job: what is a process's own is refused. */
int config_set_job_option(struct config *c, const char *assignment, struct config_error *error);

/* A mapping of keys, nested or dotted: a whole config file, or `config:` of a job file. */
int config_load_node(struct config *c, const struct yaml_node *mapping, enum config_origin origin,
		struct config_error *error);

/* What no key can say alone: limits between two of them.  Call it when all have been read. */
int config_check(const struct config *c, struct config_error *error);

/* Old names are fine too.  Not set: 0, NULL or false. */
bool config_is_set(const struct config *c, const char *name);
int64_t config_duration_ns(const struct config *c, const char *name);
int64_t config_size(const struct config *c, const char *name);
int64_t config_int(const struct config *c, const char *name);
double config_real(const struct config *c, const char *name);
bool config_bool(const struct config *c, const char *name);
/* What was written; of a directory without file://. */
const char *config_text(const struct config *c, const char *name);
/* The choice as the table spells it; config_is_choice compares. */
const char *config_choice(const struct config *c, const char *name, char *text, size_t size);
bool config_is_choice(const struct config *c, const char *name, const char *choice);
enum config_origin config_origin_of(const struct config *c, const char *name);

enum { CONFIG_LIST_MAX = 64, CONFIG_LIST_BYTES = 4096 };

struct config_list {
	uint32_t count;
	const char *items[CONFIG_LIST_MAX];
	char text[CONFIG_LIST_BYTES];
};

/* The items of a list key; what does not fit is an error that config_check has reported. */
void config_list(const struct config *c, const char *name, struct config_list *list);

/* The inclusive range of a port key. */
void config_ports(const struct config *c, const char *name, uint16_t *first, uint16_t *last);

/* "-D", "key=value", ... for all that is not preset, and a NULL: what a child process is given, or
 * a store keeps.  One block, to be freed; NULL: out of memory. */
char **config_to_args(const struct config *c, uint32_t *count);

/* All keys: value and origin, as a table or as one JSON object.  false: out of memory. */
bool config_print(const struct config *c, FILE *out, bool json);

/* The table itself: names, presets, what is expected, help; false: out of memory. */
bool config_print_keys(FILE *out, bool json);
