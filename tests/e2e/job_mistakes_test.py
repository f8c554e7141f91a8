"""Mistakes in a job file are one line each, with file, line and column; nothing is started."""

import json
import re

from harness import CONFIG, USAGE, expect, expect_equal

GOOD = """\
name: mistakes
config:
  execution.checkpointing.interval: 1 s
vertices:
  - uid: make
    parallelism: 1
    operators:
      - uid: generator
        type: generator
        records: 1000
        rate: 0
  - uid: counting
    parallelism: 1
    operators:
      - {uid: count, type: keyed-count}
      - {uid: digest, type: digest-sink}
edges:
  - {from: make, to: counting, partition: hash}
"""

# What is written instead of what; the line where the mistake then stands.
MISTAKES = [
    ("vertices:", "vertexes:", 4),
    ("interval: 1 s", "interval: 1 parsec", 3),
    ("checkpointing.interval", "checkpointing.intervall", 3),
    ("parallelism: 1", "parallelism: 0", 6),
    ("type: generator", "type: generater", 9),
    ("records: 1000", "recrods: 1000", 10),
    ("rate: 0", "rate: fast", 11),
    ("- uid: counting", "- uid: make", 12),
    ("to: counting", "to: nowhere", 18),
    ("partition: hash", "partition: hsah", 18),
    ("uid: digest", "uid: count", 16),
    ("parallelism: 1\n    operators:\n      - uid: gen", "parallelism: [1\n    operators:\n"
     "      - uid: gen", None),
    ("name: mistakes", "name: [", None),
    ("type: digest-sink", "type: mine, plugin: ./gone.so", 16),
]

COMMAND_LINES = [
    (["plan", "job.yaml", "--set"], "weir plan: --set: expected a value behind it"),
    (["run", "job.yaml", "-D"], "weir run: -D: expected a value behind it"),
    (["checkpoints", "mistakes", "--id"], "weir checkpoints: --id: expected a value behind it"),
    (["verify", "--deep", "chk-1"], "weir verify: --deep: no such option"),
    (["plan", "job.yaml", "-xh"], "weir plan: -x: no such option"),
    (["plan", "job.yaml", "--json=no"], "weir plan: --json=no: expected no value"),
]


def test(w):
    for words, text in COMMAND_LINES:
        status, out, err = w.weir(*words)
        expect_equal(status, USAGE, f"{words}: exit status")
        expect_equal(out, "", f"{words}: standard output")
        expect_equal(err.splitlines()[0], text, f"{words}: the first line")
    w.run(w.write("good.yaml", GOOD)).summary()
    for before, after, line in MISTAKES:
        expect(before in GOOD, f"{before!r} is in the good file")
        path = w.write("job.yaml", GOOD.replace(before, after, 1))
        run = w.run(path)
        expect_equal(run.wait(), CONFIG, f"{after!r}: exit status")
        said = run.stderr().splitlines()
        expect_equal(json.loads(run.stdout()),
                     {"state": "NOT_STARTED", "error": said[0], "exit_code": CONFIG},
                     f"{after!r}: standard output")
        expect_equal(len(said), 1, f"{after!r}: lines in {said}")
        match = re.match(r"(?:weir run: )?(.*job\.yaml):(\d+):(\d+): ", said[0])
        expect(match is not None, f"{after!r}: file, line and column: {said[0]}")
        if line is not None:
            expect_equal(int(match[2]), line, f"{after!r}: line in {said[0]}")
