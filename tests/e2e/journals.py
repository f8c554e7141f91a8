"""The journal of a nic-source read by itself, from what dataplane/journal/journal_format.h says."""

import glob
import os
import struct
import threading

from harness import Failed

ALIGN = 4096
HEADER = struct.Struct("<8sIIQQQI")     # magic, version, sum, id, ordinal, first, largest record
BLOCK = struct.Struct("<4sIQQQIIII")    # magic, sum, ordinal, sequence, durable, count, bytes, sum
PACKET = struct.Struct("<IqIHBB")       # size, time, length on the wire, link type, late, zero


def crc_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ 0x82F63B78 if n & 1 else n >> 1
        table.append(n)
    return table


TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def block_at(data, at, ordinal, sequence):
    """Its records' number and bytes, or None: no whole block of that place is there."""
    if at + BLOCK.size > len(data):
        return None
    magic, head_sum, of, first, _, count, size, payload_sum, _ = BLOCK.unpack_from(data, at)
    head = data[at:at + 4] + bytes(4) + data[at + 8:at + BLOCK.size]
    payload = data[at + BLOCK.size:at + BLOCK.size + size]
    if magic != b"JBLK" or crc32c(head) != head_sum or len(payload) != size \
            or crc32c(payload) != payload_sum or (of, first) != (ordinal, sequence):
        return None
    return count, payload


def packets_of(payload):
    """(length on the wire, captured bytes) of each."""
    at = 0
    while at < len(payload):
        size, _, length, _, _, _ = PACKET.unpack_from(payload, at)
        yield length, payload[at + PACKET.size:at + 4 + size]
        at += 4 + size


def read_journal(directory):
    """All packets in their order, of segments that together are a whole journal."""
    segments = []
    for path in sorted(glob.glob(os.path.join(directory, "segment-*"))):
        with open(path, "rb") as file:
            data = file.read()
        magic, version, _, _, ordinal, first, _ = HEADER.unpack_from(data)
        if magic == b"WEIRJRNL" and version == 1:
            segments.append((ordinal, first, data))
    packets = []
    for i, (ordinal, first, data) in enumerate(segments):
        if first != len(packets):
            raise Failed(f"segment {ordinal} begins at {first}, not at {len(packets)}")
        end = segments[i + 1][1] if i + 1 < len(segments) else None
        at = ALIGN
        while len(packets) != end:
            block = block_at(data, at, ordinal, len(packets))
            if block is None:
                break
            packets += packets_of(block[1])
            at += (BLOCK.size + len(block[1]) + ALIGN - 1) // ALIGN * ALIGN
    return packets


class Keeper:
    """Keeps the segments of a journal, as they are deleted otherwise: a link to each."""

    def __init__(self, journal, kept):
        os.makedirs(kept)
        self.journal, self.kept = journal, kept
        self.is_over = threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def link(self):
        for path in glob.glob(os.path.join(self.journal, "segment-*")):
            try:
                os.link(path, os.path.join(self.kept, os.path.basename(path)))
            except (FileExistsError, FileNotFoundError):
                pass

    def watch(self):
        while not self.is_over.wait(0.005):
            self.link()

    def close(self):
        self.is_over.set()
        self.thread.join()
        self.link()
