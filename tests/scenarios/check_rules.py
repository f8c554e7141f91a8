#!/usr/bin/env python3
"""Each rule of the coordinator is named by the first line of a script in coordinator/."""

import pathlib
import re
import sys

RULES = {
    "TR": 9, "RD": 8, "PL": 6, "PC": 9, "AK": 6, "AB": 5, "OC": 4, "FM": 8,
    "OP": 1, "ID": 3, "ST": 8, "CL": 3, "SR": 4, "CM": 1,
}


def main():
    named = set()
    nameless = []
    for script in sorted((pathlib.Path(__file__).parent / "coordinator").glob("*.scn")):
        first = script.read_text().splitlines()[0]
        found = re.findall(r"\b([A-Z]{2}-\d+|\d+\.\d+)\b", first)
        if not first.startswith("#") or not found:
            nameless.append(script.name)
        named.update(found)
    missing = [f"{rule}-{n}" for rule, count in RULES.items() for n in range(1, count + 1)
               if f"{rule}-{n}" not in named]
    for name in nameless:
        print(f"{name}: the first line names no rule")
    for rule in missing:
        print(f"{rule}: no script names it")
    return 1 if missing or nameless else 0


sys.exit(main())
