#include "nic/probe.h"

#include "nic/topology.h"

#include <stdio.h>
#include <sys/utsname.h>

json_t *probe_collect(const struct probe_config *config, const struct topology *t)
{
	const char *root = config->root;
	json_t *pmds = probe_pmds(config->pmd_folder);
	struct utsname kernel;

	uname(&kernel);
	json_t *facts = json_pack("{s:i, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
			"version", 1, "host", kernel.nodename, "kernel", kernel.release, "cores",
			probe_cores(root, t), "workers", probe_workers(t, config->cores), "memory",
			probe_memory(root), "hugepages", probe_hugepages(root), "io_uring",
			probe_io_uring(root), "nics", probe_nics(root, pmds), "pmds",
			probe_pmd_names(pmds), "interfaces", probe_interfaces(root), "capabilities",
			probe_capabilities(root));
	json_decref(pmds);
	return facts;
}

int probe_main(const struct probe_config *config, bool json)
{
	char error[TOPOLOGY_ERROR_BYTES];
	struct topology *t;

	if (topology_open(&t, error) != 0) {
		fprintf(stderr, "%s\n", error);
		return 3;
	}
	json_t *facts = probe_collect(config, t);
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
