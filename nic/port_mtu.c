#include "nic/port_mtu.h"

#include <errno.h>
#include <net/if.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/channel/transport.h"
#include "nic/port_driver.h"
#include "nic/received.h"

enum {
	ETHERNET_BYTES = 14,
	MTU_MAX = FRAME_BYTES_MAX - ETHERNET_BYTES,
	PACKET_MTU_MAX = PACKET_BYTES_MAX - ETHERNET_BYTES, /* more would be cut */
	DRIVER_BYTES = 64, /* in front of a frame and behind it: tags, net_virtio's header */
	PACKET_FRAME_BYTES = 2048,  /* net_af_packet's framesz unless told otherwise */
	PACKET_FRAME_BYTES_MAX = 65000 - RTE_PKTMBUF_HEADROOM, /* of one mbuf */
	PACKET_HEADER_BYTES = 96,   /* the kernel's and the driver's in front of each frame */
	SLOT_BYTES = 2048,          /* net_memif's bsize unless told otherwise */
	SLOT_BYTES_MAX = 65000 - RTE_PKTMBUF_HEADROOM,
};

static int refuse(const struct port_config *config, uint32_t mtu, uint32_t most,
		char error[PORT_ERROR_BYTES])
{
	snprintf(error, PORT_ERROR_BYTES,
			"port %s: an MTU of %u is not between %d and %u; set %s", config->name,
			mtu, PORT_MTU_MIN, most,
			config->is_raw ? "that of its device" : "weir.link.mtu");
	return -EINVAL;
}

/* Of the interface that the port stands on; 0: none, or it does not say. */
static uint32_t interface_mtu(const struct rte_eth_dev_info *info, char name[IF_NAMESIZE])
{
	struct ifreq request = {0};
	uint32_t mtu = 0;

	if (info->if_index == 0 || if_indextoname(info->if_index, name) == NULL)
		return 0;
	int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (s < 0)
		return 0;
	memcpy(request.ifr_name, name, IF_NAMESIZE);
	if (ioctl(s, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0)
		mtu = (uint32_t)request.ifr_mtu;
	close(s);
	return mtu;
}

/* A number among the arguments of the device, such as "framesz=". */
static uint32_t argument(const struct rte_eth_dev_info *info, const char *key, uint32_t preset,
		uint32_t most)
{
	const struct rte_devargs *args = rte_dev_devargs(info->device);
	const char *at = args != NULL && args->args != NULL ? strstr(args->args, key) : NULL;
	unsigned long value = preset;

	if (at != NULL)
		value = strtoul(at + strlen(key), NULL, 10);
	return value <= most ? (uint32_t)value : most;
}

/* Larger frames net_af_packet drops without a word, and it says nothing of its framesz. */
static uint32_t packet_frame_bytes(const struct rte_eth_dev_info *info)
{
	return argument(info, "framesz=", PACKET_FRAME_BYTES, PACKET_FRAME_BYTES_MAX);
}

uint32_t port_mtu_slot_bytes(const struct rte_eth_dev_info *info)
{
	return port_driver_find(info->driver_name)->has_slot_size
			? argument(info, "bsize=", SLOT_BYTES, SLOT_BYTES_MAX)
			: 0;
}

uint32_t port_mtu_receive_bytes(uint32_t mtu, const struct rte_eth_dev_info *info)
{
	uint32_t room = mtu + ETHERNET_BYTES + DRIVER_BYTES;
	uint32_t packet = port_driver_find(info->driver_name)->has_frame_size
			? packet_frame_bytes(info)
			: 0;

	packet = RTE_MAX(packet, port_mtu_slot_bytes(info));
	return RTE_MAX(RTE_MAX(room, packet), info->min_rx_bufsize);
}

static uint32_t packet_room(const struct rte_eth_dev_info *info)
{
	uint32_t bytes = packet_frame_bytes(info);

	return bytes > PACKET_HEADER_BYTES + ETHERNET_BYTES
			? bytes - PACKET_HEADER_BYTES - ETHERNET_BYTES
			: 0;
}

static int check_interface(const struct port_config *config, uint32_t mtu,
		const struct rte_eth_dev_info *info, char error[PORT_ERROR_BYTES])
{
	char interface[IF_NAMESIZE];
	uint32_t most = interface_mtu(info, interface);

	if (most == 0 || mtu <= most)
		return 0;
	snprintf(error, PORT_ERROR_BYTES,
			"port %s: weir.link.mtu is %u, the MTU of interface %s is %u; ip link set "
			"dev %s mtu %u, or lower weir.link.mtu",
			config->name, mtu, interface, most, interface, mtu);
	return -EINVAL;
}

static int check_packet(const struct port_config *config, uint32_t mtu,
		const struct rte_eth_dev_info *info, char error[PORT_ERROR_BYTES])
{
	uint32_t most = packet_room(info);

	if (mtu <= most)
		return 0;
	snprintf(error, PORT_ERROR_BYTES,
			"port %s: with an MTU of %u its frames do not fit; give its --vdev "
			"framesz=12288,blocksz=12288, or an MTU of at most %u",
			config->name, mtu, most);
	return -EINVAL;
}

/* A frame that takes more than one slot net_memif writes past the last free one, onto frames that
 * nobody has read yet. */
static int check_slot(const struct port_config *config, uint32_t mtu,
		const struct rte_eth_dev_info *info, char error[PORT_ERROR_BYTES])
{
	uint32_t slot = port_mtu_slot_bytes(info);

	if (slot == 0 || mtu + ETHERNET_BYTES <= slot)
		return 0;
	snprintf(error, PORT_ERROR_BYTES,
			"port %s: with an MTU of %u its frames do not fit a slot of its ring; give "
			"its --vdev bsize=%u, at both ends, or an MTU of at most %u",
			config->name, mtu,
			RTE_ALIGN_CEIL(mtu + ETHERNET_BYTES, PORT_SLOT_STEP_BYTES),
			slot > ETHERNET_BYTES ? slot - ETHERNET_BYTES : 0);
	return -EINVAL;
}

int port_mtu_choose(uint32_t *mtu, const struct port_config *config, uint16_t port_id,
		const struct rte_eth_dev_info *info, char error[PORT_ERROR_BYTES])
{
	const struct port_driver *driver = port_driver_find(info->driver_name);
	char interface[IF_NAMESIZE];
	uint16_t own;

	if (rte_eth_dev_get_mtu(port_id, &own) != 0)
		own = RTE_ETHER_MTU;
	*mtu = config->mtu;
	if (config->mtu == 0) {
		uint32_t most = interface_mtu(info, interface);

		*mtu = most > 0 && most < own ? most : own;
	}
	uint32_t most = config->is_raw ? (uint32_t)PACKET_MTU_MAX : (uint32_t)MTU_MAX;
	if (*mtu < PORT_MTU_MIN || *mtu > most)
		return refuse(config, *mtu, most, error);
	if (check_interface(config, *mtu, info, error) != 0 ||
			check_slot(config, *mtu, info, error) != 0 ||
			(driver->has_frame_size &&
					check_packet(config, *mtu, info, error) != 0))
		return -EINVAL;
	uint32_t frame = *mtu + ETHERNET_BYTES + RTE_ETHER_CRC_LEN;
	/* net_virtio_user says what a cable would take, and carries what its buffers hold. */
	bool has_limit = !driver->copies && !driver->is_memory;
	if (has_limit && (*mtu > info->max_mtu || frame > info->max_rx_pktlen))
		return refuse(config, *mtu, RTE_MIN((uint32_t)info->max_mtu,
				info->max_rx_pktlen - ETHERNET_BYTES - RTE_ETHER_CRC_LEN), error);
	return 0;
}
