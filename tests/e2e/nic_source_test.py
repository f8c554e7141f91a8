"""Packets that a port receives: all of them are metered; what a stopped TaskManager cannot take is
counted as missed, so that the ledger adds up; a port that sends gives what another received, and
any records as UDP datagrams."""

import os
import re
import signal
import socket
import struct
import threading
import time

from captures import output_totals, udp_frame, write_pcap
from harness import JOBS, expect, expect_equal, fetch
from namespaces import Hosts, inside, ip

ALONE = True  # namespaces have names
TIMEOUT = 120
LIVE = os.path.join(JOBS, "flow-metering-live.yaml")
FRAMES = 20_000
LOSSES = ("rolled_back", "missed", "no_buffer", "errors", "ring_full")

FORWARD = """
name: forward
vertices:
  - uid: all
    operators:
      - {uid: source, type: nic-source, port: net_af_packet0, frames: 5000, snap: 2 kb}
      - {uid: sink, type: nic-sink, port: net_af_packet1}
"""

EXPORT = """
name: export
vertices:
  - uid: all
    operators:
      - {uid: source, type: pcap-source, path: CAPTURE, rate: 5000}
      - {uid: parse, type: flow-parse}
      - {uid: sink, type: nic-sink, port: net_af_packet0, as: udp, from: "10.98.0.2:7000",
         to: "10.98.0.1:6126"}
"""
FLOW_PACKET = struct.Struct("=16s16sHHBB2xqIHB9x")  # dataplane/operator/packet/flow_record.h


def frame(i):
    return udp_frame(f"10.0.{i % 7}.{i % 50}", "192.0.2.1", 1000 + i % 50, 53, i % 900)


def totals_of(frames):
    totals = {}
    for data in frames:
        pair = (socket.inet_ntoa(data[26:30]), socket.inet_ntoa(data[30:34]))
        packets, octets = totals.get(pair, (0, 0))
        totals[pair] = (packets + 1, octets + len(data))
    return totals


def send(hosts, frames, rate):
    """From the hub, evenly in bursts."""
    with inside(hosts.hub), socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("gen0", 0))
        begun = time.monotonic()
        for i, data in enumerate(frames):
            s.send(data)
            if i % 100 == 99:
                time.sleep(max(0.0, begun + i / rate - time.monotonic()))


def run(w, hosts, job, name, ports=1, sets=None, more=None, vdev="framecnt=512",
        is_covered=True):
    """With `is_covered` it is there once a checkpoint is complete."""
    vdevs = " ".join(f"--vdev=net_af_packet{i},iface=eth{i},{vdev}" for i in range(ports))
    config = {"weir.nic.ports": ";".join(f"net_af_packet{i}" for i in range(ports)),
              "weir.eal.args": vdevs, "rest.bind-port": "8081", **(more or {})}
    r = w.run(job, sets, state=name, config=config,
              prefix=("ip", "netns", "exec", hosts.hosts[0]))
    if is_covered:
        w.wait_for_checkpoint(1, name)
    return r


def counters(hosts, operator, subtask=None):
    """Of all subtasks together or of one, by name."""
    with inside(hosts.hosts[0]):
        text = fetch(8081, "/metrics")
    found = {}
    for name, labels, value in re.findall(r"^(\w+)\{(.*)\} (\S+)$", text, re.M):
        if f'operator_name="{operator}"' in labels and (
                subtask is None or f'subtask_index="{subtask}"' in labels):
            short = name.rsplit("_operator_", 1)[-1]
            found[short] = found.get(short, 0) + int(float(value))
    return found


def all_are_metered(w, hosts):
    frames = [frame(i) for i in range(FRAMES)]
    r = run(w, hosts, LIVE, "live", sets={"source.port": "net_af_packet0",
            "source.frames": FRAMES, "sink.path": w.path("live-out")})
    send(hosts, frames, 10_000)
    summary = r.summary()
    expect_equal(summary["records_in"], FRAMES, "packets taken")
    expect_equal(output_totals(w.lines("live-out")), totals_of(frames), "packets and bytes")


def ledger(hosts):
    """What became of the packets, once they are all accounted for; None before."""
    c = counters(hosts, "source")
    known = sum(c.get(n, 0) for n in ("frames", *LOSSES))
    return c if known == FRAMES else None


def stand_still(w, hosts, name, heartbeat):
    """Sends while the TaskManager is stopped for a second; the ledger at the end."""
    r = run(w, hosts, LIVE, name, sets={"source.port": "net_af_packet0", "window.size": "1 s",
            "sink.path": w.path(name + "-out")}, more={"heartbeat.timeout": heartbeat})
    frames = [frame(i) for i in range(FRAMES)]
    sender = threading.Thread(target=send, args=(hosts, frames, 10_000))
    sender.start()
    taskmanager = r.taskmanagers()[0]
    time.sleep(0.3)
    os.kill(taskmanager, signal.SIGSTOP)
    time.sleep(1)
    os.kill(taskmanager, signal.SIGCONT)
    sender.join()
    c = w.wait_for(lambda: ledger(hosts), "the ledger adds up", 10)
    w.command(["ip", "netns", "exec", hosts.hosts[0], w.program("weir"), "stop",
               "flow-metering-live", "--savepoint", w.path(name + "-savepoint"), "--drain"])
    summary = r.summary()
    packets = sum(count for count, _ in output_totals(w.lines(name + "-out")).values())
    expect_equal(packets, c["frames"], "packets in the output are those taken")
    return c, summary


def the_ledger_adds_up(w, hosts):
    c, summary = stand_still(w, hosts, "patient", "20 s")
    expect_equal(summary["restarts"], 0, "restarts")
    expect(c["missed"] > 1000 and c["frames"] > 1000, f"{c}")
    expect_equal(c["rolled_back"], 0, "packets taken back")

    c, summary = stand_still(w, hosts, "hasty", "500 ms")
    expect(summary["restarts"] > 0, "the TaskManager was given up meanwhile")
    expect(c["missed"] > 1000 and c["frames"] > 1000, f"{c}")


def what_is_received_is_sent(w, hosts):
    frames = [frame(i) for i in range(5000)]
    got = []

    def listen():
        with inside(hosts.hub), socket.socket(socket.AF_PACKET, socket.SOCK_RAW,
                                              socket.htons(0x0003)) as s:
            s.bind(("gen1", 0x0003))
            s.settimeout(10)
            ready.set()
            while len(got) < len(frames):
                got.append(s.recv(2048))

    ready = threading.Event()
    listener = threading.Thread(target=listen)
    listener.start()
    ready.wait(5)
    r = run(w, hosts, w.write("forward.yaml", FORWARD), "forward", ports=2)
    send(hosts, frames, 5_000)
    r.summary()
    listener.join()
    expect_equal(len(got), len(frames), "packets sent on")
    expect(got == frames, "each as it came, in order")


def records_are_sent_as_datagrams(w, hosts):
    """To a socket of the kernel's, which takes no malformed one."""
    frames = [frame(i) for i in range(2000)]
    capture = write_pcap(w.path("export.pcap"), [(i * 1000, f) for i, f in enumerate(frames)])
    ip("-n", hosts.hub, "addr", "add", "10.98.0.1/24", "dev", "gen0")
    Hosts.set(hosts.hub, "net.ipv4.conf.gen0.rp_filter", 0)
    with inside(hosts.hub), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("10.98.0.1", 6126))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        s.settimeout(5)
        r = run(w, hosts, w.write("export.yaml", EXPORT.replace("CAPTURE", capture)), "export")
        got = [s.recvfrom(2048) for _ in frames]
        summary = r.summary()
    expect_equal({source for _, source in got}, {("10.98.0.2", 7000)}, "senders")
    expect_equal(summary["counters"]["sink"]["frames"], len(frames), "frames that the sink counts")
    said = [FLOW_PACKET.unpack(data) for data, _ in got]
    expect([(key[0][:4], key[1][:4], *key[2:4], key[6], key[7]) for key in said] ==
           [(f[26:30], f[30:34], *struct.unpack("!HH", f[34:38]), i * 1000, len(f))
            for i, f in enumerate(frames)], "each record as it was parsed, in order")


def test(w):
    hosts = Hosts(1)
    try:
        for i in range(2):
            Hosts.join(hosts.hub, f"gen{i}", hosts.hosts[0], f"eth{i}")
        all_are_metered(w, hosts)
        the_ledger_adds_up(w, hosts)
        what_is_received_is_sent(w, hosts)
        records_are_sent_as_datagrams(w, hosts)
    finally:
        hosts.close()
