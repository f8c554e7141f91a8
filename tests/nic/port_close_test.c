/* Both ends of a memif close at about the same time, over and over. */

#include "nic/eal.h"
#include "nic/port.h"
#include "tests/support/eal_fixture.h"

#include <criterion/criterion.h>
#include <rte_dev.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 200, UP_TRIES = 100000, GAP_US_MAX = 300 };

static struct port *plug(const char *directory, int round, const char *role)
{
	char name[32], args[256], error[PORT_ERROR_BYTES];
	struct port *p = NULL;

	snprintf(name, sizeof(name), "net_memif%d%d", round, role[0] == 's');
	snprintf(args, sizeof(args), "role=%s,socket-abstract=no,socket=%s/%d.sock", role,
			directory, round);
	cr_assert_eq(rte_eal_hotplug_add("vdev", name, args), 0);
	struct port_config config = {.name = name, .rx_descriptors = 64, .tx_descriptors = 64,
			.worker_count = 1, .udp_port = 6125};
	cr_assert_eq(port_create(&p, &config, error), 0, "%s", error);
	return p;
}

static void close_both(const char *directory, int round)
{
	char path[128];
	struct port *server = plug(directory, round, "server");
	struct port *client = plug(directory, round, "client");

	for (int i = 0; i < UP_TRIES && !(port_is_up(server) && port_is_up(client)); i++)
		usleep(100);
	cr_assert(port_is_up(server) && port_is_up(client));
	port_destroy(round % 2 == 0 ? client : server);
	usleep((useconds_t)(round * 7 % GAP_US_MAX));
	port_destroy(round % 2 == 0 ? server : client);
	snprintf(path, sizeof(path), "%s/%d.sock", directory, round);
	(void)unlink(path);
}

/* The driver hears of its peer on a thread of its own, which takes away what the other thread that
 * closes the port is reading
 * unless both are the same. */
Test(port_close, is_safe_while_the_peer_goes_too)
{
	char directory[] = "/tmp/weir-port-XXXXXX";

	cr_assert_not_null(mkdtemp(directory));
	eal_fixture_start("0", 128 << 20, NULL, 0);
	for (int round = 0; round < ROUNDS; round++)
		close_both(directory, round);
	eal_stop();
	rmdir(directory);
}
