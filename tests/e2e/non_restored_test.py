"""State of operators that are no more: refused by name, left behind with -n, the rest exact."""

from harness import DONE, INTERRUPTED, expect, expect_equal

RESTORE_REFUSED = 5
HEAD = """\
name: branches
config:
  execution.checkpointing.interval: 50 ms
vertices:
"""
BRANCH = """\
  - uid: {0}-make
    operators: [{{uid: {0}, type: generator, records: 600000, keys: 1024}}]
  - uid: {0}-counting
    operators:
      - {{uid: {0}-count, type: keyed-count, keys-max: 4096}}
      - {{uid: {0}-digest, type: digest-sink}}
"""
EDGE = "  - {{from: {0}-make, to: {0}-counting, partition: hash}}\n"


def job(w, name, branches):
    """A job file with those branches."""
    return w.write(name, HEAD + "".join(BRANCH.format(b) for b in branches) + "edges:\n"
                   + "".join(EDGE.format(b) for b in branches))


def digest(summary):
    """What the branch that stays has counted."""
    return summary["counters"]["kept-digest"]


def test(w):
    both, one = job(w, "both.yaml", ("kept", "gone")), job(w, "one.yaml", ("kept",))
    calm = w.run(one, state="calm").summary()
    run = w.run(both, {"kept.rate": 300_000, "gone.rate": 300_000})
    w.wait_for_checkpoint(2)
    run.interrupt()
    run.summary(status=INTERRUPTED)
    newest = w.checkpoints()[w.newest_checkpoint()]

    refused = w.run(one, state="refused", options=("--restore", newest))
    refused.ends_with(RESTORE_REFUSED)
    expect("gone-" in refused.stderr(), f"it names what is gone: {refused.stderr()}")
    for words, status in (((), RESTORE_REFUSED), (("-n",), DONE)):
        found, out, err = w.weir("restore", "--dry-run", one, newest, *words)
        expect_equal(found, status, f"restore --dry-run {words}: {out}{err}")

    run = w.run(one, state="restored", options=("--restore", newest, "-n"))
    expect_equal(digest(run.summary()), digest(calm), "what is kept goes on where it was")
