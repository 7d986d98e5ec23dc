#!/usr/bin/env python3
"""Checks that no file under Sources has more than 800 lines: from there on a type wants to be split.

    .ci/checks/file_length.py [ROOT]
"""

from __future__ import annotations

import sys
from pathlib import Path

from swift_source import Finding, swift_files

MAXIMUM_LINES = 800

root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
failed = False
for file in swift_files(root, "Sources"):
    lines = len(file.read_text(encoding="utf-8").splitlines())
    if lines > MAXIMUM_LINES:
        finding = Finding(file.relative_to(root), MAXIMUM_LINES + 1, f"{lines} lines; {MAXIMUM_LINES} are the most")
        print(finding, file=sys.stderr)
        failed = True
sys.exit(1 if failed else 0)
