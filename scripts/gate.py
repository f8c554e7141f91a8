#!/usr/bin/env python3
"""All checks of the project in order, counted.  scripts/test calls it and tells its options."""

import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
SYNTHESIS = re.compile(r"Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
JOBS = str(max(2, os.cpu_count() or 1))
TAIL_LINES = 40  # of what a failed command said
LAST_LINES = 12  # of them, said again at the end

# Build directories: compiler, options.
BUILDS = {
    "gcc": ("gcc", ["-Dbuildtype=debugoptimized", "-Dc_args=-DWEIR_DEBUG"]),
    "clang": ("clang", ["-Dbuildtype=release"]),
    # gcc's UBSan does not report to files when ASan is there too.
    "asan": ("clang", ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined",
                       "-Db_lundef=false",
                       "-Dc_args=-DWEIR_DEBUG -fno-sanitize-recover=all"]),
    "fuzz": ("clang", ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined",
                       "-Db_lundef=false",
                       "-Dc_args=-DWEIR_DEBUG -fno-sanitize-recover=all "
                       "-fsanitize=fuzzer-no-link"]),
}
FUZZ_SECONDS = 10
SEEDED = ("message", "metadata", "task_state", "ha_log")  # fuzzers that begin with real ones
# What the control plane's programs must not be linked with.
FOREIGN = {"weir": ("librte_", "libhwloc"), "weir-coordinator": ("librte_", "libhwloc")}
PROGRAMS = ("weir", "weir-coordinator", "weir-taskmanager")


class Gate:
    """Counts what passed, failed and was skipped, and says so while it happens."""

    def __init__(self, names):
        self.names = names
        self.begun = time.monotonic()
        self.passed = 0
        self.failed = []
        self.last_words = {}
        self.skipped = []
        self.builds = {}

    def wants(self, name):
        """Whether a step, or a test in a step, is asked for."""
        return not self.names or any(
            name.startswith(n) or n.startswith(name + "/") for n in self.names)

    def say(self, text):
        print(f"[{time.monotonic() - self.begun:6.1f} s] {text}", flush=True)

    def ok(self, name, detail="", count=1):
        self.passed += count
        self.say(f"ok   {name}{' ' + detail if detail else ''}")

    def fail(self, name, detail="", output="", count=1):
        self.failed += [name] * count
        self.say(f"FAIL {name}{' ' + detail if detail else ''}")
        self.quote(output.splitlines()[-TAIL_LINES:])
        self.note(name, output.splitlines())

    def note(self, name, lines):
        """What a check said that failed, for those who see only the end of all this."""
        self.last_words.setdefault(name, []).extend(lines[-LAST_LINES:])

    def quote(self, lines):
        for line in lines:
            print("       | " + line, flush=True)

    def skip(self, name, reason):
        self.skipped.append((name, reason))
        self.say(f"SKIP {name}: {reason}")

    def finish(self):
        for name, reason in self.skipped:
            print(f"skipped {name}: {reason}")
        for name in dict.fromkeys(self.failed):
            print(f"failed {name}")
            self.quote(self.last_words.get(name, []))
        tail = f", {len(self.skipped)} skipped" if self.skipped else ""
        sys.stderr.flush()
        print(f"{self.passed} passed, {len(self.failed)} failed{tail}", flush=True)
        return 1 if self.failed else 0

    def command(self, name, words, env=None, timeout=900):
        """Runs one command as one check."""
        begun = time.monotonic()
        status, output = run(words, env, timeout)
        took = f"({time.monotonic() - begun:.1f} s)"
        if status == 0:
            self.ok(name, took)
        else:
            self.fail(name, f"exit status {status} {took}", output)
        return status == 0


def run(words, env=None, timeout=900):
    """Exit status and all output of a command."""
    try:
        done = subprocess.run(words, cwd=ROOT, env={**os.environ, **(env or {})},
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, check=False)
        return done.returncode, done.stdout.decode("utf-8", "replace")
    except subprocess.TimeoutExpired as late:
        return "none", (late.output or b"").decode("utf-8", "replace") + f"\nover {timeout} s"
    except OSError as error:
        return "none", str(error)


def build_dir(name):
    return os.path.join(ROOT, "build-" + name)


def configure(name):
    """Sets a build directory up, anew if its options changed.  Returns status and output."""
    compiler, options = BUILDS[name]
    folder = build_dir(name)
    stamp = os.path.join(folder, "options.json")
    wanted = json.dumps([compiler] + options)
    if os.path.exists(stamp):
        with open(stamp, encoding="utf-8") as file:
            if file.read() == wanted:
                # Lists of files are made anew.
                return run(["meson", "setup", "--reconfigure", folder])
    shutil.rmtree(folder, ignore_errors=True)
    status, output = run(["meson", "setup", folder] + options, {"CC": compiler})
    if status == 0:
        with open(stamp, "w", encoding="utf-8") as file:
            file.write(wanted)
    return status, output


def build(gate, name, targets=()):
    """Builds once a run; warnings are errors.  Whether that build is there."""
    if name in gate.builds:
        return gate.builds[name]
    compiler = BUILDS[name][0]
    if shutil.which(compiler) is None:
        gate.skip(f"build/{name}", f"no {compiler} here")
        gate.builds[name] = False
        return False
    gate.say(f"...  build/{name}")
    begun = time.monotonic()
    status, output = configure(name)
    if status == 0:
        status, output = run(["ninja", "-C", build_dir(name), "-j", JOBS] + list(targets))
    took = f"({time.monotonic() - begun:.1f} s)"
    gate.builds[name] = status == 0
    if status == 0:
        gate.ok(f"build/{name}", took)
    else:
        gate.fail(f"build/{name}", took, output)
    return status == 0


def needs(gate, step, name):
    """Builds for a step; a step without its build is skipped, the build itself is counted."""
    if build(gate, name):
        return True
    gate.skip(step, f"build/{name} is not there")
    return False


# ---- steps --------------------------------------------------------------------------------------


def step_tidy(gate):
    for name in ("tidy", "layers"):
        gate.command(f"tidy/{name}", [f"scripts/check_{name}.py"])
        gate.command(f"tidy/planted_{name}", [f"tests/scripts/check_{name}_test.py"])
    gate.command("tidy/bench", ["tests/scripts/bench_test.py"])
    gate.command("tidy/mutants", ["tests/scripts/mutants_test.py"])
    gate.command("tidy/mutants_listed", ["scripts/mutate", "--check"])
    gate.command("tidy/host_setup", ["tests/scripts/host_setup_test.py"])
    gate.command("tidy/vm", ["tests/scripts/vm_test.py"])


def step_build(gate):
    for name in ("gcc", "clang"):
        if gate.wants(f"build/{name}"):
            build(gate, name)


def step_headers(gate):
    if needs(gate, "headers", "gcc"):
        gate.command("headers", ["ninja", "-C", build_dir("gcc"), "-j", JOBS,
                                 "tests/headers/liblone_headers.a"])


def step_links(gate):
    """Programs of the control plane are free of the data plane's libraries."""
    if not needs(gate, "links", "gcc"):
        return
    for program, foreign in FOREIGN.items():
        path = os.path.join(build_dir("gcc"), program)
        _, output = run(["readelf", "-d", path])
        found = [line for line in output.splitlines() if any(f in line for f in foreign)]
        if not os.path.exists(path):
            gate.fail(f"links/{program}", "was not built")
        elif found:
            gate.fail(f"links/{program}", output="\n".join(found))
        else:
            gate.ok(f"links/{program}", "without " + ", ".join(foreign))


def unit_tests(gate, step, name, env=None, factor=1):
    """All unit tests of one build; Criterion's cases are counted, not its programs."""
    folder = build_dir(name)
    base = step.replace("/", "-")
    log = os.path.join(folder, "meson-logs", base + ".json")
    words = ["meson", "test", "-C", folder, "--no-rebuild", "--suite", "unit", "--logbase", base,
             "--num-processes", JOBS, "-t", str(factor), "-q"]
    chosen = [n[len(step) + 1:] for n in gate.names if n.startswith(step + "/")]
    if chosen:
        _, listed = run(["meson", "test", "-C", folder, "--list", "--suite", "unit"])
        names = [line.split(" / ")[-1].strip() for line in listed.splitlines() if " / " in line]
        words += [n for n in names if any(n.startswith(c) for c in chosen)]
    if os.path.exists(log):
        os.unlink(log)
    _, output = run(words, env)
    if not os.path.exists(log):
        gate.fail(step, "no test ran", output)
        return
    with open(log, encoding="utf-8") as lines:
        for line in lines:
            count_unit_test(gate, step, json.loads(line))


def count_unit_test(gate, step, entry):
    name = f"{step}/{entry['name'].split(' / ')[-1]}"
    said = COLOUR.sub("", (entry.get("stdout") or "") + (entry.get("stderr") or ""))
    match = SYNTHESIS.search(said)
    tested, passing = (int(match[1]), int(match[2])) if match else (1, 0)
    took = f"({entry['duration']:.1f} s)"
    if entry["result"] == "OK" and passing == tested:
        gate.ok(name, f"{tested} tests {took}", tested)
    elif entry["result"] == "SKIP":
        gate.skip(name, said.strip().splitlines()[-1] if said.strip() else "it says so")
    else:
        gate.passed += passing
        gate.fail(name, f"{entry['result']} {took}", said, max(1, tested - passing))


def step_unit(gate):
    if needs(gate, "unit", "gcc"):
        unit_tests(gate, "unit", "gcc")


def count_lines(gate, step, what, output):
    """A runner that prints a line for each check, ok or FAIL, and at last their sum."""
    lines = output.splitlines()
    passed = [line for line in lines if line.startswith("ok ")]
    for line in lines:
        if line.startswith("FAIL "):
            gate.fail(f"{step}/{line[5:].strip()}")
    if passed:
        gate.ok(step, f"{len(passed)} {what}", len(passed))
    if not re.fullmatch(r"\d+ passed, \d+ failed", lines[-1] if lines else ""):
        gate.fail(step, "the last line is not the sum", output)


def scenario_tests(gate, step, name, env=None):
    """The rules against scenario scripts; one check a script."""
    runner = os.path.join(build_dir(name), "tests", "scenario", "weir-scenario")
    if not os.path.exists(runner):
        gate.fail(step, "weir-scenario was not built")
        return
    count_lines(gate, step, "scripts", run([runner, "tests/scenarios"], env)[1])


def step_scenarios(gate):
    if needs(gate, "scenarios", "gcc"):
        scenario_tests(gate, "scenarios", "gcc")


def step_model(gate):
    """The cut, checked exhaustively by spin within small bounds."""
    if shutil.which("spin") is None:
        gate.skip("model", "spin is not installed")
        return
    count_lines(gate, "model", "checks", run(["tests/model/run"])[1])


def e2e_tests(gate, step, name, env=None, factor=1):
    """End-to-end tests against one build; the runner's lines are counted as they come."""
    folder = build_dir(name)
    missing = [p for p in PROGRAMS if not os.path.exists(os.path.join(folder, p))]
    if missing:
        gate.fail(step, "not built: " + ", ".join(missing))
        return
    words = ["tests/e2e/run", "--build", folder, "--factor", str(factor), "--jobs", JOBS]
    words += [n[len(step) + 1:] for n in gate.names if n.startswith(step + "/")]
    with subprocess.Popen(words, cwd=ROOT, env={**os.environ, **(env or {})}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, errors="replace") as child:
        last, said = "", []
        for line in child.stdout:
            last = line.strip() or last
            word, _, rest = line.strip().partition(" ")
            test, _, took = rest.partition(" ")
            if word == "ok":
                gate.ok(f"{step}/{test}", took)
            elif word == "FAIL":
                gate.fail(f"{step}/{test}", took)
                gate.note(f"{step}/{test}", said)
            elif word == "skip":
                test, _, reason = rest.partition(": ")
                gate.skip(f"{step}/{test}", reason)
            else:
                gate.quote([line.rstrip()])
                said.append(line.rstrip())
                continue
            said = []
    if not re.match(r"\d+ passed, \d+ failed", last):
        gate.fail(step, "the runner did not reach its end")


def step_e2e(gate):
    if needs(gate, "e2e", "gcc"):
        e2e_tests(gate, "e2e", "gcc")


# ---- sanitizers ---------------------------------------------------------------------------------


def reports_dir():
    return os.path.join(build_dir("asan"), "reports")


def sanitizer_env():
    """Reports go to files, since Criterion passes over leaks and a job survives a dead process."""
    report = os.path.join(reports_dir(), "report")
    common = f"log_path={report}:log_exe_name=1:halt_on_error=1:print_stacktrace=1"
    suppressions = os.path.join(ROOT, "tests", "sanitizer", "leaks.supp")
    return {
        "ASAN_OPTIONS": common + ":detect_leaks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": common,
        # A leak is judged by its report, which says whose it is, not by the exit status.
        "LSAN_OPTIONS": f"suppressions={suppressions}:print_suppressions=0:exitcode=0",
    }


def is_criterions_own(report):
    """Whether Criterion itself asked for all that leaked.  It stands in the stack of every test, so
    that LeakSanitizer's own suppressions would hide ours too."""
    leaks = re.findall(r"^(?:Direct|Indirect) leak of .*\n +#0.*\n( +#1.*)$", report, re.M)
    return "ERROR: LeakSanitizer" in report and "ERROR: AddressSanitizer" not in report and \
        bool(leaks) and all("libcriterion.so" in caller for caller in leaks)


def take_reports():
    """Text of each report since the last call, by file name."""
    found = {}
    for path in sorted(glob.glob(os.path.join(reports_dir(), "*"))):
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
        os.unlink(path)
        if not is_criterions_own(text):
            found[os.path.basename(path)] = text
    return found


def count_reports(gate, step):
    reports = take_reports()
    for name, text in reports.items():
        gate.fail(f"{step}/{name}", output="\n".join(text.splitlines()[:TAIL_LINES]))
    if not reports:
        gate.ok(f"{step}/reports", "none")


def step_asan(gate):
    if not needs(gate, "asan", "asan"):
        return
    os.makedirs(reports_dir(), exist_ok=True)
    take_reports()
    env = sanitizer_env()
    for mistake, word in (("leak", "LeakSanitizer"), ("overflow", "heap-buffer-overflow"),
                          ("shift", "runtime error: shift")):
        run([os.path.join(build_dir("asan"), "tests", "sanitizer", "planted_" + mistake)], env)
        if any(word in text for text in take_reports().values()):
            gate.ok(f"asan/planted_{mistake}", "is reported")
        else:
            gate.fail(f"asan/planted_{mistake}", "left no report")
    if gate.wants("asan/unit"):
        unit_tests(gate, "asan/unit", "asan", env, 4)
        count_reports(gate, "asan/unit")
    if gate.wants("asan/scenarios"):
        scenario_tests(gate, "asan/scenarios", "asan", env)
        count_reports(gate, "asan/scenarios")
    if gate.wants("asan/e2e"):
        e2e_tests(gate, "asan/e2e", "asan", env, 3)
        count_reports(gate, "asan/e2e")


def step_fuzz(gate):
    sources = sorted(glob.glob(os.path.join(ROOT, "tests", "fuzz", "fuzz_*.c")))
    names = [os.path.basename(s)[:-2] for s in sources]
    names = [n for n in names if gate.wants("fuzz/" + n)]
    if not build(gate, "fuzz", ["tests/fuzz/" + n for n in names] + ["tests/fuzz/make_seeds"]):
        gate.skip("fuzz", "build/fuzz is not there")
        return
    for name in names:
        corpus = os.path.join(build_dir("fuzz"), "corpus", name)
        os.makedirs(corpus, exist_ok=True)
        if name[len("fuzz_"):] in SEEDED:
            gate.command(f"fuzz/seeds_{name[len('fuzz_'):]}", [
                os.path.join(build_dir("fuzz"), "tests", "fuzz", "make_seeds"),
                name[len("fuzz_"):], corpus])
        gate.command(f"fuzz/{name}", [
            os.path.join(build_dir("fuzz"), "tests", "fuzz", name), corpus,
            f"-max_total_time={FUZZ_SECONDS}", "-max_len=4096", "-timeout=10",
            f"-artifact_prefix={build_dir('fuzz')}/"])


STEPS = {"tidy": step_tidy, "build": step_build, "headers": step_headers, "links": step_links,
         "unit": step_unit, "scenarios": step_scenarios, "model": step_model, "e2e": step_e2e,
         "asan": step_asan, "fuzz": step_fuzz}


def main():
    parser = argparse.ArgumentParser(prog="scripts/test")
    parser.add_argument("--fast", action="store_true", help="one build and the unit tests")
    parser.add_argument("--list", action="store_true", help="print the steps")
    parser.add_argument("names", nargs="*", metavar="NAME")
    options = parser.parse_args()
    if options.list:
        print("\n".join(STEPS))
        return 0
    names = options.names + (["build/gcc", "unit"] if options.fast else [])
    gate = Gate(names)
    for name, step in STEPS.items():
        if gate.wants(name):
            try:
                step(gate)
            except Exception as error:  # a step that breaks fails, and the others go on
                gate.fail(name, f"{type(error).__name__}: {error}")
    if gate.passed == 0 and not gate.failed:
        gate.fail("nothing", "has the name " + " ".join(names))
    return gate.finish()


if __name__ == "__main__":
    sys.exit(main())
