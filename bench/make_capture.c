/*
 * make_capture: the synthetic capture of the flow-metering bench: Ethernet, IPv4, TCP and UDP.
 *
 * Packet sizes are IMIX (60, 590, 1514 bytes at 7:4:1), of each packet the first 96 bytes are kept.
 * Half of the packets belong to one half of the flows, all alike; the others to the other half,
 * where flow n comes 1/n times as often as the first (Zipf).  The same arguments make the same
 * file.
 *
 * usage: make_capture PATH [PACKETS [FLOWS]]   (2000000, 100000)
 */

#include <inttypes.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <pcap/pcap.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane/base/prng.h"
#include "dataplane/operator/zipf.h"

enum {
	SNAP_BYTES = 96,
	ETHER_BYTES = sizeof(struct ether_header),
	IP_BYTES = sizeof(struct ip),
	GAP_NS = 10000, /* 100,000 packets a second of event time */
	IMIX_SUM = 12,
	FILE_BUFFER_BYTES = 1 << 20,
};

#define FIRST_NS UINT64_C(1700000000000000000)

struct maker {
	struct prng random;
	struct zipf skew;
	uint64_t flow_count;
	uint64_t packet_count;
};

static uint64_t pick_flow(struct maker *m)
{
	uint64_t half = m->flow_count / 2, rank = 0;

	if (prng_next(&m->random) & 1)
		return half + prng_below(&m->random, m->flow_count - half);
	while (rank == 0)
		rank = zipf_try(&m->skew, prng_unit(&m->random));
	return rank - 1;
}

static uint32_t pick_bytes(struct maker *m)
{
	uint64_t at = prng_below(&m->random, IMIX_SUM);

	return at < 7 ? 60 : at < 11 ? 590 : 1514;
}

static uint16_t ip_checksum(const uint8_t *header)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < IP_BYTES; i += 2)
		sum += (uint32_t)header[i] << 8 | header[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return (uint16_t)~sum;
}

/* One flow in five is UDP; hosts, ports and protocol follow from its number. */
static void fill(struct maker *m, uint8_t *frame, uint64_t flow, uint32_t frame_bytes)
{
	bool is_udp = flow % 5 == 0;
	struct ether_header ether = {.ether_dhost = {2, 0, 0, 0, 0, 1},
		.ether_shost = {2, 0, 0, 0, 0, 2}, .ether_type = htons(ETHERTYPE_IP)};
	struct ip ip = {.ip_hl = 5, .ip_v = 4, .ip_id = htons((uint16_t)m->packet_count),
		.ip_len = htons((uint16_t)(frame_bytes - ETHER_BYTES)), .ip_off = htons(IP_DF),
		.ip_ttl = 64, .ip_p = is_udp ? IPPROTO_UDP : IPPROTO_TCP};
	uint16_t sport = htons((uint16_t)(1024 + flow % 60000)), dport = htons(443);

	ip.ip_src.s_addr = htonl(0x0a000000 + (uint32_t)flow);
	ip.ip_dst.s_addr = htonl(0xc0a80000 + (uint32_t)(flow % 4096));
	memset(frame, 0, SNAP_BYTES);
	memcpy(frame, &ether, sizeof(ether));
	memcpy(frame + ETHER_BYTES, &ip, sizeof(ip));
	ip.ip_sum = htons(ip_checksum(frame + ETHER_BYTES));
	memcpy(frame + ETHER_BYTES, &ip, sizeof(ip));
	if (is_udp) {
		struct udphdr udp = {.uh_sport = sport, .uh_dport = dport,
			.uh_ulen = htons((uint16_t)(frame_bytes - ETHER_BYTES - IP_BYTES))};

		memcpy(frame + ETHER_BYTES + IP_BYTES, &udp, sizeof(udp));
	} else {
		struct tcphdr tcp = {.th_sport = sport, .th_dport = dport, .th_off = 5,
			.th_seq = htonl((uint32_t)m->packet_count), .th_flags = TH_ACK,
			.th_win = htons(65535)};

		memcpy(frame + ETHER_BYTES + IP_BYTES, &tcp, sizeof(tcp));
	}
}

static void add_packet(struct maker *m, pcap_dumper_t *out)
{
	uint8_t frame[SNAP_BYTES];
	uint64_t time_ns = FIRST_NS + m->packet_count * GAP_NS;
	uint64_t flow = pick_flow(m);
	uint32_t bytes = pick_bytes(m);
	/* With nanosecond precision tv_usec holds nanoseconds. */
	struct pcap_pkthdr header = {.len = bytes,
		.caplen = bytes < SNAP_BYTES ? bytes : SNAP_BYTES,
		.ts = {(time_t)(time_ns / 1000000000), (long)(time_ns % 1000000000)}};

	fill(m, frame, flow, bytes);
	pcap_dump((u_char *)out, &header, frame);
	m->packet_count++;
}

int main(int argc, char **argv)
{
	uint64_t packets = argc > 2 ? strtoull(argv[2], NULL, 10) : 2000000;
	uint64_t flows = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
	struct maker m = {.flow_count = flows};

	if (argc < 2 || argc > 4 || packets == 0 || flows < 2 || flows > 1 << 24) {
		fprintf(stderr, "usage: make_capture PATH [PACKETS [FLOWS]]\n");
		return 2;
	}
	pcap_t *pcap = pcap_open_dead_with_tstamp_precision(
			DLT_EN10MB, SNAP_BYTES, PCAP_TSTAMP_PRECISION_NANO);
	pcap_dumper_t *out = pcap != NULL ? pcap_dump_open(pcap, argv[1]) : NULL;
	if (out == NULL) {
		fprintf(stderr, "make_capture: %s\n",
				pcap != NULL ? pcap_geterr(pcap) : "out of memory");
		return 1;
	}
	setvbuf(pcap_dump_file(out), NULL, _IOFBF, FILE_BUFFER_BYTES);
	prng_seed(&m.random, 1);
	zipf_init(&m.skew, flows / 2, 1.0);
	while (m.packet_count < packets)
		add_packet(&m, out);
	bool is_written = pcap_dump_flush(out) == 0;
	pcap_dump_close(out);
	pcap_close(pcap);
	if (!is_written) {
		fprintf(stderr, "make_capture: %s could not be written\n", argv[1]);
		return 1;
	}
	return 0;
}
