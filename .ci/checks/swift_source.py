"""Reads Swift source as far as the checks beside this file need it: without its comments and strings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass
class Finding:
    """Something to correct, and where."""

    path: Path
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def swift_files(root: Path, *folders: str) -> list[Path]:
    """The Swift files under the given folders of the project, sorted, without build products."""
    files: list[Path] = []
    for folder in folders:
        files += (root / folder).rglob("*.swift")
    return sorted(file for file in files if ".build" not in file.relative_to(root).parts)


def code_lines(text: str) -> list[str]:
    """The source's lines with the contents of comments and strings replaced by spaces."""
    return _Blanking(text).run().split("\n")


class _Blanking:
    """One pass over a source; what is kept or replaced by a space is collected in `output`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.output: list[str] = []

    def run(self) -> str:
        while self.position < len(self.text):
            self.code()
        return "".join(self.output)

    def starts(self, prefix: str) -> bool:
        return self.text.startswith(prefix, self.position)

    def keep(self, count: int = 1) -> None:
        self.output.append(self.text[self.position : self.position + count])
        self.position += count

    def blank(self, count: int = 1) -> None:
        for character in self.text[self.position : self.position + count]:
            self.output.append("\n" if character == "\n" else " ")
        self.position += count

    def code(self) -> None:
        """Takes one element of code: a comment, a string, an identifier in backticks or one character."""
        if self.starts("//"):
            end = self.text.find("\n", self.position)
            self.blank((end if end >= 0 else len(self.text)) - self.position)
        elif self.starts("/*"):
            self.block_comment()
        elif (hashes := self.string_start()) is not None:
            self.string(hashes)
        else:
            self.keep()

    def block_comment(self) -> None:
        # Swift's block comments nest.
        depth = 0
        while self.position < len(self.text):
            if self.starts("/*"):
                depth += 1
                self.blank(2)
            elif self.starts("*/"):
                depth -= 1
                self.blank(2)
                if depth == 0:
                    return
            else:
                self.blank()

    def string_start(self) -> int | None:
        """The number of `#` before a quotation mark here; None if no string starts here."""
        end = self.position
        while end < len(self.text) and self.text[end] == "#":
            end += 1
        return end - self.position if self.text.startswith('"', end) else None

    def string(self, hashes: int) -> None:
        self.blank(hashes)
        quotes = '"""' if self.starts('"""') else '"'
        closing = quotes + "#" * hashes
        escape = "\\" + "#" * hashes
        self.blank(len(quotes))
        while self.position < len(self.text):
            if self.starts(closing):
                self.blank(len(closing))
                return
            if quotes == '"' and self.starts("\n"):
                # Not Swift; going on with the next line keeps the damage small.
                return
            if self.starts(escape + "("):
                self.blank(len(escape))
                self.interpolation()
            elif self.starts(escape):
                self.blank(len(escape) + 1)
            else:
                self.blank()

    def interpolation(self) -> None:
        """Takes a parenthesised expression inside a string; it holds no declaration, so it is left out too."""
        kept = self.output
        self.output = []
        depth = 0
        start = self.position
        while self.position < len(self.text):
            if self.starts("("):
                depth += 1
                self.keep()
            elif self.starts(")"):
                depth -= 1
                self.keep()
                if depth == 0:
                    break
            else:
                self.code()
        self.output = kept
        taken = self.text[start : self.position]
        self.output.append("".join("\n" if character == "\n" else " " for character in taken))
