"""Flow metering counts what tshark counts, for each pair of addresses, on every shipped capture."""

import os

from captures import output_totals, shipped, tshark_totals
from harness import expect, expect_equal

TIMEOUT = 180


def test(w):
    captures = shipped()
    expect(captures, "no captures in tests/data")
    for number, capture in enumerate(captures):
        name = os.path.basename(capture)
        totals, frames = tshark_totals(capture)
        summary = w.flow(capture, f"out-{number}", state=f"state-{number}").summary()
        ours = output_totals(w.lines(f"out-{number}"))
        for pair in sorted(set(totals) | set(ours)):
            expect_equal(ours.get(pair), totals.get(pair), f"{name}: (packets, bytes) of {pair}")
        packets = sum(count for count, _ in ours.values())
        unparsed = sum(summary["unparsed"].values())
        expect_equal(packets + unparsed, frames, f"{name}: packets in the output + unparsed")
        expect_equal(summary["state"], "FINISHED", f"{name}: state")
