"""recovery: kill -9 of the TaskManager at work while a registered spare one waits, with preset
settings, until the job's output goes on.

Each kill is a run of its own, so that nothing of the kill before is left, the delay of its restart
included.  One half of the job counts generated keys, which is the state to restore; the other
writes records through an exactly-once file sink.  Output is first there again when the spare has
restored, runs, and completes a checkpoint, which commits parts that the dead one cannot have
written.  The time of the kill and that of the part are read here; what lies between is read from
the logs, whose time stamps are those of the same clock.  At the end of every run lines and counts
must be those of a run that nothing disturbed: otherwise it was no correct output.
"""

import datetime
import glob
import os
import re
import signal
import statistics
import time

from bench import flink_peer
from bench.harness import (MACHINE, ROOT, BenchError, Result, RunningJob, Scratch, percentile, say,
                           spread)

ABOUT = "kill -9 of a TaskManager with a spare one waiting, to the first correct output"
NEEDS = ("two cores, 1 GiB of memory; about 3 minutes; and to measure Flink beside it, 6 minutes "
         "more: FLINK_HOME=DIR (a distribution of Flink 1.20), a JDK, 4 GiB")
TARGETS = ["weir", "weir-coordinator", "weir-taskmanager"]

KILLS_MIN, KILLS_PRESET = 2, 10
RUN_S = 3
SECONDS_EACH = RUN_S + 3
KEY_COUNTS = (1 << 14, 1 << 19)
RATE, TRICKLE_RATE = 2_000_000, 20_000
INTERVAL_MS, AIM_MS = 100, 500
SPARE_TIMEOUT_S, OUTPUT_TIMEOUT_S, END_TIMEOUT_S = 20, 30, 60
WARM_UP_S = 1.2  # from all running to the kill
POLL_S = 0.002
STEPS = ("noticed", "restored", "running", "first output")


class Recovery(RunningJob):
    """The job with a spare TaskManager."""

    def __init__(self, build, directory, keys, taskmanagers):
        self.output = os.path.join(directory, "out")
        self.seen = {}  # parts: when they were first seen
        sets = [f"generator.records={RATE * RUN_S}", f"generator.rate={RATE}",
                f"generator.keys={keys}", f"drops.records={TRICKLE_RATE * RUN_S}",
                f"drops.rate={TRICKLE_RATE}", f"sink.path={self.output}"]
        super().__init__(build, os.path.join(ROOT, "bench/recovery.yaml"), directory, (), sets,
                         ("--taskmanagers", str(taskmanagers)))

    def look(self):
        """Notes the visible parts."""
        now = time.time()
        try:
            for name in os.listdir(self.output):
                if name.startswith("part-"):
                    self.seen.setdefault(name, now)
        except FileNotFoundError:
            pass

    def lines(self):
        """All lines of the parts, sorted."""
        self.look()
        lines = []
        for name in self.seen:
            with open(os.path.join(self.output, name), encoding="utf-8") as part:
                lines += part.read().splitlines()
        return sorted(lines)

    def await_spare(self):
        """Until a TaskManager without tasks is registered; the process that has them."""
        until = time.monotonic() + SPARE_TIMEOUT_S
        while time.monotonic() < until:
            rows = self.ask_root("/taskmanagers")["taskmanagers"]
            busy = [row for row in rows if row["freeSlots"] < row["slotsNumber"]]
            if len(rows) == 2 and len(busy) == 1:
                return busy[0]["weir"]["pid"]
            time.sleep(0.02)
        raise BenchError(f"no spare TaskManager registers:\n{self.log()}")

    def await_parts_above(self, checkpoint_id):
        """Until one is visible that a later checkpoint than that committed; when it was."""
        until = time.monotonic() + OUTPUT_TIMEOUT_S
        while time.monotonic() < until:
            self.look()
            times = [at for name, at in self.seen.items()
                     if name.endswith("-final") or part_id(name) > checkpoint_id]
            if times:
                return min(times)
            time.sleep(POLL_S)
        raise BenchError(f"no output after the kill:\n{self.log()}")


def part_id(name):
    """The checkpoint that committed a part: part-UID-SUBTASK-ID.SUFFIX."""
    found = re.search(r"-(\d{10})(\.|$)", name)
    return int(found[1]) if found else 1 << 62


def told(directory, names, pattern, after):
    """Time stamp and first group of the first log line like that, not before `after`."""
    for path in glob.glob(os.path.join(directory, "state", "logs", names)):
        with open(path, encoding="utf-8", errors="replace") as log:
            for line in log:
                found = re.search(pattern, line)
                # Stamps are cut to the millisecond, `after` is not.
                if found and (stamp := stamp_of(line)) >= after - 0.001:
                    return stamp, found[1]
    return None


def await_told(directory, names, pattern, after):
    """The same, once it has been said."""
    until = time.monotonic() + OUTPUT_TIMEOUT_S
    while time.monotonic() < until:
        found = told(directory, names, pattern, after)
        if found:
            return found
        time.sleep(POLL_S)
    raise BenchError(f"no log in {directory} says: {pattern}")


def stamp_of(line):
    """The wall clock time that a log line begins with."""
    return datetime.datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S.%f").timestamp()


def outcome(job, restarts):
    """What a run gave in the end: its lines, and what was counted."""
    result = job.await_end(END_TIMEOUT_S)
    if result["state"] != "FINISHED" or result["restarts"] != restarts:
        raise BenchError(f"the job ended {result['state']} after {result['restarts']} restarts:\n"
                         f"{job.log()}")
    counters = result["counters"]
    return job.lines(), {name: n for name, n in counters.items() if name.startswith("digest.")}


def kill_once(build, keys, wanted):
    """One run with one kill; the steps in ms from it, and how the job was run."""
    with Scratch(build) as directory:
        job = Recovery(build, directory, keys, 2)
        try:
            job.await_start()
            job.await_running()
            pid = job.await_spare()
            time.sleep(WARM_UP_S)
            killed = time.time()
            os.kill(pid, signal.SIGKILL)
            lost, _ = await_told(directory, "coordinator.log", "TaskManager (.*) is lost", killed)
            _, restored_id = await_told(directory, "coordinator.log",
                                        r"restores .*/chk-(\d+)$", killed)
            output = job.await_parts_above(int(restored_id))
            deployed, _ = await_told(directory, "taskmanager*.log", r"tasks of job (\S+) are dep",
                                     killed)
            running, _ = await_told(directory, "coordinator.log", r"all (\d+) tasks run", killed)
            if outcome(job, 1) != wanted:
                raise BenchError("the output is not that of an undisturbed run")
        finally:
            job.stop()
        return [1000 * (at - killed) for at in (lost, deployed, running, output)], job.options


def undisturbed(build, keys):
    """What a run without a kill gives."""
    with Scratch(build) as directory:
        job = Recovery(build, directory, keys, 1)
        try:
            return outcome(job, 0)
        finally:
            job.stop()


def measure(build, keys, kills):
    """All of one size of state."""
    wanted = undisturbed(build, keys)
    if len(wanted[0]) < TRICKLE_RATE * RUN_S:
        raise BenchError(f"an undisturbed run wrote {len(wanted[0])} lines")
    rounds = []
    for i in range(kills):
        steps, options = kill_once(build, keys, wanted)
        rounds.append(steps)
        say(f"  kill {i + 1}: " + ", ".join(f"{n} {ms:.0f}" for n, ms in zip(STEPS, steps)))
    series = {name: [steps[i] for steps in rounds] for i, name in enumerate(STEPS)}
    return {"keys": keys, "state_bytes": 16 * keys, "kills": kills, "machine": MACHINE,
            "records_per_s": RATE + TRICKLE_RATE, "checkpoint_interval_ms": INTERVAL_MS,
            "durable": True, "job_options": options,
            "ms": {name: {**spread(v), "p90": percentile(v, 90)} for name, v in series.items()},
            "rounds_ms": series}


def lines_of(d):
    """The rows of the table for one size of state."""
    rows = [f"{d['keys']} keys, {d['state_bytes'] / 1048576:.2f} MiB of state; {d['kills']} kills,"
            " output exact after each",
            f"  {'ms after the kill':<20}{'min':>8}{'median':>8}{'p90':>8}{'max':>8}"]
    for step in STEPS:
        s = d["ms"][step]
        rows.append(f"  {step:<20}{s['min']:8.0f}{s['median']:8.0f}{s['p90']:8.0f}{s['max']:8.0f}")
    return rows


def run(build, seconds):
    """As many kills as there is time for."""
    kills = KILLS_PRESET
    if seconds is not None:
        kills = max(KILLS_MIN, int(seconds / len(KEY_COUNTS) / SECONDS_EACH) - 1)
    table = [f"recovery: kill -9 of the TaskManager at work, a spare one registered; {MACHINE}"]
    data, series, breaches = {}, {}, []
    for keys in KEY_COUNTS:
        say(f"recovery: {keys} keys, {kills} kills ...")
        d = data[str(keys)] = measure(build, keys, kills)
        table += lines_of(d)
        series.update({f"{name}, {keys} keys": v for name, v in d["rounds_ms"].items()})
        median = statistics.median(d["rounds_ms"]["first output"])
        if median > AIM_MS:
            breaches.append(f"{keys} keys: {median:.0f} ms to the first output, {AIM_MS} is the "
                            "aim")
    table += ["", f"a checkpoint every {INTERVAL_MS} ms, durable; the output is what the first one "
              "after the kill commits",
              "job options: " + " ".join(data[str(KEY_COUNTS[-1])]["job_options"])]
    lacks = flink_peer.missing()
    if lacks is None:
        data["flink"] = flink_peer.measure(build, KEY_COUNTS[-1])
        table += ["", *flink_peer.lines_of(data["flink"])]
    else:
        say(f"recovery: Flink is SKIPPED: {lacks}")
        table += ["", f"Flink: skipped, {lacks}"]
    result = Result("\n".join(table), data, series, "ms after the kill")
    result.breaches = breaches
    return result
