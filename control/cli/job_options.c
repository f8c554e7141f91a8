#include "control/cli/job_options.h"

#include "control/cli/exit_codes.h"

#include <stdio.h>

static bool take_text(const char **texts, uint32_t *count, const char *text, const char *name)
{
	if (*count == JOB_OPTIONS_MAX) {
		fprintf(stderr, "too many %s options; expected at most %d\n", name,
				JOB_OPTIONS_MAX);
		return false;
	}
	texts[(*count)++] = text;
	return true;
}

bool job_options_take(struct job_options *o, int option, const char *argument)
{
	switch (option) {
	case JOB_OPTION_CONFIG:
		o->config_path = argument;
		return true;
	case JOB_OPTION_RESTORE:
		o->restore = argument;
		return true;
	case JOB_OPTION_ALLOW_REWIND:
		o->must_allow_rewind = true;
		return true;
	case JOB_OPTION_SET:
		return take_text(o->sets, &o->set_count, argument, "--set");
	case 'n':
		argument = JOB_OPTION_NON_RESTORED;
		/* fallthrough */
	case 'D':
		return take_text(o->defines, &o->define_count, argument, "-D");
	default:
		return false;
	}
}

bool job_options_has_good_restore(const struct job_options *o)
{
	return o->restore == NULL || (o->restore[0] != '-' && o->restore[0] != '\0');
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
