"""Two checkpoints of the same keyed state are under way at a time, and each restores exactly; a
savepoint is taken beside the one checkpoint that there may be; an unaligned one beside the files of
one that was given up."""

import os
import re
import shutil
from functools import partial

from faults import compile_shared
from harness import expect, expect_equal
from processes import free_port

RECORDS = 300_000
JOB = "keyed-count"


def numbers_held(gate):
    """Of the checkpoints that have a sync which does not come back, oldest first."""
    try:
        with open(gate + ".held", encoding="utf-8") as file:
            return sorted({int(n) for n in re.findall(r"/chk-([0-9]+)/", file.read())})
    except FileNotFoundError:
        return []


def savepoint_beside_a_checkpoint(w, library):
    """A savepoint is forced (RD-4): it does not wait for the checkpoint that a disk holds up, and
    no sync of it waits behind those of that checkpoint."""
    gate, port = w.write("beside-gate", "/savepoints/"), free_port()
    run = w.count(RECORDS, rate=60_000, state="beside", config={
        "rest.bind-port": port, "weir.storage": "threads", "heartbeat.timeout": "10 s",
        "execution.checkpointing.data-inline-threshold": "0"},
        env=held(library, gate))
    rest = ("--rest", f"127.0.0.1:{port}")
    number = w.wait_for(lambda: numbers_held(gate), "a checkpoint is held up")[0]
    status, said, why = w.weir("savepoint", JOB, w.path("savepoints"), *rest)
    expect_equal(status, 0, f"the savepoint: {said} {why}")
    beside, slow = w.weir_json("checkpoints", JOB, *rest)["history"][:2]  # the newest first
    expect(beside["is_savepoint"] and beside["status"] == "COMPLETED" and slow["id"] == number
           and slow["status"] == "IN_PROGRESS", f"they overlap: {slow} {beside}")
    os.unlink(gate)
    run.summary()


def unaligned_beside_an_aborted_one(w, library, wanted):
    """The next checkpoint completes though files of one that expired hang on the disk."""
    gate = w.write("aborted-gate", "/chk-2/")
    run, rest = start_held(w, library, gate, {
        "execution.checkpointing.unaligned.enabled": "true",
        "execution.checkpointing.timeout": "1500 ms"}, rate=100_000, state="aborted")

    def second():
        history = {c["id"]: c for c in w.weir_json("checkpoints", JOB, *rest)["history"]}
        return history[2] if history.get(2, {"status": ""})["status"] in (
            "COMPLETED", "FAILED") else None

    w.wait_for(lambda: numbers_held(gate), "a checkpoint is held up")
    said = w.wait_for(second, "the second has ended")
    expect_equal(said["status"], "COMPLETED", f"the second: {said}")
    expect(1 in numbers_held(gate), "the first hangs")
    os.unlink(gate)
    expect_equal(run.summary()["counters"]["digest"], wanted, "digest beside files that hung")


def held(library, gate):
    return {"LD_PRELOAD": library, "SLOW_PROGRAM": "weir-taskmanager", "SLOW_GATE": gate,
            "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}


def start_held(w, library, gate, config, **more):
    """The job on a disk that holds up what the gate names; and how commands find it."""
    port = free_port()
    run = w.count(RECORDS, config={
        "rest.bind-port": port, "weir.storage": "threads", "heartbeat.timeout": "10 s",
        "execution.checkpointing.data-inline-threshold": "0", **config},
        env=held(library, gate), **more)
    return run, ("--rest", f"127.0.0.1:{port}")


def test(w):
    library = compile_shared(w, "slow_disk.c", "slow_disk.so", "-ldl")
    wanted = w.count(RECORDS, state="calm").summary()["counters"]["digest"]
    gate = w.write("gate", "")  # no sync comes back: the job does not end before this test
    run, rest = start_held(w, library, gate, {
        "execution.checkpointing.max-concurrent-checkpoints": "2",
        "execution.checkpointing.num-retained": "1000"}, rate=60_000)

    def statistics():
        return w.weir_json("checkpoints", JOB, *rest)

    def two_held():
        numbers = numbers_held(gate)
        return numbers if len(numbers) == 2 else None

    def has_ended(number):
        return not any(c["id"] == number and c["status"] == "IN_PROGRESS"
                       for c in statistics()["history"])

    under_way = w.wait_for(two_held, "two checkpoints under way")
    expect_equal(statistics()["counts"]["failed"], 0, "failed checkpoints")
    for number in under_way:  # each by itself: it waits for no sync of a younger one
        w.write("gate", f"chk-{number}/")
        w.wait_for(partial(has_ended, number), f"checkpoint {number} has ended")
    history = {c["id"]: c for c in statistics()["history"]}
    expect_equal([history[i]["status"] for i in under_way], ["COMPLETED"] * 2,
                 f"both complete: {history}")
    # A directory that is read while others come and go may not show all that are there.
    w.wait_for(lambda: set(under_way) <= set(w.checkpoints()), f"checkpoints {under_way} are there")
    older, younger = (history[i] for i in under_way)
    expect(younger["trigger_timestamp"] < older["latest_ack_timestamp"],
           f"they overlap: {older} {younger}")
    for number in under_way:  # the job takes its own away when it has finished
        shutil.copytree(w.checkpoints()[number], w.path("kept", f"chk-{number}"))
    os.unlink(gate)
    expect_equal(run.summary()["counters"]["digest"], wanted, "digest of the run itself")
    for number in under_way:
        again = w.count(RECORDS, state=f"again-{number}", config={"weir.storage": "threads"},
                        options=("--restore", w.path("kept", f"chk-{number}")))
        expect_equal(again.summary()["counters"]["digest"], wanted,
                     f"digest after a restore of checkpoint {number}")
    savepoint_beside_a_checkpoint(w, library)
    unaligned_beside_an_aborted_one(w, library, wanted)
