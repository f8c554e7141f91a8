"""Coordinators and TaskManagers started one by one, each on a host of its own."""

import json
import os
import subprocess
import time

from captures import flows_capture
from harness import DONE, JOBS, Failed, expect_equal, expect_same_lines, fetch
from namespaces import inside
from processes import end

RPC, REST = 6123, 8081


class Cluster:
    """Processes of one world, on some Hosts."""

    def __init__(self, world, hosts, config, taskmanagers):
        """`taskmanagers`: config of each, beside that of all."""
        self.world = world
        self.hosts = hosts
        self.config = config
        self.own = taskmanagers
        self.children = {}
        self.logs_dir = world.path(f"cluster-{len(world.runs)}", "logs")
        os.makedirs(self.logs_dir)
        world.runs.append(self)
        self.start("weir-coordinator", hosts.hub, "coordinator",
                   {"jobmanager.bind-host": "0.0.0.0", "jobmanager.rpc.port": RPC,
                    "rest.bind-port": REST, "weir.job.taskmanagers": len(taskmanagers)})
        world.wait_for(self.is_listening, "the coordinator listens")
        for i in range(len(taskmanagers)):
            self.start_taskmanager(i)

    def start(self, program, host, name, config, options=()):
        words = ["ip", "netns", "exec", host, self.world.program(program), *options]
        for key, value in {**self.config, **config}.items():
            words += ["-D", f"{key}={value}"]
        with open(os.path.join(self.logs_dir, name + ".log"), "ab") as log:
            self.children[name] = subprocess.Popen(  # pylint: disable=consider-using-with
                words, cwd=self.world.dir, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def start_taskmanager(self, i):
        self.start("weir-taskmanager", self.hosts.hosts[i], f"taskmanager-{i}", self.own[i],
                   ("--coordinator", f"{self.hosts.address(None)}:{RPC}"))

    def kill_taskmanager(self, i):
        """With -9; it has replaced `ip` by then."""
        child = self.children[f"taskmanager-{i}"]
        end(child.pid)
        child.wait()

    def is_running(self):
        return self.children["coordinator"].poll() is None

    def stderr(self):
        return self.logs()

    def log(self, name):
        with open(os.path.join(self.logs_dir, name + ".log"), encoding="utf-8",
                  errors="replace") as file:
            return file.read()

    def ask(self, path):
        """What the coordinator answers."""
        with inside(self.hosts.hub):
            return fetch(REST, path)

    def is_listening(self):
        try:
            return self.ask("/overview")
        except OSError:
            return False

    def submit(self, text, sets):
        """Its id; `text` is a job file's."""
        words = ["ip", "netns", "exec", self.hosts.hub, self.world.program("weir"), "submit",
                 self.world.write("job.yaml", text), "--rest", f"127.0.0.1:{REST}", "--detached",
                 "--json", *self.world.set_words(sets)]
        status, out, err = self.world.command(words)
        expect_equal(status, DONE, f"weir submit: exit status\n{err}")
        return json.loads(out)["job_id"]

    def summary(self, job, seconds=40):
        """Of a job that must finish."""
        deadline = time.monotonic() + seconds * self.world.factor
        while time.monotonic() < deadline:
            summary = json.loads(self.ask(f"/jobs/{job}/summary"))
            if summary["state"] in ("FINISHED", "FAILED", "CANCELED"):
                expect_equal(summary["state"], "FINISHED", f"state of {summary}\n{self.logs()}")
                return summary
            time.sleep(0.05)
        raise Failed(f"the job did not end within {seconds} s: {summary}\n{self.logs()}")

    def logs(self):
        return "\n".join("\n".join([name + ":", *self.log(name).splitlines()[-12:]])
                         for name in self.children)

    def close(self):
        for child in reversed(list(self.children.values())):
            child.terminate()
        for child in self.children.values():
            child.wait(20)


class FlowJob:
    """The flow-metering job on one capture, time and again, and what it must give."""

    def __init__(self, w, hosts):
        self.w = w
        self.hosts = hosts
        self.capture = flows_capture(w.path("in.pcap"), 40_000, 600)
        w.flow(self.capture, "calm", state="calm").summary()
        self.wanted = w.lines("calm")

    def run(self, name, taskmanagers, rate=20_000, config=None, disturb=None):
        """One job on a cluster of its own, with a task for each TaskManager: its summary, and the
        logs of the TaskManagers.  `disturb` is called with the cluster meanwhile."""
        count = len(taskmanagers)
        with open(os.path.join(JOBS, "flow-metering.yaml"), encoding="utf-8") as file:
            text = file.read().replace("parallelism: 2", f"parallelism: {count}")
        config = {**self.w.settings(name), **(config or {})}
        cluster = Cluster(self.w, self.hosts, config, taskmanagers)
        job = cluster.submit(text, {"source.path": self.capture, "source.rate": rate,
                                    "sink.path": self.w.path(name + "-out")})
        if disturb is not None:
            disturb(cluster)
        summary = cluster.summary(job)
        cluster.close()
        expect_same_lines(self.w.lines(name + "-out"), self.wanted, f"output of {name}")
        return summary, [cluster.log(f"taskmanager-{i}") for i in range(count)]
