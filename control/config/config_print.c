#include "control/config/config_internal.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const origin_names[] = {"preset", "config file", "job file", "option"};
static const char *const type_names[] = {
		"text", "number", "real", "true|false", "duration", "size", "choice"};

char **config_to_args(const struct config *c, uint32_t *count)
{
	size_t bytes = 0;

	*count = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		if (c->entries[i].text == NULL)
			continue;
		*count += 2;
		bytes += strlen(config_key_at(i)->param.name) + strlen(c->entries[i].text) + 2;
	}
	size_t head = (*count + 1) * sizeof(char *);
	char **args = malloc(head + bytes + sizeof("-D"));
	if (args == NULL)
		return NULL;

	char *flag = (char *)args + head, *at = flag + sizeof("-D"), *end = at + bytes;
	uint32_t n = 0;
	memcpy(flag, "-D", sizeof("-D"));
	for (uint32_t i = 0; i < c->count; i++) {
		if (c->entries[i].text == NULL)
			continue;
		args[n++] = flag;
		args[n++] = at;
		at += snprintf(at, (size_t)(end - at), "%s=%s", config_key_at(i)->param.name,
				      c->entries[i].text) + 1;
	}
	args[n] = NULL;
	return args;
}

static bool print_json(const struct config *c, FILE *out)
{
	json_t *all = json_object();
	int rc = all == NULL ? -1 : 0;

	for (uint32_t i = 0; i < c->count && rc == 0; i++) {
		const struct config_entry *entry = &c->entries[i];
		char place[512];

		config_place_print(config_place_of(c, i), place, sizeof(place));
		rc = json_object_set_new(all, config_key_at(i)->param.name,
				json_pack("{s:s?, s:s, s:s}", "value", entry->value.text, "origin",
						origin_names[entry->origin], "place", place));
	}
	if (rc == 0)
		rc = json_dumpf(all, out, JSON_INDENT(2));
	json_decref(all);
	fputc('\n', out);
	return rc == 0;
}

bool config_print(const struct config *c, FILE *out, bool json)
{
	if (json)
		return print_json(c, out);
	fprintf(out, "%-70s %-24s %s\n", "key", "value", "from");
	for (uint32_t i = 0; i < c->count; i++) {
		const struct config_entry *entry = &c->entries[i];
		char place[512];

		config_place_print(config_place_of(c, i), place, sizeof(place));
		fprintf(out, "%-70s %-24s %s\n", config_key_at(i)->param.name,
				entry->value.text == NULL ? "(not set)" : entry->value.text, place);
	}
	return true;
}

static const char *expected_of(const struct weir_param *param)
{
	return param->choices != NULL ? param->choices : type_names[param->type];
}

static bool print_keys_json(FILE *out)
{
	json_t *all = json_object();
	int rc = all == NULL ? -1 : 0;

	for (uint32_t i = 0; i < config_keys_count() && rc == 0; i++) {
		const struct config_key *key = config_key_at(i);

		rc = json_object_set_new(all, key->param.name,
				json_pack("{s:s, s:s, s:s?, s:s, s:b, s:s?}", "help",
						key->param.help, "expected",
						expected_of(&key->param), "preset",
						key->param.preset, "of",
						config_key_is_of_job(i) ? "job" : "process",
						"any_value", key->supported == NULL, "old_names",
						key->old_names));
	}
	if (rc == 0)
		rc = json_dumpf(all, out, JSON_INDENT(2));
	json_decref(all);
	fputc('\n', out);
	return rc == 0;
}

bool config_print_keys(FILE *out, bool json)
{
	if (json)
		return print_keys_json(out);
	for (uint32_t i = 0; i < config_keys_count(); i++) {
		const struct config_key *key = config_key_at(i);
		const struct weir_param *param = &key->param;

		fprintf(out, "%s\n    %s\n    %s", param->name, param->help, expected_of(param));
		if (param->preset == NULL)
			fprintf(out, ", not set");
		else
			fprintf(out, ", preset \"%s\"", param->preset);
		fprintf(out, ", %s", config_key_is_of_job(i) ? "of a job" : "of a process");
		if (key->supported != NULL)
			fprintf(out, " (other values are not supported yet)");
		if (key->old_names != NULL)
			fprintf(out, ", also %s", key->old_names);
		fprintf(out, "\n");
	}
	return true;
}
