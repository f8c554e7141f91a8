#include "control/cli/host_probe.h"

#include "control/cli/sibling.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { PROBE_TIMEOUT_MS = 20000, CORES_BYTES = 1024 };

json_t *host_probe(const struct config *config)
{
	char path[PATH_MAX], cores[CORES_BYTES];
	char *argv[] = {path, (char *)(uintptr_t) "--probe", (char *)(uintptr_t) "--json",
			(char *)(uintptr_t) "-D", cores, NULL};
	char *text;
	int status = 0;
	int rc = sibling_path("weir-taskmanager", path, sizeof(path));

	if (rc != 0) {
		fprintf(stderr, "weir: weir-taskmanager is not beside weir: %s\n", strerror(-rc));
		return NULL;
	}
	snprintf(cores, sizeof(cores), "weir.cores=%s", config_text(config, "weir.cores"));
	rc = sibling_capture(argv, PROBE_TIMEOUT_MS, &text, &status);
	if (rc != 0) {
		fprintf(stderr, "weir: %s: %s\n", path, strerror(-rc));
		return NULL;
	}
	json_error_t error = {0};
	json_t *facts = WIFEXITED(status) && WEXITSTATUS(status) == 0 ? json_loads(text, 0, &error)
								      : NULL;
	free(text);
	if (facts == NULL)
		fprintf(stderr, "weir: %s --probe --json failed: %s\n", path,
				error.text[0] != '\0' ? error.text : "it ended with an error");
	return facts;
}
