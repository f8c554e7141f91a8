"""Twenty seeds of barriers under fire keep every record once; another twenty each day."""

import datetime
import os
import re

from harness import FAILURE, expect, expect_equal

TIMEOUT = 300
SEEDS = 20
# What they found: records behind an outlived barrier of a plain ring were not kept; nor were those
# of a checkpoint whose younger one was aborted; the soak itself mixed up what tasks of several
# parallelisms had written down at their end; and a task with a trigger in every turn took nothing.
ONCE_WRONG = (14799009, 486, 5418, 14799007)
MISTAKES = ("drop-input", "keep-twice", "drop-output", "swap", "no-block")
SOAK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "barrier_soak")


def soak(w, *words):
    return w.command([SOAK, "--build", w.build, "--factor", str(w.factor), *map(str, words)],
                     seconds=TIMEOUT)


def test(w):
    seed = datetime.date.today().toordinal() * SEEDS
    status, out, err = soak(w, "--seed", seed, "--count", SEEDS)
    expect_equal(status, 0, f"exit status\n{out}{err}")
    for once in ONCE_WRONG:
        status, out, err = soak(w, "--seed", once, "--count", 1)
        expect_equal(status, 0, f"seed {once}: exit status\n{out}{err}")
    for mistake in MISTAKES:
        status, out, err = soak(w, "--seed", 1, "--count", 25, "--plant", mistake)
        expect_equal(status, FAILURE, f"{mistake} is found: exit status\n{out}{err}")
        expect(re.search(r"^FAIL seed \d+, .*checkpoint", out, re.M), out)
    # One that loses a record names it.
    _, out, _ = soak(w, "--seed", 1, "--count", 25, "--plant", MISTAKES[0])
    expect(re.search(r"(channel \d+|edge \w+) -> \w+.*: stream \d+ number \d+ .*checkpoint \d+",
                     out), out)
