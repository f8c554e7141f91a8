"""kill -9 of the coordinator at every step of completing one, and its recovery."""

from crash_points import COMPLETING, play_all


def test(w):
    play_all(w, COMPLETING)
