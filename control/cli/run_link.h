#pragma once

/*
 * run_link: what joins the TaskManagers of `weir run --link`: the port that each is given.
 *
 * Place    control/cli; used by run_command and run_job.  Values only.
 * Thread   one.
 * Errors   false with one line.
 */

#include <stdbool.h>
#include <stdint.h>

enum {
	RUN_LINK_TEXT_BYTES = 256,
	RUN_LINK_INTERFACES_MAX = 16,
	RUN_LINK_NAME_BYTES = 16, /* of an interface, with its 0 */
	RUN_LINK_NUMBER_BYTES = 48,
};

enum run_link_kind {
	RUN_LINK_NONE,
	RUN_LINK_MEMIF,     /* shared memory of two */
	RUN_LINK_VHOST,     /* the same, by vhost-user and virtio-user */
	RUN_LINK_AF_PACKET, /* a network interface for each */
	RUN_LINK_AF_XDP,
	RUN_LINK_PCI, /* a NIC for each, which vfio-pci has */
};

struct run_link {
	enum run_link_kind kind;
	uint32_t interface_count;
	char interfaces[RUN_LINK_INTERFACES_MAX][RUN_LINK_NAME_BYTES];
};

/* Of "memif", "vhost", "af_packet:IF,IF...", "af_xdp:IF,IF...", "pci:ADDRESS,ADDRESS...";
 * `taskmanager_count`: how many are to be joined. */
bool run_link_parse(struct run_link *l, const char *text, uint32_t taskmanager_count,
		char error[RUN_LINK_TEXT_BYTES]);

/* Both ends' largest IP packet and how many frames a queue holds; 0: what the port has. */
struct run_link_frames {
	uint32_t mtu, descriptors;
};
/* Where memory is all that joins two: one buffer of `buf_bytes` each, and few of
 * them where they are larger than jumbo. */
struct run_link_frames run_link_frames(const struct run_link *l, uint32_t buf_bytes);

/* Config of TaskManager `index`, each KEY=VALUE, or empty for what is left as it is; `run`: the id
 * of the process that runs them. */
struct run_link_words {
	char port[RUN_LINK_TEXT_BYTES], eal[RUN_LINK_TEXT_BYTES];
	char mtu[RUN_LINK_NUMBER_BYTES], descriptors[RUN_LINK_NUMBER_BYTES];
};
void run_link_words(const struct run_link *l, uint32_t index, int run,
		struct run_link_frames frames, struct run_link_words *w);

/* Removes what ports of that run leave behind when they are killed; before the first TaskManager
 * starts, and at the end. */
void run_link_sweep(const struct run_link *l, int run);
