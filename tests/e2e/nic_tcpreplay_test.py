"""The captures of the repository, played by tcpreplay to two ports: each port's ledger tells of all
that were sent to it, and the flows are those that tshark counts in the captures.  The kernel puts
the pieces of a datagram together before net_af_packet has them, and their ledger says so."""

import os
import re
import shutil
import subprocess

from captures import output_totals, shipped, tshark_count, tshark_frames, tshark_totals
from harness import Failed, Skip, expect, expect_equal
from namespaces import Hosts, inside
from nic_jobs import metering
from nic_source_test import LOSSES, counters, run

ALONE = True  # namespaces have names
TIMEOUT = 120
PACKETS_A_SECOND = 3000
MTU = 9000
HEADERS = 14 + 20  # Ethernet and IPv4, of a piece behind the first


def replay(hosts, port, capture):
    """Plays a capture; how many packets left and how many did not, as tcpreplay says."""
    with inside(hosts.hub):
        done = subprocess.run(
            ["tcpreplay", f"--pps={PACKETS_A_SECOND}", "-i", f"gen{port}", capture],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    said = {name: int(count) for name, count in
            re.findall(r"^\s*(Successful|Failed) packets:\s+(\d+)$", done.stdout, re.M)}
    if done.returncode != 0 or len(said) != 2:
        raise Failed(f"tcpreplay {os.path.basename(capture)}: {done.stdout}")
    return said["Successful"], said["Failed"]


def add(totals, pair, packets, octets):
    before = totals.get(pair, (0, 0))
    totals[pair] = (before[0] + packets, before[1] + octets)


def count_independently(captures):
    """Packets and bytes of each pair as a port has them, and how many pieces went into others."""
    totals, merged = {}, [0, 0]
    for i, capture in enumerate(captures):
        of_one, _ = tshark_totals(capture)
        for pair, (packets, octets) in of_one.items():
            add(totals, pair, packets, octets)
        for words in tshark_frames(capture, "ip.frag_offset > 0"):
            merged[i % 2] += 1
            add(totals, (words[2], words[3]), -1, -HEADERS)
    return totals, merged


def play_all(hosts, captures):
    """In turn to both ports; how many packets were sent to each.  A frame that was captured without
    its Ethernet header cannot be."""
    sent = [0, 0]
    for i, capture in enumerate(captures):
        count, failed = replay(hosts, i % 2, capture)
        expect_equal(failed, tshark_count(capture, "frame.cap_len < 14"),
                     f"{os.path.basename(capture)}: packets that cannot be sent")
        sent[i % 2] += count
    return sent


def accounted(hosts, sent):
    """The counters of both sources, once they tell of all packets."""
    both = [counters(hosts, f"source{i}") for i in range(2)]
    known = [sum(c.get(n, 0) for n in ("frames", *LOSSES)) for c in both]
    return both if known == sent else None


def test(w):
    if shutil.which("tcpreplay") is None:
        raise Skip("no tcpreplay here (apt install tcpreplay)")
    captures = shipped()
    totals, merged = count_independently(captures)
    hosts = Hosts(1)
    try:
        for i in range(2):
            Hosts.join(hosts.hub, f"gen{i}", hosts.hosts[0], f"eth{i}", MTU)
        job = metering("replayed", [f"net_af_packet{i}" for i in range(2)], ", snap: 2 kb")
        r = run(w, hosts, w.write("replayed.yaml", job), "replayed", ports=2,
                sets={"sink.path": w.path("out")}, vdev="framecnt=2048,framesz=4096,blocksz=4096")
        sent = play_all(hosts, captures)
        both = w.wait_for(lambda: accounted(hosts, sent), f"the ledgers add up to {sent}", 10)
        w.command(["ip", "netns", "exec", hosts.hosts[0], w.program("weir"), "stop", "replayed",
                   "--savepoint", w.path("savepoint"), "--drain"])
        summary = r.summary()
    finally:
        hosts.close()
    for i in range(2):
        expect_equal(summary["ledger"][f"source{i}"]["packets"], sent[i], f"packets to port {i}")
        expect_equal({n: both[i][n] for n in LOSSES if both[i][n] > 0},
                     {"missed": merged[i]} if merged[i] > 0 else {}, f"losses of port {i}")
    ours = output_totals(w.lines("out"))
    for pair in sorted(set(totals) | set(ours)):
        expect_equal(ours.get(pair), totals.get(pair), f"(packets, bytes) of {pair}")
    packets = sum(count for count, _ in ours.values())
    unparsed = sum(summary["unparsed"].values())
    expect(unparsed > 0, "some are no flows")
    expect_equal(packets + unparsed, sum(sent) - sum(merged), "packets in the output + unparsed")
    print(f"{sent[0]} and {sent[1]} sent, {packets} in flows, {unparsed} that are none")
