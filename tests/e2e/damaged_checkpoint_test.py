"""A damaged checkpoint is refused with file and reason; --allow-rewind goes back, exactly."""

import os
import shutil

from captures import flows_capture
from harness import INTERRUPTED, REFUSED, expect, expect_same_lines

TIMEOUT = 180


def cut_half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def flip(path):
    """One bit, within what is behind the head of both kinds of file."""
    with open(path, "r+b") as file:
        file.seek(40)
        byte = file.read(1)[0]
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte ^ 0x10]))


def largest_state(checkpoint):
    names = [n for n in os.listdir(checkpoint) if n != "_metadata"]
    return max(names, key=lambda n: os.path.getsize(os.path.join(checkpoint, n)))


# What happens to which file; None: the largest one with state.
DAMAGES = [("torn metadata", "_metadata", cut_half), ("flipped metadata", "_metadata", flip),
           ("metadata gone", "_metadata", os.unlink), ("truncated state", None, cut_half),
           ("flipped state", None, flip), ("state gone", None, os.unlink)]


def test(w):
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    config = {"execution.checkpointing.data-inline-threshold": "0 b"}
    run = w.flow(capture, "out", rate=10_000, config=config)
    w.wait_for_checkpoint(8)
    run.interrupt()
    run.summary(status=INTERRUPTED)
    for kept in ("state", "out"):
        shutil.copytree(w.path(kept), w.path("kept-" + kept))

    for what, name, damage in DAMAGES:
        for kept in ("state", "out"):
            shutil.rmtree(w.path(kept))
            shutil.copytree(w.path("kept-" + kept), w.path(kept))
        checkpoint = w.checkpoints()[w.newest_checkpoint()]
        name = name or largest_state(checkpoint)
        damage(os.path.join(checkpoint, name))
        before = w.parts("out")
        restore = ("--restore", "latest")
        run = w.flow(capture, "out", config=config, options=restore)
        run.ends_with(REFUSED, what=f"{what}: ")
        chain = os.path.basename(checkpoint)
        expect(chain in run.stderr() and name in run.stderr(),
               f"{what}: {chain}/{name} is named:\n{run.stderr()}")
        expect(w.parts("out") == before, f"{what}: no output was touched")
        run = w.flow(capture, "out", config=config, options=(*restore, "--allow-rewind"))
        run.summary()
        expect_same_lines(w.lines("out"), w.lines("calm"), f"{what}: output after the rewind")
