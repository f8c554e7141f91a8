#include "control/restore/newer_output.h"

#include "dataplane/operator/file_sink_parts.h"

#include <dirent.h>
#include <stdio.h>

bool newer_output_find(const char *directory, const char *uid, int64_t id,
		char name[NEWER_OUTPUT_NAME_BYTES])
{
	DIR *d = opendir(directory);
	bool has_found = false;
	struct dirent *e;

	while (d != NULL && !has_found && (e = readdir(d)) != NULL) {
		uint32_t subtask;
		int64_t part_id;

		has_found = part_name_parse(e->d_name, uid, &subtask, &part_id) && part_id > id;
		if (has_found)
			snprintf(name, NEWER_OUTPUT_NAME_BYTES, "%s", e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return has_found;
}
