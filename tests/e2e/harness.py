"""What end-to-end tests stand on: real processes, a directory of their own, bounded time.

A test is a file NAME_test.py beside this one with a sentence as its docstring and `test(w)`, where
`w` is a World.  It ends by returning, by raising Failed, or by raising Skip with a reason.
"""

import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request

from processes import descendants, end, end_descendants, program_of, reap

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DATA = os.path.join(ROOT, "tests", "data")
JOBS = os.path.join(ROOT, "control", "jobs")

# control/cli/exit_codes.h
DONE, FAILURE, USAGE, CONFIG, BUSY, REFUSED, INTERRUPTED = 0, 1, 2, 3, 4, 5, 130

HEADER = "window_start,window_end,src,dst,sport,dport,protocol,packets,bytes,first,last,tcp_flags"


class Failed(Exception):
    """The product did not do what the test wants."""


class TooSoon(Failed):
    """The run was over before the test could do to it what it is about: it may have another, slower
    one, since a disk of this host may stand still for as long as the input lasts."""


class Skip(Exception):
    """The test cannot run here; the reason is shown."""


def expect(condition, text):
    if not condition:
        raise Failed(text)


def expect_equal(actual, wanted, what):
    if actual != wanted:
        raise Failed(f"{what}: {actual!r}, expected {wanted!r}")


class Run:
    """A `weir run --json` that goes on in the background."""

    def __init__(self, world, words, env):
        self.world = world
        self.words = words
        self.out_path = world.path(f"run-{len(world.runs)}.out")
        self.err_path = world.path(f"run-{len(world.runs)}.err")
        with open(self.out_path, "w", encoding="utf-8") as out, \
                open(self.err_path, "w", encoding="utf-8") as err:
            self.child = subprocess.Popen(  # pylint: disable=consider-using-with
                words, cwd=world.dir, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
        self.pid = self.child.pid

    def processes(self, program):
        """Living processes of a program below this run, oldest first."""
        return sorted(p for p in descendants(self.pid) if program_of(p) == program)

    def taskmanagers(self):
        return self.processes("weir-taskmanager")

    def coordinators(self):
        return self.processes("weir-coordinator")

    def is_running(self):
        return self.child.poll() is None

    def interrupt(self):
        self.child.send_signal(signal.SIGINT)

    def kill(self):
        self.child.kill()

    def wait(self, seconds=60):
        """The exit status."""
        try:
            return self.child.wait(seconds * self.world.factor)
        except subprocess.TimeoutExpired:
            raise Failed(f"still running after {seconds * self.world.factor} s:\n"
                         + self.stderr()[-2000:]) from None

    def stdout(self):
        with open(self.out_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def stderr(self):
        with open(self.err_path, encoding="utf-8", errors="replace") as file:
            return file.read()

    def ends_with(self, status, seconds=60, what=""):
        """Waits for the end with that exit status."""
        actual = self.wait(seconds)
        if actual != status:
            raise Failed(f"{what}exit status {actual}, expected {status}: {' '.join(self.words)}\n"
                         + self.stderr()[-3000:])

    def summary(self, status=DONE, seconds=60):
        """The same, and the JSON object of standard output."""
        self.ends_with(status, seconds)
        try:
            return json.loads(self.stdout())
        except ValueError as error:
            raise Failed(f"standard output is not one JSON object: {error}\n"
                         + self.stdout()[:500]) from None


def fetch(port, path):
    """What REST on this host answers to a GET, as text."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
        return answer.read().decode()


class World:
    """One test's directory and processes."""

    def __init__(self, build, factor=1.0, keep=False, slowness=1):
        self.build = os.path.abspath(build)
        self.factor = factor  # how much longer things may take here
        self.slowness = slowness  # how much longer sources with a rate take
        self.keep = keep
        self.dir = tempfile.mkdtemp(prefix="weir-e2e-")
        os.chmod(self.dir, 0o755)
        self.runs = []

    def close(self):
        end_descendants(os.getpid())
        reap()
        if not self.keep:
            shutil.rmtree(self.dir, ignore_errors=True)

    def path(self, *names):
        return os.path.join(self.dir, *names)

    def program(self, name):
        return os.path.join(self.build, name)

    def write(self, name, text):
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def logs(self):
        """The last lines of every log of this world, for a failed test."""
        lines = []
        for path in sorted(glob.glob(self.path("*", "logs", "*.log"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                lines += [f"{os.path.relpath(path, self.dir)}:", *file.read().splitlines()[-12:]]
        return "\n".join(lines)

    # ---- commands ----

    def command(self, words, seconds=60, env=None):
        """Runs a command to its end: exit status, standard output, standard error."""
        try:
            done = subprocess.run(
                words, cwd=self.dir, env={**os.environ, **(env or {})}, text=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                timeout=seconds * self.factor, check=False)
        except subprocess.TimeoutExpired:
            raise Failed(f"no end after {seconds * self.factor} s: {' '.join(words)}") from None
        return done.returncode, done.stdout, done.stderr

    def weir(self, *words, seconds=60, env=None):
        return self.command([self.program("weir"), *words], seconds, env)

    def weir_json(self, *words, seconds=60):
        """A command with --json that must succeed; what it printed, parsed."""
        status, out, err = self.weir(*words, "--json", seconds=seconds)
        expect_equal(status, DONE, f"weir {' '.join(words)}: exit status\n{err}")
        try:
            return json.loads(out)
        except ValueError as error:
            raise Failed(f"weir {' '.join(words)}: not JSON: {error}\n{out[:500]}") from None

    # ---- jobs ----

    def settings(self, state):
        """Config keys that every run of this world has, unless told otherwise."""
        return {
            "execution.checkpointing.dir": self.path(state, "checkpoints"),
            "high-availability.storageDir": self.path(state, "ha"),
            "execution.checkpointing.interval": "100 ms",
            "rest.bind-port": "0",
            "jobmanager.rpc.port": "0",
        }

    def set_words(self, sets):
        """Options that give operators these parameters; sources are as slow as this world is."""
        words = []
        for key, value in sets.items():
            if key.endswith(".rate") and isinstance(value, int) and value > 0:
                value = max(1, int(value / self.slowness))
            words += ["--set", f"{key}={value}"]
        return words

    def run(self, job, sets=None, config=None, state="state", options=(), env=None, prefix=()):
        """Starts `weir run JOB`: parameters of operators, config keys, further options."""
        words = [*prefix, self.program("weir"), "run", job, "--json", *options]
        for key, value in {**self.settings(state), **(config or {})}.items():
            words += ["-D", f"{key}={value}"]
        words += self.set_words(sets or {})
        run = Run(self, words, {**os.environ, **(env or {})})
        self.runs.append(run)
        return run

    def flow(self, capture, output, rate=0, sets=None, **more):
        """The flow-metering job on a capture; output goes to a directory of this world."""
        values = {"source.path": capture, "source.rate": rate, "sink.path": self.path(output)}
        return self.run(os.path.join(JOBS, "flow-metering.yaml"), {**values, **(sets or {})},
                        **more)

    def count(self, records, rate=0, sets=None, **more):
        """The keyed-count job."""
        values = {"generator.records": records, "generator.rate": rate}
        return self.run(os.path.join(JOBS, "keyed-count.yaml"), {**values, **(sets or {})}, **more)

    def pace(self, rate):
        """Records a second of a stream that must last while other things are done."""
        return int(rate / self.factor)

    # ---- waiting and reading ----

    def wait_for(self, condition, what, seconds=30):
        """Polls until `condition()` is true, and returns what it gave."""
        deadline = time.monotonic() + seconds * self.factor
        while time.monotonic() < deadline:
            is_over = bool(self.runs) and not self.runs[-1].is_running()
            value = condition()
            if value:
                return value
            if is_over:
                raise TooSoon(f"the run ended before: {what}\n" + self.runs[-1].stderr()[-2000:])
            time.sleep(0.01)
        raise Failed(f"not within {seconds * self.factor} s: {what}\n"
                     + (self.runs[-1].stderr()[-2000:] if self.runs else ""))

    def checkpoints(self, state="state"):
        """Directories of completed checkpoints by id."""
        found = {}
        for path in glob.glob(self.path(state, "checkpoints", "*", "chk-*", "_metadata")):
            directory = os.path.dirname(path)
            found[int(directory.rsplit("-", 1)[1])] = directory
        return found

    def newest_checkpoint(self, state="state"):
        return max(self.checkpoints(state), default=0)

    def wait_for_checkpoint(self, number=1, state="state", seconds=30):
        """Until a checkpoint with that id or a later one is complete; its id."""
        return self.wait_for(
            lambda: self.newest_checkpoint(state) >= number and self.newest_checkpoint(state),
            f"checkpoint {number} completes", seconds)

    def kill(self, pids, more=3, state="state"):
        """kill -9 of all these; waits for so many more checkpoints than there are then, and returns
        the id of the newest.  What was there before tells nothing: some complete meanwhile."""
        for pid in pids:
            end(pid)
        return self.wait_for_checkpoint(self.newest_checkpoint(state) + more, state)

    def parts(self, output):
        """Committed part files of an output directory."""
        return sorted(p for p in glob.glob(self.path(output, "*")) if os.path.isfile(p))

    def lines(self, output):
        """All committed lines, sorted, without the one header."""
        lines = []
        for part in self.parts(output):
            with open(part, encoding="utf-8") as file:
                text = file.read()
            expect(text == "" or text.endswith("\n"), f"{part} ends within a line")
            lines += text.splitlines()
        expect_equal(lines.count(HEADER), 1, f"header lines in {output}")
        lines.remove(HEADER)
        return sorted(lines)


def expect_same_lines(actual, wanted, what):
    """Both are sorted; the first differences are shown."""
    if actual == wanted:
        return
    count = {}
    for line in wanted:
        count[line] = count.get(line, 0) + 1
    for line in actual:
        count[line] = count.get(line, 0) - 1
    missing = [line for line, n in count.items() for _ in range(n)]
    extra = [line for line, n in count.items() for _ in range(-n)]
    shown = ["- " + line for line in missing[:5]] + ["+ " + line for line in extra[:5]]
    raise Failed(f"{what}: {len(missing)} lines missing, {len(extra)} too many\n"
                 + "\n".join(shown))
