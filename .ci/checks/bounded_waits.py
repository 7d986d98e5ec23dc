#!/usr/bin/env python3
"""Checks that nothing in the project's Python waits for a program or a server without an end.

    .ci/checks/bounded_waits.py [ROOT]
    .ci/checks/bounded_waits.py --self-test

Programs that are run, processes that are waited for and addresses that are opened need a `timeout`; it may come in a
dictionary of options. What a variable or attribute is, is told by its name: those that end in "process" or "child" are
processes.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = (".ci", "Benchmarks", "Tests", "deploy", "scripts")
FUNCTIONS = {"run", "call", "check_call", "check_output"}
METHODS = {"wait", "communicate"}


def name_of(node: ast.expr) -> str:
    """The last part of a name such as `self.process`."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def needs_end(call: ast.Call) -> bool:
    """Whether a call may wait for ever unless it is given a timeout."""
    if name_of(call.func) == "urlopen":
        return True
    if not isinstance(call.func, ast.Attribute):
        return False
    owner = name_of(call.func.value)
    if owner == "subprocess":
        return call.func.attr in FUNCTIONS
    is_process = owner.lower().rstrip("_").endswith(("process", "child"))
    # A process's `wait` takes the time as its first argument, too.
    return call.func.attr in METHODS and is_process and not (call.func.attr == "wait" and call.args)


def endless_waits(text: str) -> Iterator[int]:
    """The lines of calls without an end."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and needs_end(node):
            if not any(keyword.arg in ("timeout", None) for keyword in node.keywords):
                yield node.lineno


def python_files(root: Path) -> list[Path]:
    """The project's own programs and modules."""
    files = (file for folder in FOLDERS for file in sorted((root / folder).rglob("*")))
    return [file for file in files if file.is_file() and is_python(file)]


def is_python(file: Path) -> bool:
    if file.suffix:
        return file.suffix == ".py"
    with file.open("rb") as content:
        first = content.readline()
    return first.startswith(b"#!") and b"python" in first


def self_test() -> None:
    cases = {
        "subprocess.run(['a'])": 1,
        "subprocess.run(['a'], check=True)": 1,
        "subprocess.run(['a'], timeout=5)": 0,
        "subprocess.run(['a'], **options)": 0,
        "subprocess.check_output(['a'])": 1,
        "subprocess.Popen(['a'])": 0,
        "self.process.wait()": 1,
        "self._process.wait(5)": 0,
        "process.communicate('text')": 1,
        "process.communicate(timeout=5)": 0,
        "load.wait()": 0,
        "urllib.request.urlopen(request)": 1,
        "urlopen(request, timeout=5)": 0,
    }
    for text, count in cases.items():
        found = len(list(endless_waits(text)))
        assert found == count, f"{text}: {found} instead of {count}"


def main() -> int:
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    failed = False
    for file in python_files(root):
        for line in endless_waits(file.read_text(encoding="utf-8")):
            print(f"{file.relative_to(root)}:{line}: may wait for ever; give it a timeout", file=sys.stderr)
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
