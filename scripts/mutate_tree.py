"""Where mutants are built and judged: a copy of the sources, built once without and once with the
sanitizer, and beside it a folder for each worker that holds one changed file and its library.
"""

import json
import os
import resource
import shlex
import shutil
import subprocess
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SCENARIO = "tests/scenario/weir-scenario"
SCRIPTS = "scripts"
SPARE_SECONDS = 3
SETUP_SECONDS = 900

# Made shared in the copy, so that a mutant is linked in no time: file, libraries.
SHARED = {"control/coordinator/meson.build": ("rules_lib", "coordinator_lib"),
          "dataplane/meson.build": ("snapshot_lib", "channel_lib"),
          "dataplane/checkpoint/meson.build": ("state_lib",)}

LIBRARY_FOLDERS = [os.path.dirname(file) for file in SHARED]

# Most mutants are noticed by the quick build; the other is asked about the rest.
QUICK, SANITIZED = "build", "build-sanitized"
SETTINGS = {QUICK: [], SANITIZED: ["-Db_sanitize=address"]}


def unit_target(name):
    return "tests/" + name.replace("/", "_") + "_test"


def read_bytes(path):
    with open(path, "rb") as file:
        return file.read()


def content_for_tree(name, source):
    content = read_bytes(source)
    for library in SHARED.get(name, ()):
        content = content.replace(f"\n{library} = static_library(".encode(),
                                  f"\n{library} = shared_library(".encode())
    return content


def run(words, folder, seconds, libraries=None):
    """Exit status, None when it took too long; and the output.  What only spins is ended early."""
    env = {**os.environ, "MALLOC_PERTURB_": "165",
           "ASAN_OPTIONS": "detect_leaks=%d:detect_odr_violation=0:allocator_may_return_null=0:"
                           "max_allocation_size_mb=512" % words[0].endswith("weir-scenario")}
    if libraries is not None:
        env["LD_LIBRARY_PATH"] = libraries
    spinning = int(seconds / 4) + 1

    def limit():
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (spinning, spinning))

    process = subprocess.Popen(words, cwd=folder, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                               start_new_session=True, preexec_fn=limit)
    try:
        output, _ = process.communicate(timeout=seconds)
        return process.returncode, output.decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.communicate()
        return None, ""


def first_failure(output):
    line = next((x for x in output.split("\n") if x.startswith("FAIL ")), "FAIL ?:0")
    return os.path.basename(line[5:].split(":")[0])


def tests_in(build, tests, files):
    """With the sanitizer only what is quick or about the files."""
    if build == QUICK:
        return tests
    return [t for t in tests if t == SCRIPTS or any(is_about(t, file) for file in files)]


def is_about(unit, file):
    name, stem = os.path.basename(unit), os.path.splitext(os.path.basename(file))[0]
    return stem.startswith(name) or name.startswith(stem)


class Tree:
    """A copy of the sources with its builds."""

    def __init__(self, folder):
        self.folder = folder
        self.durations = {}
        self.commands = {}

    def refresh(self):
        """Brings the copy up to what the sources are now; whether anything had changed."""
        is_changed = False
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True, text=True).stdout.split("\n")
        for name in filter(None, listed):
            source, target = os.path.join(ROOT, name), os.path.join(self.folder, name)
            if not os.path.isfile(source):
                continue
            content = content_for_tree(name, source)
            if not os.path.exists(target) or read_bytes(target) != content:
                os.makedirs(os.path.dirname(target), exist_ok=True)
                with open(target, "wb") as file:
                    file.write(content)
                shutil.copymode(source, target)
                is_changed = True
        return self.drop_removed_scripts() or is_changed

    def drop_removed_scripts(self):
        """The runner takes whatever is in the folder."""
        is_changed = False
        scenarios = os.path.join(self.folder, "tests", "scenarios")
        for folder, _, names in os.walk(scenarios):
            for name in names:
                path = os.path.join(folder, name)
                if not os.path.exists(os.path.join(ROOT, os.path.relpath(path, self.folder))):
                    os.remove(path)
                    is_changed = True
        return is_changed

    def make(self, build, targets):
        """None, or what went wrong."""
        if not os.path.exists(os.path.join(self.folder, build, "build.ninja")):
            status, output = run(["meson", "setup", build, "-Dbuildtype=plain", "-Dwerror=false",
                                  "-Dwarning_level=0", "-Db_lundef=false", *SETTINGS[build]],
                                 self.folder, SETUP_SECONDS)
            if status != 0:
                return output
        status, output = run(["ninja", "-C", build, "-j", "2", *targets], self.folder,
                             SETUP_SECONDS)
        return None if status == 0 else output[-4000:]

    def is_sound(self, groups):
        """Whether the tests pass without any change; known if nothing changed since they did."""
        path = os.path.join(self.folder, "durations.json")
        is_changed = self.refresh()
        if os.path.exists(path) and not is_changed:
            self.durations = json.loads(read_bytes(path))
        elif os.path.exists(path):
            os.remove(path)
        for group in groups:
            targets = ([SCENARIO] if group["scripts"] else []) + [
                unit_target(u) for u in group["units"]]
            wrong = self.make(QUICK, targets) or self.make(SANITIZED, targets)
            if wrong is None and not self.try_unchanged(group):
                return False
            if wrong is not None:
                print(f"scripts/mutate: {wrong}")
                return False
            with open(path, "w", encoding="utf-8") as file:
                json.dump(self.durations, file)
        self.read_commands()
        return True

    def try_unchanged(self, group):
        for build in (QUICK, SANITIZED):
            for test in tests_in(build, tests_of(group), group["files"]):
                key = build + " " + name_of(test, group)
                if key in self.durations:
                    continue
                start = time.monotonic()
                noticed = self.try_test(build, test, group, None, 120)
                if noticed is not None:
                    print(f"scripts/mutate: without any change: {build}: {noticed}")
                    return False
                self.durations[key] = time.monotonic() - start
        return True

    def try_test(self, build, test, group, libraries, seconds):
        """What noticed, or None."""
        if test == SCRIPTS:
            words = [os.path.join(build, SCENARIO), group["scripts"]]
            status, output = run(words, self.folder, seconds, libraries)
            if status == 0:
                return None
            return "script: " + first_failure(output) if status == 1 else "scripts"
        words = [os.path.join(build, unit_target(test)), "-j1", "--fail-fast"]
        return test if run(words, self.folder, seconds, libraries)[0] != 0 else None

    def read_commands(self):
        """How each file is compiled and its library linked: words, object, library."""
        for build in (QUICK, SANITIZED):
            folder = os.path.join(self.folder, build)
            entries = json.loads(read_bytes(os.path.join(folder, "compile_commands.json")))
            for entry in entries:
                if ".so.p/" not in entry["output"]:
                    continue
                words = [w for w in shlex.split(entry["command"]) if w != "ccache"]
                library = entry["output"].split(".p/")[0]
                file = os.path.relpath(os.path.join(folder, entry["file"]), self.folder)
                self.commands[build, file] = (words, entry["output"], library)

    def link_words(self, build, library):
        key = (build, library)
        if key not in self.commands:
            _, output = run(["ninja", "-C", build, "-t", "commands", library], self.folder, 60)
            line = next(x for x in output.split("\n") if f" -o {library} " in x)
            self.commands[key] = [w for w in shlex.split(line) if w != "ccache"]
        return self.commands[key]


def tests_of(group):
    return ([SCRIPTS] if group["scripts"] else []) + group["units"]


def name_of(test, group):
    return group["scripts"] if test == SCRIPTS else test


class Bench:
    """Builds one changed file at a time, and tries the tests on it, the likeliest first."""

    def __init__(self, tree, folder):
        self.tree, self.folder = tree, folder

    def build(self, build, file, text):
        """The folder of the changed library; None if it does not compile."""
        words, made, library = self.tree.commands[build, file]
        libraries = os.path.join(self.folder, build)
        os.makedirs(libraries, exist_ok=True)
        source, result = os.path.join(libraries, "changed.c"), os.path.join(libraries, "changed.o")
        with open(source, "w", encoding="utf-8") as out:
            out.write(text)
        words = list(words)
        for option, value in (("-o", result), ("-MF", os.path.join(libraries, "changed.d")),
                              ("-c", source)):
            words[words.index(option) + 1] = value
        folder = os.path.join(self.tree.folder, build)
        if run(words, folder, 60)[0] != 0:
            return None
        changed = os.path.join(libraries, os.path.basename(library))
        for other in os.listdir(libraries):
            if other.endswith(".so"):
                os.remove(os.path.join(libraries, other))
        words = [result if w == made else changed if w == library else w
                 for w in self.tree.link_words(build, library)]
        if run(words, folder, 60)[0] != 0:
            return None
        return ":".join([libraries] + [os.path.join(folder, p) for p in LIBRARY_FOLDERS])

    def is_sound(self, group):
        """Whether the quickest test passes with each library of the group put in its place."""
        known = set()
        for build in (QUICK, SANITIZED):
            for file in group["files"]:
                library = self.tree.commands[build, file][2]
                if (build, library) in known:
                    continue
                known.add((build, library))
                text = read_bytes(os.path.join(self.tree.folder, file)).decode()
                libraries = self.build(build, file, text)
                tests = self.tests_in_order(group, file, {}, build)[:1]
                if libraries is None or any(self.tree.try_test(
                        build, test, group, libraries, SETUP_SECONDS) for test in tests):
                    print(f"scripts/mutate: {build}: {library} does not do in its place")
                    return False
        return True

    def judge(self, group, file, text, counts):
        """What noticed: the name of a test, or None.  `broken`: it does not compile."""
        for build in (QUICK, SANITIZED):
            libraries = self.build(build, file, text)
            if libraries is None:
                return "broken"
            for test in self.tests_in_order(group, file, counts, build):
                usual = self.tree.durations[build + " " + name_of(test, group)]
                noticed = self.tree.try_test(build, test, group, libraries,
                                             SPARE_SECONDS + 8 * usual)
                if noticed is not None:
                    counts[test] = counts.get(test, 0) + 1
                    return noticed
        return None

    def tests_in_order(self, group, file, counts, build):
        """Those that noticed most in this file for their time."""
        def worth(test):
            usual = self.tree.durations[build + " " + name_of(test, group)]
            likely = counts.get(test, 0) + (3 if test == SCRIPTS or is_about(test, file) else 0.1)
            return likely / (usual + 0.05)
        return sorted(tests_in(build, tests_of(group), [file]), key=worth, reverse=True)
