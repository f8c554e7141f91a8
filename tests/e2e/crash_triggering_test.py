"""kill -9 of the coordinator at every step of triggering a checkpoint, and its recovery."""

from crash_points import TRIGGERING, play_all


def test(w):
    play_all(w, TRIGGERING)
