#include "nic/probe.h"
#include "nic/probe_internal.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NETWORK_CLASS = 0x02, NAME_BYTES = 256 };

/* "0000:03:00.0" */
static bool is_address(const char *text, size_t size)
{
	static const char form[] = "xxxx:xx:xx.x";

	for (size_t i = 0; i < size; i++) {
		if (form[i] == '\0' || (form[i] == 'x' ? !isxdigit((unsigned char)text[i])
						       : text[i] != form[i]))
			return false;
	}
	return form[size] == '\0';
}

/* The last PCI address on a device's path: "/sys/devices/pci0000:00/0000:00:03.0/virtio2". */
static bool find_address(const char *path, char address[NAME_BYTES])
{
	bool found = false;

	for (const char *at = path; *at != '\0';) {
		size_t size = strcspn(at, "/");

		if (is_address(at, size)) {
			snprintf(address, NAME_BYTES, "%.*s", (int)size, at);
			found = true;
		}
		at += size;
		at += strspn(at, "/");
	}
	return found;
}

/* The network interfaces of the device at `address`; "" stands for those of no PCI device. */
static json_t *interfaces_of(const char *root, const char *address)
{
	json_t *names = json_array();
	char folder[PROBE_PATH_BYTES];

	snprintf(folder, sizeof(folder), "%s/sys/class/net", root);
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		char path[PROBE_PATH_BYTES], its_address[NAME_BYTES] = "";

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%.3000s/%s/device", folder, entry->d_name);
		char *device = realpath(path, NULL);
		if (device != NULL) {
			find_address(device, its_address);
			if (strcmp(its_address, address) == 0)
				json_array_append_new(names, json_string(entry->d_name));
		}
		free(device);
	}
	if (dir != NULL)
		closedir(dir);
	return names;
}

static json_t *text_or_null(bool is_there, const char *text)
{
	return is_there ? json_string(text) : json_null();
}

/* Others of its IOMMU group that the kernel drives: vfio gives out whole groups.  Bridges stay. */
static json_t *mates_of(const char *root, const char *address)
{
	enum { BRIDGE_CLASS = 0x06 };
	json_t *mates = json_array();
	char folder[PROBE_PATH_BYTES], driver[NAME_BYTES], class[32];

	snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices/%s/iommu_group/devices", root,
			address);
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		const char *name = entry->d_name;

		if (!is_address(name, strlen(name)) || strcmp(name, address) == 0 ||
				!probe_read_link(driver, sizeof(driver),
						"%s/sys/bus/pci/devices/%s/driver", root, name) ||
				strcmp(driver, "vfio-pci") == 0)
			continue;
		if (probe_read(class, sizeof(class), "%s/sys/bus/pci/devices/%s/class", root,
				    name) &&
				strtoul(class, NULL, 16) >> 16 == BRIDGE_CLASS)
			continue;
		json_array_append_new(mates, json_sprintf("%s (%s)", name, driver));
	}
	if (dir != NULL)
		closedir(dir);
	return mates;
}

/* Whether this user may open the group, also one without an IOMMU; null while vfio does not have
 * it. */
static json_t *vfio_access(const char *root, const char *group)
{
	static const char *const prefixes[] = {"", "noiommu-"};

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		char path[PROBE_PATH_BYTES];

		snprintf(path, sizeof(path), "%s/dev/vfio/%s%s", root, prefixes[i], group);
		if (access(path, F_OK) == 0)
			return json_boolean(access(path, R_OK | W_OK) == 0);
	}
	return json_null();
}

static json_t *describe(const char *root, const char *address, const json_t *pmds)
{
	char folder[PROBE_PATH_BYTES], driver[NAME_BYTES], group[NAME_BYTES];
	char vendor[32] = "", device[32] = "";

	snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices/%s", root, address);
	bool has_driver = probe_read_link(driver, sizeof(driver), "%s/driver", folder);
	bool has_group = probe_read_link(group, sizeof(group), "%s/iommu_group", folder);
	probe_read(vendor, sizeof(vendor), "%s/vendor", folder);
	probe_read(device, sizeof(device), "%s/device", folder);
	const char *pmd = probe_pmd_for(pmds, vendor, device);
	return json_pack("{s:s, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "pci", address,
			"vendor", vendor, "device", device, "driver",
			text_or_null(has_driver, driver), "node",
			(json_int_t)probe_read_number(-1, "%s/numa_node", folder), "iommu_group",
			text_or_null(has_group, group), "interfaces", interfaces_of(root, address),
			"pmd", text_or_null(pmd != NULL, pmd), "iommu_mates",
			mates_of(root, address), "vfio_open",
			has_group ? vfio_access(root, group) : json_null());
}

json_t *probe_nics(const char *root, const json_t *pmds)
{
	json_t *nics = json_array();
	char folder[PROBE_PATH_BYTES];
	struct dirent **entries;

	snprintf(folder, sizeof(folder), "%s/sys/bus/pci/devices", root);
	int count = scandir(folder, &entries, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		const char *address = entries[i]->d_name;
		char class[32];

		if (is_address(address, strlen(address)) &&
				probe_read(class, sizeof(class), "%s/%s/class", folder, address) &&
				strtoul(class, NULL, 16) >> 16 == NETWORK_CLASS)
			json_array_append_new(nics, describe(root, address, pmds));
		free(entries[i]);
	}
	if (count >= 0)
		free(entries);

	json_t *others = interfaces_of(root, "");
	if (json_array_size(others) > 0)
		json_array_append_new(nics,
				json_pack("{s:n, s:n, s:i, s:n, s:O}", "pci", "driver", "node", -1,
						"iommu_group", "interfaces", others));
	json_decref(others);
	return nics;
}

json_t *probe_interfaces(const char *root)
{
	enum { UP = 1 }; /* IFF_UP */
	json_t *interfaces = json_object();
	char folder[PROBE_PATH_BYTES];

	snprintf(folder, sizeof(folder), "%s/sys/class/net", root);
	DIR *dir = opendir(folder);
	for (struct dirent *entry; dir != NULL && (entry = readdir(dir)) != NULL;) {
		char flags[32] = "";

		if (entry->d_name[0] == '.' ||
				!probe_read(flags, sizeof(flags), "%s/%s/flags", folder,
						entry->d_name))
			continue;
		json_object_set_new(interfaces, entry->d_name,
				json_boolean((strtoul(flags, NULL, 16) & UP) != 0));
	}
	if (dir != NULL)
		closedir(dir);
	return interfaces;
}
