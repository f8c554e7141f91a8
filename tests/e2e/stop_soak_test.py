"""Fifty stops at random moments end with one savepoint or one error; another seed each day."""

import datetime
import os
import subprocess
import sys

from harness import expect_equal

TIMEOUT = 300


def test(w):
    seed = datetime.date.today().toordinal()
    soak = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stop_soak")
    halves = [subprocess.Popen(  # pylint: disable=consider-using-with
        [sys.executable, soak, "--count", "25", "--seed", str(2 * seed + half),
         "--build", w.build, "--factor", str(w.factor)],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for half in range(2)]
    said = [half.communicate()[0] for half in halves]
    expect_equal([half.returncode for half in halves], [0, 0], "exit status\n" + "".join(said))
