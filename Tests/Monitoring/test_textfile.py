"""The check of the audit for node_exporter, with a program that stands in for the gateway's."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from monitoring import LIMIT_S, TEXTFILE, promtool

ATTEMPT = "fcmgw_audit_verify_attempt_timestamp_seconds"
CHECKED = "fcmgw_audit_verify_timestamp_seconds"
RESULT = "fcmgw_audit_verify_result"


class AuditVerifyTextfile(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = Path(folder.name) / "program"
        self.folder = Path(folder.name) / "collector"
        self.folder.mkdir()
        self.file = self.folder / "fcm_gateway_audit.prom"

    def check(self, status: int, before: str = ":") -> subprocess.CompletedProcess[str]:
        """Runs the script; the program does something before it ends with a status."""
        self.program.write_text(f'#!/bin/sh\n[ "$*" = "audit verify --data-dir x" ] || exit 99\n{before}\nexit {status}\n')
        self.program.chmod(0o700)
        return subprocess.run(
            [TEXTFILE, self.folder, "--data-dir", "x"], env={**os.environ, "FCM_GATEWAY": str(self.program)},
            capture_output=True, text=True, timeout=LIMIT_S,
        )

    def values(self) -> dict[str, int]:
        """What the collector finds; nothing but the one file is there, and promtool has nothing against it."""
        self.assertEqual(list(self.folder.iterdir()), [self.file])
        self.assertEqual(self.file.stat().st_mode & 0o777, 0o644)
        text = self.file.read_text()
        outcome = promtool("check", "metrics", input=text)
        self.assertEqual((outcome.returncode, outcome.stdout, outcome.stderr), (0, "", ""))
        return {name: int(value) for name, value in re.findall(r"(?m)^(\w+) (\d+)$", text)}

    def age(self, seconds: int) -> None:
        """Makes all times that the file holds older."""
        text = re.sub(r"(?m)(_seconds )(\d+)$", lambda found: found[1] + str(int(found[2]) - seconds), self.file.read_text())
        self.file.write_text(text)

    def test_results(self) -> None:
        """A check that comes to a result leaves the result and the time, and ends as the program did."""
        for status in (0, 1, 2, 0):
            self.assertEqual(self.check(status).returncode, status)
            values = self.values()
            self.assertEqual(values.keys(), {ATTEMPT, CHECKED, RESULT})
            self.assertEqual(values[RESULT], status)
            self.assertLess(abs(time.time() - values[ATTEMPT]), 60)
            self.assertLess(abs(time.time() - values[CHECKED]), 60)

    def test_none_ever(self) -> None:
        """Where no check ever came to a result, it is seen that checks were made."""
        for status in (66, 64, 127):
            self.assertEqual(self.check(status).returncode, status)
            values = self.values()
            self.assertEqual(values.keys(), {ATTEMPT})
            self.assertLess(abs(time.time() - values[ATTEMPT]), 60)

    def test_none_again(self) -> None:
        """A check without a result leaves the last one as it was, and the time of the attempt."""
        self.assertEqual(self.check(1).returncode, 1)
        self.age(7000)
        earlier = self.values()
        for _ in range(2):
            self.assertEqual(self.check(66).returncode, 66)
            values = self.values()
            self.assertEqual((values[RESULT], values[CHECKED]), (1, earlier[CHECKED]))
            self.assertGreaterEqual(values[ATTEMPT], earlier[ATTEMPT] + 6990)

    def test_killed(self) -> None:
        """The attempt is there while the program runs, so that one that is killed is seen too."""
        self.assertEqual(self.check(66, f"grep -q '^{ATTEMPT} [0-9]' '{self.file}' || exit 98").returncode, 66)
        self.check(0, "kill -9 $PPID $$")
        self.assertEqual(self.values().keys(), {ATTEMPT})

    def test_wrong_use(self) -> None:
        """A folder that is none, and one that can't be written, are said."""
        outcome = subprocess.run([TEXTFILE, self.folder / "none"], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(outcome.returncode, 64)
        self.assertIn("usage", outcome.stderr)
        # There nobody can make files, not even root.
        outcome = subprocess.run([TEXTFILE, "/proc"], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(outcome.returncode, 73)
        self.assertTrue(outcome.stderr)


if __name__ == "__main__":
    unittest.main()
