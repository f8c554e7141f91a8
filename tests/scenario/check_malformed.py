#!/usr/bin/env python3
"""weir-scenario tells a script that is not well formed (2) from one that fails (1), with its line.

usage: check_malformed.py WEIR-SCENARIO
"""

import re
import subprocess
import sys

JOB = "coordinator\nvertex src 2\nmaster hook\n"
TASK = "task\nchannels 2\noutputs 1\n"

FULL = ("coordinator\nvertex src 2\nvertex sum 1 union\nedge src sum all\nopcoord enum\n"
        "master hook\nsnapshot /old 5 file=a\n")

# Each is one mistake at the end of FULL.
MISTAKES = """
vertex src 1|vertex 9a 1|vertex v|vertex v 0|vertex v x|vertex v 1 onion|vertex v 1 union x
edge src|edge src sum|edge src sum every|edge src src all|edge src none all
opcoord|opcoord enum|opcoord e async|opcoord 1|master hook|master h2 sync x
snapshot /x|snapshot /old 6|snapshot /x 0|snapshot /x a|snapshot /x 1 foo|snapshot /x 1 file=1
interval|interval x|interval 5|interval 0|interval 100 200|min-pause -1|first-delay 5|timeout 9
max-concurrent 0|tolerable -1|tolerable 2147483648|aligned-timeout -1|unaligned maybe|mode once
finished yes|retained x|retention sometimes|queue 0|channels 2|start|interval 100;start now
stop x|shutdown x|end|end DONE|end FINISHED x|clock|clock 5|clock +x|clock +5 +5
request|request foo|request checkpoint full x|request savepoint /a b|request stop
request stop /a dry
request stop /a drain x|ack|ack src.0|ack src 1|ack src.2 1|ack src.0 x|ack src.0@ 1|ack src.0@5 1
ack src.0 1 foo|ack src.0 1 finished restored-finished|ack src.0 1 empty empty
ack src.0 1 file=a,,b|ack src.0 1 shared=1|ack-all|ack-all x|ack-all 1 2
decline src.0 1|decline src.0 1 CHECKPOINT_EXPIRED|decline src.0 1 declined
decline src.0 1 EXPIRED x
ack-opcoord|ack-opcoord enum|ack-opcoord enum 1 empty|ack-opcoord enum 1 file=|ack-opcoord hook 1
ack-master hook 1 foo|fail-opcoord enum|fail-opcoord hook 1|fail-opcoord enum 1 x|fail-master hook
state src.0|state RUNNING|state src.0 running|state src.5 RUNNING|state src.1..0 RUNNING
state src.0.. RUNNING|state src.0@0 RUNNING|lost|lost src|lost src.2|lost src.0@0
store|store fail FOO|store fail 5|store fail EIO nowhere|store slow EIO|store slow id index
store ok EIO|store settle FOO|store fail MAYBE|store fail index EIO|store break
delete|delete slow x|delete settle x|delete settle 0|delete settle 1 2|delete fail|delete fail FOO
delete ok x|delete stop|restore|restore latest x|restore claim|restore keep /old
restore no-claim /old x|clock +1;restore claim /old|failover x
= triggered|= triggered x|= triggered 1 foo|= triggered 1 src.9|= triggered 1 none src.0
= triggered 1 src.0 subsumed=1|= options 1|= options 1 kind=foo|= options 1 align=foo
= options 1 timeout=x|= waits 1|= waits 1 enum|= pending x|= pending 0|= pending none 1
= queued none
= completed 1:EXPIRED|= aborted 1:|= aborted 1:CHECKPOINT_EXPIRED|= rejected FOO
= rejected 1:EXPIRED
= notified|= notified 1 src.0 latest=1|= notified 1 subsumed=1 src.0|= notified 1 src.0 subsumed=x
= notified 1 hook|= retained x|= discarded x|= deleted 1|= finished 1|= finished 1 foo
= failed-count x|= failed-total none|= job-failed FOO|= job finished|= next-trigger-in x
= restored x
clock +0;interval 100|= pending none;vertex x 1|hold|=pending none|coordinator|task
"""

# script, exit status, line, part of the text
CASES = [
    ("", 2, 0, "empty"),
    ("# only this\n\n", 2, 0, "empty"),
    ("jobmaster\n", 2, 1, "first statement"),
    ("coordinator\n", 2, 1, "no vertex"),
    ("coordinator\nvertex src\n", 2, 2, "needs more words"),
    ("coordinator\nvertex src 0\n", 2, 2, "not in"),
    ("coordinator\nvertex 1src 1\n", 2, 2, "not a name"),
    ("coordinator\nvertex src 1\nvertex src 1\n", 2, 3, "there already"),
    ("coordinator\nvertex a 1\nvertex b 2\nedge a b pointwise\n", 2, 4, "equal parallelism"),
    ("coordinator\nvertex a 1\nvertex b 1\nedge b a all\n", 2, 4, "does not come before"),
    ("coordinator\nvertex a 1\ninterval ten\n", 2, 3, "not a number"),
    ("coordinator\nvertex a 1\nunaligned on\nmax-concurrent 2\nrequest checkpoint\n", 2, 5,
     "do not fit"),
    (JOB + "frobnicate\n", 2, 4, "unknown"),
    (JOB + "start\n", 2, 4, "without an interval"),
    (JOB + "request checkpoint\ntimeout 50\n", 2, 5, "too late"),
    (JOB + "clock 5\n", 2, 4, "does not begin with +"),
    (JOB + "request savepoint\n", 2, 4, "needs more words"),
    (JOB + "request checkpoint half\n", 2, 4, "no kind"),
    (JOB + "ack src.2 1\n", 2, 4, "not in"),
    (JOB + "ack src.0..1 1\n", 2, 4, "one subtask"),
    (JOB + "ack src.0 0\n", 2, 4, "not in"),
    (JOB + "ack sum.0 1\n", 2, 4, "no vertex"),
    (JOB + "ack src.0 1 file=\n", 2, 4, "list of names"),
    (JOB + "ack-master other 1\n", 2, 4, "nothing is called"),
    (JOB + "decline src.0 1 TIRED\n", 2, 4, "not a reason"),
    (JOB + "state src.0 ASLEEP\n", 2, 4, "no state"),
    (JOB + "store fail\n", 2, 4, "do not fit"),
    (JOB + "store fail EWHATEVER\n", 2, 4, "name of an error"),
    (JOB + "store fail MAYBE metadata\n", 2, 4, "index alone"),
    (JOB + "restore claim /nowhere\n", 2, 4, "no snapshot"),
    (JOB + "end WELL\n", 2, 4, "no end"),
    (JOB + "= \n", 2, 4, "names nothing"),
    (JOB + "= beauty 1\n", 2, 4, "cannot be asserted"),
    (JOB + "= aborted 1:TIRED\n", 2, 4, "cannot be in this list"),
    (JOB + "= options 1 colour=red\n", 2, 4, "no option"),
    # A mistake is found before anything fails.
    (JOB + "= pending 9\nfrobnicate\n", 2, 5, "unknown"),
    (JOB + "= pending 9\n", 1, 4, "expected 9, got none"),
    (JOB + "request checkpoint\nack-master hook 1\nack-all 1\n= completed none\n", 1, 7,
     "expected none, got 1"),
    (JOB + "request checkpoint\nack-master hook 1\nack-all 1\n", 1, 6,
     "nothing more in 'completed'"),
    (JOB + "request checkpoint\nack-master hook 1\nack-all 1\n= completed 1\n", 0, None, "ok -"),
    (TASK + "b 1 0 1\n= trig 1\n", 0, None, "ok -"),
    (TASK + "b 1 0 1\n= trig 2\n", 1, 5, "expected 2, got 1"),
    (TASK + "b 1 0 1\n", 1, 4, "expected no more trig, got 1"),
    (TASK + "b 2 0\nX 2 1\n", 1, 5,
     "expected no more abort, got 2:DECLINED_ON_CANCELLATION_BARRIER"),
    (TASK + "X 2 1\n= abort 2:DECLINED_SUBSUMED\n", 1, 5, "expected 2:DECLINED_SUBSUMED"),
    (TASK + "D 0 a\n= delivered none\n", 1, 5, "expected none, got a"),
    (TASK + "b 1 0\nD 0 a\n= delivered a\n", 1, 6, "expected a, got none"),
    (TASK + "b 1 0\n= blocked 1\n", 1, 5, "expected 1, got 0"),
    (TASK + "hold\nD 0 a\nstep 2\n", 1, 6, "expected 2 to take, got 1"),
    (TASK + "emit 0 a\n= sent 0 none\n", 1, 5, "expected none, got a"),
    (TASK + "store slow\nE 0 1\ntrigger 1\n= trig 1\n= acked 1\n", 1, 8, "expected 1, got none"),
    (TASK + "store slow\nE 0 1\ntrigger 1\n= trig 1\n", 0, None, "ok -"),
    (TASK + "= task failed\n", 1, 4, "expected failed, got running"),
    ("task\nchannels 1\nunaligned on\nmode at-least-once\nb 1 0\n", 2, 5, "needs exactly-once"),
    (TASK + "s 1 0 forced\n", 2, 4, "not for this"),
    ("task\neod no-drain\n", 2, 2, "a source that stops without draining is not supported"),
    (TASK + "b 1 2\n", 2, 4, "2 is not in 0..1"),
    (TASK + "b 1 1..0\n", 2, 4, "0 is not in 1..1"),
    (TASK + "b 1\n", 2, 4, "'b' needs a number"),
    (TASK + "b 1 0 now\n", 2, 4, "'now' is not for this"),
    (TASK + "b 1 0 ts=1 ts=2\n", 2, 4, "'ts=2' is one too many"),
    (TASK + "s 1 0 suspend terminate\n", 2, 4, "'terminate' is one too many"),
    (TASK + "= abort 1:SUBSUMED_TOO\n", 2, 4, "'SUBSUMED_TOO' is not a reason"),
    (TASK + "= abort 1:CHECKPOINT_EXPIRED\n", 2, 4, "'CHECKPOINT_EXPIRED' is not a reason"),
    (TASK + "u 1 0\n", 2, 4, "'u' needs 'unaligned on'"),
    (TASK + "D 0 a\nD 1 a\n", 2, 5, "there is a buffer 'a' already"),
    (TASK + "D 0 1a\n", 2, 4, "'1a' is not a label"),
    (TASK + "E 0\nD 0\n", 2, 5, "channel 0 has ended"),
    (TASK + "eod 0\nD 0\n", 2, 5, "the data of this channel has ended"),
    (TASK + "step\n", 2, 4, "'step' is for a task that is held"),
    (TASK + "hold\nchannels 1\n", 2, 5, "the setting 'channels' comes too late"),
    (TASK + "flush 0\n", 2, 4, "there is no event 'flush'"),
    (TASK + "= flushed 0\n", 2, 4, "there is no assertion 'flushed'"),
    (TASK + "= trig 1:DECLINED_SUBSUMED\n", 2, 4, "'1:DECLINED_SUBSUMED' is not a number"),
    (TASK + "store fail ESOMETHING\n", 2, 4, "'ESOMETHING' is not the name of an error"),
    ("task\nD 0 a\n", 2, 2, "there is no '0': the task has none"),
    ("task\nlinks remote remote\nchannels 1\nD 0\n", 2, 4, "2 links for 1 channels"),
    (TASK + "b 1 0 1\n= trig 2\nb 0 0\n", 2, 6, "0 is not in"),
]


def mistakes():
    """As CASES."""
    for lines in re.split(r"[|\n]", MISTAKES.strip()):
        script = FULL + lines.replace(";", "\n") + "\n"
        yield script, 2, script.count("\n"), "malformed: "


def main():
    failures = 0
    for script, status, line, text in [*CASES, *mistakes()]:
        run = subprocess.run([sys.argv[1], "-"], input=script, capture_output=True, text=True,
                             timeout=10, check=False)
        word = "unsupported" if "not supported" in text else "FAIL"
        place = "" if line is None else f"{word} -:{line}: "
        if run.returncode != status or place not in run.stdout or text not in run.stdout:
            failures += 1
            print(f"{script!r}\n  expected {status}{place}{text!r}\n"
                  f"  got {run.returncode} {run.stdout!r}")
    return 1 if failures else 0


sys.exit(main())
