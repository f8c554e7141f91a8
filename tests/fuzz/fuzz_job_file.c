/* fuzz_job_file: any bytes as one line of a job file, or as the whole of it.  What is refused has
 * a message that begins with the place. */

#include "control/config/job_file.h"
#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
const char *__lsan_default_suppressions(void);

/* libfyaml 0.7.12 forgets a buffer of its own over some long quoted texts that it refuses. */
const char *__lsan_default_suppressions(void)
{
	return "leak:libfyaml.so";
}

static const char *const lines[] = {
		"name: fuzz\n",
		"config: {execution: {checkpointing: {interval: 1 s}}, weir.eal.args: [-n, 4]}\n",
		"vertices:\n",
		"  - uid: ingest\n",
		"    operators:\n",
		"      - {uid: source, type: generator}\n",
		"  - uid: counting\n",
		"    parallelism: 2\n",
		"    operators:\n",
		"      - {uid: count, type: keyed-count}\n",
		"      - {uid: sink, type: digest-sink}\n",
		"edges:\n",
		"  - {from: ingest, to: counting, partition: hash}\n",
};

enum { LINES_COUNT = sizeof(lines) / sizeof(lines[0]) };

/* The job with the line that the first byte names replaced by the other bytes. */
static size_t build(const uint8_t *data, size_t size, char *text)
{
	size_t used = 0, at = data[0] % (LINES_COUNT + 1);

	for (size_t i = 0; i < LINES_COUNT; i++) {
		size_t length = strlen(lines[i]);

		if (i == at) {
			memcpy(text + used, data + 1, size - 1);
			used += size - 1;
			text[used++] = '\n';
		} else if (at < LINES_COUNT) {
			memcpy(text + used, lines[i], length);
			used += length;
		}
	}
	if (at == LINES_COUNT) {
		memcpy(text, data + 1, size - 1);
		used = size - 1;
	}
	return used;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct config *config;
	struct config_error error;
	struct job_spec *spec;

	if (size == 0)
		return 0;
	char *text = malloc(size + 1024);
	struct job_source source = {.name = "f", .text = text, .plugin_dir = "/nowhere"};
	source.text_bytes = build(data, size, text);
	CHECK(config_create(&config) == 0);
	if (job_spec_parse(&spec, &source, config, &error) == 0)
		job_spec_destroy(spec);
	else
		CHECK(strncmp(error.text, "f:", 2) == 0);
	config_destroy(config);
	free(text);
	return 0;
}
