"""Who owns what a job began from: with CLAIM the job deletes it when a newer checkpoint takes its
place (21.2), otherwise it stays the user's; the output is the same."""

import os

from captures import flows_capture
from harness import expect, expect_equal, expect_same_lines
from processes import free_port

JOB = "flow-metering"
CLAIM = {"execution.state-recovery.claim-mode": "CLAIM"}


def test(w):
    capture = flows_capture(w.path("in.pcap"), 30_000, 600)
    w.flow(capture, "calm", state="calm").summary()
    port = free_port()

    def part(state, path, config):
        options = ("--restore", path) if path else ()
        return w.flow(capture, "out", rate=w.pace(10_000), state=state, options=options,
                      config={"rest.bind-port": port, "execution.checkpointing.num-retained": "1",
                              **config})

    def stop(run):
        answer = w.weir_json("stop", JOB, "--savepoint", w.path("sp"),
                             "--rest", f"127.0.0.1:{port}")
        expect_equal(run.summary()["state"], "FINISHED", "the stopped job")
        return answer["operation"]["location"]

    run = part("first", None, {})
    w.wait_for_checkpoint(2, state="first")
    claimed = stop(run)
    run = part("second", claimed, CLAIM)
    w.wait_for(lambda: not os.path.exists(claimed), "the claimed savepoint goes")
    kept = stop(run)
    expect(os.path.exists(os.path.join(kept, "_metadata")), "a savepoint of the job's own stays")
    run = part("third", kept, {})
    w.wait_for(lambda: len(w.checkpoints("third")) > 0, "a checkpoint completes")
    run.summary()
    expect(os.path.exists(os.path.join(kept, "_metadata")), "what was not claimed stays")
    expect_same_lines(w.lines("out"), w.lines("calm"), "output of the three runs")
