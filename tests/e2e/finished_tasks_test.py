"""A task that had finished when a checkpoint was taken is finished again after a restore."""

import os

from captures import flows_capture
from harness import DONE, expect, expect_equal, expect_same_lines
from processes import free_port

# `short` and all behind it finishes first; of `files` one subtask has the short file.
JOB = """\
name: finished-tasks
config:
  execution.checkpointing.interval: 50 ms
vertices:
  - uid: short
    parallelism: 1
    operators:
      - {uid: short-source, type: pcap-source, path: short.pcap}
  - uid: short-flows
    parallelism: 1
    operators:
      - {uid: short-parse, type: flow-parse}
  - uid: files
    parallelism: 2
    operators:
      - {uid: source, type: pcap-source, path: files}
      - {uid: parse, type: flow-parse}
  - uid: metering
    parallelism: 2
    operators:
      - {uid: window, type: flow-window, size: 60 s}
      - {uid: sink, type: file-sink, path: out}
edges:
  - {from: short, to: short-flows, partition: forward}
  - {from: short-flows, to: metering, partition: hash}
  - {from: files, to: metering, partition: hash}
"""


def states(w, port):
    """Tasks of each vertex that have finished."""
    job = w.weir_json("list", "--rest", f"127.0.0.1:{port}")["jobs"][0]
    return job["tasks"]["finished"]


def finished_in(w, checkpoint):
    """What weir inspect calls finished: vertices, and (vertex, subtask)."""
    answer = w.weir_json("inspect", checkpoint)
    found = set()
    for vertex in answer["vertices"]:
        if vertex["finished"]:
            found.add(vertex["uid"])
        found |= {(vertex["uid"], s["index"]) for s in vertex["subtasks"] if s["finished"]}
    return found


def play(w, name, rate):
    port = free_port()
    run = w.run(w.path("job.yaml"), {"sink.path": w.path(name), "source.rate": rate},
                state=name, config={"rest.bind-port": port})
    return run, port


def test(w):
    flows_capture(w.path("short.pcap"), 400, 600)
    os.mkdir(w.path("files"))
    # Of an earlier time: nothing of the other is late, whoever reads the two.
    flows_capture(w.path("files", "a.pcap"), 300, 500, flows=20, start=1_600_000_000 - 600)
    flows_capture(w.path("files", "b.pcap"), 24_000, 600, flows=40)
    w.write("job.yaml", JOB)
    run, _ = play(w, "calm", 0)
    run.summary()
    run, port = play(w, "out", 10_000)
    w.wait_for_checkpoint(1, "out")
    w.wait_for(lambda: states(w, port) == 3, "three tasks finish", 20)
    newest = w.wait_for_checkpoint(w.newest_checkpoint("out") + 3, "out")
    kept = w.checkpoints("out")[newest]
    finished = finished_in(w, kept)
    expect({"short", "short-flows"} <= finished, f"finished vertices: {finished}")
    expect(len(finished) == 3, f"and one subtask of the other source: {finished}")

    # Twice: what was restored as finished is written down as finished again.
    for _ in range(2):
        newest = w.kill(run.taskmanagers(), 4, "out")
        expect_equal(finished_in(w, w.checkpoints("out")[newest]), finished,
                     "finished after a restore")
    summary = run.summary()
    expect_equal(summary["restarts"], 2, "restarts")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output")
    expect_equal(run.wait(), DONE, "exit status")
