"""kill -9 of the coordinator at every step of a job's start, and its recovery."""

from crash_points import STARTING, in_the_source, known, play_all
from harness import expect_equal


def test(w):
    expect_equal(in_the_source(), set(known()), "every crash point of the coordinator is tried")
    play_all(w, STARTING)
