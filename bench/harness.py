"""What the benches share: programs that take turns on two cores, a running job, statistics."""

import hashlib
import http.client
import json
import math
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
START_TIMEOUT_S = 30
STOP_TIMEOUT_S = 20
MACHINE = "2 virtual CPUs, virtual ports"


class BenchError(Exception):
    """It could not be measured, with the reason."""


class Result:
    """One bench's outcome: a table for people, the same as data, series for a picture."""

    def __init__(self, table, data, series, unit):
        self.table, self.data, self.series, self.unit = table, data, series, unit
        self.breaches = []

    def plot(self, path):
        """Draws each series of numbers over its rounds."""
        plot_curves(path, {name: list(enumerate(values)) for name, values in self.series.items()},
                    "round", self.unit)


def plot_curves(path, curves, x_label, y_label):
    """Draws curves of points, each under its name."""
    if shutil.which("gnuplot") is None:
        raise BenchError("--plot needs gnuplot: apt-get install gnuplot-nox")
    titles = ", ".join(f"'-' with linespoints title {json.dumps(name)}" for name in curves)
    blocks = "".join("".join(f"{x} {y}\n" for x, y in points) + "e\n"
                     for points in curves.values())
    script = (f"set terminal svg size 900,500\nset output {json.dumps(path)}\n"
              f"set ylabel {json.dumps(y_label)}\nset xlabel {json.dumps(x_label)}\n"
              f"set yrange [0:*]\nset key outside\nplot {titles}\n{blocks}")
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def say(text):
    """Progress, for whoever waits."""
    print(text, file=sys.stderr, flush=True)


def two_cores():
    """The two cores everything runs on."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise BenchError("needs two cores; this process may run on one")
    return cores[:2]


# ---- the host ----

HOST_HASH_S, HOST_TRIPS, HOST_BLOCK_BYTES = 0.05, 2000, 1 << 18


def _echo(count):
    """A process that sends every byte back; the ends to write to and to read from, and its pid."""
    there, to = os.pipe()
    back, answer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(to)  # or it would not see that its parent is gone
        os.close(back)
        for _ in range(count):
            os.write(answer, os.read(there, 1))
        os._exit(0)
    os.close(there)
    os.close(answer)
    return to, back, pid


def host_speed():
    """How fast this host is now, by work that is always the same and none of ours: SHA-256 in MB/s
    (cycles), and the microseconds of a byte to another process on the same core and back (wake-ups,
    which a virtual machine may pay dearly for)."""
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < HOST_HASH_S:
        hashlib.sha256(bytes(HOST_BLOCK_BYTES)).digest()
        count += 1
    rate = count * HOST_BLOCK_BYTES / (time.perf_counter() - begin) / 1e6
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        to, back, pid = _echo(HOST_TRIPS)
        begin = time.perf_counter()
        for _ in range(HOST_TRIPS):
            os.write(to, b"x")
            os.read(back, 1)
        trip = (time.perf_counter() - begin) / HOST_TRIPS * 1e6
        os.waitpid(pid, 0)
        os.close(to)
        os.close(back)
    finally:
        os.sched_setaffinity(0, cores)
    return {"sha256_mb_s": rate, "round_trip_us": trip}


# ---- statistics ----

def spread(values):
    """Least, middle and largest."""
    return {"min": min(values), "median": statistics.median(values), "max": max(values)}


def mean_interval(values):
    """The mean and the 95 % interval around it."""
    mean = statistics.fmean(values)
    if len(values) < 2:
        return mean, (-math.inf, math.inf)
    half = 1.96 * statistics.stdev(values) / math.sqrt(len(values))
    return mean, (mean - half, mean + half)


def mean_loss(on, off):
    """How much less `on` is than `off`, and the 95 % interval around it.  Of the logarithms of the
    ratios: the mean of the ratios themselves finds a gain where both are the same, for one that is
    too small raises it more than one that is too large lowers it."""
    mean, (low, high) = mean_interval([math.log(a / b) for a, b in zip(on, off)])
    return 1 - math.exp(mean), (1 - math.exp(high), 1 - math.exp(low))


def percentile(values, percent):
    """Nearest rank; None of nothing."""
    if not values:
        return None
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]


# ---- programs ----

class RawLoop:
    """A program that measures on command and sleeps in between (see bench/raw_*.c)."""

    def __init__(self, *command):
        self.name = os.path.basename(command[0])
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def measure(self, verb, milliseconds):
        """Records a second."""
        self.process.stdin.write(f"{verb} {milliseconds}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise BenchError(f"{self.name} ended; it said why above")
        row = json.loads(answer)
        return row["records"] * 1e9 / row["ns"]

    def close(self):
        """Its own check of what it counted decides how it ends."""
        self.process.stdin.close()
        if self.process.wait(STOP_TIMEOUT_S) != 0:
            raise BenchError(f"{self.name} failed its own check")

    def kill(self):
        """When something else went wrong."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class RunningJob:
    """`weir run` with its coordinator and TaskManager: three real processes."""

    def __init__(self, build, job, directory, settings=(), sets=(), more=()):
        self.directory = directory
        state = os.path.join(directory, "state")
        defines = [f"high-availability.storageDir={state}/ha",
                   f"execution.checkpointing.dir={state}/checkpoints",
                   "rest.bind-port=0", *settings]
        self.options = [*more, *(f"-D {d}" for d in settings), *(f"--set {s}" for s in sets)]
        command = [os.path.join(build, "weir"), "run", os.path.join(ROOT, "control/jobs", job),
                   "--json", *more]
        for define in defines:
            command += ["-D", define]
        for one in sets:
            command += ["--set", one]
        self.log_path = os.path.join(directory, "weir-run.log")
        self.json_path = os.path.join(directory, "weir-run.json")
        self.connection = None
        self.pid = None
        with open(self.log_path, "w", encoding="utf-8") as log, \
                open(self.json_path, "w", encoding="utf-8") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=log)

    def log(self):
        """What `weir run` has said so far."""
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def await_log(self, pattern):
        """The first group of the pattern, once a line has it."""
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            found = re.search(pattern, self.log(), re.M)
            if found:
                return found[1]
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        raise BenchError(f"the job did not start:\n{self.log()}")

    def await_start(self):
        """Until there is a job to ask about; then `pid` is the TaskManager's."""
        address = self.await_log(r"^REST at http://(\S+)$")
        self.pid = int(self.await_log(r"^taskmanager 0: pid (\d+)$"))
        self.job = self.await_log(r"^job \S+ is (\w+)$")
        self.connection = http.client.HTTPConnection(address, timeout=STOP_TIMEOUT_S)

    def ask(self, path="", method="GET"):
        """The coordinator's answer about the job."""
        return self.ask_root(f"/jobs/{self.job}{path}", method)

    def ask_root(self, path, method="GET"):
        """The coordinator's answer."""
        try:
            self.connection.request(method, path)
            response = self.connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection.close()
            raise BenchError(f"the coordinator does not answer: {error!r}\n{self.log()}") from error
        if response.status >= 300:
            raise BenchError(f"{method} {path}: {response.status} {body[:500]!r}")
        return json.loads(body)

    def await_running(self):
        """Until every task runs."""
        until = time.monotonic() + START_TIMEOUT_S
        while time.monotonic() < until:
            if all(row["state"] == "RUNNING" for row in self.ask("/numbers")):
                return
            time.sleep(0.05)
        raise BenchError(f"the job does not run:\n{self.log()}")

    def pause(self):
        """The TaskManager gives up its cores."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self):
        """And has them back."""
        os.kill(self.pid, signal.SIGCONT)

    def await_end(self, timeout):
        """What `--json` said."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"the job does not end:\n{self.log()}") from error
        with open(self.json_path, encoding="utf-8") as out:
            text = out.read()
        if not text:
            raise BenchError(f"weir run ended with {code} and no result:\n{self.log()}")
        return json.loads(text)

    def stop(self):
        """As Ctrl-C does; harmless when it has ended."""
        if self.connection is not None:
            self.connection.close()
        if self.process.poll() is not None:
            return
        if self.pid is not None:
            try:
                self.go_on()
            except ProcessLookupError:
                pass
        for number in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
            self.process.send_signal(number)
            try:
                self.process.wait(STOP_TIMEOUT_S)
                return
            except subprocess.TimeoutExpired:
                continue


class Scratch:
    """A directory on disk for one job's state, gone afterwards."""

    def __init__(self, build):
        self.build = build

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="bench-", dir=self.build)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)
