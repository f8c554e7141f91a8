"""What the crash tests share: kill -9 of the coordinator at one step of the protocol, its recovery,
and what must be true then: ids grow, nothing completed is lost, nothing incomplete is used, nothing
is left behind, the TaskManager has stayed up, and the output is exact.

The programs are started one by one here, not by `weir run`, so that what a dead coordinator left on
disk can be looked at before the next one starts.
"""

import glob
import json
import os
import re
import subprocess
import time
import urllib.error
import urllib.request

from harness import ROOT, Failed, expect, expect_equal
from processes import free_port

JOB = """name: crash
config:
  execution.checkpointing.interval: 20 ms
  execution.checkpointing.num-retained: 2
vertices:
  - uid: make
    parallelism: 2
    operators: [{uid: g, type: generator, records: 12000, keys: 100}]
  - uid: write
    parallelism: 2
    operators: [{uid: sink, type: file-sink, path: out, format: count-csv}]
edges:
  - {from: make, to: write, partition: hash}
"""

RATES = (24000, 6000)  # the second where the job was over before the coordinator came to the point

# Steps of the protocol and at which passes the coordinator dies there.  All that the source has
# are here; the first of the tests looks.
STARTING = {"before-kept": (1,), "after-kept": (1,), "before-begun": (1,), "after-begun": (1,),
            "before-deploy": (1,), "after-deploy": (1,), "before-rename": (1, 2, 3, 4)}
TRIGGERING = {"before-id": (1,), "after-id": (1,), "before-location": (1, 4),
              "after-location": (1, 4), "before-trigger": (1, 4), "after-trigger": (1, 4),
              "after-ack": (1, 13)}
COMPLETING = {"before-metadata": (1, 4), "spare-written": (1,), "spare-synced": (2,),
              "spare-renamed": (1,), "metadata-written": (1, 4), "before-listed": (4,),
              "after-listed": (1, 4), "after-metadata": (1, 4), "after-notify": (1, 4)}
ENDING = {"before-unlisted": (1, 2), "after-unlisted": (1, 2), "before-delete": (1, 3),
          "during-delete": (1, 3), "after-delete": (1, 3), "before-finished": (1,),
          "after-finished": (1,)}


def known():
    return {**STARTING, **TRIGGERING, **COMPLETING, **ENDING}


def in_the_source():
    """Every point that code of the control plane passes."""
    found = set()
    for path in glob.glob(os.path.join(ROOT, "control", "**", "*.c"), recursive=True):
        with open(path, encoding="utf-8") as file:
            found.update(re.findall(r'crash_point\("([^"]+)"\)', file.read()))
    return found


class Coordinator:
    """One life of a coordinator on a directory."""

    def __init__(self, w, place, port, crash_at=None):
        self.w = w
        self.log_path = os.path.join(place, f"coordinator-{len(os.listdir(place))}.log")
        words = [w.program("weir-coordinator")]
        for key, value in {"execution.checkpointing.dir": os.path.join(place, "checkpoints"),
                           "high-availability.storageDir": os.path.join(place, "ha"),
                           "jobmanager.rpc.port": port, "rest.bind-port": 0}.items():
            words += ["-D", f"{key}={value}"]
        env = {**os.environ, **({"WEIR_CRASH_AT": crash_at} if crash_at else {})}
        with open(self.log_path, "w", encoding="utf-8") as log:
            self.child = subprocess.Popen(words, env=env, stdin=subprocess.DEVNULL,
                                          stdout=subprocess.PIPE, stderr=log, text=True)
        self.rest = None

    def await_rest(self):
        """Until it listens; False: it died before."""
        while self.rest is None:
            line = self.child.stdout.readline()
            if not line:
                return False
            if line.startswith("REST "):
                self.rest = line.split()[1]
        return True

    def ask(self, path, body=None):
        """Its answer; None: it is gone, or has no such thing (any more)."""
        data = None if body is None else json.dumps(body).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.rest + path, data),
                                        timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise Failed(f"{path}: {error.code} {error.read()[:300]!r}") from None
        except (OSError, ValueError):
            return None

    def await_death(self):
        """Until it is killed, by itself.  False: its job is over, and it lives on."""
        until = time.monotonic() + 20 * self.w.factor
        is_over = False
        while self.child.poll() is None:
            if time.monotonic() >= until:
                expect(is_over, f"it did not die:\n{self.log()[-2000:]}")
                return False
            if not is_over and "RUNNING -> FINISHED" in self.log():
                is_over = True
                until = time.monotonic() + 2 * self.w.factor
            time.sleep(0.01)
        expect_equal(self.child.returncode, -9, f"how it ended\n{self.log()[-2000:]}")
        return True

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def end(self):
        self.child.terminate()
        self.child.wait(20 * self.w.factor)


def records(log):
    """The records of a log of the coordinator (record_log.h); one that was cut off ends it."""
    at = 16
    while at + 16 <= len(log):
        size = int.from_bytes(log[at:at + 4], "little")
        if size == 0 or log[at + 16 + size:at + 17 + size] != b"\xa5":
            return
        yield log[at + 16:at + 16 + size]
        at += (16 + size + 1 + 15) // 16 * 16


def varint(message, at):
    """The number that begins there, and where it ends."""
    value = shift = 0
    while True:
        value |= (message[at] & 127) << shift
        shift += 7
        at += 1
        if message[at - 1] < 128:
            return value, at


def fields(message):
    """Of a protobuf message: (number, value), a value being an integer or bytes."""
    at = 0
    while at < len(message):
        tag, at = varint(message, at)
        value, at = varint(message, at)
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
        yield tag >> 3, value


def numbers(packed):
    """Of a packed field of kind sint64 that are not below 0."""
    at = 0
    while at < len(packed):
        value, at = varint(packed, at)
        yield value // 2


def listed_in(path):
    """The completed checkpoints that a job's log lists."""
    listed = set()
    with open(path, "rb") as file:
        log = file.read()
    for record in records(log):
        for number, value in fields(record):
            if number == 2:
                listed.difference_update(numbers(value))
            elif number == 3:
                listed.add(dict(fields(value))[1] // 2)
    return listed


class Disk:
    """What the directories of a coordinator hold."""

    def __init__(self, place):
        self.listed = set()
        for path in glob.glob(os.path.join(place, "ha", "*", "checkpoints")):
            self.listed |= listed_in(path)
        self.directories, self.whole = set(), set()
        for path in glob.glob(os.path.join(place, "checkpoints", "*", "chk-*")):
            number = int(path.rsplit("-", 1)[1])
            self.directories.add(number)
            if os.path.exists(os.path.join(path, "_metadata")):
                self.whole.add(number)
        self.temporary = glob.glob(os.path.join(place, "ha", "*", "**", "*.tmp"), recursive=True)


class Rounds:
    """A TaskManager that outlives many coordinators, and what a calm run gives."""

    def __init__(self, w):
        self.w = w
        self.port = free_port()
        with open(w.path("taskmanager.log"), "w", encoding="utf-8") as log:
            self.taskmanager = subprocess.Popen(
                [w.program("weir-taskmanager"), "--coordinator", f"127.0.0.1:{self.port}",
                 "-D", "weir.cores=auto:2"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.wanted = self.play("calm", None)

    def submit(self, coordinator, place, rate):
        return coordinator.ask("/jobs", {
            "file": "crash.yaml", "job": JOB, "plugin_dir": place, "restore": "none",
            "sets": ["sink.path=" + os.path.join(place, "out"), f"g.rate={rate}"]})

    def play(self, name, crash_at, rate=RATES[0]):
        """One job; the coordinator dies at a point, if one is given.  Its lines; None: it did not
        come to that point."""
        place = self.w.path(name)
        os.mkdir(place)
        c = Coordinator(self.w, place, self.port, crash_at)
        expect(c.await_rest(), c.log())
        answer = self.submit(c, place, rate)
        left = None
        if crash_at is not None:
            if not c.await_death():
                c.end()
                return None
            left = Disk(place)
            c = Coordinator(self.w, place, self.port)
            expect(c.await_rest(), c.log())
            if answer is None and not c.ask("/jobs")["jobs"]:
                left = None  # nobody was told that the job was accepted, and it was not
                answer = self.submit(c, place, rate)
        job = c.ask("/jobs")["jobs"][0]["id"] if answer is None else answer["jobid"]
        self.await_end(c, job)
        checkpoints = c.ask(f"/jobs/{job}/checkpoints") if left is not None else None
        c.end()
        if left is not None:
            self.check(left, c.log(), checkpoints)
        # One that was to be deleted when the job ended is left whole, as if it were retained.
        self.check_rest(place, 3 if crash_at == "after-finished:1" else 2)
        return self.lines(place)

    def await_end(self, c, job):
        until = time.monotonic() + 30 * self.w.factor
        while time.monotonic() < until:
            state = c.ask(f"/jobs/{job}/summary")["state"]
            if state == "FINISHED":
                return
            expect(state not in ("FAILED", "CANCELED"), f"{state}\n{c.log()[-2000:]}")
            time.sleep(0.02)
        raise Failed(f"the job does not end\n{c.log()[-2000:]}")

    def check(self, left, log, checkpoints):
        """How the next coordinator went on from what was left."""
        restored = re.findall(r"restores .*/chk-(\d+)$", log, re.M)
        if "is recovered" in log:
            expect_equal([int(n) for n in restored[:1]], sorted(left.listed)[-1:],
                         f"what it goes on from: the newest that was completed\n{log[-2000:]}")
        # One that was subsumed leaves the list with the next one, and the disk before.
        expect(left.whole.issuperset(sorted(left.listed)[-2:]),
               f"listed {left.listed}, on disk {left.whole}")
        used = max(left.directories | left.listed, default=0)
        fresh = {row["id"] for row in (checkpoints or {}).get("history", [])}
        expect(all(number > used for number in fresh), f"ids up to {used}, then {fresh}")

    def check_rest(self, place, count_max):
        """What is there when the job has ended: what is retained, and nothing else."""
        disk = Disk(place)
        expect_equal(disk.directories, disk.whole, "incomplete checkpoints that stay")
        expect(len(disk.whole) <= count_max, f"more than is retained: {disk.whole}")
        expect_equal(disk.temporary, [], "temporary files")
        expect_equal(self.taskmanager.poll(), None, "the TaskManager stays up")

    def lines(self, place):
        found = []
        for path in glob.glob(os.path.join(place, "out", "part-*")):
            with open(path, encoding="utf-8") as file:
                found += file.read().splitlines()
        return sorted(found)

    def play_slower(self, name, crash_at):
        """The same, and once more at a lower rate where the job was over too soon."""
        for i, rate in enumerate(RATES):
            lines = self.play(f"{name}-{i}", crash_at, rate)
            if lines is not None:
                return lines
        raise Failed(f"the coordinator does not come to {crash_at}")

    def close(self):
        self.taskmanager.terminate()
        expect_equal(self.taskmanager.wait(20 * self.w.factor), 0, "the TaskManager's exit status")


def play_all(w, points):
    """Each point at each of its passes."""
    rounds = Rounds(w)
    expect(len(rounds.wanted) > 12000, "a calm run writes all records and a header")
    for point, passes in points.items():
        for number in passes:
            name = f"{point}-{number}"
            try:
                lines = rounds.play_slower(name, f"{point}:{number}")
            except Failed as failure:
                raise Failed(f"{name}: {failure}") from None
            expect(lines == rounds.wanted, f"{name}: {len(lines)} lines of {len(rounds.wanted)}")
    rounds.close()
