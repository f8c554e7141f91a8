"""Every command answers while a job runs, in words and as JSON."""

import json
import os
import shutil

from captures import flows_capture
from harness import DONE, FAILURE, JOBS, REFUSED, USAGE, expect, expect_equal, fetch
from processes import free_port

JOB = "flow-metering"


def look_at_checkpoints(w, rest):
    """One checkpoint, from the trigger to the acknowledgement of each subtask."""
    history = w.weir_json("checkpoints", JOB, *rest)["history"]
    expect(all("phase" in c or c["external_path"] for c in history), f"a phase: {history}")
    done = [c for c in history if c["status"] == "COMPLETED"][0]
    expect(done["slowest_subtask"], f"a completed checkpoint names its slowest subtask: {done}")
    one = w.weir_json("checkpoints", JOB, "--id", str(done["id"]), *rest)
    subtasks = [s for v in one["vertices"] for s in v["subtasks"]]
    expect_equal([v["name"] for v in one["vertices"]], ["ingest", "metering"], "vertices")
    expect_equal(len(subtasks), done["num_subtasks"], "subtasks of the checkpoint")
    for subtask in subtasks:
        times = subtask["nanoseconds"]
        expect(0 < times["async"] < 10_000_000_000, f"a time to write: {subtask}")
        expect(times["start_delay"] >= 0 and times["sync"] >= 0, f"no time is missing: {subtask}")
        at = times["at"]  # one host, one clock
        expect(done["tasks_triggered_ns"] <= at["began"] <= at["ended"] <= at["sent"]
               <= at["received"], f"one after the other: {subtask}")
        expect_equal(subtask["attempt"], 1, "attempt")
    status, out, err = w.weir("checkpoints", JOB, "--id", str(done["id"]), *rest)
    expect_equal(status, DONE, f"weir checkpoints --id: exit status\n{err}")
    for word in ("metering", "2/2", "alignment", "async"):
        expect(word in out, f"weir checkpoints --id prints {word}:\n{out}")
    expect("-1 ms" not in out, f"no time is a stand-in:\n{out}")
    expect_equal(w.weir_json("checkpoints", JOB, "--failed", *rest)["history"], [],
                 "failed checkpoints")
    status, out, _ = w.weir("checkpoints", "no-such-job", "--json", *rest)
    expect_equal(status, FAILURE, "exit status for a job that is not here")
    expect("no-such-job" in json.loads(out)["error"], f"the error as JSON: {out}")


def look_at_metrics(port):
    """What Prometheus reads of a job at work."""
    lines = [l for l in fetch(port, "/metrics").splitlines() if not l.startswith("#")]

    def values(name, part=""):
        return [float(l.rsplit(" ", 1)[1]) for l in lines
                if l.startswith(name + "{") and part in l]

    expect(values("flink_jobmanager_job_numberOfCompletedCheckpoints")[0] >= 2, "completed")
    since = values("weir_jobmanager_job_secondsSinceLastCompletedCheckpoint")
    expect(len(since) == 1 and 0 <= since[0] < 10, f"since the last one: {since}")
    read = values("flink_taskmanager_job_task_numRecordsOut", 'task_name="ingest"')
    expect(len(read) == 1 and read[0] > 0, f"records of the source: {read}")
    for state in ("Idle", "Busy", "BackPressured"):
        times = values(f"flink_taskmanager_job_task_accumulate{state}TimeMs")
        expect_equal(len(times), 3, f"subtasks with a time {state}")
    aligned = values("flink_taskmanager_job_task_checkpointAlignmentTime", 'task_name="metering"')
    expect_equal(len(aligned), 2, "subtasks with an alignment")


def look_at_files(w, checkpoint):
    """weir verify and weir restore --dry-run, of a whole checkpoint and of a damaged copy."""
    job = os.path.join(JOBS, "flow-metering.yaml")
    sink = ("--set", "sink.path=" + w.path("out"))
    verified = w.weir_json("verify", checkpoint)
    expect(verified["whole"] and verified["checkpoints"][0]["bytes"] > 0, f"{verified}")
    fits = w.weir_json("restore", "--dry-run", job, checkpoint, *sink)
    expect(fits["fits"], f"it fits: {fits}")
    expect("matched" in [o["state"] for o in fits["operators"] if o["uid"] == "window"],
           f"window is matched: {fits}")
    status, out, _ = w.weir("restore", "--dry-run", job, checkpoint, *sink,
                            "-D", "pipeline.max-parallelism=64")
    expect_equal(status, REFUSED, "another number of key groups: exit status")
    expect("REFUSED" in out and "key groups" in out, out)
    status, _, err = w.weir("restore", job, checkpoint)
    expect_equal(status, USAGE, "without --dry-run: exit status")
    expect("weir run or submit JOB.yaml --restore" in err, err)
    copy = w.path("damaged")
    shutil.copytree(checkpoint, copy)
    with open(os.path.join(copy, "_metadata"), "r+b") as file:
        file.seek(100)
        byte = file.read(1)[0]
        file.seek(100)
        file.write(bytes([byte ^ 1]))
    for words in (["verify", checkpoint, copy], ["restore", "--dry-run", job, copy, *sink]):
        status, out, err = w.weir(*words, "--json")
        expect_equal(status, REFUSED, f"weir {words[0]} of a damaged checkpoint: exit status")
        expect("checksum" in err + out, f"{words[0]} says what is wrong: {out}{err}")
        json.loads(out)


def test(w):
    port = free_port()
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    run = w.flow(capture, "out", rate=4_000, config={"rest.bind-port": port})
    newest = w.wait_for_checkpoint(2)
    rest = ("--rest", f"127.0.0.1:{port}")
    jobs = w.weir_json("list", *rest)
    expect(JOB in str(jobs), f"weir list names the job: {jobs}")
    expect("completed" in str(w.weir_json("checkpoints", JOB, *rest)), "weir checkpoints")
    w.weir_json("checkpoint", JOB, "--full", *rest)
    expect(w.newest_checkpoint() > newest, "weir checkpoint takes one")
    for words in (["list"], ["checkpoints", JOB], ["checkpoint", JOB]):
        status, out, err = w.weir(*words, *rest)
        expect_equal(status, DONE, f"weir {words}: exit status\n{err}")
        expect(out.strip(), f"weir {words} prints something")
    look_at_checkpoints(w, rest)
    look_at_metrics(port)
    run.interrupt()
    run.wait()

    checkpoint = w.checkpoints()[w.newest_checkpoint()]
    whole = w.weir_json("inspect", checkpoint)
    expect("window" in str(whole), f"weir inspect shows operators: {whole}")
    look_at_files(w, checkpoint)
    status, out, err = w.weir("inspect", checkpoint)
    expect_equal(status, DONE, f"weir inspect: exit status\n{err}")
    expect("flow-window" in out, f"weir inspect shows the job file:\n{out}")
    w.weir_json("doctor")
    for command in ("run", "submit", "list", "checkpoints", "checkpoint", "inspect", "doctor",
                    "verify", "restore", "savepoint", "stop", "cancel"):
        status, out, _ = w.weir(command, "--help")
        expect_equal(status, DONE, f"weir {command} --help: exit status")
        expect("xample" in out, f"weir {command} --help has examples")
        status, out, err = w.weir(command, "--no-such-option", "--json")
        expect_equal(status, USAGE, f"weir {command} --no-such-option: exit status\n{err}")
        expect_equal(json.loads(out)["exit_code"], USAGE, f"weir {command}: the object")
