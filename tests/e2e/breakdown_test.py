"""Of an unaligned checkpoint each subtask tells its mode and the bytes it kept in flight."""

import os
import re
import time

from captures import flows_capture
from faults import compile_shared
from harness import DONE, expect, expect_equal, fetch
from processes import free_port
from unaligned_restore_test import JOB, UNALIGNED, in_flight_bytes


def test(w):
    compile_shared(w, "stalling.c", "stalling.so")
    for i in range(2):
        flows_capture(w.path(f"in-{i}.pcap"), 60_000, 600)
    port = free_port()
    gate = w.write("gate", "")
    run = w.run(w.write("job.yaml", JOB), {"sink.path": w.path("out")},
                config={**UNALIGNED, "rest.bind-port": port})
    time.sleep(0.5 * w.factor)  # the channels fill
    newest = w.wait_for_checkpoint(w.newest_checkpoint() + 2)
    rest = ("--rest", f"127.0.0.1:{port}")
    one = w.weir_json("checkpoints", "overtaken", "--id", str(newest), *rest)
    kept = in_flight_bytes(w, w.checkpoints()[newest])
    expect_equal(one["checkpoint_type"], "UNALIGNED_CHECKPOINT", "kind")
    subtasks = {v["name"]: v["subtasks"] for v in one["vertices"]}
    for subtask in subtasks["metering"]:
        expect(subtask["unaligned_checkpoint"], f"it ended unaligned: {subtask}")
        expect(subtask["alignment"]["persisted"] > 0, f"bytes in flight: {subtask}")
        kept_there = subtask["channel_state"]
        expect_equal((subtask["mode"], kept_there["files"], kept_there["bytes"]),
                     ("unaligned", 1, subtask["alignment"]["persisted"]), "mode, files, bytes")
        expect(kept_there["buffers"] >= kept_there["channels"] > 0, f"channels: {subtask}")
        each = kept_there["per_channel"]
        expect_equal((len(each), sum(c["bytes"] for c in each), sum(c["buffers"] for c in each)),
                     (kept_there["channels"], kept_there["bytes"], kept_there["buffers"]),
                     "each channel by itself")
        expect(len({(c["side"], c["gate"], c["channel"]) for c in each}) == len(each), str(each))
    told = sum(s["alignment"]["persisted"] for v in subtasks.values() for s in v)
    expect_equal(told, one["persisted_data"], "the sum over the subtasks")
    expect_equal(told, kept, "what the files hold")
    status, out, err = w.weir("checkpoints", "overtaken", "--id", str(newest), *rest)
    expect_equal(status, DONE, f"exit status\n{err}")
    expect(out.count("unaligned") >= 2 and "UNALIGNED_CHECKPOINT" in out, out)
    first = subtasks["metering"][0]["channel_state"]["per_channel"][0]
    row = rf'metering +1/\d+ +{first["side"]} {first["gate"]}.{first["channel"]} +' \
          rf'{first["buffers"]} +{first["bytes"]}\n'
    expect(re.search(row, out) is not None, out)
    out = fetch(port, "/metrics")
    expect("weir_taskmanager_job_task_checkpointPersistedFiles{" in out, "per task metrics")
    os.unlink(gate)
    run.summary()
    see_timeout(w)


def see_timeout(w):
    """Of one that began aligned and had to wait, some subtask says that its time was up."""
    port = free_port()
    gate = w.write("gate", "")
    run = w.run(w.path("job.yaml"), {"sink.path": w.path("timed")}, state="timed",
                config={**UNALIGNED, "rest.bind-port": port,
                        "execution.checkpointing.aligned-checkpoint-timeout": "30 ms"})
    time.sleep(0.5 * w.factor)
    newest = w.wait_for_checkpoint(w.newest_checkpoint("timed") + 2, state="timed")
    one = w.weir_json("checkpoints", "overtaken", "--id", str(newest), "--rest",
                      f"127.0.0.1:{port}")
    modes = {s["mode"] for v in one["vertices"] for s in v["subtasks"]}
    expect("timed out" in modes, f"modes: {modes}")
    os.unlink(gate)
    run.summary()
