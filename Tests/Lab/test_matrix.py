"""The page of the fault matrix: its form, and that its rows exist."""

from __future__ import annotations

import re
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from matrix import ORDER, Outcome, counts, page  # noqa: E402


class MatrixTests(unittest.TestCase):
    def test_a_row_is_a_heading_and_a_list(self) -> None:
        text = page([
            Outcome("one", "A fault", "a server that hangs.", "p99 holds", "first finding;\n v1: 2 calls; `a` 0", True, 1),
            Outcome("two", "Another", "b", "c", "d", False, 1),
            Outcome("three", "A third", "b", "c", "no program", None, 1),
        ], "Played today.")
        self.assertIn("Played today. 1 of 2 rows held. Not played: `three`.\n**Not held: `two`.**\n", text)
        self.assertIn("\n## `one`: A fault\n\n- Injected by: A server that hangs.\n- Expected: p99 holds.\n- Seen:\n"
                      "  - First finding.\n  - v1: 2 calls.\n  - `a` 0.\n- Held: yes\n", text)
        self.assertIn("  - D.\n- Held: **no**\n", text)
        self.assertTrue(text.endswith("- Expected: C.\n- Not played: No program.\n"))

    def test_counts_are_words(self) -> None:
        self.assertEqual(counts({"unknown": 1, "accepted": 3}), "3 `accepted`, 1 `unknown`")

    def test_the_page_names_rows_that_exist_and_has_no_python(self) -> None:
        text = (ROOT / "docs/fault-matrix.md").read_text()
        rows = {file.stem for file in (ROOT / "Tests/Faults/rows").glob("*.py")}
        named = re.findall(r"^## `(\w+)`: ", text, re.MULTILINE)
        self.assertTrue(named and set(named) <= rows, named)
        self.assertEqual(set(ORDER), rows)
        self.assertNotRegex(text, r"[\[{]['\"]")
