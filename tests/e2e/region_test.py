"""When a task fails, only its region restarts: what no records join it with runs on (FO-1)."""

import json
import re
import urllib.request

from faults import compile_shared
from harness import expect, expect_equal

JOB = """name: two-rivers
vertices:
  - uid: left
    parallelism: 2
    operators:
      - {uid: lg, type: generator, rate: 10000, records: 40000, keys: 1000}
  - uid: left-out
    parallelism: 2
    operators:
      - {uid: trip, type: tripping, plugin: ./tripping.so, wire: wire}
      - {uid: lw, type: file-sink, path: left, format: count-csv}
  - uid: right
    parallelism: 2
    operators:
      - {uid: rg, type: generator, rate: 10000, records: 40000, keys: 1000, seed: 7}
      - {uid: rw, type: file-sink, path: right, format: count-csv}
edges:
  - {from: left, to: left-out, partition: hash}
"""


def address(run):
    """Where the coordinator tells about the job."""
    log = run.stderr()
    return (re.search(r"^REST at (\S+)$", log, re.M)[1] + "/jobs/"
            + re.search(r"^job \S+ is (\w+)$", log, re.M)[1])


def attempts(base):
    """Attempt numbers and states by (vertex, subtask)."""
    with urllib.request.urlopen(base + "/numbers", timeout=10) as answer:
        rows = json.load(answer)
    return {(row["vertex"], row["subtask"]): (row["attempt"], row["state"]) for row in rows}


def lines(w, place):
    found = []
    for part in w.parts(place):
        with open(part, encoding="utf-8") as file:
            found += file.read().splitlines()
    return sorted(found)


def start(w, job, name, rate):
    return w.run(job, {"lw.path": w.path(name + "-left"), "rw.path": w.path(name + "-right"),
                       "trip.wire": w.path(name + "-wire"), "lg.rate": rate, "rg.rate": rate},
                 state=name)


def test(w):
    compile_shared(w, "tripping.c", "tripping.so")
    job = w.write("two-rivers.yaml", JOB)
    start(w, job, "calm", 0).summary()
    run = start(w, job, "out", 10_000)
    w.wait_for_checkpoint(3, "out")
    base = address(run)
    before = attempts(base)
    for restarts in (1, 2):
        w.write("out-wire", "")
        w.wait_for(lambda: all(
            number > before[key][0] and state == "RUNNING"
            for key, (number, state) in attempts(base).items() if key[0].startswith("left")),
            "the region of the task that tripped restarts")
        after = attempts(base)
        for index in (0, 1):
            expect_equal(after[("right", index)], before[("right", index)], "the other region")
        w.wait_for_checkpoint(w.newest_checkpoint("out") + 2, "out")
        before = after
    summary = run.summary()
    expect_equal(summary["restarts"], restarts, "restarts")
    expect("it tripped over the wire" in run.stderr(), run.stderr())
    for place in ("left", "right"):
        expect_equal(lines(w, "out-" + place), lines(w, "calm-" + place), f"output {place}")
