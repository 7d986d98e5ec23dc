"""A lab ends what it has started, and what that has started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import Lab, LabError, Proxy  # noqa: E402
from loadbench import group_members, process_tree  # noqa: E402

NGINX = """
worker_processes 2;
pid @folder@/nginx.pid;
events {}
http {
    access_log off;
    server { listen 127.0.0.1:@port@; return 204; }
}
"""
HAPROXY = """
global
    master-worker
defaults
    mode http
    timeout client 10s
frontend one
    bind 127.0.0.1:@port@
    http-request return status 200
"""


def runs(pid: int) -> bool:
    """Whether a process is there and has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


class LabTests(unittest.TestCase):
    def setUp(self) -> None:
        # No gateway is started here.
        self.lab = Lab(Path("/nonexistent"))

    def nginx(self) -> tuple[Proxy, list[int]]:
        """An nginx, and the processes that it consists of."""
        proxy = self.lab.nginx(NGINX)
        self.lab.wait_until("its workers", lambda: len(process_tree(proxy.process.pid)) == 3)
        return proxy, process_tree(proxy.process.pid)

    def haproxy(self) -> tuple[Proxy, list[int]]:
        """A HAProxy that is a master and a worker."""
        proxy = self.lab.haproxy(HAPROXY)
        self.lab.wait_until("its worker", lambda: len(process_tree(proxy.process.pid)) == 2)
        return proxy, process_tree(proxy.process.pid)

    def test_workers_of_a_killed_master_end_with_the_lab(self) -> None:
        for start in (self.nginx, self.haproxy):
            with self.subTest(start.__name__):
                with self.lab:
                    proxy, pids = start()
                    proxy.process.kill()
                    proxy.process.wait(timeout=180)
                    left = group_members(proxy.process.pid)
                    if start == self.nginx:
                        self.assertEqual(len(left), 2, "nginx' workers end by themselves; nothing is tried here")
                self.assertEqual([pid for pid in pids if runs(pid)], [])

    def test_workers_of_a_killed_master_end_when_it_is_stopped(self) -> None:
        for start in (self.nginx, self.haproxy):
            with self.subTest(start.__name__), self.lab:
                proxy, pids = start()
                proxy.process.kill()
                self.lab.processes.stop(proxy.process)
                self.assertEqual([pid for pid in pids if runs(pid)], [])

    def test_what_was_stopped_by_a_signal_ends(self) -> None:
        for start in (self.nginx, self.haproxy):
            with self.subTest(start.__name__):
                with self.lab:
                    _, pids = start()
                    for pid in pids:
                        os.kill(pid, signal.SIGSTOP)
                self.assertEqual([pid for pid in pids if runs(pid)], [])

    def test_it_ends_when_the_row_fails(self) -> None:
        pids: list[int] = []
        with self.assertRaises(AssertionError), self.lab:
            pids = self.nginx()[1]
            raise AssertionError("the row did not hold")
        self.assertEqual(len(pids), 3)
        self.assertEqual([pid for pid in pids if runs(pid)], [])
        self.assertFalse(self.lab.folder.exists())

    def test_it_ends_when_a_proxy_does_not_come_up(self) -> None:
        # It listens elsewhere than where it is waited for.
        text = NGINX.replace("listen 127.0.0.1:@port@", "listen unix:@folder@/socket")
        self.lab.ACCEPT_S = 1
        with self.lab:
            with self.assertRaisesRegex(LabError, "to accept: nothing after 1 s"):
                self.lab.nginx(text)
            (master,) = (process.pid for process in self.lab.processes.running)
            pids = process_tree(master)
            self.assertGreater(len(pids), 1)
        self.assertEqual([pid for pid in pids if runs(pid)], [])

    def test_it_ends_nothing_else(self) -> None:
        other = subprocess.Popen([shutil.which("sleep") or "sleep", "600"], process_group=0)
        try:
            with self.lab:
                self.nginx()
            self.assertTrue(runs(other.pid))
        finally:
            with contextlib.suppress(ProcessLookupError):
                other.kill()
            other.wait(timeout=180)


if __name__ == "__main__":
    unittest.main()
