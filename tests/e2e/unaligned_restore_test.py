"""In-flight data of an unaligned checkpoint comes back: after kill -9, aligned, and back again."""

import json
import os
import time

from captures import flows_capture
from faults import compile_shared
from harness import DONE, INTERRUPTED, expect, expect_equal, expect_same_lines

JOB = """\
name: overtaken
config:
  execution.checkpointing.interval: 100 ms
vertices:
  - uid: ingest
    parallelism: 2
    operators:
      - {uid: source, type: pcap-source, path: in-*.pcap}
      - {uid: parse, type: flow-parse}
  - uid: metering
    parallelism: 2
    operators:
      - {uid: stall, type: stalling, plugin: ./stalling.so, gate: gate}
      - {uid: window, type: flow-window, size: 60 s}
      - {uid: sink, type: file-sink, path: out}
edges:
  - {from: ingest, to: metering, partition: hash}
"""

UNALIGNED = {"execution.checkpointing.unaligned.enabled": "true",
             "execution.checkpointing.timeout": "10 min",
             "execution.checkpointing.num-retained": "20"}  # one can be read while others complete


def in_flight_bytes(w, path):
    """What `weir inspect` finds in flight, every buffer read and its checksum right."""
    status, out, _ = w.weir("inspect", "--json", path)
    expect_equal(status, DONE, f"a whole checkpoint\n{out}")
    channels = [c for v in json.loads(out)["vertices"] for s in v["subtasks"]
                for c in s["channels"]]
    return sum(c["bytes"] for c in channels)


def stand_still(w):
    """A checkpoint that completed while nothing moved: the channels are full; its directory."""
    time.sleep(0.5 * w.factor)
    newest = w.wait_for_checkpoint(w.newest_checkpoint("unaligned") + 2, state="unaligned")
    path = w.checkpoints("unaligned")[newest]
    expect(in_flight_bytes(w, path) > 100_000, "the channels are full of data in flight")
    return path


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    for i in range(2):
        flows_capture(w.path(f"in-{i}.pcap"), 60_000, 600)
    job = w.write("job.yaml", JOB)
    sets = {"sink.path": w.path("out")}
    w.run(job, {"sink.path": w.path("calm")}, state="calm").summary()

    # Aligned: a part of the way.
    run = w.run(job, {**sets, "source.rate": 10_000})
    w.wait_for_checkpoint(2)
    run.interrupt()
    run.summary(status=INTERRUPTED)
    path = w.checkpoints()[w.newest_checkpoint()]

    # Unaligned, from there, and nothing moves: the first checkpoint after each restore holds what
    # was in flight in the one before.
    gate = w.write("gate", "")
    run = w.run(job, sets, config=UNALIGNED, state="unaligned",
                options=("--taskmanagers", "2", "--restore", path))
    w.wait_for_checkpoint(1, state="unaligned")
    stand_still(w)
    for pid in run.taskmanagers():
        w.kill([pid], 2, "unaligned")
    stand_still(w)
    run.interrupt()
    run.summary(status=INTERRUPTED)
    path = w.checkpoints("unaligned")[w.newest_checkpoint("unaligned")]

    # Aligned again: what was in flight is taken first, and checkpoints go on behind it.
    os.unlink(gate)
    run = w.run(job, sets, options=("--restore", path), state="aligned")
    summary = run.summary()
    expect(summary["checkpoints"]["completed"] >= 1, f"aligned checkpoints: {summary}")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of all runs together")
