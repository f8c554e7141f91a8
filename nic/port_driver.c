#include "nic/port_driver.h"

#include <ctype.h>
#include <string.h>

/* net_af_xdp fills its ring of 2048 whatever is asked for, holds as many that are sent, and as many
 * again while it receives. */
static const struct port_driver drivers[] = {
		{.name = "net_memif",
				.copies = true,
				.has_slot_size = true,
				.pairs = true,
				.dials = true,
				.hears_peer = true},
		{.name = "net_af_packet",
				.copies = true,
				.spreads = true,
				.fills_all = true,
				.has_frame_size = true,
				.loses_unseen = true},
		{.name = "net_af_xdp", .rx_bufs = 3 * 2048},
		{.name = "net_vhost", .copies = true, .pairs = true},
		{.name = "net_pcap", .copies = true},
		{.name = "net_ring", .pairs = true},
		{.name = "net_tap", .copies = true, .spreads = true},
		{.name = "net_virtio_user", .pairs = true, .hears_peer = true},
};

static const struct port_driver card = {.name = "card"};

const struct port_driver *port_driver_find(const char *name)
{
	size_t length = strlen(name);

	while (length > 0 && isdigit((unsigned char)name[length - 1]))
		length--;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (strlen(drivers[i].name) == length &&
				strncmp(drivers[i].name, name, length) == 0)
			return &drivers[i];
	}
	return &card;
}
