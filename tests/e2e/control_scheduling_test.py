"""Control threads go before workers, but take turns once their loop is over."""

import os
import subprocess

from harness import Skip, expect_equal


def is_allowed():
    """Whether a child may go first here."""
    child = subprocess.run(["chrt", "--rr", "1", "true"], stderr=subprocess.DEVNULL, check=False)
    return child.returncode == 0


def start(w, name, *words):
    with open(w.path(name + ".log"), "w", encoding="utf-8") as log:
        return subprocess.Popen(  # pylint: disable=consider-using-with
            [w.program(name), *words], cwd=w.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def address_of(w, coordinator):
    def look():
        expect_equal(coordinator.poll(), None, "exit status of the coordinator")
        with open(w.path("weir-coordinator.log"), encoding="utf-8") as log:
            return next((line[4:].strip() for line in log if line.startswith("RPC ")), None)

    return w.wait_for(look, "the coordinator says where it listens")


def policy(child):
    return os.sched_getscheduler(child.pid) & ~os.SCHED_RESET_ON_FORK


def expect_turns_at_the_end(child, name):
    """It has ended and is not reaped yet: how it was scheduled at last."""
    child.terminate()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    expect_equal(policy(child), os.SCHED_OTHER, f"how {name} was scheduled when it ended")
    expect_equal(child.wait(), 0, f"exit status of {name}")


def test(w):
    if not is_allowed():
        raise Skip("real-time scheduling is not allowed here (ulimit -r)")
    coordinator = start(w, "weir-coordinator",
                        *[f"-D{key}={value}" for key, value in w.settings("state").items()])
    taskmanager = start(w, "weir-taskmanager", "--coordinator", address_of(w, coordinator))
    for child in (coordinator, taskmanager):
        w.wait_for(lambda pid=child: policy(pid) == os.SCHED_RR, "its loop goes first", 10)
    expect_turns_at_the_end(taskmanager, "weir-taskmanager")
    expect_turns_at_the_end(coordinator, "weir-coordinator")
