#include "control/cli/doctor_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

enum { NAMES_BYTES = 192, PORT_NAME_BYTES = 64, ARGS_BYTES = 512 };

/* "eth0 eth1", or `otherwise`. */
static void join(const json_t *list, const char *otherwise, char names[NAMES_BYTES])
{
	size_t i, used = 0;
	const json_t *name;

	snprintf(names, NAMES_BYTES, "%s", otherwise);
	json_array_foreach(list, i, name)
	{
		const char *word = json_string_value(name);

		if (used < NAMES_BYTES)
			used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s",
					used > 0 ? " " : "", word == NULL ? "?" : word);
	}
}

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; name != NULL && i < count; i++) {
		if (strcmp(name, names[i]) == 0)
			return true;
	}
	return false;
}

/* Drivers that hand a device to a process. */
static bool is_for_users(const char *driver)
{
	static const char *const names[] = {"vfio-pci", "igb_uio", "uio_pci_generic"};

	return is_one_of(driver, names, sizeof(names) / sizeof(names[0]));
}

/* Drivers beside which DPDK's works. */
static bool is_bifurcated(const char *driver)
{
	static const char *const names[] = {"mlx4_core", "mlx5_core", "mana"};

	return is_one_of(driver, names, sizeof(names) / sizeof(names[0]));
}

bool doctor_is_same_address(const char *address, const char *port)
{
	static const char domain[] = "0000:";

	return strcmp(address, port) == 0 ||
	       (strncmp(address, domain, sizeof(domain) - 1) == 0 &&
			       strcmp(address + sizeof(domain) - 1, port) == 0);
}

/* Why DPDK cannot have the NIC yet, and the next step; the first cause in the order in which they
 * are met. */
static void judge_wanted(const json_t *nic, const char *address, struct doctor_row *row)
{
	const char *driver = doctor_text(nic, "driver", NULL);
	const char *group = doctor_text(nic, "iommu_group", NULL);
	const json_t *mates = json_object_get(nic, "iommu_mates");
	char names[NAMES_BYTES];

	row->state = DOCTOR_FAIL;
	join(mates, "", names);
	if (doctor_text(nic, "pmd", NULL) == NULL)
		SAY(row->fix,
				"DPDK has no driver for device %s:%s here: install the librte-net "
				"package of its vendor, or name another port",
				doctor_text(nic, "vendor", "?"), doctor_text(nic, "device", "?"));
	else if (is_bifurcated(driver))
		row->state = DOCTOR_OK;
	else if (!is_for_users(driver) && group == NULL)
		SAY(row->fix,
				"there is no IOMMU: boot with intel_iommu=on or amd_iommu=on, then "
				"sudo scripts/host-setup --bind %s; or add --no-iommu, and the NIC "
				"can "
				"write to all of memory",
				address);
	else if (json_array_size(mates) > 0)
		SAY(row->fix,
				"its IOMMU group is the kernel's too: hand %s over with it: sudo "
				"scripts/host-setup --bind %s --bind ...",
				names, address);
	else if (!is_for_users(driver))
		SAY(row->fix, "sudo scripts/host-setup --bind %s (its interface goes away)",
				address);
	else if (json_is_false(json_object_get(nic, "vfio_open")))
		SAY(row->fix,
				"this user may not open it: sudo chown $USER /dev/vfio/%s, or run "
				"as "
				"root",
				group == NULL ? "*" : group);
	else
		row->state = DOCTOR_OK;
}

/* The ports that the config names: weir.link.port and weir.nic.ports. */
struct wanted {
	uint32_t count;
	const char *names[1 + CONFIG_LIST_MAX];
	struct config_list packets; /* the texts */
};

static void find_wanted(const struct config *config, struct wanted *w)
{
	const char *link = config_text(config, "weir.link.port");

	w->count = 0;
	if (link[0] != '\0')
		w->names[w->count++] = link;
	config_list(config, "weir.nic.ports", &w->packets);
	for (uint32_t i = 0; i < w->packets.count; i++)
		w->names[w->count++] = w->packets.items[i];
}

static bool is_wanted(const struct wanted *w, const char *address)
{
	for (uint32_t i = 0; i < w->count; i++) {
		if (doctor_is_same_address(address, w->names[i]))
			return true;
	}
	return false;
}

static void judge_nic(const json_t *nic, const struct wanted *w, struct doctor_report *report)
{
	const char *address = doctor_text(nic, "pci", NULL);
	const char *driver = doctor_text(nic, "driver", NULL);
	const char *pmd = doctor_text(nic, "pmd", NULL);
	const json_t *interfaces = json_object_get(nic, "interfaces");
	struct doctor_row *row = doctor_add(
			report, DOCTOR_OK, "NIC %s", address == NULL ? "without PCI" : address);
	char names[NAMES_BYTES];

	join(interfaces, "none", names);
	SAY(row->is, "driver %s, interface %.100s, node %" PRId64 ", IOMMU group %s, DPDK's %s",
			driver == NULL ? "none" : driver, names, doctor_integer(nic, "node"),
			doctor_text(nic, "iommu_group", "none"), pmd == NULL ? "none" : pmd);
	if (address != NULL && is_wanted(w, address)) {
		SAY(row->needed,
				"vfio-pci, or a driver that shares it (mlx5): the config names it");
		judge_wanted(nic, address, row);
		return;
	}
	SAY(row->needed, "nothing: neither weir.link.port nor weir.nic.ports names it");
	if (address != NULL && pmd != NULL && !is_for_users(driver) && !is_bifurcated(driver))
		SAY(row->fix, "to hand it to DPDK: sudo scripts/host-setup --bind %s%s", address,
				json_array_size(interfaces) == 0
						? ""
						: " (its interface goes away, and what runs over "
						  "it)");
}

static bool has_text(const json_t *list, const char *text)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item)
	{
		const char *word = json_string_value(item);

		if (word != NULL && strcmp(word, text) == 0)
			return true;
	}
	return false;
}

/* What --vdev says of the port: "iface=eth1,qpairs=2"; false: nothing makes it. */
static bool find_vdev(const struct config *config, const char *port, char args[ARGS_BYTES])
{
	struct config_list words;
	size_t length = strlen(port);

	config_list(config, "weir.eal.args", &words);
	for (uint32_t i = 0; i < words.count; i++) {
		const char *name = words.items[i];

		if (strncmp(name, "--vdev=", strlen("--vdev=")) != 0)
			continue;
		name += strlen("--vdev=");
		if (strncmp(name, port, length) != 0 ||
				(name[length] != ',' && name[length] != '\0'))
			continue;
		snprintf(args, ARGS_BYTES, "%s", name + length + (name[length] == ','));
		return true;
	}
	return false;
}

/* The value of iface=; false: it is not among them. */
static bool find_interface(const char *args, char name[PORT_NAME_BYTES])
{
	static const char key[] = "iface=";

	for (const char *at = args; *at != '\0'; at += strspn(at, ",")) {
		size_t length = strcspn(at, ",");

		if (strncmp(at, key, sizeof(key) - 1) == 0) {
			snprintf(name, PORT_NAME_BYTES, "%.*s",
					(int)(length - (sizeof(key) - 1)), at + sizeof(key) - 1);
			return true;
		}
		at += length;
	}
	return false;
}

/* "eth0 lo", or "none". */
static void join_keys(const json_t *object, char names[NAMES_BYTES])
{
	json_t *list = json_array();
	const char *name;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)object, name, value)
			json_array_append_new(list, json_string(name));
	join(list, "none", names);
	json_decref(list);
}

/* A driver that stands on an interface of the kernel. */
static void judge_interface(const json_t *facts, const char *args, struct doctor_row *row)
{
	const json_t *interfaces = json_object_get(facts, "interfaces");
	char name[PORT_NAME_BYTES], names[NAMES_BYTES];

	if (!json_is_object(interfaces))
		return;
	row->state = DOCTOR_FAIL;
	join_keys(interfaces, names);
	if (!find_interface(args, name))
		SAY(row->fix, "say which interface: --vdev=...,iface=NAME (there are: %s)", names);
	else if (json_object_get(interfaces, name) == NULL)
		SAY(row->fix, "there is no interface %s: correct iface= (there are: %s)", name,
				names);
	else if (json_is_false(json_object_get(interfaces, name)))
		SAY(row->fix, "%s is down, and nothing comes: sudo ip link set %s up", name, name);
	else
		row->state = DOCTOR_OK;
}

/* Virtual devices that ask something of the kernel. */
static const struct kernel_device {
	const char *driver;
	bool has_interface;
	const char *capability, *fix;
} kernel_devices[] = {
		{"net_af_packet", true, "net_raw",
				"this user may not: run weir as root, or sudo setcap "
				"cap_net_raw+ep on weir-taskmanager"},
		{"net_af_xdp", true, "net_admin", "this user may not: run weir as root"},
		{"net_tap", false, "net_admin", "this user may not: run weir as root"},
};

static void judge_kernel_device(
		const json_t *facts, const char *driver, const char *args, struct doctor_row *row)
{
	const json_t *capabilities = json_object_get(facts, "capabilities");

	for (size_t i = 0; i < sizeof(kernel_devices) / sizeof(kernel_devices[0]); i++) {
		const struct kernel_device *d = &kernel_devices[i];

		if (strcmp(d->driver, driver) != 0)
			continue;
		if (json_is_false(json_object_get(capabilities, d->capability))) {
			row->state = DOCTOR_FAIL;
			SAY(row->fix, "%s", d->fix);
		} else if (d->has_interface) {
			judge_interface(facts, args, row);
		}
	}
}

/* A device of no bus: "net_memif0" is made by --vdev and driven by net_memif. */
static void judge_virtual(const json_t *facts, const struct config *config, const char *port,
		struct doctor_row *row)
{
	const json_t *pmds = json_object_get(facts, "pmds");
	char driver[PORT_NAME_BYTES], args[ARGS_BYTES];
	size_t length = strlen(port);

	while (length > 0 && isdigit((unsigned char)port[length - 1]))
		length--;
	snprintf(driver, sizeof(driver), "%.*s", (int)(length < 60 ? length : 60), port);
	SAY(row->is, "%.60s, a virtual device of %s", port, driver);
	SAY(row->needed, "that driver, and --vdev=%.60s,... in weir.eal.args", port);
	if (json_array_size(pmds) > 0 && !has_text(pmds, driver)) {
		row->state = DOCTOR_FAIL;
		SAY(row->fix,
				"DPDK has no driver %s here: correct the name, or install "
				"the "
				"librte-net package that has it",
				driver);
	} else if (!find_vdev(config, port, args)) {
		row->state = DOCTOR_FAIL;
		SAY(row->fix, "add --vdev=%.60s,... to weir.eal.args: nothing makes this device",
				port);
	} else {
		judge_kernel_device(facts, driver, args, row);
	}
}

static void judge_address(const json_t *nics, const char *port, struct doctor_row *row)
{
	const json_t *nic;
	size_t i;

	SAY(row->is, "%.60s, a PCI device", port);
	SAY(row->needed, "a NIC of that address, in DPDK's hands: its row below");
	json_array_foreach(nics, i, nic)
	{
		if (doctor_is_same_address(doctor_text(nic, "pci", ""), port))
			return;
	}
	row->state = DOCTOR_FAIL;
	SAY(row->fix, "no NIC has this address: name one of those below");
}

void doctor_judge_ports(
		const json_t *facts, const struct config *config, struct doctor_report *report)
{
	const json_t *nics = json_object_get(facts, "nics"), *nic;
	struct wanted w;
	size_t i;

	find_wanted(config, &w);
	for (uint32_t k = 0; k < w.count; k++) {
		struct doctor_row *row = doctor_add(report, DOCTOR_OK, "port %.50s", w.names[k]);

		if (strchr(w.names[k], ':') != NULL)
			judge_address(nics, w.names[k], row);
		else
			judge_virtual(facts, config, w.names[k], row);
	}
	json_array_foreach(nics, i, nic) judge_nic(nic, &w, report);
	if (json_array_size(nics) > 0)
		return;
	struct doctor_row *row = doctor_add(report, DOCTOR_OK, "NICs");
	SAY(row->is, "none");
	SAY(row->needed, "nothing: captures are read and links are made without");
}
