#include "control/config/job_internal.h"
#include "dataplane/base/nearest.h"

#include <errno.h>
#include <string.h>

struct config_place job_set_place(void)
{
	return (struct config_place){.source = "--set option"};
}

static int take_apart(struct job_reader *r, const char *text, struct job_set *set)
{
	const char *dot = strchr(text, '.');
	const char *equals = strchr(text, '=');

	if (dot == NULL || equals == NULL || dot == text || equals <= dot + 1 ||
			dot - text >= UID_BYTES_MAX)
		return config_refuse(r->error, job_set_place(), NULL,
				"\"%.80s\"; expected UID.PARAM=VALUE", text);
	memcpy(set->uid, text, (size_t)(dot - text));
	set->param = job_print(r, "%.*s", (int)(equals - dot - 1), dot + 1);
	set->text = equals + 1;
	return set->param == NULL ? -ENOMEM : 0;
}

int job_read_sets(struct job_reader *r)
{
	const struct job_source *source = &r->spec->source;
	int rc = 0;

	r->sets = job_allocate(r, (source->set_count + 1) * sizeof(*r->sets));
	if (r->sets == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < source->set_count && rc == 0; i++)
		rc = take_apart(r, source->sets[i], &r->sets[i]);
	return rc;
}

static int refuse_uid(struct job_reader *r, const struct job_set *set)
{
	struct nearest near;

	nearest_begin(&near, set->uid);
	for (uint32_t v = 0; v < r->spec->vertex_count; v++) {
		const struct job_vertex *vertex = &r->spec->vertices[v];

		for (uint32_t i = 0; i < vertex->operator_count; i++)
			nearest_offer(&near, vertex->operators[i].uid);
	}
	const char *best = nearest_best(&near);
	if (best != NULL)
		return config_refuse(r->error, job_set_place(), NULL,
				"%s.%.80s: no operator has this uid; did you mean %s?", set->uid,
				set->param, best);
	return config_refuse(r->error, job_set_place(), NULL,
			"%s.%.80s: no operator has this uid; expected one of the job file",
			set->uid, set->param);
}

int job_check_sets(struct job_reader *r)
{
	for (uint32_t i = 0; i < r->spec->source.set_count; i++) {
		const struct job_set *set = &r->sets[i];
		uint32_t vertex;

		if (job_spec_find(r->spec, set->uid, NULL) != NULL)
			continue;
		if (strcmp(set->param, "parallelism") == 0 &&
				job_find_vertex(r->spec, set->uid, &vertex))
			continue;
		return refuse_uid(r, set);
	}
	return 0;
}

const char *job_find_set(const struct job_reader *r, const char *uid, const char *param)
{
	const char *text = NULL;

	for (uint32_t i = 0; i < r->spec->source.set_count; i++) {
		if (strcmp(r->sets[i].uid, uid) == 0 && strcmp(r->sets[i].param, param) == 0)
			text = r->sets[i].text;
	}
	return text;
}
