#include "control/config/config_internal.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

static uint32_t index_of(const char *name)
{
	uint32_t index = 0;

	CHECK(config_key_find(name, &index));
	return index;
}

static const struct weir_value *value_of(
		const struct config *c, const char *name, enum weir_param_type type)
{
	uint32_t index = index_of(name);

	CHECK(config_key_at(index)->param.type == type);
	return &c->entries[index].value;
}

bool config_is_set(const struct config *c, const char *name)
{
	return c->entries[index_of(name)].value.text != NULL;
}

int64_t config_duration_ns(const struct config *c, const char *name)
{
	return value_of(c, name, WEIR_DURATION)->integer;
}

int64_t config_size(const struct config *c, const char *name)
{
	return value_of(c, name, WEIR_SIZE)->integer;
}

int64_t config_int(const struct config *c, const char *name)
{
	return value_of(c, name, WEIR_INTEGER)->integer;
}

double config_real(const struct config *c, const char *name)
{
	return value_of(c, name, WEIR_REAL)->real;
}

bool config_bool(const struct config *c, const char *name)
{
	return value_of(c, name, WEIR_BOOLEAN)->integer != 0;
}

const char *config_text(const struct config *c, const char *name)
{
	const char *text = value_of(c, name, WEIR_TEXT)->text;

	return text != NULL && strncmp(text, "file:///", 8) == 0 ? text + 7 : text;
}

const char *config_choice(const struct config *c, const char *name, char *text, size_t size)
{
	uint32_t index = index_of(name);
	const char *at = config_key_at(index)->param.choices;

	for (int64_t i = value_of(c, name, WEIR_CHOICE)->integer; i > 0; i--)
		at += strcspn(at, "|") + 1;
	snprintf(text, size, "%.*s", (int)strcspn(at, "|"), at);
	return text;
}

bool config_is_choice(const struct config *c, const char *name, const char *choice)
{
	char text[64];

	return strcmp(config_choice(c, name, text, sizeof(text)), choice) == 0;
}

enum config_origin config_origin_of(const struct config *c, const char *name)
{
	return c->entries[index_of(name)].origin;
}

void config_list(const struct config *c, const char *name, struct config_list *list)
{
	uint32_t index = index_of(name);
	const char separators[] = {config_key_at(index)->separator, ' ', '\0'};
	const char *text = value_of(c, name, WEIR_TEXT)->text;
	char *cursor = NULL;

	CHECK(separators[0] != 0);
	list->count = 0;
	snprintf(list->text, sizeof(list->text), "%s", text == NULL ? "" : text);
	for (char *item = strtok_r(list->text, separators, &cursor); item != NULL;
			item = strtok_r(NULL, separators, &cursor)) {
		if (list->count < CONFIG_LIST_MAX)
			list->items[list->count++] = item;
	}
}

void config_ports(const struct config *c, const char *name, uint16_t *first, uint16_t *last)
{
	char *end;
	unsigned long low = strtoul(config_text(c, name), &end, 10);

	*first = (uint16_t)low;
	*last = *end == '-' ? (uint16_t)strtoul(end + 1, NULL, 10) : *first;
}

/* ---- limits between keys ------------------------------------------------------------------- */

static int refuse(const struct config *c, const char *name, const char *other, const char *relation,
		struct config_error *error)
{
	uint32_t index = index_of(name), other_index = index_of(other);
	bool is_preset = c->entries[index].origin == CONFIG_PRESET;

	return config_refuse(error, config_place_of(c, is_preset ? other_index : index), name,
			"\"%s\" with %s \"%s\"; expected it to be %s", c->entries[index].value.text,
			other, c->entries[other_index].value.text, relation);
}

int config_check(const struct config *c, struct config_error *error)
{
	static const char interval[] = "heartbeat.interval", timeout[] = "heartbeat.timeout";
	static const char initial[] = "restart-strategy.exponential-delay.initial-backoff";
	static const char longest[] = "restart-strategy.exponential-delay.max-backoff";
	static const char preset[] = "parallelism.default", most[] = "pipeline.max-parallelism";
	static const char own[] = "taskmanager.network.memory.buffers-per-channel";
	static const char all[] = "taskmanager.network.memory.max-buffers-per-channel";

	if (config_duration_ns(c, timeout) <= config_duration_ns(c, interval))
		return refuse(c, timeout, interval, "longer", error);
	if (config_duration_ns(c, longest) < config_duration_ns(c, initial))
		return refuse(c, longest, initial, "as long or longer", error);
	if (config_int(c, preset) > config_int(c, most))
		return refuse(c, preset, most, "as small or smaller", error);
	if (config_int(c, all) < config_int(c, own))
		return refuse(c, all, own, "as large or larger", error);
	return 0;
}
