"""What becomes of suites that hang, die, or leave something behind."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import unittest
from pathlib import Path

from loadbench import wait_until
from test_lab import runs

SUPERVISED = Path(__file__).resolve().parents[1] / "supervised"
# Only something that hangs comes near it.
LIMIT_S = 180
# A process with a session of its own, whose parent has ended: it leaves its number in a file and goes on.
DAEMON = (
    "setsid sh -c 'echo $$ >> \"$PIDS\"; exec sleep 600 </dev/null >/dev/null 2>&1' & "
    "until [ -s \"$PIDS\" ]; do sleep 0.01; done"
)


@unittest.skipUnless(Path("/proc/self/task").exists(), "orphans are handed over on Linux alone")
class SupervisedTests(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.pids = self.folder / "pids"

    def start(self, script: str, limit: float = LIMIT_S) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [SUPERVISED, str(limit), "sh", "-c", script],
            env={**os.environ, "PIDS": str(self.pids), "LEAVE_S": "2"},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.kill)
        return process

    def run_to_end(self, script: str, limit: float = LIMIT_S) -> tuple[int, str]:
        process = self.start(script, limit)
        output, _ = process.communicate(timeout=LIMIT_S)
        return process.returncode, output

    def started(self) -> list[int]:
        return [int(line) for line in self.pids.read_text().split()]

    def assert_gone(self) -> None:
        self.assertTrue(self.started())
        self.assertEqual([pid for pid in self.started() if runs(pid)], [])

    def test_a_command_that_does_nothing_special(self) -> None:
        cases = {"exit 0": 0, "echo said; exit 3": 3, "kill -KILL $$": 128 + 9, "kill -TERM $$": 128 + 15}
        for script, status in cases.items():
            with self.subTest(script):
                self.assertEqual(self.run_to_end(script), (status, "said\n" if "said" in script else ""))

    def test_what_is_left_behind_is_named_and_ended(self) -> None:
        status, output = self.run_to_end(DAEMON)
        (pid,) = self.started()
        # It may not have become what it is to be yet.
        self.assertEqual((status, output.partition(f" {pid} ")[0]), (1, "FAIL: left behind:"))
        self.assertEqual(output.count("\n"), 1, output)
        self.assert_gone()

    def test_a_failure_stays_that_failure(self) -> None:
        self.assertEqual(self.run_to_end(f"{DAEMON}; exit 5")[0], 5)
        self.assert_gone()

    def test_what_ends_a_moment_later_is_nothing(self) -> None:
        self.assertEqual(self.run_to_end("sleep 0.5 >/dev/null & exit 0"), (0, ""))

    def test_nothing_is_left_of_a_command_that_dies(self) -> None:
        self.assertEqual(self.run_to_end(f"{DAEMON}; kill -KILL $$"), (128 + 9, ""))
        self.assert_gone()

    def test_nothing_is_left_of_a_command_that_hangs(self) -> None:
        status, output = self.run_to_end(f"{DAEMON}; exec sleep 600", limit=10)
        self.assertEqual((status, output), (124, "FAIL: not done after 10 s\n"))
        self.assert_gone()

    def test_nothing_is_left_when_it_is_told_to_end(self) -> None:
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number):
                self.pids.unlink(missing_ok=True)
                process = self.start(f"{DAEMON}; exec sleep 600")
                # It makes the file before it writes its number.
                wait_until("the daemon", lambda: self.pids.read_text().endswith("\n"), LIMIT_S, process)
                process.send_signal(number)
                process.communicate(timeout=LIMIT_S)
                self.assertEqual(process.returncode, 128 + number)
                self.assert_gone()

    def test_wrong_usage(self) -> None:
        for arguments in ([], ["5"], ["five", "true"], ["0", "true"]):
            with self.subTest(arguments):
                done = subprocess.run([SUPERVISED, *arguments], capture_output=True, text=True, timeout=LIMIT_S)
                self.assertEqual(done.returncode, 64)


if __name__ == "__main__":
    unittest.main()
