#include "dataplane/operator/packet/packet_parse.h"
#include "tests/support/frame_builder.h"

#include <criterion/criterion.h>
#include <pcap/dlt.h>
#include <stdlib.h>

static struct frame f; /* each test is a process of its own */
static struct packet packet;

/* On a heap copy of exact size, so that the sanitizer sees a byte read too far. */
static enum packet_reason parse_size(uint32_t link_type, uint32_t size)
{
	uint8_t *exact = malloc(size > 0 ? size : 1);

	cr_assert_not_null(exact);
	memcpy(exact, f.bytes, size);
	enum packet_reason reason = packet_parse(link_type, exact, size, &packet);
	free(exact);
	return reason;
}

static enum packet_reason parse(uint32_t link_type)
{
	return parse_size(link_type, f.size);
}

static void expect_ip4_udp(uint32_t link_type, const char *what)
{
	cr_assert_eq(parse(link_type), PACKET_IS_FLOW, "%s", what);
	cr_expect_eq(packet.key.ip_version, 4, "%s", what);
	cr_expect_eq(memcmp(packet.key.source, "\x0a\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0", 16), 0);
	cr_expect_eq(memcmp(packet.key.destination, "\x0a\0\0\2\0\0\0\0\0\0\0\0\0\0\0\0", 16), 0);
	cr_expect_eq(packet.key.protocol, 17, "%s", what);
	cr_expect_eq(packet.key.source_port, 0x1234, "%s", what);
	cr_expect_eq(packet.key.destination_port, 53, "%s", what);
	f.size = 0;
}

static void expect_ip6(uint32_t link_type, uint8_t protocol, uint16_t source_port)
{
	cr_assert_eq(parse(link_type), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.ip_version, 6);
	cr_expect_eq(packet.key.source[0], 0x20);
	cr_expect_eq(packet.key.source[15], 1);
	cr_expect_eq(packet.key.destination[15], 2);
	cr_expect_eq(packet.key.protocol, protocol);
	cr_expect_eq(packet.key.source_port, source_port);
	f.size = 0;
}

static void expect_reason(uint32_t link_type, enum packet_reason reason)
{
	enum packet_reason found = parse(link_type);

	cr_expect_eq(found, reason, "found %d, expected %d", found, reason);
	f.size = 0;
}

/* ---- link types ------------------------------------------------------------------------------ */

Test(packet_parse, ethernet_carries_ip4_and_ip6)
{
	frame_ether(&f, 0x0800);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "plain");
	frame_ether(&f, 0x86dd);
	frame_ip6_udp(&f);
	expect_ip6(DLT_EN10MB, 17, 0x1234);
}

Test(packet_parse, ethernet_with_llc_carries_ip)
{
	frame_ether(&f, 8 + 32);
	frame_add(&f, "\xaa\xaa\x03\0\0\0\x08\0", 8);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "snap");
	frame_ether(&f, 3 + 32);
	frame_add(&f, "\x06\x06\x03", 3);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "llc");
	frame_ether(&f, 0x8870); /* of a jumbo frame */
	frame_add(&f, "\xaa\xaa\x03\0\0\0\x08\0", 8);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "snap without a length");
	frame_ether(&f, 38);
	frame_add(&f, "\x42\x42\x03\0\0\0\0\0", 8);
	frame_zeros(&f, 30);
	expect_reason(DLT_EN10MB, PACKET_NO_IP);
}

Test(packet_parse, linux_cooked_captures_carry_ip)
{
	frame_zeros(&f, 14);
	frame_u16(&f, 0x0800);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_LINUX_SLL, "v1");
	frame_u16(&f, 0x0800);
	frame_zeros(&f, 18);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_LINUX_SLL2, "v2");
	frame_zeros(&f, 14);
	frame_u16(&f, 0x8100);
	frame_u16(&f, 7);
	frame_u16(&f, 0x86dd);
	frame_ip6_udp(&f);
	expect_ip6(DLT_LINUX_SLL, 17, 0x1234);
	frame_zeros(&f, 14);
	frame_u16(&f, 0x000c); /* CAN */
	frame_zeros(&f, 16);
	expect_reason(DLT_LINUX_SLL, PACKET_NO_IP);
}

Test(packet_parse, raw_ip_is_told_apart_by_its_version)
{
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_RAW, "raw");
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_IPV4, "ipv4");
	frame_ip6_udp(&f);
	expect_ip6(DLT_RAW, 17, 0x1234);
	frame_ip6_udp(&f);
	expect_ip6(14, 17, 0x1234); /* OpenBSD's number of it */
	frame_ip6_udp(&f);
	expect_ip6(DLT_IPV6, 17, 0x1234);
	frame_ip4_udp(&f);
	expect_reason(DLT_IPV6, PACKET_MALFORMED_IP);
	frame_u8(&f, 0x50);
	frame_zeros(&f, 40);
	expect_reason(DLT_RAW, PACKET_NO_IP);
}

Test(packet_parse, bsd_loopback_may_have_either_byte_order)
{
	static const uint8_t ip6_families[] = {24, 28, 30};

	frame_u32(&f, 2);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_NULL, "big endian");
	frame_u32(&f, 0x02000000);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_NULL, "little endian");
	frame_u32(&f, 2);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_LOOP, "network order");
	frame_u32(&f, 0x02000000);
	frame_ip4_udp(&f);
	expect_reason(DLT_LOOP, PACKET_NO_IP);
	for (int i = 0; i < 3; i++) {
		frame_u32(&f, (uint32_t)ip6_families[i] << 24);
		frame_ip6_udp(&f);
		expect_ip6(DLT_NULL, 17, 0x1234);
		frame_u32(&f, ip6_families[i]);
		frame_ip6_udp(&f);
		expect_ip6(DLT_LOOP, 17, 0x1234);
	}
}

Test(packet_parse, bsd_loopback_may_be_ppp)
{
	frame_u32(&f, 0xff030021);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_NULL, "IPv4");
	frame_u32(&f, 0xff030057);
	frame_ip6_udp(&f);
	expect_ip6(DLT_NULL, 17, 0x1234);
	frame_u32(&f, 0xff03c021);
	frame_zeros(&f, 8);
	expect_reason(DLT_NULL, PACKET_NO_IP);
}

Test(packet_parse, ppp_may_have_address_and_control_and_a_short_protocol)
{
	static const uint32_t types[] = {DLT_PPP, DLT_PPP_SERIAL};

	for (int i = 0; i < 2; i++) {
		frame_u32(&f, 0xff030021);
		frame_ip4_udp(&f);
		expect_ip4_udp(types[i], "address, control, protocol");
		frame_u16(&f, 0x0021);
		frame_ip4_udp(&f);
		expect_ip4_udp(types[i], "protocol");
		frame_u8(&f, 0x21);
		frame_ip4_udp(&f);
		expect_ip4_udp(types[i], "protocol of one byte");
		frame_u16(&f, 0x0f00);
		frame_u16(&f, 0x0800);
		frame_ip4_udp(&f);
		expect_ip4_udp(types[i], "Cisco framing");
		frame_u32(&f, 0xff030057);
		frame_ip6_udp(&f);
		expect_ip6(types[i], 17, 0x1234);
		frame_u32(&f, 0xff03c021);
		frame_zeros(&f, 8);
		expect_reason(types[i], PACKET_NO_IP);
		frame_u32(&f, 0xff0300fd);
		frame_zeros(&f, 8);
		expect_reason(types[i], PACKET_UNSUPPORTED_ENCAPSULATION);
	}
	frame_u32(&f, 0x0f000800);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_C_HDLC, "Cisco HDLC");
	frame_u32(&f, 0x11000001);
	frame_u16(&f, 34);
	frame_u16(&f, 0x0021);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_PPP_ETHER, "PPPoE");
}

Test(packet_parse, an_unknown_link_type_is_a_reason_of_its_own)
{
	frame_zeros(&f, 100);
	expect_reason(DLT_IEEE802_11, PACKET_UNSUPPORTED_LINK_TYPE);
}

/* ---- what is stepped over ---------------------------------------------------------------------
 */

Test(packet_parse, stacks_of_vlan_tags_are_stepped_over)
{
	static const uint16_t tags[] = {0x8100, 0x88a8, 0x9100};

	for (int i = 0; i < 3; i++) {
		frame_ether(&f, tags[i]);
		frame_u16(&f, 100);
		frame_u16(&f, 0x8100);
		frame_u16(&f, 200);
		frame_u16(&f, 0x0800);
		frame_ip4_udp(&f);
		expect_ip4_udp(DLT_EN10MB, "two tags");
	}
}

Test(packet_parse, other_tags_of_switches_are_stepped_over)
{
	static const struct {
		const char *tag; /* behind it an EtherType */
		uint32_t bytes;
		const char *what;
	} tags[] = {
			{"\x89\x3f\0\5\0\6\0\0", 8, "E-tag"},
			{"\x89\x26\0\0\0\1", 6, "VN-tag"},
			{"\xd2\x8b\0\1\0\x10tttttttt", 14, "time, TAI"},
			{"\xd2\x8b\0\1\1\x10tttttttt", 14, "time, UTC"},
			{"\xd2\x8b\0\1\0\x20tttttt", 12, "short time, TAI"},
			{"\xd2\x8b\0\1\1\x20tttttt", 12, "short time, UTC"},
			{"\x89\x03\x40\x20\xb8\0\0\0\0\2\2\0\0\0\0\1", 16, "FabricPath"},
	};

	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		frame_ether(&f, 0x8100);
		frame_u16(&f, 7);
		frame_add(&f, tags[i].tag, tags[i].bytes);
		frame_u16(&f, 0x0800);
		frame_ip4_udp(&f);
		expect_ip4_udp(DLT_EN10MB, tags[i].what);
	}
	frame_ether(&f, 0xd28b);
	frame_u32(&f, 0x00010030); /* a time of another size */
	expect_reason(DLT_EN10MB, PACKET_UNSUPPORTED_ENCAPSULATION);
	frame_ether(&f, 0xd28b);
	frame_u16(&f, 1);
	expect_reason(DLT_EN10MB, PACKET_TRUNCATED_LINK);
}

Test(packet_parse, a_stack_without_end_is_given_up)
{
	frame_ether(&f, 0x8100);
	for (int i = 0; i < 200; i++)
		frame_u32(&f, 0x00018100);
	expect_reason(DLT_EN10MB, PACKET_UNSUPPORTED_ENCAPSULATION);
}

Test(packet_parse, mpls_stacks_end_at_ip4_or_ip6)
{
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 0);
	frame_mpls(&f, 200, 0);
	frame_mpls(&f, 300, 1);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "three labels");
	frame_ether(&f, 0x8848);
	frame_mpls(&f, 2, 1);
	frame_ip6_udp(&f);
	expect_ip6(DLT_EN10MB, 17, 0x1234);
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 0);
	expect_reason(DLT_EN10MB, PACKET_TRUNCATED_LINK);
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 1);
	frame_u32(&f, 0x50000000);
	frame_zeros(&f, 40);
	expect_reason(DLT_EN10MB, PACKET_UNSUPPORTED_ENCAPSULATION);
}

Test(packet_parse, pseudowires_carry_ethernet_with_and_without_a_control_word)
{
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 1);
	frame_u32(&f, 1);
	frame_ether(&f, 0x0800);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "control word");
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 1);
	frame_u32(&f, 0);
	frame_ether(&f, 0x8100);
	frame_u16(&f, 5);
	frame_u16(&f, 0x0800);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "control word of zero, tag inside");
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 1);
	frame_add(&f, "\0\x13\x72\1\2\3\0\x13\x72\4\5\6\x08\0", 14);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "no control word");
	frame_ether(&f, 0x8847);
	frame_mpls(&f, 100, 1);
	frame_u32(&f, 0x10000021);
	frame_ip4_udp(&f);
	expect_ip4_udp(DLT_EN10MB, "associated channel");
}

Test(packet_parse, pppoe_sessions_are_stepped_over_and_discovery_is_not_ip)
{
	frame_ether(&f, 0x8864);
	frame_u32(&f, 0x11000001);
	frame_u16(&f, 34);
	frame_u16(&f, 0x0021);
	frame_ip4_udp(&f);
	frame_zeros(&f, 20); /* padding */
	expect_ip4_udp(DLT_EN10MB, "session");
	frame_ether(&f, 0x8863);
	frame_zeros(&f, 46);
	expect_reason(DLT_EN10MB, PACKET_NO_IP);
	frame_ether(&f, 0x8864);
	frame_u32(&f, 0x11000001);
	frame_u16(&f, 5); /* what is behind the length is padding, whatever it looks like */
	frame_u16(&f, 0x0021);
	frame_ip4_udp(&f);
	expect_reason(DLT_EN10MB, PACKET_TRUNCATED_IP);
}

Test(packet_parse, all_of_them_together_are_stepped_over)
{
	frame_ether(&f, 0x88a8);
	frame_u16(&f, 1);
	frame_u16(&f, 0x8847);
	frame_mpls(&f, 16, 0);
	frame_mpls(&f, 17, 1);
	frame_u32(&f, 0);
	frame_ether(&f, 0x8864);
	frame_u32(&f, 0x11000001);
	frame_u16(&f, 2 + 52);
	frame_u16(&f, 0x0057);
	frame_ip6_udp(&f);
	expect_ip6(DLT_EN10MB, 17, 0x1234);
}

Test(packet_parse, what_is_no_ip_is_told_from_what_is_not_looked_into)
{
	frame_ether(&f, 0x0806);
	frame_zeros(&f, 28);
	expect_reason(DLT_EN10MB, PACKET_NO_IP);
	frame_ether(&f, 0x88e5);
	frame_zeros(&f, 40);
	expect_reason(DLT_EN10MB, PACKET_UNSUPPORTED_ENCAPSULATION);
	frame_ether(&f, 0x0800);
	f.size = 13;
	expect_reason(DLT_EN10MB, PACKET_TRUNCATED_LINK);
}

/* ---- IPv4 ---------------------------------------------------------------------------------- */

Test(packet_parse, tcp_has_ports_and_flags)
{
	frame_ip4(&f, 6, 20, 0);
	frame_tcp(&f, 0x112);
	cr_assert_eq(parse(DLT_RAW), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.source_port, 0x1234);
	cr_expect_eq(packet.key.destination_port, 80);
	cr_expect_eq(packet.tcp_flags, 0x112);
}

Test(packet_parse, sctp_has_ports_and_icmp_has_none)
{
	frame_ip4(&f, 132, 12, 0);
	frame_udp(&f);
	cr_assert_eq(parse(DLT_RAW), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.destination_port, 53);
	f.size = 0;
	frame_ip4(&f, 1, 12, 0);
	frame_udp(&f);
	cr_assert_eq(parse(DLT_RAW), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.protocol, 1);
	cr_expect_eq(packet.key.source_port, 0);
	cr_expect_eq(packet.key.destination_port, 0);
}

Test(packet_parse, a_tunnel_is_a_flow_of_its_outer_header)
{
	frame_ip4(&f, 41, 52, 0);
	frame_ip6_udp(&f);
	cr_assert_eq(parse(DLT_RAW), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.ip_version, 4);
	cr_expect_eq(packet.key.protocol, 41);
	cr_expect_eq(packet.key.source_port, 0);
}

Test(packet_parse, options_stand_in_front_of_the_ports)
{
	frame_ip4(&f, 17, 4 + 12, 0);
	f.bytes[0] = 0x46;
	frame_u32(&f, 0x94040000);
	frame_udp(&f);
	expect_ip4_udp(DLT_RAW, "router alert");
}

Test(packet_parse, options_that_are_cut_off_leave_a_flow_without_ports)
{
	frame_ip4(&f, 17, 8 + 12, 0);
	f.bytes[0] = 0x47;
	frame_u32(&f, 0x94040000);
	frame_u32(&f, 0x12340035); /* no ports */
	for (uint32_t size = 20; size < 28; size++) {
		cr_assert_eq(parse_size(DLT_RAW, size), PACKET_IS_FLOW);
		cr_expect_eq(packet.key.destination[3], 2);
		cr_expect_eq(packet.key.protocol, 17);
		cr_expect_eq(packet.key.source_port, 0);
		cr_expect_eq(packet.key.destination_port, 0);
	}
}

Test(packet_parse, the_first_fragment_has_ports_and_later_ones_have_none)
{
	frame_ip4(&f, 17, 12, 0x2000);
	frame_udp(&f);
	expect_ip4_udp(DLT_RAW, "first fragment");
	frame_ip4(&f, 17, 12, 0x00b9);
	frame_udp(&f);
	cr_assert_eq(parse(DLT_RAW), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.protocol, 17);
	cr_expect_eq(packet.key.source_port, 0);
	cr_expect_eq(packet.key.destination_port, 0);
}

Test(packet_parse, ports_that_are_cut_off_or_lie_in_the_padding_are_0)
{
	frame_ip4(&f, 17, 12, 0);
	frame_udp(&f);
	for (uint32_t size = 20; size < 24; size++) {
		cr_assert_eq(parse_size(DLT_RAW, size), PACKET_IS_FLOW);
		cr_expect_eq(packet.key.source_port, 0);
		cr_expect_eq(packet.key.destination_port, 0);
	}
	cr_assert_eq(parse_size(DLT_RAW, 24), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.source_port, 0x1234);
	f.size = 0;
	frame_ip4(&f, 17, 2, 0);
	frame_udp(&f);
	cr_assert_eq(parse(DLT_RAW), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.source_port, 0);
	f.size = 0;
	frame_ip4(&f, 6, 20, 0);
	frame_tcp(&f, 0x02);
	cr_assert_eq(parse_size(DLT_RAW, 33), PACKET_IS_FLOW);
	cr_expect_eq(packet.key.source_port, 0x1234);
	cr_expect_eq(packet.tcp_flags, 0);
}

Test(packet_parse, a_header_that_contradicts_itself_is_malformed)
{
	frame_ip4_udp(&f);
	f.bytes[0] = 0x44; /* 16 bytes of header */
	expect_reason(DLT_RAW, PACKET_MALFORMED_IP);
	frame_ip4_udp(&f);
	f.bytes[3] = 19; /* total length */
	expect_reason(DLT_RAW, PACKET_MALFORMED_IP);
	frame_ether(&f, 0x0800);
	frame_zeros(&f, 40); /* version 0 */
	expect_reason(DLT_EN10MB, PACKET_MALFORMED_IP);
	frame_ether(&f, 0x86dd);
	frame_ip4_udp(&f);
	expect_reason(DLT_EN10MB, PACKET_MALFORMED_IP);
}

Test(packet_parse, a_total_length_of_0_or_beyond_the_frame_still_counts)
{
	frame_ip4_udp(&f);
	f.bytes[3] = 0;
	expect_ip4_udp(DLT_RAW, "segmentation offload");
	frame_ip4_udp(&f);
	f.bytes[2] = 0x20;
	expect_ip4_udp(DLT_RAW, "longer than the frame");
}

Test(packet_parse, ip6_announced_as_ip4_counts_by_its_version)
{
	frame_ether(&f, 0x0800);
	frame_ip6_udp(&f);
	expect_ip6(DLT_EN10MB, 17, 0x1234);
}

/* ---- IPv6 ---------------------------------------------------------------------------------- */

Test(packet_parse, ip6_extension_headers_are_stepped_over)
{
	frame_ip6(&f, 0, 8 + 24 + 8 + 8 + 16 + 12);
	frame_add(&f, "\x2b\0\0\0\0\0\0\0", 8); /* hop by hop, then routing */
	frame_add(&f, "\x3c\2\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 24);
	frame_add(&f, "\x2c\0\0\0\0\0\0\0", 8);     /* destination options, then fragment */
	frame_add(&f, "\x33\0\0\1\0\0\0\7", 8);     /* first of several, then authentication */
	frame_add(&f, "\x11\2\0\0\0\0\0\1\0\0\0\2\0\0\0\3", 16);
	frame_udp(&f);
	expect_ip6(DLT_RAW, 17, 0x1234);
}

Test(packet_parse, a_later_ip6_fragment_has_its_protocol_and_no_ports)
{
	frame_ip6(&f, 44, 8 + 12);
	frame_add(&f, "\x11\0\x05\xa8\0\0\0\7", 8);
	frame_udp(&f);
	expect_ip6(DLT_RAW, 17, 0);
	/* What follows is not a header, even if its number is that of one. */
	frame_ip6(&f, 44, 8 + 12);
	frame_add(&f, "\x3c\0\x05\xa8\0\0\0\7", 8);
	frame_udp(&f);
	expect_ip6(DLT_RAW, 60, 0);
}

Test(packet_parse, mobility_and_no_next_header_end_the_chain)
{
	frame_ip6(&f, 135, 8);
	frame_add(&f, "\x3b\0\0\0\0\0\0\0", 8);
	expect_ip6(DLT_RAW, 135, 0);
	frame_ip6(&f, 135, 8 + 12);
	frame_add(&f, "\x11\0\0\0\0\0\0\0", 8);
	frame_udp(&f);
	expect_ip6(DLT_RAW, 17, 0x1234);
	frame_ip6(&f, 59, 12);
	frame_udp(&f);
	expect_ip6(DLT_RAW, 59, 0);
}

Test(packet_parse, a_chain_that_is_cut_ends_at_the_header_that_is_not_there)
{
	frame_ip6(&f, 0, 100);
	frame_add(&f, "\x3c\0\0\0\0\0\0\0", 8);
	frame_add(&f, "\x11\x09\0\0\0\0\0\0", 8); /* 80 bytes, of which 8 are there */
	expect_ip6(DLT_RAW, 60, 0);
	frame_ip6(&f, 0, 8 * 40); /* a chain without end */
	for (int i = 0; i < 40; i++)
		frame_zeros(&f, 8);
	expect_ip6(DLT_RAW, 0, 0);
}

/* ---- hostile bytes ------------------------------------------------------------------------- */

Test(packet_parse, an_ip_header_that_is_not_whole_is_truncated)
{
	frame_ip4_udp(&f);
	for (uint32_t size = 1; size < 20; size++)
		cr_expect_eq(parse_size(DLT_RAW, size), PACKET_TRUNCATED_IP);
	f.size = 0;
	frame_ip6_udp(&f);
	for (uint32_t size = 1; size < 40; size++)
		cr_expect_eq(parse_size(DLT_RAW, size), PACKET_TRUNCATED_IP);
	f.size = 0;
	frame_ether(&f, 0x0800);
	expect_reason(DLT_EN10MB, PACKET_TRUNCATED_IP);
}

Test(packet_parse, no_frame_of_any_length_is_read_beyond_its_end)
{
	static const uint32_t types[] = {DLT_EN10MB, DLT_LINUX_SLL, DLT_LINUX_SLL2, DLT_RAW,
			DLT_IPV4, DLT_IPV6, DLT_NULL, DLT_LOOP, DLT_PPP, DLT_PPP_SERIAL, DLT_C_HDLC,
			DLT_PPP_ETHER};
	static const uint16_t words[] = {0x0800, 0x86dd, 0x8100, 0x8847, 0x8864, 0x0021, 0x0057,
			0x0281, 0xff03, 0x4500, 0x6000, 0xaaaa, 0x0300, 0x0000, 0x0100, 0x002c};
	uint32_t flows = 0;

	srand(1);
	for (uint32_t round = 0; round < 20000; round++) {
		uint32_t size = (uint32_t)rand() % 96;

		f.size = 0;
		while (f.size < size)
			frame_u16(&f, rand() % 3 == 0 ? (uint16_t)rand()
						      : words[rand() % 16]);
		for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
			flows += parse_size(types[i], size) == PACKET_IS_FLOW;
	}
	cr_expect_gt(flows, 1000); /* else the rounds did not get far */
}
