#!/usr/bin/env python3
"""weir-scenario tells a script that is not well formed (2) from one that fails (1), with its line.

usage: check_malformed.py WEIR-SCENARIO
"""

import subprocess
import sys

JOB = "coordinator\nvertex src 2\nmaster hook\n"

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
]


def main():
    failures = 0
    for script, status, line, text in CASES:
        run = subprocess.run([sys.argv[1], "-"], input=script, capture_output=True, text=True,
                             timeout=10, check=False)
        place = "" if line is None else f"FAIL -:{line}: "
        if run.returncode != status or place not in run.stdout or text not in run.stdout:
            failures += 1
            print(f"{script!r}\n  expected {status}{place}{text!r}\n"
                  f"  got {run.returncode} {run.stdout!r}")
    return 1 if failures else 0


sys.exit(main())
