"""Forward, hash, rebalance and broadcast edges carry every record exactly, also after kill -9."""

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines

RECORDS = 400_000

DIGESTS = """\
name: edge-kinds
config:
  execution.checkpointing.interval: 50 ms
vertices:
  - uid: make
    parallelism: 2
    operators:
      - {uid: generator, type: generator, records: 400000, keys: 1000}
  - uid: same
    parallelism: 2
    operators: [{uid: forwarded, type: digest-sink}]
  - uid: turns
    parallelism: 3
    operators: [{uid: dealt, type: digest-sink}]
  - uid: all
    parallelism: 3
    operators: [{uid: broadcasted, type: digest-sink}]
  - uid: counting
    parallelism: 4
    operators:
      - {uid: count, type: keyed-count}
      - {uid: counted, type: digest-sink}
edges:
  - {from: make, to: same, partition: forward}
  - {from: make, to: turns, partition: rebalance}
  - {from: make, to: all, partition: broadcast}
  - {from: make, to: counting, partition: hash}
"""

FLOWS = """\
name: dealt-flows
config:
  execution.checkpointing.interval: 50 ms
vertices:
  - uid: ingest
    operators: [{uid: source, type: pcap-source, path: in.pcap}]
  - uid: parsing
    parallelism: 3
    operators: [{uid: parse, type: flow-parse}]
  - uid: metering
    parallelism: 2
    operators: [{uid: window, type: flow-window, size: 60 s}]
  - uid: writing
    parallelism: 2
    operators: [{uid: sink, type: file-sink, path: out}]
edges:
  - {from: ingest, to: parsing, partition: rebalance}
  - {from: parsing, to: metering, partition: hash}
  - {from: metering, to: writing, partition: forward}
"""


def kill_midway(w, run, state="state"):
    w.wait_for_checkpoint(3, state)
    w.kill(run.taskmanagers(), state=state)


def digests(w):
    job = w.write("edges.yaml", DIGESTS)
    run = w.run(job, {"generator.rate": 160_000})
    kill_midway(w, run)
    summary = run.summary()
    expect(summary["restarts"] >= 1, f"it was started again: {summary}")
    counters = summary["counters"]
    forwarded, dealt, broadcasted = (counters[uid] for uid in ("forwarded", "dealt", "broadcasted"))
    expect_equal(forwarded["records"], RECORDS, "records that were forwarded")
    expect_equal(dealt, forwarded, "digest of the records that were dealt out")
    expect_equal(broadcasted["records"], 3 * RECORDS, "records that were broadcast to three")
    expect_equal(int(broadcasted["digest_sum"], 0), 3 * int(forwarded["digest_sum"], 0) % 2 ** 64,
                 "sum of what was broadcast")
    expect_equal(counters["counted"]["sum_of_values"], RECORDS, "records that were counted")


def flows(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    job = w.write("flows.yaml", FLOWS)
    w.run(job, {"sink.path": w.path("calm"), "source.path": capture}, state="calm").summary()
    expect_equal(sum(int(line.split(",")[7]) for line in w.lines("calm")), 30_000, "packets")
    run = w.run(job, {"sink.path": w.path("out"), "source.path": capture, "source.rate": 15_000},
                state="flows")
    kill_midway(w, run, state="flows")
    run.summary()
    expect_same_lines(w.lines("out"), w.lines("calm"), "flows after kill -9")


def test(w):
    digests(w)
    flows(w)
