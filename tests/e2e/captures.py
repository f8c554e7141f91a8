"""Captures for tests: made here packet by packet, or counted independently by tshark."""

import glob
import ipaddress
import os
import shutil
import struct
import subprocess

from harness import DATA, Failed, Skip

ETHERNET = 1
MACS = bytes.fromhex("020000000201020000000202")  # to and from


def ip_checksum(header):
    total = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def udp_frame(source, target, sport, dport, payload=0):
    """An Ethernet frame with an IPv4 UDP datagram that a bridge lets pass; addresses as text."""
    udp = struct.pack("!HHHH", sport, dport, 8 + payload, 0) + bytes(payload)
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0,
                     ipaddress.ip_address(source).packed, ipaddress.ip_address(target).packed)
    ip = ip[:10] + ip_checksum(ip).to_bytes(2, "big") + ip[12:]
    return MACS + b"\x08\x00" + ip + udp


def write_pcap(path, packets, link_type=ETHERNET):
    """Writes (time in ns, frame) pairs as a pcap file with ns time stamps."""
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 65535, link_type))
        for time_ns, frame in packets:
            file.write(struct.pack("<IIII", time_ns // 10**9, time_ns % 10**9, len(frame),
                                   len(frame)))
            file.write(frame)
    return path


def flow_frame(i, flows):
    return udp_frame(f"10.0.{i % flows % 7}.{i % flows}", "192.0.2.1", 1000 + i % flows, 53, i % 90)


def flows_capture(path, count, seconds, flows=50, start=1_600_000_000):
    """`count` packets of some flows, evenly over `seconds` of event time."""
    step = seconds * 10**9 // count
    return write_pcap(path, ((start * 10**9 + i * step, flow_frame(i, flows))
                             for i in range(count)))


def flows_totals(count, flows=50):
    """Packets and bytes of each (source, target) of that capture."""
    totals = {}
    for i in range(count):
        data = flow_frame(i, flows)
        pair = (f"10.0.{i % flows % 7}.{i % flows}", "192.0.2.1")
        packets, octets = totals.get(pair, (0, 0))
        totals[pair] = (packets + 1, octets + len(data))
    return totals


def shipped():
    """The captures of the repository."""
    return sorted(glob.glob(os.path.join(DATA, "*.pcap")) +
                  glob.glob(os.path.join(DATA, "*.pcapng")))


def tshark_frames(capture, condition=""):
    """Outermost protocol stack, source, destination and length of each frame, by tshark."""
    if shutil.which("tshark") is None:
        raise Skip("no tshark here (scripts/install-deps)")
    fields = ["frame.protocols", "frame.len", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst"]
    words = ["tshark", "-n", "-r", capture, "-Y", condition, "-T", "fields", "-E", "occurrence=f"]
    for field in fields:
        words += ["-e", field]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    if done.returncode != 0:
        raise Failed(f"tshark: {done.stderr}")
    for line in done.stdout.splitlines():
        yield line.split("\t")


def tshark_count(capture, condition):
    """How many frames a display filter lets pass."""
    return sum(1 for _ in tshark_frames(capture, condition))


def tshark_totals(capture):
    """Packets and bytes for each (source, destination), and the number of frames."""
    totals, frames = {}, 0
    for stack, size, source4, target4, source6, target6 in tshark_frames(capture):
        frames += 1
        layers = stack.split(":")
        four = layers.index("ip") if "ip" in layers else len(layers)
        six = layers.index("ipv6") if "ipv6" in layers else len(layers)
        pair = (source4, target4) if four < six else (source6, target6)
        if pair[0]:
            packets, octets = totals.get(pair, (0, 0))
            totals[pair] = (packets + 1, octets + int(size))
    return totals, frames


def output_totals(lines):
    """The same from the lines of flow metering."""
    totals = {}
    for line in lines:
        _, _, source, target, _, _, _, count, octets, *_ = line.split(",")
        packets, total = totals.get((source, target), (0, 0))
        totals[(source, target)] = (packets + int(count), total + int(octets))
    return totals
