#!/usr/bin/env python3
"""Random scripts about one task: whatever happens in whatever order, no check of ours fails, every
buffer is given back, data is delivered once and in the order of its channel, and when all
channels have ended none is blocked and nothing is pending.

Where each channel has its barriers once and in order, of every checkpoint that is reported what
was delivered before it was taken and what is in flight in it are together exactly what was sent
before its barrier, channel by channel.

usage: random_scripts.py WEIR-SCENARIO [COUNT [FIRST-SEED]]
A seed that fails is printed with its script.
"""

import random
import re
import subprocess
import sys


def settings(rng):
    """Lines, and what the script must know of them."""
    gates = [rng.randint(1, 3) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    s = {"channels": sum(gates), "outputs": rng.randint(0, 2), "unaligned": False, "timeout": 0,
         "exact": True}
    lines = ["task"] + [f"channels {n}" for n in gates]
    if rng.random() < 0.2:
        lines.append("mode at-least-once")
        s["exact"] = False
    else:
        s["unaligned"] = rng.random() < 0.85
        lines.append(f"unaligned {'on' if s['unaligned'] else 'off'}")
    if rng.random() < 0.6:
        s["timeout"] = rng.choice([5, 20])
        lines.append(f"timeout {s['timeout']}")
    if gates and rng.random() < 0.3:
        s["exact"] = False  # what waits in a local link is kept by its producer
        lines.append("links " + " ".join(rng.choice(["local", "remote"])
                                         for _ in range(s["channels"])))
    if s["outputs"]:
        lines.append(f"outputs {s['outputs']}")
    if rng.random() < 0.2:
        lines.append("finished off")
    lines.append(f"max-concurrent {rng.choice([1, 1, 2])}")
    return lines, s


class Script:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.lines, self.s = settings(self.rng)
        self.open = set(range(self.s["channels"]))
        self.data_over = set()
        self.labels = 0
        self.sent = {c: [] for c in self.open}
        self.newest = 1
        self.is_held = False
        self.is_orderly = self.rng.random() < 0.6
        self.last = dict.fromkeys(self.open, 0)
        self.cuts = {}  # of a checkpoint: labels of each channel before its barrier
        self.asked = set()

    def id(self):
        if self.rng.random() < 0.35:
            self.newest += self.rng.choice([1, 1, 1, 2])
        return max(1, self.newest - self.rng.choice([0, 0, 0, 0, 1, 2]))

    def some(self, channels):
        channels = sorted(channels)
        return " ".join(map(str, self.rng.sample(channels, self.rng.randint(1, len(channels)))))

    def barrier(self, checkpoint):
        """Its id and channels."""
        channels = {int(c) for c in self.some(self.open).split()}
        if self.is_orderly:
            checkpoint = max(checkpoint, min(self.last[c] for c in channels) + 1)
            channels = {c for c in channels if self.last[c] < checkpoint}
            self.newest = max(self.newest, checkpoint)
        for c in channels:
            self.last[c] = checkpoint
            self.cuts.setdefault(checkpoint, {})[c] = len(self.sent[c])
        return f"{checkpoint} " + " ".join(map(str, sorted(channels)))

    def label(self):
        self.labels += 1
        return f"d{self.labels}"

    def step(self):
        rng, kind = self.rng, self.rng.random()
        fed = self.open - self.data_over
        if kind < 0.3 and fed:
            c = rng.choice(sorted(fed))
            label = self.label()
            self.sent[c].append(label)
            return f"D {c} {label}"
        if kind < 0.55 and self.open:
            verbs = ["b"] * 4 + ["s"] + (["u"] * 4 if self.s["unaligned"] else [])
            verb = rng.choice(verbs)
            forced = " forced" if verb == "b" and rng.random() < 0.15 else ""
            return f"{verb} {self.barrier(self.id())}{forced}"
        if kind < 0.6 and self.open:
            return f"X {self.id()} {self.some(self.open)}"
        if kind < 0.62 and self.open:
            c = rng.choice(sorted(self.open))
            self.open.discard(c)
            return f"E {c}"
        if kind < 0.72:
            return f"clock +{rng.choice([1, 4, 5, 6, 20, 30])}"
        if kind < 0.78:
            return "timers"
        if kind < 0.84:
            self.is_held = not self.is_held
            return "hold" if self.is_held else "go"
        if kind < 0.88:
            self.asked.add(self.newest)
            return f"trigger {self.newest}" + rng.choice(["", "", " savepoint"])
        if kind < 0.92:
            return rng.choice(["complete", "cancel"]) + f" {self.id()}"
        if kind < 0.97 and self.s["outputs"]:
            o = rng.randrange(self.s["outputs"])
            return rng.choice([f"emit {o} {self.label()}", f"block {o}", f"resume {o}"])
        return rng.choice(["store slow", "store settle", "store settle EIO", "store fail EIO",
                           "store ok"])

    def write(self):
        self.lines += [self.step() for _ in range(self.rng.randint(5, 60))]
        self.lines.append("store settle")
        self.lines += [f"resume {o}" for o in range(self.s["outputs"])]
        self.lines += [f"E {c}" for c in sorted(self.open)]
        self.lines += ["go", "= blocked none", "= open 0", "= pending none", "timers"]
        return "\n".join(self.lines) + "\n"


def is_delivered(script, trace):
    """Each buffer once, in the order of its channel."""
    seen = re.findall(r"^ *\d+ +delivered (\S+)", trace, re.M)
    return all([x for x in seen if x in labels] == labels for labels in script.sent.values())


def is_exact(script, trace):
    if not (script.s["exact"] and script.is_orderly):
        return True
    delivered, taken, in_flight = [], {}, {}
    for what, rest in re.findall(r"^ *\d+ +(delivered|trig|in flight|acked) (.*)", trace, re.M):
        if what == "delivered":
            delivered.append(rest)
        elif what == "trig":
            taken[int(rest)] = set(delivered)
        elif what == "in flight":
            checkpoint, channel, label = re.fullmatch(r"(\d+), (\w+ \d+): (\S+)", rest).groups()
            in_flight.setdefault(int(checkpoint), {}).setdefault(channel, []).append(label)
        elif int(rest) not in script.asked:
            for c, labels in script.sent.items():
                sent = labels[:script.cuts.get(int(rest), {}).get(c)]
                kept = in_flight.get(int(rest), {}).get(f"channel {c}", [])
                if [x for x in labels if x in taken[int(rest)]] + kept != sent:
                    print(f"checkpoint {rest}, channel {c}: not {sent}")
                    return False
    return True


def judge(runner, seed):
    script = Script(seed)
    text = script.write()
    run = subprocess.run([runner, "--trace", "-"], input=text, capture_output=True, text=True,
                         timeout=20, check=False)
    # What the script leaves unasserted is no matter here; nor is a task that an error failed.
    is_good = run.returncode == 0 or (run.returncode == 1 and "expected no more" in run.stdout)
    if is_good and is_delivered(script, run.stdout) and is_exact(script, run.stdout):
        return True
    print(f"seed {seed}: exit status {run.returncode}\n{text}{run.stdout[-1500:]}{run.stderr}")
    return False


def main():
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 300
    first = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    return 0 if all([judge(sys.argv[1], seed) for seed in range(first, first + count)]) else 1


sys.exit(main())
