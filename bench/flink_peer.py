"""Flink as a peer of the recovery bench: a JobManager, two TaskManagers, one of them killed.

FLINK_HOME names what is measured: a distribution of Flink 1.20 with lib/flink-dist-*.jar in it.
The Python package apache-flink-libraries has one too, in its folder deps.  It needs a JDK, since
its job (bench/flink/RecoveryJob.java) is compiled first.  The times are taken as for weir: of the
kill and of the output here, of what lies between from the log.
"""

import datetime
import glob
import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time
import urllib.error
import urllib.request

from bench.harness import ROOT, BenchError, Scratch, say

STEPS = ("noticed", "restored", "running", "first output")
START_TIMEOUT_S, RECOVERY_TIMEOUT_S, STOP_TIMEOUT_S = 60, 120, 20
RUN_S = 8  # from all running to the kill: what runs is compiled by then
POLL_S = 0.005
RATE, TRICKLE_RATE = 200_000, 20_000  # records a second: far below what it can do here
KILLS = 3
HEAP = {"jobmanager": "512m", "taskmanager": "1024m"}

# Started without its scripts, a TaskManager has to be told its memory.
OPTIONS = {
    "jobmanager.rpc.address": "127.0.0.1", "jobmanager.bind-host": "127.0.0.1",
    "taskmanager.bind-host": "127.0.0.1", "taskmanager.host": "127.0.0.1",
    "rest.bind-address": "127.0.0.1", "rest.address": "127.0.0.1",
    "taskmanager.numberOfTaskSlots": "2", "parallelism.default": "2",
    "taskmanager.cpu.cores": "2", "taskmanager.memory.task.heap.size": "896m",
    "taskmanager.memory.task.off-heap.size": "0", "taskmanager.memory.managed.size": "0",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "256m",
    "taskmanager.memory.jvm-overhead.min": "192m", "taskmanager.memory.jvm-overhead.max": "192m",
    "taskmanager.memory.network.min": "64m", "taskmanager.memory.network.max": "64m",
    "state.backend.type": "hashmap", "execution.checkpointing.interval": "100 ms",
}

HEARTBEATS = {"heartbeat.interval": "100 ms", "heartbeat.timeout": "500 ms"}
AT_ONCE = {"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "0 ms",
           "restart-strategy.fixed-delay.attempts": "100"}
SETTINGS = {"its defaults": {}, "heartbeats as weir's": HEARTBEATS,
            "the same, and no delay of restarts": {**HEARTBEATS, **AT_ONCE}}

LOGGING = """\
rootLogger.level = INFO
rootLogger.appenderRef.file.ref = file
appender.file.name = file
appender.file.type = FILE
appender.file.fileName = ${sys:log.file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %m%n
"""


def missing():
    """Why Flink cannot be measured here; None when it can."""
    home = os.environ.get("FLINK_HOME")
    if not home:
        return "FLINK_HOME names no distribution of Flink 1.20"
    if not glob.glob(os.path.join(home, "lib", "flink-dist-*.jar")):
        return f"{home}/lib has no flink-dist-*.jar"
    if shutil.which("javac") is None:
        return "no javac: apt-get install default-jdk-headless"
    return None


def version():
    """Of the distribution."""
    jar = glob.glob(os.path.join(os.environ["FLINK_HOME"], "lib", "flink-dist-*.jar"))[0]
    return re.sub(r".*flink-dist-(.*)\.jar", r"\1", jar)


def free_port():
    """One that nobody listens at."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Cluster:
    """A JobManager and TaskManagers of their own, all in one directory."""

    def __init__(self, directory, options):
        self.directory = directory
        self.classes = os.path.join(os.environ["FLINK_HOME"], "lib", "*")
        self.rest = free_port()
        self.processes = {}
        state = os.path.join(directory, "checkpoints")
        self.options = {**OPTIONS, **options, "rest.port": str(self.rest),
                        "jobmanager.rpc.port": str(free_port()),
                        "execution.checkpointing.dir": f"file://{state}",
                        "io.tmp.dirs": os.path.join(directory, "tmp")}
        with open(os.path.join(directory, "config.yaml"), "w", encoding="utf-8") as out:
            out.writelines(f"{key}: {value}\n" for key, value in self.options.items())
        with open(os.path.join(directory, "log4j.properties"), "w", encoding="utf-8") as out:
            out.write(LOGGING)

    def java(self, name, heap, *what):
        """The command of one of its programs, and its environment."""
        command = ["java", f"-Xmx{heap}", f"-Xms{heap}", "-XX:+UseG1GC",
                   f"-Dlog.file={self.log_path(name)}",
                   f"-Dlog4j.configurationFile={self.directory}/log4j.properties",
                   "--add-opens=java.base/java.lang=ALL-UNNAMED",
                   "--add-opens=java.base/java.util=ALL-UNNAMED", "-cp", self.classes, *what]
        return command, {**os.environ, "FLINK_CONF_DIR": self.directory}

    def log_path(self, name):
        return os.path.join(self.directory, name + ".log")

    def start(self, name, kind, main):
        """One of its processes."""
        command, environment = self.java(name, HEAP[kind], main, "--configDir", self.directory)
        with open(os.path.join(self.directory, name + ".out"), "w", encoding="utf-8") as out:
            self.processes[name] = subprocess.Popen(command, env=environment, stdout=out,
                                                    stderr=subprocess.STDOUT)

    def start_all(self):
        """With the spare one; until both are registered."""
        self.start("jobmanager", "jobmanager",
                   "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint")
        for name in ("taskmanager0", "taskmanager1"):
            self.start(name, "taskmanager",
                       "org.apache.flink.runtime.taskexecutor.TaskManagerRunner")
        self.await_("both TaskManagers",
                    lambda: len(self.ask("/taskmanagers")["taskmanagers"]) == 2)

    def ask(self, path):
        """The JobManager's answer."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.rest}{path}", timeout=5) as answer:
            return json.load(answer)

    def await_(self, what, is_so, timeout=START_TIMEOUT_S):
        """What it gives, once it gives something."""
        until = time.monotonic() + timeout
        while time.monotonic() < until:
            try:
                found = is_so()
            except (urllib.error.URLError, OSError):
                found = None
            if found:
                return found
            time.sleep(POLL_S)
        raise BenchError(f"Flink: waited {timeout} s for {what}; see {self.directory}")

    def submit(self, arguments):
        """Compiles the job and runs it; its id."""
        classes, jar = os.path.join(self.directory, "job"), os.path.join(self.directory, "job.jar")
        subprocess.run(["javac", "-nowarn", "-d", classes, "-cp", self.classes,
                        os.path.join(ROOT, "bench/flink/RecoveryJob.java")], check=True)
        subprocess.run(["jar", "cf", jar, "-C", classes, "."], check=True)
        command, environment = self.java("client", "256m",
                                         "org.apache.flink.client.cli.CliFrontend", "run", "-d",
                                         "-c", "RecoveryJob", jar, *map(str, arguments))
        done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False)
        found = re.search(r"JobID (\w+)", done.stdout)
        if not found:
            raise BenchError(f"Flink did not take the job:\n{done.stdout}{done.stderr}")
        return found[1]

    def is_running(self, job):
        """Whether every task of it is."""
        vertices = self.ask(f"/jobs/{job}")["vertices"]
        return all(v["tasks"]["RUNNING"] == v["parallelism"] for v in vertices)

    def worker(self, job):
        """The process that has the tasks."""
        hosts = set()
        for vertex in self.ask(f"/jobs/{job}")["vertices"]:
            for task in self.ask(f"/jobs/{job}/vertices/{vertex['id']}")["subtasks"]:
                hosts.add(task["taskmanager-id"])
        if len(hosts) != 1:
            raise BenchError(f"Flink: the tasks are on {len(hosts)} TaskManagers, not on one")
        host = hosts.pop()
        for name in ("taskmanager0", "taskmanager1"):
            with open(self.log_path(name), encoding="utf-8") as log:
                if host in log.read():
                    return self.processes[name]
        raise BenchError(f"Flink: no TaskManager logs that it is {host}")

    def told(self, pattern, after):
        """When the JobManager logged lines like that, not before `after`."""
        stamps = []
        with open(self.log_path("jobmanager"), encoding="utf-8", errors="replace") as log:
            for line in log:
                if re.search(pattern, line) and re.match(r"\d{4}-", line):
                    at = datetime.datetime.strptime(line[:23], "%Y-%m-%d %H:%M:%S.%f").timestamp()
                    if at >= after - 0.001:
                        stamps.append(at)
        return stamps

    def stop(self):
        """Ends all of it."""
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(STOP_TIMEOUT_S)


def writers(output, beginning):
    """The file sinks' writers that have files which begin so: BEGINNING-WRITER-COUNT."""
    found = set()
    for _, _, names in os.walk(output):
        found.update(name.removeprefix(beginning)[:36] for name in names
                     if name.startswith(beginning))
    return found


def kill_once(build, keys, options):
    """One run with one kill: the steps in ms from it."""
    with Scratch(build) as directory:
        output = os.path.join(directory, "out")
        cluster = Cluster(directory, options)
        try:
            cluster.start_all()
            job = cluster.submit((keys, RATE, TRICKLE_RATE, output))
            cluster.await_("all tasks", lambda: cluster.is_running(job))
            time.sleep(RUN_S)
            victim = cluster.worker(job)
            if not writers(output, "part-"):
                raise BenchError("Flink: no output before the kill")
            old = writers(output, "part-") | writers(output, ".part-")
            killed = time.time()
            victim.send_signal(signal.SIGKILL)
            cluster.await_("new output", lambda: writers(output, "part-") - old, RECOVERY_TIMEOUT_S)
            at = time.time()
            lost = cluster.told("switched from state RUNNING to RESTARTING", killed)
            restored = cluster.told(r"Restoring job \w+ from Checkpoint", killed)
            running = cluster.told("switched from INITIALIZING to RUNNING", killed)
            if not (lost and restored and running):
                raise BenchError("Flink: its log does not say how it recovered")
            return [1000 * (t - killed) for t in (lost[0], restored[-1], max(running), at)]
        finally:
            cluster.stop()


def measure(build, keys):
    """The steps of each settings' kills in ms; its options are those beside the common ones."""
    rows = {}
    for name, options in SETTINGS.items():
        rounds = []
        for i in range(KILLS):
            rounds.append(kill_once(build, keys, options))
            say(f"  Flink, {name}, kill {i + 1}: "
                + ", ".join(f"{n} {ms:.0f}" for n, ms in zip(STEPS, rounds[-1])))
        rows[name] = {"options": options, "rounds_ms":
                      {step: [steps[i] for steps in rounds] for i, step in enumerate(STEPS)}}
    return {"version": version(), "keys": keys, "kills": KILLS, "common_options": OPTIONS,
            "heap": HEAP, "records_per_s": RATE + TRICKLE_RATE, "settings": rows}


def lines_of(flink):
    """Its rows of the table."""
    rows = [f"Flink {flink['version']}, {flink['keys']} keys, {flink['records_per_s']} records/s, "
            f"{flink['kills']} kills each: median ms after the kill",
            "  " + " " * 36 + "".join(f"{step:>14}" for step in STEPS)]
    for name, row in flink["settings"].items():
        rows.append(f"  {name:<36}" + "".join(f"{statistics.median(row['rounds_ms'][step]):14.0f}"
                                              for step in STEPS))
    told = ["; ".join(f"{key}: {value}" for key, value in options.items())
            for options in (flink["common_options"], HEARTBEATS, AT_ONCE)]
    return rows + [f"  options: {told[0]}", f"  heartbeats: {told[1]}", f"  no delay: {told[2]}"]
