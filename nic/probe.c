#include "nic/probe.h"

#include "nic/topology.h"

#include <stdio.h>
#include <sys/utsname.h>

json_t *probe_collect(const char *root, const struct topology *t)
{
	struct utsname kernel;

	uname(&kernel);
	return json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "version", 1, "host",
			kernel.nodename, "kernel", kernel.release, "cores", probe_cores(root, t),
			"memory", probe_memory(root), "hugepages", probe_hugepages(root),
			"io_uring", probe_io_uring(root), "nics", probe_nics(root));
}

int probe_main(bool json)
{
	char error[TOPOLOGY_ERROR_BYTES];
	struct topology *t;

	if (topology_open(&t, error) != 0) {
		fprintf(stderr, "%s\n", error);
		return 3;
	}
	json_t *facts = probe_collect("", t);
	topology_close(t);
	if (facts == NULL) {
		fprintf(stderr, "probe: out of memory\n");
		return 1;
	}
	int rc = json_dumpf(facts, stdout, json ? JSON_COMPACT : JSON_INDENT(2));
	fputc('\n', stdout);
	json_decref(facts);
	return rc == 0 ? 0 : 1;
}
