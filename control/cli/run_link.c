#include "control/cli/run_link.h"

#include "dataplane/base/limits.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *const names[] = {
		[RUN_LINK_MEMIF] = "memif",
		[RUN_LINK_VHOST] = "vhost",
		[RUN_LINK_AF_PACKET] = "af_packet",
		[RUN_LINK_AF_XDP] = "af_xdp",
		[RUN_LINK_PCI] = "pci",
};

enum {
	KINDS_COUNT = sizeof(names) / sizeof(names[0]),
	MEMIF_SLOT_BYTES = 2048, /* as it is */
	JUMBO_SLOT_BYTES = 9216,
	SLOT_STEP_BYTES = 1024,
	ETHERNET_BYTES = 14,
	USUAL_MTU = 1500,
	LARGE_DESCRIPTORS = 128, /* few: what the rings hold is to stay in the cache */
	VIRTIO_DESCRIPTORS = 1024,
};

static bool is_between_two(const struct run_link *l)
{
	return l->kind == RUN_LINK_MEMIF || l->kind == RUN_LINK_VHOST;
}

static bool is_interface(const char *name)
{
	size_t length = strlen(name);

	if (length == 0 || length >= RUN_LINK_NAME_BYTES)
		return false;
	for (size_t i = 0; i < length; i++) {
		if (!isgraph((unsigned char)name[i]) || name[i] == '/')
			return false;
	}
	return true;
}

/* In full, as EAL names its port: 0000:03:00.0. */
static bool is_pci_address(const char *text)
{
	static const char form[] = "xxxx:xx:xx.x";

	if (strlen(text) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; i < sizeof(form) - 1; i++) {
		if (form[i] == 'x' ? !isxdigit((unsigned char)text[i]) : text[i] != form[i])
			return false;
	}
	return true;
}

static bool take_interfaces(struct run_link *l, const char *text)
{
	char list[RUN_LINK_TEXT_BYTES], *rest;

	if (strlen(text) >= sizeof(list))
		return false;
	snprintf(list, sizeof(list), "%s", text);
	for (char *name = strtok_r(list, ",", &rest); name != NULL;
			name = strtok_r(NULL, ",", &rest)) {
		if (!(l->kind == RUN_LINK_PCI ? is_pci_address(name) : is_interface(name)) ||
				l->interface_count == RUN_LINK_INTERFACES_MAX)
			return false;
		snprintf(l->interfaces[l->interface_count++], RUN_LINK_NAME_BYTES, "%s", name);
	}
	return true;
}

static bool check_counts(const struct run_link *l, uint32_t count, char error[RUN_LINK_TEXT_BYTES])
{
	const char *name = names[l->kind];

	if (is_between_two(l)) {
		snprintf(error, RUN_LINK_TEXT_BYTES,
				"--link %s joins two: give --taskmanagers 2; af_packet or af_xdp "
				"over a bridge join more",
				name);
		return count == 2 && l->interface_count == 0;
	}
	snprintf(error, RUN_LINK_TEXT_BYTES,
			"--link %s: name a %s for each of %u TaskManagers (at least 2), such as "
			"%s:%s",
			name, l->kind == RUN_LINK_PCI ? "NIC" : "network interface", count, name,
			l->kind == RUN_LINK_PCI ? "0000:03:00.0,0000:03:00.1" : "veth0,veth1");
	return count >= 2 && count == l->interface_count;
}

bool run_link_parse(struct run_link *l, const char *text, uint32_t taskmanager_count,
		char error[RUN_LINK_TEXT_BYTES])
{
	size_t length = strcspn(text, ":");

	*l = (struct run_link){0};
	for (uint32_t k = RUN_LINK_MEMIF; k < KINDS_COUNT; k++) {
		if (strlen(names[k]) == length && strncmp(names[k], text, length) == 0)
			l->kind = (enum run_link_kind)k;
	}
	if (l->kind == RUN_LINK_NONE) {
		snprintf(error, RUN_LINK_TEXT_BYTES,
				"--link: expected memif, vhost, af_packet:IF,IF..., "
				"af_xdp:IF,IF..., or pci:ADDRESS,ADDRESS...; for other ports start "
				"weir-taskmanager with weir.link.port");
		return false;
	}
	if (text[length] == ':' && !take_interfaces(l, text + length + 1)) {
		snprintf(error, RUN_LINK_TEXT_BYTES,
				"--link: expected at most %d %s after the colon, with commas "
				"between",
				RUN_LINK_INTERFACES_MAX,
				l->kind == RUN_LINK_PCI ? "PCI addresses such as 0000:03:00.0"
							: "names of network interfaces");
		return false;
	}
	return check_counts(l, taskmanager_count, error);
}

struct run_link_frames run_link_frames(const struct run_link *l, uint32_t buf_bytes)
{
	uint32_t mtu = buf_bytes + LINK_HEADERS_BYTES_MAX;
	bool is_large = mtu + ETHERNET_BYTES > JUMBO_SLOT_BYTES;

	if (!is_between_two(l) || mtu <= USUAL_MTU)
		return (struct run_link_frames){0};
	return (struct run_link_frames){
			.mtu = mtu, .descriptors = is_large ? LARGE_DESCRIPTORS : 0};
}

/* vhost-user needs a path. */
static void print_socket(int run, char path[64])
{
	snprintf(path, 64, "/tmp/weir-%d-vhost.sock", run);
}

/* A slot of a memif's ring holds a frame, and the ring a power of two of them. */
static void print_ring(struct run_link_frames frames, char text[48])
{
	uint32_t frame = frames.mtu + ETHERNET_BYTES;
	int at = 0;

	text[0] = '\0';
	if (frame > JUMBO_SLOT_BYTES)
		at = snprintf(text, 48, ",bsize=%u",
				(frame + SLOT_STEP_BYTES - 1) / SLOT_STEP_BYTES * SLOT_STEP_BYTES);
	else if (frame > MEMIF_SLOT_BYTES)
		at = snprintf(text, 48, ",bsize=%u", (uint32_t)JUMBO_SLOT_BYTES);
	if (frames.descriptors > 0)
		snprintf(text + at, 48 - (size_t)at, ",rsize=%d",
				__builtin_ctz(frames.descriptors));
}

/* 0 is the preset of both. */
static void print_frames(struct run_link_frames frames, struct run_link_words *w)
{
	w->mtu[0] = '\0';
	w->descriptors[0] = '\0';
	if (frames.mtu > 0)
		snprintf(w->mtu, sizeof(w->mtu), "weir.link.mtu=%u", frames.mtu);
	if (frames.descriptors > 0)
		snprintf(w->descriptors, sizeof(w->descriptors), "weir.link.descriptors=%u",
				frames.descriptors);
}

/* The peer of a virtio-user device maps its memory, and takes no more than eight files of it.
 * Whoever of two is started again finds the other: the second dials a memif, and it dials a
 * virtio-user device that listens. */
void run_link_words(const struct run_link *l, uint32_t index, int run,
		struct run_link_frames frames, struct run_link_words *w)
{
	char device[16], arguments[160], path[64], ring[48];

	print_frames(frames, w);
	if (l->kind == RUN_LINK_PCI) {
		snprintf(w->port, sizeof(w->port), "weir.link.port=%s", l->interfaces[index]);
		w->eal[0] = '\0';
		return;
	}
	snprintf(device, sizeof(device), "%s0", names[l->kind]);
	print_socket(run, path);
	print_ring(frames, ring);
	switch (l->kind) {
	case RUN_LINK_MEMIF:
		snprintf(arguments, sizeof(arguments), "role=%s,socket=weir-%d%s",
				index == 0 ? "server" : "client", run, ring);
		break;
	case RUN_LINK_VHOST:
		snprintf(device, sizeof(device), "%s", index == 0 ? "virtio_user0" : "vhost0");
		snprintf(arguments, sizeof(arguments),
				index == 0 ? "path=%s,server=1,queue_size=%u" : "iface=%s,client=1",
				path, frames.descriptors > 0 ? frames.descriptors
							     : (uint32_t)VIRTIO_DESCRIPTORS);
		break;
	case RUN_LINK_AF_PACKET:
		snprintf(arguments, sizeof(arguments), "iface=%s", l->interfaces[index]);
		break;
	case RUN_LINK_AF_XDP:
		snprintf(arguments, sizeof(arguments), "iface=%s,force_copy=1,busy_budget=0",
				l->interfaces[index]);
		break;
	case RUN_LINK_PCI:
	case RUN_LINK_NONE:
		break;
	}
	snprintf(w->port, sizeof(w->port), "weir.link.port=net_%s", device);
	snprintf(w->eal, sizeof(w->eal), "weir.eal.args=--vdev=net_%s,%s", device, arguments);
}

void run_link_sweep(const struct run_link *l, int run)
{
	char path[64];

	if (l->kind != RUN_LINK_VHOST)
		return;
	print_socket(run, path);
	(void)unlink(path);
}
