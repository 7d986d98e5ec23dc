#!/usr/bin/env python3
"""Checks that no target has more files, lines or types than size.txt allows.

Who raises a row says in the same commit what the lines are worth. A row may be lowered at any time: --lower does it for all.

    .ci/checks/size.py [--lower]
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from swift_source import code_lines, swift_files

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("size.txt")
# At the start of a line: what is nested in a type is part of that type.
TYPE = re.compile(r"^(?:@\S+ )*(?:(?:package|public|private|fileprivate|final|indirect|nonisolated) )*"
                  r"(?:struct|class|enum|actor|protocol) \w")


def measured(folder: str) -> tuple[int, int, int]:
    """Swift files, their lines, and their top-level types."""
    files = swift_files(ROOT, folder)
    lines = types = 0
    for file in files:
        code = code_lines(file.read_text(encoding="utf-8").removesuffix("\n"))
        lines += len(code)
        types += sum(1 for line in code if TYPE.match(line))
    return len(files), lines, types


def rows() -> dict[str, tuple[int, int, int]]:
    table = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            folder, files, lines, types = line.split()
            table[folder] = int(files), int(lines), int(types)
    return table


def main() -> int:
    table = rows()
    folders = {f"Sources/{path.name}" for path in (ROOT / "Sources").iterdir() if swift_files(ROOT, f"Sources/{path.name}")}
    failed = False
    for folder in sorted(folders - table.keys()):
        print(f"{TABLE.name} has no row for {folder}", file=sys.stderr)
        failed = True
    lowered = {}
    for folder, allowed in table.items():
        found = measured(folder)
        lowered[folder] = tuple(map(min, found, allowed))
        for name, count, most in zip(("files", "lines", "types"), found, allowed):
            if count > most:
                print(f"{folder}: {count} {name}; {TABLE.name} allows {most}", file=sys.stderr)
                failed = True
    if "--lower" in sys.argv[1:]:
        head = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
        body = [f"{folder:24} {row[0]:5} {row[1]:7} {row[2]:6}" for folder, row in lowered.items()]
        TABLE.write_text("\n".join(head + body) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
