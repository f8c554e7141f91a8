#include "nic/port_driver.h"

#include <string.h>

/* net_af_xdp fills its ring of 2048 whatever is asked for, holds as many that are sent, and as many
 * again while it receives.  net_vmxnet3 fills a ring for heads of frames and one for the rest of
 * them, though the first has room for all; where it finds no buffer to renew one, it takes none. */
static const struct port_driver drivers[] = {
		{.name = "net_memif",
				.is_memory = true,
				.copies = true,
				.has_slot_size = true,
				.pairs = true,
				.dials = true,
				.unmaps = true,
				.hears_peer = true},
		{.name = "net_af_packet",
				.copies = true,
				.spreads = true,
				.fills_all = true,
				.has_frame_size = true,
				.loses_unseen = true},
		{.name = "net_af_xdp", .rx_bufs = 3 * 2048},
		{.name = "net_vhost", .is_memory = true, .copies = true, .pairs = true},
		{.name = "net_pcap", .copies = true},
		{.name = "net_ring", .is_memory = true, .passes_on = true, .pairs = true},
		{.name = "net_tap", .copies = true, .spreads = true},
		{.name = "net_virtio_user",
				.is_memory = true,
				.pairs = true,
				.hears_peer = true},
		{.name = "net_vmxnet3", .has_second_ring = true},
};

static const struct port_driver card = {.name = "card"};
static const struct port_driver card_at_address = {.name = "card", .has_second_ring = true};

/* The driver itself, or a virtual device of it, which has a number. */
static bool is_of(const char *name, const struct port_driver *driver)
{
	size_t length = strlen(driver->name);

	return strncmp(name, driver->name, length) == 0 &&
	       name[length + strspn(name + length, "0123456789")] == '\0';
}

const struct port_driver *port_driver_find(const char *name)
{
	if (strchr(name, ':') != NULL)
		return &card_at_address;
	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++) {
		if (is_of(name, &drivers[i]))
			return &drivers[i];
	}
	return &card;
}
