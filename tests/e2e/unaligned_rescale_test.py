"""Data in flight of an unaligned checkpoint finds its way with other parallelism, up and down."""

import os
import re

from captures import flows_capture
from faults import compile_shared
from harness import INTERRUPTED, expect, expect_same_lines
from unaligned_restore_test import UNALIGNED, stand_still

# Records wait on both edges: packets of any size on the first, flows by their key on the second.
JOB = """\
name: overtaken
config:
  execution.checkpointing.interval: 100 ms
vertices:
  - uid: ingest
    parallelism: 2
    operators: [{uid: source, type: pcap-source, path: in-*.pcap}]
  - uid: parsing
    parallelism: 2
    operators: [{uid: parse, type: flow-parse}]
  - uid: metering
    parallelism: 2
    operators:
      - {uid: stall, type: stalling, plugin: ./stalling.so, gate: gate}
      - {uid: window, type: flow-window, size: 60 s, max-flows: 16384}
      - {uid: sink, type: file-sink, path: out}
edges:
  - {from: ingest, to: parsing, partition: rebalance}
  - {from: parsing, to: metering, partition: hash}
"""

# With more subtasks of the source than files one ends at once: checkpoints do not wait for its last
# word, which has come while nothing moves.
COUNTS = [(2, 2, 2), (3, 3, 3), (1, 3, 1), (2, 1, 7), (4, 4, 8)]


def job_with(w, subtasks):
    counts = iter(subtasks)
    text = re.sub(r"parallelism: \d+", lambda _: f"parallelism: {next(counts)}", JOB)
    return w.write("job-" + "-".join(map(str, subtasks)) + ".yaml", text)


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    for i in range(2):
        flows_capture(w.path(f"in-{i}.pcap"), 150_000, 600)
    sets = {"sink.path": w.path("out")}
    w.run(job_with(w, COUNTS[0]), {"sink.path": w.path("calm")}, state="calm").summary()
    gate = w.write("gate", "")
    options = ()
    for subtasks in COUNTS:
        run = w.run(job_with(w, subtasks), sets, config=UNALIGNED, state="unaligned",
                    options=options)
        stand_still(w)
        run.interrupt()
        run.summary(status=INTERRUPTED)
        path = w.checkpoints("unaligned")[w.newest_checkpoint("unaligned")]
        options = ("--restore", path)
    os.unlink(gate)
    summary = w.run(job_with(w, (2, 2, 3)), sets, state="aligned", options=options).summary()
    expect(summary["checkpoints"]["completed"] >= 1, f"aligned checkpoints: {summary}")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of all runs together")
