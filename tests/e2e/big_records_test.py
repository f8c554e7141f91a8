"""Records of 8 bytes to 1 MiB arrive whole over every kind of edge, also after kill -9."""

from faults import compile_shared
from harness import FAILURE, expect, expect_equal

RECORDS = 3000

JOB = """\
name: big-records
config:
  execution.checkpointing.interval: 50 ms
vertices:
  - uid: make
    parallelism: 2
    operators: [{uid: source, plugin: big.so, type: big-source, records: 3000}]
  - uid: keyed
    parallelism: 3
    operators: [{uid: hashed, plugin: big.so, type: big-sink}]
  - uid: turns
    parallelism: 2
    operators: [{uid: dealt, plugin: big.so, type: big-sink}]
  - uid: all
    parallelism: 2
    operators: [{uid: broadcasted, plugin: big.so, type: big-sink}]
edges:
  - {from: make, to: keyed, partition: hash}
  - {from: make, to: turns, partition: rebalance}
  - {from: make, to: all, partition: broadcast}
"""


def expect_whole(counters, uid, times):
    """Each record was seen `times` times: the sink has checked every byte."""
    expect_equal(counters[uid]["records"], times * RECORDS, f"records of {uid}")
    expect_equal(counters[uid]["sum_of_numbers"], times * RECORDS * (RECORDS - 1) // 2,
                 f"numbers of {uid}")


def test(w):
    compile_shared(w, "big_records.c", "big.so", "-Wall", "-Werror")
    job = w.write("job.yaml", JOB)
    run = w.run(job, {"source.rate": 1000, "dealt.delay": "1 ms"})
    w.wait_for_checkpoint(3)
    w.kill(run.taskmanagers())
    summary = run.summary()
    expect(summary["restarts"] >= 1, f"it was started again: {summary}")
    expect_whole(summary["counters"], "hashed", 1)
    expect_whole(summary["counters"], "dealt", 1)
    expect_whole(summary["counters"], "broadcasted", 2)
    # A channel of small buffers cannot hold such a record: said before anything runs.
    run = w.run(job, config={"taskmanager.memory.segment-size": "4 kb"}, state="small")
    run.ends_with(FAILURE)
    expect("segment-size is too small" in run.stderr(), run.stderr())
