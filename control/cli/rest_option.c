#include "control/cli/rest_option.h"

#include "control/cli/cli_error.h"
#include "control/cli/exit_codes.h"
#include "control/config/config.h"
#include "dataplane/base/check.h"

#include <stdio.h>

#define PRESET "127.0.0.1:8081"

bool rest_option_take(struct rest_option *o, int option, const char *argument)
{
	if (option == REST_OPTION_REST)
		o->rest = argument;
	else if (option == REST_OPTION_CONFIG)
		o->config_path = argument;
	else
		return false;
	return true;
}

bool rest_option_is_given(const struct rest_option *o)
{
	return o->rest != NULL || o->config_path != NULL;
}

/* What the file does not say is as on this host. */
static int read_config(const char *path, struct rest_server *server, struct config_error *error)
{
	struct config *c = NULL;
	int rc = config_create(&c);

	if (rc != 0)
		return rc;
	rc = config_load_file(c, path, error);
	if (rc == 0) {
		if (config_origin_of(c, "rest.address") != CONFIG_PRESET)
			snprintf(server->host, sizeof(server->host), "%s",
					config_text(c, "rest.address"));
		server->port = (uint16_t)config_int(c, "rest.port");
	}
	config_destroy(c);
	return rc;
}

int rest_option_find(const struct rest_option *o, const char *command, bool is_json,
		struct rest_server *server)
{
	struct config_error error = {"out of memory"};

	CHECK(rest_server_parse(PRESET, server) == 0);
	if (o->rest != NULL && rest_server_parse(o->rest, server) != 0)
		return cli_usage(is_json, command,
				"--rest: expected HOST:PORT, such as " PRESET);
	if (o->rest != NULL || o->config_path == NULL ||
			read_config(o->config_path, server, &error) == 0)
		return -1;
	fprintf(stderr, "weir %s: %s\n", command, error.text);
	return cli_fail(is_json, WEIR_EXIT_CONFIG, error.text);
}
