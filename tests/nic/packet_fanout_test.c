/* Ports at interfaces of one network namespace whose groups would have the same number. */

#include "nic/packet_fanout.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { NUMBER = 0x4711, AS_OF_DPDK = (PACKET_FANOUT_HASH | PACKET_FANOUT_FLAG_ROLLOVER) << 16 };

/* At the loopback interface; -1: this user may not. */
static int open_socket(void)
{
	struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
			.sll_ifindex = (int)if_nametoindex("lo")};
	int fd = socket(AF_PACKET, SOCK_RAW, 0);

	if (fd >= 0)
		cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	return fd;
}

static int join(int fd, int group)
{
	return setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, sizeof(group));
}

static int group_of(int fd)
{
	socklen_t size = sizeof(int);
	int group = 0;

	cr_assert_eq(getsockopt(fd, SOL_PACKET, PACKET_FANOUT, &group, &size), 0);
	return group & 0xffff;
}

/* Of another kind, or at another interface: to the kernel it is the same. */
Test(packet_fanout, takes_another_group_when_somebody_has_that_number)
{
	int other = open_socket();

	if (other < 0)
		cr_skip_test("packet sockets need CAP_NET_RAW");
	packet_fanout_look();
	cr_assert_eq(join(other, PACKET_FANOUT_LB << 16 | NUMBER), 0);
	int queues[2] = {open_socket(), open_socket()};
	for (int q = 0; q < 2; q++)
		cr_assert_eq(join(queues[q], AS_OF_DPDK | NUMBER), 0, "%s", strerror(errno));
	cr_expect_neq(group_of(queues[0]), NUMBER);
	cr_expect_eq(group_of(queues[1]), group_of(queues[0]), "queues of one port share it");
	for (int q = 0; q < 2; q++)
		close(queues[q]);
	close(other);
}

Test(packet_fanout, leaves_all_else_as_it_is)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	cr_assert_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	cr_assert_eq(setsockopt(fd, SOL_PACKET, PACKET_FANOUT, &one, sizeof(one)), -1);
	cr_assert_eq(errno, ENOPROTOOPT);
	cr_assert_eq(setsockopt(-1, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), -1);
	cr_assert_eq(errno, EBADF);
	close(fd);
}
