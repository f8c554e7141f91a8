"""kill -9 of the coordinator at every step of letting old ones go and of the end; recovery."""

from crash_points import ENDING, play_all


def test(w):
    play_all(w, ENDING)
