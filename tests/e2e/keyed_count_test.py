"""The digest of keyed count is the same in every run and at every parallelism of the count."""

from harness import expect, expect_equal

RECORDS = 200_000


def digest_of(summary):
    """All counters of the sink."""
    sinks = [c for c in summary["counters"].values() if "digest_sum" in c]
    expect(len(sinks) == 1, f"one operator has a digest: {summary['counters']}")
    return sinks[0]


def test(w):
    wanted = digest_of(w.count(RECORDS, state="first").summary())
    expect_equal(wanted["records"], RECORDS, "records that reached the sink")
    for number, workers in enumerate(("auto:1", "auto:2")):
        run = w.count(RECORDS, state=f"other-{number}", config={"weir.cores": workers})
        expect_equal(digest_of(run.summary()), wanted, f"digest with weir.cores {workers}")
