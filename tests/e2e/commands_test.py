"""Every command answers while a job runs, in words and as JSON."""

from captures import flows_capture
from harness import DONE, USAGE, expect, expect_equal
from processes import free_port

JOB = "flow-metering"


def test(w):
    port = free_port()
    capture = flows_capture(w.path("in.pcap"), 40_000, 600)
    run = w.flow(capture, "out", rate=4_000, config={"rest.bind-port": port})
    newest = w.wait_for_checkpoint(2)
    rest = ("--rest", f"127.0.0.1:{port}")
    jobs = w.weir_json("list", *rest)
    expect(JOB in str(jobs), f"weir list names the job: {jobs}")
    expect("completed" in str(w.weir_json("checkpoints", JOB, *rest)), "weir checkpoints")
    w.weir_json("checkpoint", JOB, *rest)
    expect(w.newest_checkpoint() > newest, "weir checkpoint takes one")
    for words in (["list"], ["checkpoints", JOB], ["checkpoint", JOB]):
        status, out, err = w.weir(*words, *rest)
        expect_equal(status, DONE, f"weir {words}: exit status\n{err}")
        expect(out.strip(), f"weir {words} prints something")
    run.interrupt()
    run.wait()

    checkpoint = w.checkpoints()[w.newest_checkpoint()]
    whole = w.weir_json("inspect", checkpoint)
    expect("window" in str(whole), f"weir inspect shows operators: {whole}")
    status, out, err = w.weir("inspect", checkpoint)
    expect_equal(status, DONE, f"weir inspect: exit status\n{err}")
    expect("flow-window" in out, f"weir inspect shows the job file:\n{out}")
    w.weir_json("doctor")
    for command in ("run", "list", "checkpoints", "checkpoint", "inspect", "doctor"):
        status, out, _ = w.weir(command, "--help")
        expect_equal(status, DONE, f"weir {command} --help: exit status")
        expect("xample" in out, f"weir {command} --help has examples")
        status, _, err = w.weir(command, "--no-such-option")
        expect_equal(status, USAGE, f"weir {command} --no-such-option: exit status\n{err}")
