"""A wire that is cut both ways for a while: for less than a peer is waited for, the job goes on and
its output is exact, with aligned and unaligned checkpoints; for longer, the peer is reported as
lost, the job starts again on the same two TaskManagers, and is exact."""

import glob
import re
import struct

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines

LINKED = ("--taskmanagers", "2", "--link", "memif")
PACKETS, RATE = 30_000, 20_000  # longer than the wire is whole
CUT_S = 0.6
SHORT = "partition=1200ms/600ms"
LONG = "partition=2400ms/1100ms"
PATIENCE_MS, LONG_MS = 300, 1100


def frames_of(path):
    """(time, source MAC) of each frame of a pcap file with times in ns."""
    with open(path, "rb") as file:
        data = file.read()
    at = 24
    while at + 16 <= len(data):
        seconds, ns, size, _ = struct.unpack_from("<IIII", data, at)
        yield seconds + ns / 1e9, data[at + 22:at + 28]
        at += 16 + size


def silences(path):
    """When nothing was heard of the peer: (from, to) of all that were long.  What goes out is
    written down before it is lost, so that only the other way has any."""
    last, found = {}, []
    for time, mac in frames_of(path):
        if time - last.get(mac, time) > 0.7 * CUT_S:
            found.append((last[mac], time))
        last[mac] = time
    return found


def was_cut_both_ways(w, name):
    one, other = [silences(path) for path in sorted(glob.glob(w.path(name + ".pcap.*")))]
    return any(min(a[1], b[1]) - max(a[0], b[0]) > CUT_S / 2 for a in one for b in other)


def run(w, capture, name, faults, **config):
    config = {"weir.link.faults": faults, "weir.link.capture": w.path(name + ".pcap"),
              "weir.link.queues": 1, **config}
    return w.flow(capture, name, state=name, rate=RATE, options=LINKED, config=config)


def is_waited_for(w, capture, name, wanted, **config):
    summary = run(w, capture, name, SHORT, **config).summary()
    expect_equal(summary["restarts"], 0, f"restarts, {name}")
    expect(was_cut_both_ways(w, name), f"{name}: the wire was cut")
    expect(summary["checkpoints"]["completed"] > 3, f"checkpoints: {summary}")
    expect_same_lines(w.lines(name), wanted, f"output, {name}")


def tells_of_loss(log):
    """Whether it says that a peer was lost, each time after the time of patience, within the cut: a
    worker may be held up when that is over."""
    found = re.findall(r"is lost: nothing was heard of the peer for (\d+) ms", log)
    after = [int(ms) for ms in found]
    expect(all(PATIENCE_MS <= ms < LONG_MS for ms in after), f"lost after {after} ms")
    return bool(after)


def is_given_up(w, capture, wanted):
    r = run(w, capture, "long", LONG, **{"weir.link.timeout": f"{PATIENCE_MS} ms"})
    summary = r.summary()
    expect(summary["restarts"] >= 1, f"the job was started again: {summary}")
    expect(was_cut_both_ways(w, "long"), "the wire was cut")
    expect("starting it again" not in r.stderr(), f"no TaskManager ended: {r.stderr()}")
    logs = []
    for name in ("coordinator", "taskmanager-0", "taskmanager-1"):
        with open(w.path("long", "logs", name + ".log"), encoding="utf-8") as log:
            logs.append(log.read())
    expect(tells_of_loss(logs[0]), "the coordinator was told that a peer was lost")
    # Whose time is up first says it; the tasks of the other may be cancelled by then.
    expect(any([tells_of_loss(log) for log in logs[1:]]), "so says a TaskManager")
    expect_same_lines(w.lines("long"), wanted, "output, long")


def test(w):
    capture = flows_capture(w.path("in.pcap"), PACKETS, 600)
    w.flow(capture, "calm", state="calm").summary()
    wanted = w.lines("calm")
    is_waited_for(w, capture, "aligned", wanted)
    is_waited_for(w, capture, "unaligned", wanted,
                  **{"execution.checkpointing.unaligned.enabled": "true"})
    is_given_up(w, capture, wanted)
