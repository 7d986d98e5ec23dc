"""Checks what stands between the blocks: links and their anchors, verbs and options that the text names."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

# What a build makes.
PROGRAMS = ("fcm-gateway", "fcm-gateway-dev")

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.*)$", re.MULTILINE)
_FENCED = re.compile(r"^ *```.*?^ *```\s*$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")


def anchors(path: Path) -> set[str]:
    """The anchors that a document's headings have, as code hosts make them."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCED.sub("", path.read_text())):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).strip().replace(" ", "-")
        name, number = anchor, 0
        while name in found:
            number += 1
            name = f"{anchor}-{number}"
        found.add(name)
    return found


def broken_links(path: Path, root: Path) -> list[str]:
    """Relative links of a document that lead nowhere."""
    wrong = []
    for target in _LINK.findall(_FENCED.sub("", path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        if not file.exists():
            wrong.append(f"{path.relative_to(root)}: {target} is not there")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            wrong.append(f"{path.relative_to(root)}: {target} has no such heading")
    return wrong


def unknown_verbs(path: Path, root: Path, program: Path) -> list[str]:
    """Verbs and options of the program that a document's text names and the program does not have."""
    wrong = []
    for span in _SPAN.findall(_FENCED.sub("", path.read_text())):
        words = span.split()
        if len(words) < 2 or Path(words[0]).name not in PROGRAMS:
            continue
        program = program.with_name(Path(words[0]).name)
        verb: list[str] = []
        for word in words[1:]:
            if word in subcommands(program, tuple(verb)):
                verb.append(word)
            else:
                break
        if not verb and not words[1].startswith("-") and words[1] not in ("help", "…"):
            wrong.append(f"{path.relative_to(root)}: `{span}`: there is no verb {words[1]}")
        for option in (word.split("=")[0] for word in words[1:] if word.startswith("--")):
            if option not in _help(program, tuple(verb)) and option != "--generate-completion-script":
                wrong.append(f"{path.relative_to(root)}: `{span}`: {' '.join(verb)} has no {option}")
    return wrong


@cache
def _help(program: Path, verb: tuple[str, ...]) -> str:
    return subprocess.run([program, *verb, "--help"], capture_output=True, text=True, timeout=60).stdout


@cache
def subcommands(program: Path, verb: tuple[str, ...]) -> set[str]:
    _, _, rest = _help(program, verb).partition("SUBCOMMANDS:")
    return set(re.findall(r"^  ([a-z][a-z0-9-]*)\b", rest, re.MULTILINE))
