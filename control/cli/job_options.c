#include "control/cli/job_options.h"

#include "control/cli/exit_codes.h"

#include <stdio.h>

bool job_options_take(struct job_options *o, int option, const char *argument)
{
	bool is_define = option == 'D';
	uint32_t *count = is_define ? &o->define_count : &o->set_count;

	if (option == JOB_OPTION_CONFIG) {
		o->config_path = argument;
		return true;
	}
	if (!is_define && option != JOB_OPTION_SET)
		return false;
	if (*count == JOB_OPTIONS_MAX) {
		fprintf(stderr, "too many %s options; expected at most %d\n",
				is_define ? "-D" : "--set", JOB_OPTIONS_MAX);
		return false;
	}
	(is_define ? o->defines : o->sets)[(*count)++] = argument;
	return true;
}

static int read_config(
		const struct job_options *o, struct config **config, struct config_error *error)
{
	int rc = config_create(config);

	if (rc != 0) {
		*config = NULL;
		snprintf(error->text, sizeof(error->text), "out of memory");
		return rc;
	}
	if (o->config_path != NULL)
		rc = config_load_file(*config, o->config_path, error);
	for (uint32_t i = 0; i < o->define_count && rc == 0; i++)
		rc = config_set_option(*config, o->defines[i], error);
	return rc;
}

static int finish(struct job_options *o, int rc, struct config **config,
		const struct config_error *error)
{
	if (rc == 0)
		return WEIR_EXIT_DONE;
	fprintf(stderr, "%s\n", error->text);
	snprintf(o->error, sizeof(o->error), "%s", error->text);
	config_destroy(*config);
	*config = NULL;
	return WEIR_EXIT_CONFIG;
}

int job_options_config(struct job_options *o, struct config **config)
{
	struct config_error error;
	int rc = read_config(o, config, &error);

	if (rc == 0)
		rc = config_check(*config, &error);
	return finish(o, rc, config, &error);
}

int job_options_job(struct job_options *o, const char *path, struct config **config,
		struct job_spec **spec)
{
	struct config_error error;
	int rc = read_config(o, config, &error);

	if (rc == 0)
		rc = job_spec_load(spec, path, o->sets, o->set_count, *config, &error);
	return finish(o, rc, config, &error);
}
