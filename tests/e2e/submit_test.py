"""Jobs are submitted to a coordinator and a TaskManager that were started by hand: followed over a
death of the coordinator, left alone, stopped and resumed with other parallelism, or refused."""

import json
import os
import shutil
import subprocess

from captures import flows_capture
from harness import (BUSY, CONFIG, DONE, FAILURE, INTERRUPTED, JOBS, REFUSED, ROOT, Run,
                     expect, expect_equal, expect_same_lines, fetch)
from processes import end, free_port
from rescale_test import job_with

RECORDS = 400_000


class Hands:
    """A coordinator and a TaskManager, as systemd would start them."""

    def __init__(self, w):
        self.w = w
        self.rest = free_port()
        self.rpc = free_port()
        self.coordinator = None
        self.logs = w.path("state", "logs")
        os.makedirs(self.logs)

    def wait_for(self, condition, what):
        """Whatever runs, or does not."""
        self.w.runs.append(self)
        return self.w.wait_for(condition, what)

    @staticmethod
    def is_running():
        return True

    def stderr(self):
        return self.w.logs()

    def start(self, program, *words, env=None):
        with open(os.path.join(self.logs, program + ".log"), "ab") as log:
            return subprocess.Popen(  # pylint: disable=consider-using-with
                [self.w.program(program), *words], cwd=self.w.dir, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, env={**os.environ, **(env or {})})

    def start_coordinator(self, crash_at=None):
        settings = {**self.w.settings("state"), "rest.bind-port": self.rest,
                    "jobmanager.rpc.port": self.rpc}
        words = [word for key, value in settings.items() for word in ("-D", f"{key}={value}")]
        self.coordinator = self.start("weir-coordinator", *words,
                                      env={"WEIR_CRASH_AT": crash_at} if crash_at else None)
        self.wait_for(self.is_listening, "the coordinator listens")

    def is_listening(self):
        try:
            return fetch(self.rest, "/overview")
        except OSError:
            return False

    def kill_coordinator(self):
        end(self.coordinator.pid)
        self.coordinator.wait()

    def start_taskmanager(self):
        return self.start("weir-taskmanager", "--coordinator", f"127.0.0.1:{self.rpc}")

    def words(self, job, sets=None, options=()):
        return [job, "--rest", f"127.0.0.1:{self.rest}", *options, *self.w.set_words(sets or {})]

    def submit(self, job, sets=None, options=()):
        """Followed in the background."""
        run = Run(self.w, [self.w.program("weir"), "submit", *self.words(job, sets, options),
                           "--json"], os.environ)
        self.w.runs.append(run)
        return run

    def refused(self, code, part, job, sets=None, options=()):
        """Its one line on standard error, which is the error of the object, too."""
        run = self.submit(job, sets, options)
        run.ends_with(code)
        said = run.stderr().splitlines()
        answer = json.loads(run.stdout())
        expect(part in said[-1], f"{part!r} in {said}")
        expect_equal(answer["exit_code"], code, f"exit code in {answer}")
        expect(said[-1].endswith(answer["error"]), f"{said} and {answer}")

    def detached(self, job, sets=None, options=()):
        """The id of a job that nobody follows."""
        answer = self.w.weir_json("submit", *self.words(job, sets, options), "--detached")
        expect_equal(list(answer), ["job_id"], "what a detached job says")
        return answer["job_id"]

    def ask(self, *words):
        return self.w.weir_json(*words, "--rest", f"127.0.0.1:{self.rest}")

    def state_of(self, job):
        return json.loads(fetch(self.rest, f"/jobs/{job}/summary"))["state"]

    def wait_for_state(self, job, state):
        self.wait_for(lambda: self.state_of(job) == state, f"{job} is {state}")


def refusals(w, h):
    job = os.path.join(JOBS, "keyed-count.yaml")
    with open(job, encoding="utf-8") as file:
        text = file.read()
    line = 1 + text[:text.index("type: generator")].count("\n")
    bad = w.write("bad.yaml", text.replace("type: generator", "type: generater"))
    h.refused(CONFIG, f"{bad}:{line}:", bad)
    gone = w.write("gone.yaml", text.replace(
        "type: generator", "type: generator\n        plugin: ./gone.so"))
    h.refused(CONFIG, "/gone.so: No such file", gone)
    h.refused(CONFIG, "no-such.yaml", w.path("no-such.yaml"))
    h.refused(CONFIG, "nobody", job, {"nobody.rate": 1})
    h.refused(CONFIG, "weir.cores: no key of a job", job, options=("-D", "weir.cores=auto:1"))
    run = h.submit(job, options=("--restore", "no/such/savepoint"))
    expect_equal(run.summary(status=REFUSED)["refused"], True, "a restore from nothing")
    expect(w.path("no/such/savepoint") in run.stderr(), run.stderr())


def plugin_elsewhere(w, h):
    """The coordinator's host has the plug-in, that of the TaskManager has not."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        return None
    example = os.path.join(JOBS, "plugin-example")
    shutil.copy(os.path.join(example, "tcp-flows.yaml"), w.dir)
    library = w.path("byte_filter.so")
    status, _, err = w.command([compiler, "-shared", "-fPIC", "-I", ROOT, "-o", library,
                                os.path.join(example, "byte_filter.c")])
    expect_equal(status, DONE, f"the compiler's exit status\n{err}")
    run = h.submit(w.path("tcp-flows.yaml"), {"source.path": w.path("in.pcap"),
                                              "sink.path": w.path("tcp")})
    h.wait_for(lambda: "waits for a TaskManager: none has registered" in run.stderr(),
               "it is said that the job waits")
    os.unlink(library)
    return run


def follow_over_a_death(w, h, flows):
    run = h.submit(os.path.join(JOBS, "flow-metering.yaml"), flows,
                   ("-D", "execution.checkpointing.interval=50 ms"))
    newest = h.wait_for(lambda: w.newest_checkpoint() >= 3 and w.newest_checkpoint(),
                        "three checkpoints")
    h.refused(BUSY, "flow-metering is here already and RUNNING",
              os.path.join(JOBS, "flow-metering.yaml"), flows)
    other = h.detached(job_with(w, "keyed-count", (1, 1)), {"generator.rate": 1000})
    h.wait_for_state(other, "RUNNING")  # beside the first
    listed = w.weir_json("list", "--config", w.write("host.yaml", f"rest.port: {h.rest}\n"))
    expect_equal([j["state"] for j in listed["jobs"]].count("RUNNING"), 2, f"of {listed}")
    h.kill_coordinator()
    h.start_coordinator()
    summary = run.summary()
    expect_equal(summary["state"], "FINISHED", "the followed job")
    expect(summary["restarts"] >= 1, f"the coordinator's death was one: {summary['restarts']}")
    expect(w.newest_checkpoint() > newest, "checkpoints of the second coordinator")
    h.ask("cancel", other)
    h.wait_for_state(other, "CANCELED")


def stop_and_go_on(w, h):
    sets = {"generator.records": RECORDS, "generator.rate": 200_000, "count.keys-max": 65536}
    calm = w.run(job_with(w, "keyed-count", (2, 2)), {**sets, "generator.rate": 0},
                 state="calm").summary()
    job = h.detached(job_with(w, "keyed-count", (2, 2)), sets)
    h.wait_for(lambda: h.ask("checkpoints", job)["counts"]["completed"] >= 2, "two checkpoints")
    taken = h.ask("stop", job, "--savepoint", w.path("sp"))["operation"]["location"]
    expect_equal(h.state_of(job), "FINISHED", "the stopped job")
    status, _, said = w.weir("checkpoint", job, "--rest", f"127.0.0.1:{h.rest}")
    expect(status == FAILURE and "weir checkpoint: " in said, f"{status}, {said}")
    run = h.submit(job_with(w, "keyed-count", (1, 3)), sets,
                   ("--restore", os.path.relpath(taken, w.dir)))
    done = run.summary()
    expect_equal(done["counters"]["digest"], calm["counters"]["digest"], "digest")
    expect_equal(done["counters"]["digest"]["sum_of_values"], RECORDS, "records")


def leave(w, h):
    """Ctrl-C, once for one that follows in words."""
    run = Run(w, [w.program("weir"), "submit", *h.words(job_with(w, "keyed-count", (1, 1)),
                                                         {"generator.rate": 1000})], os.environ)
    w.runs.append(run)
    h.wait_for(lambda: "RUNNING" in run.stderr(), "it runs")
    run.interrupt()
    run.ends_with(INTERRUPTED)
    expect(f"weir stop keyed-count --rest 127.0.0.1:{h.rest} ends it" in run.stderr(),
           run.stderr())
    expect_equal(h.state_of("keyed-count"), "RUNNING", "the job that was left")
    h.ask("cancel", "keyed-count")
    h.wait_for_state("keyed-count", "CANCELED")


def asked_again(w, h):
    """The coordinator dies when it has kept the job and not said so."""
    h.kill_coordinator()
    h.start_coordinator(crash_at="after-kept")
    run = h.submit(job_with(w, "keyed-count", (1, 2)), {"generator.records": 1000})
    h.coordinator.wait(20)
    h.start_coordinator()
    expect_equal(run.summary()["counters"]["digest"]["sum_of_values"], 1000, "records")


def units(w):
    """What scripts/systemd holds is a unit and a config that these programs take."""
    folder = os.path.join(ROOT, "scripts", "systemd")
    for name in ("coordinator", "taskmanager"):
        status, _, err = w.weir("config", "--config", os.path.join(folder, name + ".yaml"))
        expect_equal(status, DONE, f"{name}.yaml: {err}")
        with open(os.path.join(folder, f"weir-{name}.service"), encoding="utf-8") as file:
            text = file.read()
        expect(f"/bin/weir-{name} --config /etc/weir/{name}.yaml\n" in text, text)
        unit = w.write(f"weir-{name}.service", text.replace("/usr/local/bin", w.build))
        if shutil.which("systemd-analyze") is not None:
            status, out, err = w.command(["systemd-analyze", "verify", unit])
            expect_equal((status, out + err), (DONE, ""), f"systemd-analyze verify {unit}")


def test(w):
    units(w)
    h = Hands(w)
    job = os.path.join(JOBS, "keyed-count.yaml")
    flows = {"source.path": flows_capture(w.path("in.pcap"), 20_000, 600),
             "source.rate": 12_000, "sink.path": w.path("out")}
    h.refused(FAILURE, f"no coordinator answers at 127.0.0.1:{h.rest}", job)
    h.start_coordinator()
    refusals(w, h)
    elsewhere = plugin_elsewhere(w, h)
    h.start_taskmanager()
    if elsewhere is not None:
        failure = elsewhere.summary(status=FAILURE)["failure"]
        for part in ("/byte_filter.so: No such file", "(TaskManager tm-"):
            expect(part in failure, f"{part!r} in {failure}")
    follow_over_a_death(w, h, flows)
    stop_and_go_on(w, h)
    leave(w, h)
    asked_again(w, h)
    w.flow(flows["source.path"], "calm-out", state="calm-flows").summary()
    expect_same_lines(w.lines("out"), w.lines("calm-out"), "flows over the coordinator's death")
