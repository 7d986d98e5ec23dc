#!/usr/bin/env python3
"""Checks that no folder has more lines of hard English than prose.txt allows.

It counts lines of comments (Swift below Sources), of documents (README.md, docs) and of descriptions (openapi)

- where a sentence begins with Who, What, Whose, Whoever, Whether, Where, How, or with That for "the fact that";
- that hold one of PHRASES, for which English has a plainer word.

Headings, the headers of tables, code blocks, markers such as <!-- … -->, and questions don't count. It only finds suspects:
a line that it finds may be good English, and a line that it passes may be bad. A row may be lowered at any time.

    .ci/checks/prose.py [--lower]
    .ci/checks/prose.py --list [FOLDER]
    .ci/checks/prose.py --self-test
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from swift_source import swift_files

ROOT = Path(__file__).resolve().parents[2]
TABLE = Path(__file__).with_name("prose.txt")

PHRASES = (
    r"whoever", r"nobody(?:'s|’s)?", r"such a one", r"in vain", r"none of its", r"no other's",
    r"(?:is|are|was|were|be|been) had", r"(?:go|goes|going|gone|went) on", r"(?:take|takes|taking|took|taken) in",
    r"(?:tell|tells|telling|told) (?:nothing )?of", r"(?:hear|hears|hearing|heard) of",
    r"what (?:became|becomes|become) of", r"(?:by|to) whom", r"come by", r"it is told",
)
SUSPECT = re.compile(r"\b(?:" + "|".join(PHRASES) + r")\b", re.IGNORECASE)
# A demonstrative "That is …" or "That file …" is good English.
OPENING = re.compile(r"(?:Who|What|Whose|Whoever|Whether|Where|How|That (?:an?|the|its?|no|nobody|nothing|they|there|"
                     r"this|these|each|every|all|one|what|who|FCM))\b")
SENTENCE = re.compile(r"(?:^|(?<=[.!?:])\s+|(?<=[.!?:][)\"”])\s+)[\s*_(\"“]*")
# A line of text with its number; consecutive ones form a passage.
Passage = list[tuple[int, str]]


def comments(text: str) -> Iterator[Passage]:
    """The passages of a Swift file's line comments."""
    passage: Passage = []
    for number, line in enumerate(text.split("\n"), 1):
        found = re.match(r"\s*///?(?!/) ?(?!swift-format|swift-tools|MARK:|===)(.*)", line)
        words = found[1] if found else ""
        if not words.strip() or re.match(r"\s*[-*] |    ", words):
            yield passage
            passage = []
        if words.strip() and not words.startswith("    "):
            passage.append((number, re.sub(r"^\s*[-*] (?:(?:Parameters?|Returns|Throws)\b[^:]*: )?", "", words)))
    yield passage


def paragraphs(text: str) -> Iterator[Passage]:
    """The passages of a Markdown page; each cell of a table is one."""
    lines = text.split("\n")
    passage: Passage = []
    fence = ""
    for number, line in enumerate(lines, 1):
        words = line.strip()
        opens = re.match(r"(?:[-*] )?(`{3,}|~{3,})", words)
        ends = fence or opens or not words or words[0] == "#" or words.startswith(("<!--", "|")) \
            or re.match(r"[-*>] |\d+\. ", words)
        if ends:
            yield passage
            passage = []
        if fence:
            fence = "" if words.startswith(fence) else fence
        elif opens:
            fence = opens[1]
        elif words.startswith("|"):
            if number == len(lines) or not re.match(r"\s*\|[\s:|-]+$", lines[number]):
                for cell in words.strip("|").split("|"):
                    yield [(number, cell.strip())]
        elif words and words[0] != "#" and not words.startswith("<!--"):
            passage.append((number, re.sub(r"^(?:(?:[-*>]|\d+\.) )+", "", words)))
    yield passage


def descriptions(text: str) -> Iterator[Passage]:
    """The passages of a YAML file's titles, summaries and descriptions."""
    page: Passage = []
    within = -1
    for number, line in enumerate([*text.split("\n"), "end:"], 1):
        indent = len(line) - len(line.lstrip())
        key = re.match(r"(\s*(?:- )?)(?:description|summary|title): *(?:[>|][-+]?$)?(.*)", line)
        if line.strip() and indent <= within or within < 0 and key:
            yield from paragraphs_at(page)
            page = []
            within = len(key[1]) if key else -1
            if key:
                page.append((number, key[2].strip("'\"")))
        elif within >= 0:
            page.append((number, line.strip()))


def paragraphs_at(page: Passage) -> Iterator[Passage]:
    for passage in paragraphs("\n".join(line for _, line in page)):
        yield [(page[index - 1][0], line) for index, line in passage]


def suspects(passage: Passage) -> set[int]:
    """The numbers of a passage's lines that count."""
    starts: list[int] = []
    words = ""
    for _, line in passage:
        starts.append(len(words))
        words += line + " "
    # What is quoted as code is no English; it keeps its length, so that a place stays one.
    words = re.sub(r"`[^`]*`", lambda code: "`" * len(code[0]), words)
    places = [found.start() for found in SUSPECT.finditer(words)]
    for start in SENTENCE.finditer(words):
        opening = OPENING.match(words, start.end())
        end = re.search(r"[.!?](?:\W|$)", words[start.end():])
        if opening and not (end and end[0][0] == "?"):
            places.append(opening.start())
    return {passage[sum(1 for start in starts if start <= place) - 1][0] for place in places}


def found_in(folder: str, rows: set[str]) -> list[tuple[Path, int]]:
    """The suspects of a row: below its folder, but not below that of a longer row."""
    if folder.startswith("Sources"):
        files, passages = swift_files(ROOT, folder), comments
    elif folder == "openapi":
        files, passages = sorted((ROOT / folder).glob("*.yaml")), descriptions
    else:
        files = [ROOT / folder] if folder.endswith(".md") else sorted((ROOT / folder).rglob("*.md"))
        passages = paragraphs
    found = []
    for file in files:
        name = file.relative_to(ROOT).as_posix()
        if folder == max((row for row in rows if f"{name}/".startswith(f"{row}/")), key=len):
            lines = {line for passage in passages(file.read_text(encoding="utf-8")) for line in suspects(passage)}
            found += [(file.relative_to(ROOT), line) for line in sorted(lines)]
    return found


def self_test() -> None:
    def lines(passages: Iterator[Passage]) -> list[int]:
        return sorted(line for passage in passages for line in suspects(passage))

    assert lines(comments("/// Who asks\nlet a = 1 // What\n// A key. Where it\n// goes on, it is. How\n// so? That is it.")) == [1, 3, 4]
    assert lines(comments("/// The key\n/// Whose\n///\n/// - Parameter key: What it is.\n///     What code\n")) == [4]
    assert lines(paragraphs("# What\n\n```sh\n# nobody\n```\nHow so?\n<!-- What -->\n| What | b |\n|---|---|\n| a | Who |")) == [10]
    assert lines(paragraphs("A list:\n\n1. Whether **one**. That\n   file. (That the\n   key is.) `nobody`.")) == [3, 4]
    assert lines(descriptions("a:\n  description: >-\n    A key.\n    What is\n\n    How so\n  example: What\n  summary: Who\nx: Who")) == [4, 6, 8]


def main(arguments: list[str]) -> int:
    head = TABLE.read_text(encoding="utf-8").splitlines()
    table = {row: int(most) for row, most in (line.split() for line in head if line and not line.startswith("#"))}
    found = {row: found_in(row, set(table)) for row in table}
    if arguments[:1] == ["--list"]:
        for row in found:
            for file, line in found[row]:
                if row.startswith(arguments[1].rstrip("/") if arguments[1:] else "") or str(file) in arguments[1:]:
                    print(f"{file}:{line}: {(ROOT / file).read_text(encoding='utf-8').splitlines()[line - 1].strip()}")
        return 0
    failed = False
    for target in sorted({f"Sources/{path.name}" for path in (ROOT / "Sources").iterdir()} - table.keys()):
        if swift_files(ROOT, target):
            print(f"{TABLE.name} has no row for {target}", file=sys.stderr)
            failed = True
    for row, most in table.items():
        if len(found[row]) > most:
            by_file = ", ".join(f"{file} {count}" for file, count in Counter(file for file, _ in found[row]).most_common(5))
            print(f"{row}: {len(found[row])} suspects; {TABLE.name} allows {most} (--list {row}; most in {by_file})", file=sys.stderr)
            failed = True
    if arguments == ["--lower"]:
        body = [f"{row:24} {min(most, len(found[row])):5}" for row, most in table.items()]
        TABLE.write_text("\n".join([line for line in head if line.startswith("#")] + body) + "\n", encoding="utf-8")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        sys.exit(main(sys.argv[1:]))
