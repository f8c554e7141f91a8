/* What --link says, and what each TaskManager is told. */

#include "control/cli/run_link.h"

#include <criterion/criterion.h>
#include <string.h>

static struct run_link parsed(const char *text, uint32_t count)
{
	char error[RUN_LINK_TEXT_BYTES] = "";
	struct run_link l;

	cr_assert(run_link_parse(&l, text, count, error), "%s: %s", text, error);
	return l;
}

static void refused(const char *text, uint32_t count, const char *why)
{
	char error[RUN_LINK_TEXT_BYTES] = "";
	struct run_link l;

	cr_assert_not(run_link_parse(&l, text, count, error), "%s", text);
	cr_assert_not_null(strstr(error, why), "%s: %s", text, error);
}

Test(run_link, joins_two_by_shared_memory)
{
	struct run_link l = parsed("memif", 2);
	struct run_link_words w;

	run_link_words(&l, 0, 77, (struct run_link_frames){0}, &w);
	cr_assert_str_eq(w.port, "weir.link.port=net_memif0");
	cr_assert_str_eq(w.eal, "weir.eal.args=--vdev=net_memif0,role=server,socket=weir-77");
	run_link_words(&l, 1, 77, (struct run_link_frames){0}, &w);
	cr_assert_str_eq(w.eal, "weir.eal.args=--vdev=net_memif0,role=client,socket=weir-77");
}

Test(run_link, gives_a_memif_slots_that_hold_the_largest_frame)
{
	struct run_link l = parsed("memif", 2);
	struct run_link_words w;

	run_link_words(&l, 0, 77, (struct run_link_frames){.mtu = 2034}, &w);
	cr_assert_null(strstr(w.eal, "bsize"), "%s", w.eal);
	run_link_words(&l, 0, 77, (struct run_link_frames){.mtu = 2035}, &w);
	cr_assert_not_null(strstr(w.eal, ",bsize=9216"), "%s", w.eal);
	run_link_words(&l, 1, 77, (struct run_link_frames){.mtu = 9202}, &w);
	cr_assert_not_null(strstr(w.eal, ",bsize=9216"), "%s", w.eal);
	run_link_words(&l, 1, 77, (struct run_link_frames){.mtu = 33000}, &w);
	cr_assert_not_null(strstr(w.eal, ",bsize=33792"), "%s", w.eal);
}

Test(run_link, carries_a_buffer_in_one_frame_where_memory_joins_two)
{
	struct run_link memif = parsed("memif", 2), vhost = parsed("vhost", 2);
	struct run_link_frames frames = run_link_frames(&memif, 32768);
	struct run_link_words w;

	cr_assert_eq(frames.mtu, 32768 + 114);
	run_link_words(&memif, 1, 77, frames, &w);
	cr_assert_str_eq(w.mtu, "weir.link.mtu=32882");
	cr_assert_str_eq(w.descriptors, "weir.link.descriptors=128");
	cr_assert_not_null(strstr(w.eal, ",bsize=33792,rsize=7"), "%s", w.eal);
	run_link_words(&vhost, 0, 77, run_link_frames(&vhost, 57344), &w);
	cr_assert_str_eq(w.mtu, "weir.link.mtu=57458", "the largest that the key takes");
	cr_assert_not_null(strstr(w.eal, ",queue_size=128"), "%s", w.eal);
	run_link_words(&vhost, 0, 77, run_link_frames(&vhost, 4096), &w);
	cr_assert_str_eq(w.mtu, "weir.link.mtu=4210");
	cr_assert_str_eq(w.descriptors, "", "as many as ever of those");
	cr_assert_not_null(strstr(w.eal, ",queue_size=1024"), "%s", w.eal);
}

Test(run_link, leaves_the_frames_of_a_wire_and_of_small_buffers_as_they_are)
{
	struct run_link wire = parsed("af_packet:a,b", 2), memif = parsed("memif", 2);
	struct run_link_words w;

	cr_assert_eq(run_link_frames(&wire, 32768).mtu, 0);
	cr_assert_eq(run_link_frames(&memif, 1024).mtu, 0);
	run_link_words(&memif, 0, 77, run_link_frames(&memif, 1024), &w);
	cr_assert_str_eq(w.mtu, "");
	cr_assert_str_eq(w.descriptors, "");
}

Test(run_link, lets_a_vhost_dial_a_virtio_user)
{
	struct run_link l = parsed("vhost", 2);
	struct run_link_words w;

	run_link_words(&l, 0, 77, (struct run_link_frames){0}, &w);
	cr_assert_str_eq(w.port, "weir.link.port=net_virtio_user0");
	cr_assert_not_null(strstr(w.eal, "path=/tmp/weir-77-vhost.sock,server=1"), "%s", w.eal);
	run_link_words(&l, 1, 77, (struct run_link_frames){0}, &w);
	cr_assert_str_eq(w.port, "weir.link.port=net_vhost0");
	cr_assert_not_null(strstr(w.eal, "iface=/tmp/weir-77-vhost.sock,client=1"), "%s", w.eal);
}

Test(run_link, gives_each_an_interface)
{
	struct run_link l = parsed("af_packet:eth1,eth2,eth3", 3);
	struct run_link_words w;

	run_link_words(&l, 2, 77, (struct run_link_frames){0}, &w);
	cr_assert_str_eq(w.port, "weir.link.port=net_af_packet0");
	cr_assert_str_eq(w.eal, "weir.eal.args=--vdev=net_af_packet0,iface=eth3");
	l = parsed("af_xdp:a,b", 2);
	run_link_words(&l, 0, 77, (struct run_link_frames){0}, &w);
	cr_assert_not_null(strstr(w.eal, "net_af_xdp0,iface=a,"), "%s", w.eal);
}

Test(run_link, gives_each_a_nic_and_leaves_the_words_for_eal_alone)
{
	struct run_link l = parsed("pci:0000:03:00.0,0000:03:00.1", 2);
	struct run_link_words w;

	run_link_words(&l, 1, 77, (struct run_link_frames){0}, &w);
	cr_assert_str_eq(w.port, "weir.link.port=0000:03:00.1");
	cr_assert_str_eq(w.eal, "");
}

Test(run_link, refuses_what_is_no_pci_address_in_full)
{
	refused("pci", 2, "pci:0000:03:00.0,0000:03:00.1");
	refused("pci:0000:03:00.0", 2, "a NIC for each of 2 TaskManagers");
	refused("pci:03:00.0,03:00.1", 2, "PCI addresses such as 0000:03:00.0");
	refused("pci:eth0,eth1", 2, "PCI addresses");
	refused("pci:0000:03:00.0,0000-03:00.1", 2, "PCI addresses");
}

Test(run_link, refuses_what_cannot_be_joined)
{
	refused("memif", 1, "joins two: give --taskmanagers 2");
	refused("memif", 3, "af_packet or af_xdp over a bridge join more");
	refused("vhost", 3, "joins two");
	refused("memif:eth0,eth1", 2, "joins two");
	refused("af_packet", 2, "af_packet:veth0,veth1");
	refused("af_packet:eth0", 2, "each of 2 TaskManagers");
	refused("af_packet:eth0", 1, "at least 2");
	refused("af_packet:eth0,eth1", 3, "each of 3 TaskManagers");
	refused("af_packet:eth0,et/1", 2, "names of network interfaces");
	refused("af_packet:eth0,an-interface-far-too-long", 2, "names of network interfaces");
	refused("memifs", 2, "expected memif, vhost");
	refused("", 2, "expected memif, vhost");
}
