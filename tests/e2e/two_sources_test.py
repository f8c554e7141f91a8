"""Two sources of unequal length: checkpoints go on after the short one ended, and all is exact."""

from captures import flows_capture
from harness import expect, expect_same_lines

JOB = """\
name: two-sources
config:
  execution.checkpointing.interval: 50 ms
vertices:
  - uid: short
    parallelism: 1
    operators:
      - {uid: short-source, type: pcap-source, path: short.pcap}
      - {uid: short-parse, type: flow-parse}
  - uid: long
    parallelism: 1
    operators:
      - {uid: long-source, type: pcap-source, path: long.pcap}
      - {uid: long-parse, type: flow-parse}
  - uid: metering
    parallelism: 2
    operators:
      - {uid: window, type: flow-window, size: 60 s}
      - {uid: sink, type: file-sink, path: out}
edges:
  - {from: short, to: metering, partition: hash}
  - {from: long, to: metering, partition: hash}
"""


def test(w):
    flows_capture(w.path("short.pcap"), 500, 600)
    flows_capture(w.path("long.pcap"), 30_000, 600, flows=40)
    job = w.write("job.yaml", JOB)
    w.run(job, {"sink.path": w.path("calm")}, state="calm").summary()
    expect(sum(int(line.split(",")[7]) for line in w.lines("calm")) == 30_500,
           "all packets of both are there")
    run = w.run(job, {"sink.path": w.path("out"), "long-source.rate": 10_000})
    # The short one has ended with the first of these; the long one has not.
    newest = w.wait_for_checkpoint(5)
    w.wait_for_checkpoint(newest + 5)
    w.kill(run.taskmanagers())
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "output after kill -9")
