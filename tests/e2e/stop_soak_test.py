"""Fifty stops at random moments end with one savepoint or one error; another seed each day."""

import datetime
import os

from harness import expect_equal

TIMEOUT = 300


def test(w):
    seed = datetime.date.today().toordinal()
    words = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "stop_soak"),
             "--count", "50", "--seed", str(seed), "--build", w.build, "--factor", str(w.factor)]
    status, out, err = w.command(words, seconds=TIMEOUT)
    expect_equal(status, 0, f"exit status\n{out}{err}")
