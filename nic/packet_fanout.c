#include "nic/packet_fanout.h"

#include <errno.h>
#include <linux/if_packet.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "dataplane/base/check.h"
#include "nic/in_front.h"

/* Numbers that are tried, far from each other: those of neighbours are near. */
enum { TRIES_MAX = 16, STEP = 0x1357, NUMBER_MASK = 0xffff };

void packet_fanout_look(void)
{
	CHECK(is_in_front("setsockopt", (void (*)(void))setsockopt));
}

static int set(int fd, int level, int name, const void *value, socklen_t size)
{
	return (int)syscall(SYS_setsockopt, fd, level, name, value, size);
}

/* The next sockets of the port come the same way, and so to the same group. */
static int join_another(int fd, const void *value)
{
	uint32_t wanted, number;
	int rc = -1;

	memcpy(&wanted, value, sizeof(wanted));
	number = wanted & NUMBER_MASK;
	for (int i = 0; i < TRIES_MAX && rc != 0 && errno == EINVAL; i++) {
		number = (number + STEP) & NUMBER_MASK;
		wanted = (wanted & ~(uint32_t)NUMBER_MASK) | number;
		rc = set(fd, SOL_PACKET, PACKET_FANOUT, &wanted, sizeof(wanted));
	}
	return rc;
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	int rc = set(fd, level, name, value, size);

	if (rc != 0 && errno == EINVAL && level == SOL_PACKET && name == PACKET_FANOUT &&
			size == sizeof(uint32_t))
		return join_another(fd, value);
	return rc;
}
