#!/usr/bin/env python3
"""Checks that identifiers use the field's words, not those that this project once made up for them.

    .ci/checks/names.py [ROOT]
    .ci/checks/names.py --self-test
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from swift_source import Finding, code_lines, swift_files

# A word, or words in a row, of an identifier, and what to say in its place.
WORDS = {
    "obstacle": "refusal",
    "objection": "refusal",
    "complaint": "refusal, or the error's own name",
    "judgement": "classification",
    "picture": "snapshot",
    "errand": "worker, job or request",
    "patience": "timeout",
    "impatience": "forced shutdown",
    "early stop": "forced shutdown",
    "audit course": "record's state",
    "ledger": "store, or the records' own name",
    "landmark": "checkpoint",
    "witness": "checkpoint or head",
    "episode": "chain",
    "time piece": "stretch of time",
    "audit cut": "truncation marker",
    "sink cut": "truncation marker",
    "purge guard": "spike",
    "keyed send": "idempotent request",
    "keyed sends": "idempotent requests",
    "keyed exchange": "idempotent request",
    "handed on": "pass-through",
    "verbatim": "pass-through",
    "at hand": "cached",
    "lately": "current, or the bound of time",
}

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words_in(identifier: str) -> list[str]:
    """The entries of WORDS that an identifier holds as whole words."""
    parts = " " + " ".join(part.lower() for part in PART.findall(identifier)) + " "
    return [word for word in WORDS if f" {word} " in parts]


def check(root: Path) -> list[Finding]:
    findings: list[Finding] = []
    for file in swift_files(root, "Sources", "Tests", "Benchmarks"):
        for number, line in enumerate(code_lines(file.read_text(encoding="utf-8")), 1):
            for identifier in IDENTIFIER.findall(line):
                for word in words_in(identifier):
                    message = f"'{identifier}': say {WORDS[word]}, not '{word}'"
                    findings.append(Finding(file.relative_to(root), number, message))
    return findings


def self_test() -> None:
    assert words_in("AuditLedgerStore") == ["ledger"]
    assert words_in("purgeGuard") == ["purge guard"]
    assert words_in("isHandedOn") == ["handed on"]
    assert words_in("KeyedSends") == ["keyed sends"]
    assert words_in("pictures") == words_in("ledgered") == words_in("cutOff") == []


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        sys.exit(0)
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    findings = check(root)
    for finding in findings:
        print(finding, file=sys.stderr)
    sys.exit(1 if findings else 0)
