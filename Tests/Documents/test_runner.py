"""Whether the runner notices what it is there to notice. Run by `run`, before the documents."""

from __future__ import annotations

import re
import tempfile
import unittest
from pathlib import Path

from blocks import DocumentError, blocks_of
from compare import differences
from complete import absent
from links import anchors, broken_links

TOUR = Path(__file__).parents[2] / "docs/tour.md"

SAME = [
    ("json", '{"a": 1, "id": "x1"}', '{"id":"other","a":1}'),
    ("json", '{"a": "…", "…": "…"}', '{"a": [1, 2], "b": 3}'),
    ("json", '{"message_id": "0:1795275930992908%b4eb2d43f34bbbf1"}', '{"message_id":"0:1795275931010334%2dd8784dcd150aba"}'),
    ("json", '[1, "…"]', "[1, 2, 3]"),
    ("json", '{"a": 1}\n{"b": 2}', '{"a":1}{"b":2}'),
    ("text", "a\n…\nz", "a\nb\nc\nz"),
    ("text", "a\n…\nz", "a\nz"),
    ("text", "at 2026-11-21T15:45:31.025Z of … things", "at 2030-01-01T00:00:00Z of 7 things"),
    ("text", "A   B", "A B"),
]
DIFFERENT = [
    ("json", '{"a": 1}', '{"a":2}'),
    ("json", '{"a": 1}', '{"a":true}'),
    ("json", '{"a": 1}', '{"a":1,"b":2}'),
    ("json", '{"a": 1, "b": 2}', '{"a":1}'),
    ("json", '{"a": [1]}', '{"a":[1,2]}'),
    ("json", '{"a": 1}', '{"a":1}{"a":1}'),
    ("json", '{"id": "x"}', '{"id":7}'),
    ("json", '{"status": 200}', "not JSON"),
    ("text", "a\nb", "a"),
    ("text", "a", "a\nb"),
    ("text", "a\n…\nz", "a\nb"),
    ("text", "code 200", "code 503"),
]


class Comparing(unittest.TestCase):
    def test_same(self) -> None:
        for language, shown, printed in SAME:
            with self.subTest(shown=shown, printed=printed):
                self.assertEqual(differences(language, shown, printed), "")

    def test_different(self) -> None:
        for language, shown, printed in DIFFERENT:
            with self.subTest(shown=shown, printed=printed):
                self.assertNotEqual(differences(language, shown, printed), "")


class Documents(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, "document.md")

    def blocks(self, text: str) -> list:
        self.path.write_text(text)
        return blocks_of(self.path)

    def test_blocks(self) -> None:
        blocks = self.blocks(
            "```sh\na\n```\n\n```json\n1\n```\n\n- item\n\n  <!-- exit code: 2 -->\n  ```sh\n  b\n    c\n  ```\n\n"
            "<!-- not run: cluster, there is none -->\n```sh\nd\n```\n"
        )
        self.assertEqual([block.text for block in blocks], ["a\n", "b\n  c\n", "d\n"])
        self.assertEqual(blocks[0].answer.text, "1\n")
        self.assertEqual([block.exit_code for block in blocks], [0, 2, 0])
        self.assertEqual(blocks[2].not_run, "cluster, there is none")

    def test_refused(self) -> None:
        for text in (
            "```json\n1\n```\n",  # Answers nothing.
            "```sh\na\n```\n\n```yaml\na: 1\n```\n",  # Says nothing of how it is checked.
            "<!-- not run: no time -->\n```sh\na\n```\n",  # No such reason.
            "<!-- checked by: true -->\n```yaml\na: 1\n```\n",
            "```sh\na\n",
        ):
            with self.subTest(text=text), self.assertRaises(DocumentError):
                self.blocks(text)

    def test_a_comment_is_for_the_next_block_alone(self) -> None:
        with self.assertRaises(DocumentError):
            self.blocks("<!-- shown: a drawing -->\n\nText.\n\n```yaml\na: 1\n```\n")

    def test_links(self) -> None:
        self.path.write_text("# The audit can't be written\n\n[a](#the-audit-cant-be-written) [b](#no) [c](no.md) [d](https://x/y)\n")
        self.assertEqual(anchors(self.path), {"the-audit-cant-be-written"})
        self.assertEqual(len(broken_links(self.path, self.path.parent)), 2)


class Tour(unittest.TestCase):
    def test_send(self) -> None:
        """The first walk names at most 30 files, each once; that they exist is a matter of all links."""
        walk = TOUR.read_text().split("\n## ")[1]
        files = re.findall(r"\]\(\.\./(Sources/[^)]+)\)", walk)
        self.assertTrue(20 <= len(files) <= 30, files)
        self.assertEqual(len(files), len(set(files)))
        self.assertEqual(broken_links(TOUR, TOUR.parents[1]), [])


class Completeness(unittest.TestCase):
    def test_names(self) -> None:
        """What a document does not name as code is told, and so is a list of names that came out empty."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "page.md").write_text("`a.b` and a.c, `a.bd`\n")
            self.assertEqual(absent(Path(folder), "page.md", ["a.b"]), [])
            self.assertEqual(len(absent(Path(folder), "page.md", ["a.b", "a.c", "a.d"])), 2)
            self.assertEqual(len(absent(Path(folder), "page.md", [])), 1)


if __name__ == "__main__":
    unittest.main()
