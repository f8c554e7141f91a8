"""Closed streams, a full standard output, and limits of the shell: said, or done without."""

import json
import os
import resource

from harness import CONFIG, FAILURE, expect, expect_equal

CLOSED = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh"]
FULL = ["sh", "-c", 'exec "$@" >/dev/full', "sh"]
FEW_FILES = ["sh", "-c", 'ulimit -n 16; exec "$@"', "sh"]


def closed_streams(w):
    """Files must not get the numbers of streams that are closed: what is said would go there."""
    w.count(20_000, state="closed", prefix=CLOSED).ends_with(0)
    with open(w.path("closed", "logs", "coordinator.log"), encoding="utf-8") as log:
        expect("FINISHED" in log.read(), "the coordinator's log has its words")


def full_output(w):
    """A result that nobody can read is no success."""
    run = w.count(20_000, state="full", prefix=FULL)
    run.ends_with(FAILURE)
    expect("cannot write to standard output: No space left" in run.stderr(), run.stderr())


def few_files(w):
    """Refused in one line, and not by a stack trace of a library."""
    run = w.count(20_000, state="few", prefix=FEW_FILES)
    answer = json.loads((run.ends_with(CONFIG), run.stdout())[1])
    expect("only 16 files may be open" in answer["error"], answer["error"])


def small_files(w):
    """A file that outgrows its limit fails a checkpoint, as a full disk does; not the process."""
    run = w.count(0, rate=100_000, state="small", config={
        "execution.checkpointing.data-inline-threshold": "0"})
    w.wait_for_checkpoint(2, state="small")
    pid = run.taskmanagers()[0]
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
    w.wait_for(lambda: os.strerror(27) in run.stderr(), "a checkpoint fails by its size")
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
    newest = w.newest_checkpoint("small")
    w.wait_for_checkpoint(newest + 2, state="small")
    run.interrupt()
    summary = run.summary(130)
    expect_equal(summary["restarts"], 0, "restarts")


def test(w):
    closed_streams(w)
    full_output(w)
    few_files(w)
    small_files(w)
