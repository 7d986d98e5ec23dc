#!/usr/bin/env python3
"""Checks that every `package` type and protocol has a documentation comment.

    .ci/checks/doc_comments.py [ROOT]        check the project
    .ci/checks/doc_comments.py --self-test   check the check

swift-format's rule of this kind looks at `public` and `open` declarations, of which there are none here. Extensions
need no comment; they may not be `package` themselves, since that would hide the access of their members from readers
and from this check.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from swift_source import Finding, code_lines, swift_files

MODIFIER = (
    r"(?:(?:private|fileprivate|internal|package|nonisolated|unowned)\((?:set|unsafe|safe|nonsending)\)"
    r"|final|static|class(?=\s+(?:func|var|let|subscript)\b)|override|required|convenience|lazy|weak|unowned"
    r"|mutating|nonmutating|consuming|borrowing|isolated|nonisolated|indirect|distributed|dynamic|optional"
    r"|prefix|postfix|infix)"
)
ATTRIBUTE = r"@\w+(?:\((?:[^()]|\([^()]*\))*\))?"
DECLARATION = re.compile(
    rf"^\s*(?:{ATTRIBUTE}\s*)*(?:{MODIFIER}\s+)*package\s+(?:{ATTRIBUTE}\s*)*(?:{MODIFIER}\s+)*"
    r"(struct|class|enum|protocol|actor|extension)\b"
    r"\s*(`?[\w+\-*/=<>!&|^~%.?]*`?)"
)


def is_documented(lines: list[str], code: list[str], index: int) -> bool:
    """Whether documentation stands before the declaration at `index`, with nothing but attributes between."""
    index -= 1
    while index >= 0:
        start = attribute_start(code, index)
        if start is None:
            break
        index = start - 1
    has_text = False
    while index >= 0 and not code[index].strip() and lines[index].strip().startswith("///"):
        has_text = has_text or lines[index].strip().strip("/").strip() != ""
        index -= 1
    return has_text


def attribute_start(code: list[str], index: int) -> int | None:
    """The first line of the attributes that end in the line at `index`; None if that line is something else."""
    open_parentheses = 0
    start = index
    while start >= 0:
        line = code[start].strip()
        open_parentheses += line.count(")") - line.count("(")
        if open_parentheses <= 0:
            # Only attributes may stand there: what is left without them must be empty.
            text = " ".join(part.strip() for part in code[start : index + 1])
            return start if text and re.fullmatch(rf"(?:{ATTRIBUTE}\s*)+", text) else None
        start -= 1
    return None


def check_source(path: Path, source: str) -> list[Finding]:
    lines = source.split("\n")
    code = code_lines(source)
    findings = []
    for index, line in enumerate(code):
        # Several declarations on a line are separated by braces or semicolons; those within braces come last.
        for part_index, part in enumerate(re.split(r"[{;]", line)):
            match = DECLARATION.match(part)
            if not match:
                continue
            keyword, name = match.groups()
            if keyword == "extension":
                findings.append(Finding(path, index + 1, "write `package` on the extension's members instead"))
            elif part_index > 0 or not is_documented(lines, code, index):
                what = f"{keyword} {name}".strip()
                findings.append(Finding(path, index + 1, f"`package {what}` has no documentation comment"))
    return findings


def check(root: Path) -> list[Finding]:
    findings = []
    for file in swift_files(root, "Sources", "Tests", "Benchmarks"):
        findings += check_source(file.relative_to(root), file.read_text(encoding="utf-8"))
    return findings


def self_test() -> None:
    documented = '''
package import NIOCore

/// A thing.
package struct Thing: Sendable {
    /// Its size.
    @inlinable
    @available(*, deprecated, message: "use (another)")
    package private(set) var size: Int { 1 }

    /// Makes one.
    @available(
        *,
        deprecated,
        renamed: "other"
    ) @discardableResult
    package init() {
        let package = package.func
        text = "package func inString()"
    }

    /// Cases need none of their own.
    @frozen package enum Kind { case first, second }

    /// Adds.
    package static func + (a: Self, b: Self) -> Self { a }

    /// Multi
    ///
    /// line.
    nonisolated package func f(package: Int) {}

    // package func commentedOut()
    let text = """
        package func inString()
        """
    var own: Int { package }
}

extension Thing: Equatable {}

/// A protocol.
package protocol P {
    func requirement()
}
'''
    findings = check_source(Path("a.swift"), documented)
    assert not findings, [str(finding) for finding in findings]

    undocumented = [
        ("package struct A {}", "struct A"),
        ("// Not documentation.\npackage struct A {}", "struct A"),
        ("///\npackage struct A {}", "struct A"),
        ("/// Far away.\n\npackage struct A {}", "struct A"),
        ("/// Another's.\nlet a = 1\npackage struct A {}", "struct A"),
        ("/// Doc.\nlet a = f(\n    1)\npackage enum B {}", "enum B"),
        ("@MainActor package final class C {}", "class C"),
        ("package indirect enum E {}", "enum E"),
        ("package protocol P {}", "protocol P"),
        ("final package class D {}", "class D"),
        ("/// Doc.\n#if DEBUG\npackage actor A {}", "actor A"),
        ("/// Doc.\npackage struct A { package struct B {} }", "struct B"),
    ]
    for source, what in undocumented:
        findings = check_source(Path("a.swift"), source)
        messages = [finding.message for finding in findings]
        assert messages == [f"`package {what}` has no documentation comment"], (source, messages)
        declaration_line = [
            number for number, line in enumerate(source.split("\n"), start=1) if "package" in line
        ][-1]
        assert findings[0].line == declaration_line, (source, findings[0].line)

    findings = check_source(Path("a.swift"), "package extension A {}")
    assert len(findings) == 1 and "members" in findings[0].message, findings


if __name__ == "__main__":
    if sys.argv[1:] == ["--self-test"]:
        self_test()
    else:
        root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
        findings = check(root)
        for finding in findings:
            print(finding, file=sys.stderr)
        sys.exit(1 if findings else 0)
