#!/usr/bin/env python3
"""Makes a C file with the bytes of another file: embed.py FILE C_FILE NAME."""

import sys


def main():
    source, target, name = sys.argv[1:]
    with open(source, "rb") as file:
        data = file.read()
    lines = [", ".join(str(b) for b in data[i:i + 20]) for i in range(0, len(data), 20)]
    with open(target, "w", encoding="ascii") as file:
        file.write(f"extern const char {name}[];\n\nconst char {name}[] = {{\n\t"
                   + ",\n\t".join(lines) + ",\n\t0,\n};\n")


if __name__ == "__main__":
    main()
