"""What the tests of injected faults share: building a C file, and the lines that tell a failure."""

import os
import re
import shutil

from harness import ROOT, Failed, Skip, expect

HERE = os.path.dirname(os.path.abspath(__file__))

# Whom it waited for, in which phase, for how long.
FAILURE = re.compile(r"checkpoint (?P<id>\d+) failed after (?P<ms>\d+) ms, (?P<phase>[^(]+) "
                     r"\((?P<acked>\d+) of \d+ subtasks acknowledged\): (?P<rest>.*)")
SUBTASK = re.compile(r"^(?P<subtask>\S+ \(\d+/\d+\)) "
                     r"(has not acknowledged \((?P<at>[^)]*)\)|refused): ")


def compile_shared(w, source, target, *more):
    """A shared object of a C file beside this one."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        raise Skip("no C compiler here")
    status, _, err = w.command([compiler, "-shared", "-fPIC", "-O2", "-D_GNU_SOURCE", "-I", ROOT,
                                "-o", target, os.path.join(HERE, source), *more])
    expect(status == 0, f"the compiler's exit status\n{err}")
    return w.path(target)


def first_failure(w, run, seconds=30, behind=0):
    """The first line of `weir run` that tells how one behind that checkpoint failed, in parts."""
    def look():
        for line in run.stderr().splitlines():
            found = FAILURE.search(line)
            if found and int(found["id"]) > behind:
                return found
        return None

    return w.wait_for(look, "a line that tells the failure", seconds)


def subtask_of(failure):
    found = SUBTASK.match(failure["rest"])
    if not found:
        raise Failed(f"the line names no subtask: {failure.group(0)}")
    return found["subtask"]


def step_of(failure):
    """What the subtask that was waited for said it was at."""
    found = SUBTASK.match(failure["rest"])
    return found["at"] if found else None
