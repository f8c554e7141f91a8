#!/usr/bin/env python3
"""Holds every include line of the tree to scripts/layers.txt.

Usage: scripts/check_layers.py [ROOT]
Prints FILE:LINE: what is wrong, for each breach; exit status 1 if there is one.
"""

import fnmatch
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
TOPS = ("dataplane", "nic", "control", "tests", "bench")


def read_table(path):
    """Returns libraries (name -> patterns) and rows (subject, grants), in the file's order."""
    libraries, rows = {}, []
    with open(path, encoding="utf-8") as text:
        for line in text:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "library":
                libraries[words[1]] = words[2:]
            else:
                rows.append((words[0], words[1:]))
    return libraries, rows


def is_under(path, place):
    return path == place or path.startswith(place + "/")


def row_of(path, rows):
    """The index of the longest row that fits `path`, or None."""
    fitting = [i for i, (subject, _) in enumerate(rows) if is_under(path, subject)]
    return max(fitting, key=lambda i: len(rows[i][0]), default=None)


def granted(index, rows):
    """The grants of a row, `below` replaced by the folders it stands for."""
    subject, grants = rows[index]
    result = []
    for grant in grants:
        if grant == "below":
            top = subject.split("/")[0]
            result += [s for s, _ in rows[:index]
                       if s.split("/")[0] == top and not s.endswith((".c", ".h"))]
        else:
            result.append(grant)
    return result


def library_of(header, libraries):
    for name, patterns in libraries.items():
        if any(fnmatch.fnmatch(header, pattern) for pattern in patterns):
            return name
    return None


def may_include(target, owner, subject, grants):
    """Whether `owner`, whose row is `subject`, may include the file `target` of ours."""
    folder = os.path.dirname(owner)
    if os.path.dirname(target) == folder or is_under(target, subject):
        return True
    return any(is_under(target, grant) for grant in grants)


def breaches_of_line(owner, mark, header, index, libraries, rows):
    subject, _ = rows[index]
    grants = granted(index, rows)
    if header.endswith("_main.c") or header.endswith("_main.h"):
        return "nothing may include a main"
    if header.endswith(".c"):
        return "a source is not included"
    if mark == "<":
        name = library_of(header, libraries)
        if name is None or name in grants or "anything" in grants:
            return None
        return f"<{header}> ({name}) has no place in {subject}"
    if header.split("/")[0] not in TOPS or "/" not in header:
        return f'"{header}" is not written from the root'
    if "anything" in grants or may_include(header, owner, subject, grants):
        return None
    return f"{subject} may not include {header}"


def check_file(root, path, libraries, rows):
    index = row_of(path, rows)
    if index is None:
        return [f"{path}:1: no row of layers.txt fits this file"]
    found = []
    with open(os.path.join(root, path), encoding="utf-8") as text:
        for number, line in enumerate(text, 1):
            match = INCLUDE.match(line)
            if match is None:
                continue
            breach = breaches_of_line(path, match[1], match[2], index, libraries, rows)
            if breach is not None:
                found.append(f"{path}:{number}: {breach}")
    return found


def sources(root):
    for top in TOPS:
        for folder, _, names in os.walk(os.path.join(root, top)):
            for name in sorted(names):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), root)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..")
    libraries, rows = read_table(os.path.join(root, "scripts", "layers.txt"))
    found, count = [], 0
    for path in sources(root):
        count += 1
        found += check_file(root, path, libraries, rows)
    for breach in found:
        print(breach)
    print(f"layers: {count} files, {len(found)} breaches")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
