"""State files of subsumed checkpoints are written over by later ones, and each checkpoint holds
what its metadata names and nothing else, also behind a kill -9; a copy of one made by hard links
stays what it was."""

import collections
import json
import os

from harness import expect, expect_equal

RECORDS = 250_000
METADATA = "_metadata"


def files_of(directory):
    """What lies there; None: it went meanwhile."""
    try:
        return {entry.name: entry.inode() for entry in os.scandir(directory)}
    except FileNotFoundError:
        return None


def named_by(report):
    """The files that `weir inspect` shows."""
    return {state["file"] for vertex in report["vertices"] for subtask in vertex["subtasks"]
            for operator in subtask["operators"] for state in operator["states"]
            if state["file"]}


class Lives:
    """In which checkpoints each file was seen."""

    def __init__(self, w):
        self.w = w
        self.seen = collections.defaultdict(set)

    def look(self):
        """True when two files have had three lives."""
        for number, directory in self.w.checkpoints().items():
            for name, inode in (files_of(directory) or {}).items():
                if name.startswith("counting-"):
                    self.seen[(name, inode)].add(number)
        return sum(len(numbers) >= 3 for numbers in self.seen.values()) >= 2


def copy_by_links(source, target):
    """As backup tools do it; False: the checkpoint went meanwhile."""
    os.makedirs(target)
    try:
        for name in os.listdir(source):
            os.link(os.path.join(source, name), os.path.join(target, name))
    except FileNotFoundError:
        return False
    return os.path.exists(os.path.join(target, METADATA))


def make_copy(w):
    for attempt in range(20):
        newest = w.newest_checkpoint()
        target = w.path("copies", str(attempt), f"chk-{newest}")
        if copy_by_links(w.checkpoints().get(newest, ""), target):
            return target
    raise AssertionError("no checkpoint stays for as long as a copy takes")


def test(w):
    wanted = w.count(RECORDS, state="calm").summary()["counters"]["digest"]
    run = w.count(RECORDS, rate=50_000, config={"execution.checkpointing.interval": "50 ms"})
    w.wait_for(Lives(w).look, "files are written over")
    copy = make_copy(w)
    w.kill(run.taskmanagers()[:1], 4)
    w.wait_for(Lives(w).look, "files of the new attempts are written over")
    run.interrupt()
    run.wait()
    kept = w.checkpoints()
    expect_equal(len(kept), 3, f"retained checkpoints\n{run.stderr()[-2000:]}")
    for directory in [*kept.values(), copy]:
        status, said, why = w.weir("inspect", directory, "--json")
        expect_equal(status, 0, f"{directory} is whole: {why}")
        named = named_by(json.loads(said))
        expect(any(name.startswith("counting-") for name in named), f"its state: {named}")
        expect_equal(set(files_of(directory)), named | {METADATA}, f"what lies in {directory}")
    for source in (kept[max(kept)], copy):
        again = w.count(RECORDS, state="again", options=("--restore", source))
        expect_equal(again.summary()["counters"]["digest"], wanted, f"digest from {source}")
