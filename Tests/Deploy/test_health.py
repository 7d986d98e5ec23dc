"""`fcm-gateway health`, which the image and the unit of systemd ask."""

from __future__ import annotations

import subprocess
import unittest

from deployment import LIMIT_S, PROGRAM
from lab import PATIENT, Gateway, Lab


class HealthTests(unittest.TestCase):
    def setUp(self) -> None:
        self.lab = self.enterContext(Lab(PROGRAM, defaults=PATIENT))

    def health(self, gateway: Gateway, *arguments: str) -> tuple[int, str, str]:
        """By the configuration alone, without a secret."""
        command = [PROGRAM, "health", "--config", gateway.config_file, *arguments]
        done = subprocess.run(command, env={}, capture_output=True, text=True, timeout=LIMIT_S)
        return done.returncode, done.stdout.strip(), done.stderr.strip()

    def test_a_gateway_that_comes_and_goes(self) -> None:
        # The second signal ends it before that.
        gateway = self.lab.gateway({"http": {"drainGraceMs": 300_000}}, start=False)
        refused = f"Error: no answer from {gateway.admin_url}: the connection was refused"
        self.assertEqual(self.health(gateway), (1, "", refused))
        self.assertEqual(self.health(gateway, "--wait", "1s"), (1, "", refused))
        # Asked before it starts: the answer comes when it is ready.
        command = [PROGRAM, "health", "--config", gateway.config_file, "--wait", "10m"]
        waiting = subprocess.Popen([str(part) for part in command], env={}, stdout=subprocess.PIPE, text=True)
        self.addCleanup(waiting.kill)
        gateway.start()
        self.assertEqual((waiting.communicate(timeout=LIMIT_S)[0], waiting.returncode), ("ready\n", 0))
        self.assertEqual(self.health(gateway, "--live"), (0, "live", ""))
        gateway.signal(15)
        self.lab.wait_until("the drain", lambda: gateway.metric("fcmgw_draining") == 1, process=gateway.process)
        meaning = "it is starting, draining, or can't write its audit"
        answer = f"Error: {gateway.admin_url}/readyz answered HTTP 503, {meaning}"
        self.assertEqual(self.health(gateway), (1, "", answer))
        self.assertEqual(self.health(gateway, "--live"), (0, "live", ""))
        gateway.signal(15)
        self.assertEqual(gateway.process.wait(LIMIT_S), 0)
        self.assertEqual(self.health(gateway), (1, "", refused))

    def test_a_listener_with_tls(self) -> None:
        """Its own configuration needs no authority for it; an address that was given does."""
        made = self.lab.certificate("admin", subject="gateway.example.com", names="DNS:gateway.example.com")
        tls = {"certificateFile": str(made.certificate), "privateKeyFile": str(made.key)}
        gateway = self.lab.gateway({"admin": {"tls": tls}}, start=False)
        gateway.start(wait=False)
        self.assertEqual(self.health(gateway, "--wait", "10m"), (0, "ready", ""))
        status, _, error = self.health(gateway, "--admin-url", f"https://127.0.0.1:{gateway.admin_port}")
        self.assertEqual(status, 1)
        self.assertIn("not signed by an authority that is trusted here", error)
        # Plain HTTP to it is no answer either.
        status, _, error = self.health(gateway, "--admin-url", f"http://127.0.0.1:{gateway.admin_port}")
        self.assertEqual(status, 1, error)


if __name__ == "__main__":
    unittest.main()
