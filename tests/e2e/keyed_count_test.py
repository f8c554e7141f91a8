"""The digest of keyed count is the same in every run and at every parallelism of the count."""

import os

from harness import JOBS, expect_equal

RECORDS = 200_000


def test(w):
    with open(os.path.join(JOBS, "keyed-count.yaml"), encoding="utf-8") as file:
        text = file.read()
    head, tail = text.split("- uid: counting")
    wanted = None
    for subtasks in (2, 1, 4, 2):
        job = w.write(f"count-{subtasks}.yaml", head + "- uid: counting"
                      + tail.replace("parallelism: 2", f"parallelism: {subtasks}"))
        summary = w.run(job, {"generator.records": RECORDS}).summary()
        digest = summary["counters"]["digest"]
        expect_equal(digest["sum_of_values"], RECORDS, "records that were counted")
        wanted = wanted or digest
        expect_equal(digest, wanted, f"digest with {subtasks} subtasks")
