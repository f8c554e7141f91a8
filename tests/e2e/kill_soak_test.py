"""Ten kills at drawn points leave the output as it is undisturbed; another seed each day."""

import datetime
import os

from harness import expect_equal

TIMEOUT = 300


def test(w):
    seed = datetime.date.today().toordinal()
    words = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "kill_soak"),
             "--count", "10", "--seed", str(seed), "--build", w.build, "--factor", str(w.factor)]
    status, out, err = w.command(words, seconds=TIMEOUT)
    expect_equal(status, 0, f"exit status\n{out}{err}")
