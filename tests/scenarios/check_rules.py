#!/usr/bin/env python3
"""Each rule that a script can state is named by the first line of one, in its subject's folder."""

import pathlib
import re
import sys

COORDINATOR = {
    "TR": 9, "RD": 8, "PL": 6, "PC": 9, "AK": 6, "AB": 5, "OC": 4, "FM": 8,
    "OP": 1, "ID": 3, "ST": 8, "CL": 3, "SR": 4, "CM": 1,
}

RULES = {
    "coordinator": [f"{rule}-{n}" for rule, count in COORDINATOR.items()
                    for n in range(1, count + 1)],
    "task": "MB-3 MB-7 TK-3 TK-4 TK-7 TK-8 TK-9 TK-10 TK-12 TK-13 TK-13a TK-14 TK-15 TK-16 TK-17 "
            "SC-1 SC-2 SC-3 SC-4 SC-5 BH-1 BH-2 BH-3 BH-4 BH-5 BH-6 BH-7 BH-8 BH-9 BH-10 "
            "BT-1 BT-2 BT-3 BT-4 BT-5 BT-6 BT-7 IG-1 IG-2 IG-4 OU-3 OU-4 SP-8 "
            "SP-12 SP-13 SP-14 SP-15 SP-16 SP-17 SP-18 IC-3 IC-4 IC-8 IC-9 "
            "PS-1 PS-2 PS-3 PS-4 PS-5 CS-2 CS-4 CS-19 CS-20 18.5 "
            "10.3 12.3 14.1 14.2 14.3 14.4 14.5 16.1 16.4 16.5 16.6".split(),
}


def first_lines(folder):
    """Rules named by each script of the folder."""
    for script in sorted((pathlib.Path(__file__).parent / folder).glob("*.scn")):
        first = script.read_text().splitlines()[0]
        found = re.findall(r"\b([A-Z]{2}-\d+a?|\d+\.\d+)\b", first) if first[0] == "#" else []
        yield script.name, found


def main():
    is_good = True
    for folder, rules in RULES.items():
        named = dict(first_lines(folder))
        for name, found in named.items():
            if not found:
                print(f"{folder}/{name}: the first line names no rule")
                is_good = False
        for rule in rules:
            if not any(rule in found for found in named.values()):
                print(f"{folder}: no script names {rule}")
                is_good = False
    return 0 if is_good else 1


sys.exit(main())
