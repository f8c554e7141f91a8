#!/usr/bin/env python3
"""Prints each header of the tree, from the root, in order: list_headers.py ROOT"""

import os
import sys

root = sys.argv[1]
for top in ("bench", "control", "dataplane", "nic", "tests"):
    for folder, _, names in sorted(os.walk(os.path.join(root, top))):
        for name in sorted(names):
            if name.endswith(".h"):
                print(os.path.relpath(os.path.join(folder, name), root))
