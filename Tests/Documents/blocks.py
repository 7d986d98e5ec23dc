"""Fenced blocks of a Markdown document, and what the comments before them say of how they are tried."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

COMMANDS = ("sh", "bash", "console")
ANSWERS = ("json", "text", "http")

# Why a block may be left out. Whoever needs another reason has to argue for it here.
REASONS = {
    "release build": "the test puts the tested program where the build would",
    "long": "a target of make of its own, run by hand or by the gate",
    "this test": "it would start itself",
    "container engine": "there is none where tests run; deploy/ has tests of its own",
    "cluster": "there is none where tests run; deploy/ has tests of its own",
    "systemd": "needs the real one, not the stand-in for it",
    "package": "a system is not changed by these tests; Tests/Dist installs it",
    "identity provider": "Tests/Upstream tries such credentials with the emulated one",
    "FCM": "needs Google's servers and a project of one's own",
    "network": "needs servers that are not on this machine",
    "PostgreSQL and Redis": "there is neither where this test runs; Tests/Cluster and Tests/Deploy have tests",
    "terminal": "needs somebody who looks and types",
}

_FENCE = re.compile(r"^( *)```(\w*)\s*$")
_BEGINS_WITH = re.compile(r"^<!-- begins with: (\S+) -->$", re.MULTILINE)
_COMMENT = re.compile(r"^ *<!-- (.*?) -->\s*$")


class DocumentError(Exception):
    """A block that says nothing of how it is to be tried, or says it wrong."""


@dataclass
class Block:
    """One fenced block."""

    line: int
    language: str
    text: str
    not_run: str = ""
    """The reason for which it is not run."""
    ready: str = ""
    """It goes on running beside the blocks after it, once its output holds this text."""
    exit_code: int = 0
    """What its commands end with."""
    checked_by: str = ""
    """A command that checks it, with FILE in the place of a file that holds it."""
    shown: str = ""
    """Why it is neither run nor checked nor the answer to something."""
    answer: Block | None = None
    """What its commands print."""
    document: str = ""
    """The name of the file that it stands in."""

    @property
    def is_command(self) -> bool:
        return self.language in COMMANDS


def blocks_of(path: Path) -> list[Block]:
    """The blocks of a document in their order, those that are answers attached to what they answer.

    - Raises: `DocumentError` with the line, where a block can't be placed.
    """
    found: list[Block] = []
    notes: list[tuple[int, str]] = []
    fence: Block | None = None
    indent = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        match = _FENCE.match(line)
        if fence is None and match:
            indent, fence = len(match[1]), Block(number, match[2], "", document=path.name)
            for note_line, note in notes:
                _apply(note, fence, path, note_line)
            notes = []
        elif fence is not None and match and not match[2] and len(match[1]) == indent:
            _place(fence, found, path)
            fence = None
        elif fence is not None:
            fence.text += (line[indent:] if not line[:indent].strip() else line) + "\n"
        elif comment := _COMMENT.match(line):
            notes.append((number, comment[1]))
        elif line.strip():
            notes = []
    if fence is not None:
        raise DocumentError(f"{path}:{fence.line}: the block has no end")
    return found


def typed_blocks(path: Path) -> list[Block]:
    """The blocks of a document behind those of the document that it begins with, if it names one."""
    blocks = blocks_of(path)
    before = _BEGINS_WITH.search(path.read_text())
    return (typed_blocks(path.parent / before[1]) if before else []) + blocks


def _apply(note: str, block: Block, path: Path, line: int) -> None:
    name, _, value = note.partition(":")
    value = value.strip()
    if name == "not run":
        if value.split(",")[0] not in REASONS:
            raise DocumentError(f"{path}:{line}: {value.split(',')[0]!r} is none of the reasons: {', '.join(REASONS)}")
        block.not_run = value
    elif name == "runs on, once it prints":
        block.ready = value
    elif name == "exit code":
        block.exit_code = int(value)
    elif name == "checked by":
        if "FILE" not in value:
            raise DocumentError(f"{path}:{line}: the check does not say FILE")
        block.checked_by = value
    elif name == "shown":
        block.shown = value


def _place(block: Block, found: list[Block], path: Path) -> None:
    before = found[-1] if found else None
    if block.is_command or block.checked_by or block.shown or block.not_run:
        found.append(block)
    elif block.language in ANSWERS and before and before.is_command and before.answer is None:
        before.answer = block
    else:
        raise DocumentError(
            f"{path}:{block.line}: a block of {block.language or 'no language'} that is neither a command, nor the "
            "answer to the one before it, nor says `checked by:`, `shown:` or `not run:` in a comment before it"
        )
