#!/usr/bin/env python3
"""Holds the tree to the house numbers: sizes, banned calls, no mutable file-scope state, no leftovers.

Usage: scripts/check_tidy.py [ROOT]
Prints FILE:LINE: what is wrong, for each breach; exit status 1 if there is one.
"""

import os
import re
import sys

SOURCE_LINES_MAX = 600
HEADER_LINES_MAX = 200
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100
PARAMETERS_MAX = 6
TAB = 8

# Headers that may be longer, and why.
LONG_HEADERS = {
    "dataplane/operator/operator.h": 480,  # all a plug-in author reads, in one installed file
}
# The only places with state of the process, besides *_main.c.
STATE_FILES = {"dataplane/base/log.c", "dataplane/base/check.c", "dataplane/base/crash_point.c"}

PRODUCT = ("dataplane/", "nic/", "control/")
TEXTS = (".c", ".h", ".py", ".sh", ".build", ".proto", ".yaml", ".txt", ".supp", ".md", ".scn")
WIDE = (".md", ".txt", ".scn")  # prose and tables: no limit of columns

BANNED = re.compile(
    r"\b(gets|alloca|tmpnam|mktemp|strtok)\s*\(")
BANNED_IN_PRODUCT = re.compile(
    r"\b(strcpy|strcat|sprintf|vsprintf|asctime|ctime|system|popen|rand|srand|setjmp|longjmp)\s*\(")
LEFTOVER = re.compile(r"\b(TODO|FIXME|XXX)\b")
PERSONAL = re.compile(r"(?<![\w.])/(home|root|work|Users)/\w")
COMMENT_OR_STRING = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
README_PATH = re.compile(r"`([A-Za-z.][\w./-]*)`")
ROOTS = ("dataplane/", "control/", "nic/", "bench/", "tests/", "scripts/")


def blank_comments_and_strings(text):
    """The same text with comments and literals blanked, so that lines keep their numbers."""
    return COMMENT_OR_STRING.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def check_lines(path, lines):
    wide = path.endswith(WIDE)
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            yield number, "blanks at the end of the line"
        if not wide and len(line.expandtabs(TAB)) > COLUMNS_MAX:
            yield number, f"{len(line.expandtabs(TAB))} columns, {COLUMNS_MAX} at most"
        if LEFTOVER.search(line):
            yield number, "a leftover: " + LEFTOVER.search(line)[1]
        if PERSONAL.search(line):
            yield number, "a path of somebody's machine"


def check_size(path, lines):
    if path.endswith(".h"):
        limit = LONG_HEADERS.get(path, HEADER_LINES_MAX)
    elif path.endswith((".c", ".py")):
        limit = SOURCE_LINES_MAX
    else:
        return
    if len(lines) > limit:
        yield limit + 1, f"{len(lines)} lines, {limit} at most"


def parameters_count(signature):
    """How many parameters the last parenthesis of a signature holds."""
    inside = signature[signature.find("(") + 1:signature.rfind(")")]
    depth, count = 0, 1
    for char in inside:
        depth += {"(": 1, ")": -1}.get(char, 0)
        count += char == "," and depth == 0
    return count


def signature_before(lines, brace):
    """First line and text of what stands before the `{` in column 0 of line `brace` (from 0)."""
    first = brace
    while first > 0 and lines[first - 1].strip() and not lines[first - 1].startswith(("}", "#")):
        first -= 1
    return first, " ".join(lines[first:brace])


def check_functions(lines):
    """Length, parameters and direct recursion of each function; `lines` are blanked."""
    brace = None
    for number, line in enumerate(lines):
        if line.rstrip() == "{":
            brace = number
        elif line.startswith("}") and brace is not None:
            first, signature = signature_before(lines, brace)
            name = re.search(r"(\w+)\s*\(", signature)
            length = number - first + 1
            if name is not None:
                if length > FUNCTION_LINES_MAX:
                    yield first + 1, f"{name[1]} has {length} lines, {FUNCTION_LINES_MAX} at most"
                if parameters_count(signature) > PARAMETERS_MAX:
                    yield first + 1, f"{name[1]} has more than {PARAMETERS_MAX} parameters"
                for inner in range(brace + 1, number):
                    if re.search(rf"(?<![\w.>]){name[1]}\s*\(", lines[inner]):
                        yield inner + 1, f"{name[1]} calls itself"
            brace = None


def check_state(path, lines):
    """Variables at file scope that are not constant; `lines` are blanked."""
    if path in STATE_FILES or path.endswith("_main.c"):
        return
    depth = 0
    for number, line in enumerate(lines, 1):
        head = re.split(r"[=;{]", line)[0]
        is_variable = (depth == 0 and re.match(r"[a-z_]", line) and "(" not in head
                       and re.search(r"[\w\]]\s*(=|;|\[)", line))
        # What a signal handler may touch; and the environment, which is libc's.
        if "sig_atomic_t" in head or line.startswith("extern char **environ;"):
            continue
        is_other = re.match(r"(struct|union|enum)(\s+\w+)?\s*[;{]|typedef\b|extern\s+const\b", line)
        if is_variable and not is_other and "const" not in head.split():
            if not line.startswith("#"):
                yield number, "mutable state at file scope"
        depth += line.count("{") - line.count("}")
        depth += line.count("(") - line.count(")")


def check_calls(path, lines):
    is_product = path.startswith(PRODUCT)
    for number, line in enumerate(lines, 1):
        match = BANNED.search(line)
        if match is None and is_product:
            match = BANNED_IN_PRODUCT.search(line)
        if match is not None:
            yield number, f"{match[1]}() is banned"


def check_readme(root, lines):
    """Paths that a README names exist."""
    for number, line in enumerate(lines, 1):
        for name in README_PATH.findall(line):
            if name.startswith(ROOTS) and not os.path.exists(os.path.join(root, name)):
                yield number, f"{name} does not exist"


def check_file(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        text = file.read()
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    elif text:
        yield len(lines), "no newline at the end of the file"
    if path != "scripts/check_tidy.py":
        yield from check_lines(path, lines)
    yield from check_size(path, lines)
    if os.path.basename(path) == "README.md":
        yield from check_readme(root, lines)
    if path.endswith((".c", ".h")):
        blanked = blank_comments_and_strings(text).split("\n")
        yield from check_calls(path, blanked)
        if path.endswith(".c"):
            yield from check_functions(blanked)
            if path.startswith(PRODUCT):
                yield from check_state(path, blanked)


def is_script(path):
    with open(path, "rb") as file:
        return file.read(2) == b"#!"


def texts(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders
                            if not f.startswith((".", "build", "__pycache__", "weir-state"))
                            and os.path.relpath(os.path.join(folder, f), root) != "tests/data")
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.startswith(".") and os.path.isfile(path) and \
                    (name.endswith(TEXTS) or is_script(path)):
                yield os.path.relpath(path, root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    found, count = [], 0
    for path in texts(root):
        count += 1
        found += [f"{path}:{line}: {what}" for line, what in check_file(root, path)]
    for breach in found:
        print(breach)
    print(f"tidy: {count} files, {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
