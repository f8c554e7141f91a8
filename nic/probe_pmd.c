#include "nic/probe.h"
#include "nic/probe_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A driver's shared object carries a text for each driver in it, which DPDK's build puts there for
 * dpdk-pmdinfo: PMD_INFO_STRING= {"name": "net_e1000_em", "pci_ids": [[32902, 4110, ...], ...]}
 */
static const char marker[] = "PMD_INFO_STRING= ";

static void take_texts(json_t *drivers, const char *image, size_t size)
{
	const char *end = image + size, *at = image;

	while ((at = memmem(at, (size_t)(end - at), marker, sizeof(marker) - 1)) != NULL) {
		at += sizeof(marker) - 1;
		const char *nul = memchr(at, '\0', (size_t)(end - at));
		if (nul == NULL)
			return;
		json_t *driver = json_loadb(at, (size_t)(nul - at), 0, NULL);
		const char *name = json_string_value(json_object_get(driver, "name"));

		if (name != NULL && strncmp(name, "net_", 4) == 0)
			json_array_append(drivers, driver);
		json_decref(driver);
		at = nul;
	}
}

static void read_object(json_t *drivers, const char *folder, const char *name)
{
	char path[PROBE_PATH_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		void *image = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

		if (image != MAP_FAILED) {
			take_texts(drivers, image, (size_t)st.st_size);
			munmap(image, (size_t)st.st_size);
		}
	}
	close(fd);
}

/* One of the names that lead to each object: librte_net_ring.so.23 and not librte_net_ring.so. */
static int is_object(const struct dirent *entry)
{
	const char *so = strstr(entry->d_name, ".so.");

	return strncmp(entry->d_name, "librte_", 7) == 0 && so != NULL &&
	       strchr(so + strlen(".so."), '.') == NULL;
}

json_t *probe_pmds(const char *folder)
{
	json_t *drivers = json_array();
	struct dirent **entries;
	int count = scandir(folder, &entries, is_object, alphasort);

	for (int i = 0; i < count; i++) {
		read_object(drivers, folder, entries[i]->d_name);
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);
	return drivers;
}

static bool is_for(const json_t *driver, unsigned long vendor, unsigned long device)
{
	const json_t *ids = json_object_get(driver, "pci_ids"), *id;
	size_t i;

	json_array_foreach(ids, i, id)
	{
		if (json_integer_value(json_array_get(id, 0)) == (json_int_t)vendor &&
				json_integer_value(json_array_get(id, 1)) == (json_int_t)device)
			return true;
	}
	return false;
}

const char *probe_pmd_for(const json_t *drivers, const char *vendor, const char *device)
{
	unsigned long v = strtoul(vendor, NULL, 16), d = strtoul(device, NULL, 16);
	const json_t *driver;
	size_t i;

	json_array_foreach(drivers, i, driver)
	{
		if (is_for(driver, v, d))
			return json_string_value(json_object_get(driver, "name"));
	}
	return NULL;
}

json_t *probe_pmd_names(const json_t *drivers)
{
	json_t *names = json_array();
	const json_t *driver;
	size_t i;

	json_array_foreach(drivers, i, driver)
			json_array_append(names, json_object_get(driver, "name"));
	return names;
}
