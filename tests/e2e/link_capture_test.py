"""tshark with our dissector reads what a link wrote down: data, events, credit, what arrived."""

import collections
import glob
import os
import shutil

from captures import flows_capture
from harness import expect, expect_equal

LUA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "wireshark",
                   "weir.lua")


def rows(w, path, condition, *fields):
    words = ["tshark", "-X", f"lua_script:{LUA}", "-r", path, "-Y", condition, "-T", "fields"]
    for field in fields:
        words += ["-e", field]
    status, out, err = w.command(words)
    expect_equal(status, 0, f"tshark: {err}")
    return [line.split("\t") for line in out.splitlines()]


def test(w):
    if shutil.which("tshark") is None:
        expect(False, "tshark is not installed (scripts/install-deps)")
    capture = flows_capture(w.path("in.pcap"), 20_000, 300)
    # Frames of an Ethernet, some 500 of data, so that of two in a hundred some are surely lost.
    config = {"weir.link.capture": w.path("link.pcap"), "weir.link.faults": "loss=0.02",
              "weir.link.queues": 1, "weir.link.mtu": 1500}
    summary = w.flow(capture, "out", rate=20_000, config=config,
                     options=("--taskmanagers", "2", "--link", "memif")).summary()

    paths = glob.glob(w.path("link.pcap.*"))
    # One more for a TaskManager that net_memif took down while its peer came: it was started again.
    expect_equal(len(paths), 2 + summary["restarts"], f"one capture for each TaskManager: {paths}")
    # The sender's holds what was lost too.
    path = max(paths, key=lambda p: len(rows(w, p, "weir.kind == 1", "weir.number")))

    kinds = collections.Counter(row[0] for row in rows(w, path, "weir", "weir.kind"))
    for kind in ("1", "2", "3", "4"):  # DATA, EVENT, CREDIT, ACK
        expect(kinds[kind] > 0, f"frames of kind {kind}: {kinds}")
    expect_equal(len({row[0] for row in rows(w, path, "weir", "weir.token")}), 1, "tokens")

    barriers = rows(w, path, "weir.event.kind == 1", "weir.event.checkpoint", "weir.event.cut",
                    "weir.event.boundary")
    ids = {int(row[0]) for row in barriers}
    completed = summary["checkpoints"]["completed"]  # the last ones may find no task to reach
    expect(len(ids) >= max(completed - 2, 1), f"barriers {sorted(ids)} of {completed} checkpoints")
    expect(all(int(row[1]) >= int(row[2]) for row in barriers), "a boundary is at most the cut")

    # Small buffers share a frame: each field of one is a list.
    data = [piece for row in rows(w, path, "weir.kind == 1", "weir.data.channel",
                                  "weir.data.sequence", "weir.data.offset")
            for piece in zip(*(field.split(",") for field in row))]
    expect(len(set(data)) < len(data), "something was sent twice")
    pieces = rows(w, path, "weir.kind == 1", "weir.data.pieces")
    expect_equal(sum(int(row[0]) for row in pieces), len(data), "pieces of all frames")
    processed = [int(value) for row in rows(w, path, "weir.kind == 3", "weir.credit.processed")
                 for value in row[0].split(",")]
    expect(max(processed) <= max(int(piece[1]) for piece in data) + 1,
           "no more was processed than sent")
