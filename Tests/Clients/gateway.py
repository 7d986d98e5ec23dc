"""A gateway with an emulated FCM behind it, for tests with clients that nobody here wrote."""

from __future__ import annotations

import atexit
import json
import os
import re
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# What operators run, and what runs a gateway with the emulator.
PROGRAM = ROOT / ".build/debug/fcm-gateway"
DEV_PROGRAM = ROOT / ".build/debug/fcm-gateway-dev"
# Generous: only a hung gateway comes near it.
LIMIT_S = 120

UPSTREAMS = ("legacy", "v1")


class Gateway:
    """`fcm-gateway-dev dev` in a folder of its own, on ports that the system chooses; a context manager.

    Its tenant `demo` holds a credential for each protocol and sends by the legacy one until `switch` says otherwise.
    """

    url: str
    admin_url: str
    emulator_url: str
    key: str

    def __enter__(self) -> Gateway:
        for program in (PROGRAM, DEV_PROGRAM):
            if not program.exists():
                raise RuntimeError(f"{program} is missing; `swift build` makes it")
        self._folder = tempfile.TemporaryDirectory(prefix="fcm-gateway-clients-")
        self.data_dir = Path(self._folder.name)
        self._errors = open(self.data_dir / "stderr.log", "w+")
        self._process = subprocess.Popen(
            [
                DEV_PROGRAM, "dev", "--data-dir", self.data_dir,
                "--port", "0", "--admin-port", "0", "--emulator-port", "0",
            ],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        # Tests that are interrupted leave no context.
        atexit.register(self._process.kill)
        try:
            self.banner = self._read_banner()
        except BaseException:
            self.__exit__()
            raise
        self.url, self.admin_url, self.emulator_url = re.findall(r"http://127\.0\.0\.1:\d+", self.banner)[:3]
        self.key = (self.data_dir / "demo.key").read_text().strip()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(timeout=LIMIT_S)
        atexit.unregister(self._process.kill)
        self._process.stdout.close()
        self._errors.close()
        self._folder.cleanup()

    def _read_banner(self) -> str:
        # A gateway that neither starts nor ends would keep the tests waiting for its output.
        watch = threading.Timer(LIMIT_S, self._process.kill)
        watch.start()
        try:
            lines = []
            for line in self._process.stdout:
                lines.append(line)
                if "Stop with Ctrl-C." in line:
                    return "".join(lines)
        finally:
            watch.cancel()
        self._errors.seek(0)
        raise RuntimeError(f"the gateway did not start:\n{''.join(lines)}{self._errors.read()}")

    # What the program does for its operators.

    def command(self, *arguments: str, input: str = "") -> subprocess.CompletedProcess[str]:
        """Runs a verb of the program, with the addresses and secrets of this gateway in its environment."""
        return subprocess.run(
            [PROGRAM, *arguments], input=input, env=self.environment, capture_output=True, text=True, timeout=LIMIT_S
        )

    @property
    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "GATEWAY_URL": self.url,
            "GATEWAY_KEY": self.key,
            "GATEWAY_ADMIN_URL": self.admin_url,
            "GATEWAY_ADMIN_TOKEN_FILE": str(self.data_dir / "admin.token"),
        }

    def switch(self, upstream: str) -> None:
        """Has the tenant's messages leave by a protocol, as an operator would."""
        outcome = self.command("tenant", "set", "demo", "--upstream", upstream, "--project-id", "demo")
        if outcome.returncode != 0:
            raise RuntimeError(f"tenant set: {outcome.stderr}")

    def make_key(self, *scopes: str) -> str:
        """A further key of the tenant."""
        outcome = self.command("key", "create", "demo", "--name", "further", *(f"--scope={each}" for each in scopes))
        if outcome.returncode != 0:
            raise RuntimeError(f"key create: {outcome.stderr}")
        return outcome.stdout.strip()

    # What the emulated FCM knows.

    def emulator(self, method: str, path: str, body: object = None) -> dict:
        """One call of the emulator's control interface."""
        request = urllib.request.Request(
            f"{self.emulator_url}/_emulator/{path}", data=json.dumps(body).encode() if body else None, method=method
        )
        with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
            return json.loads(response.read() or b"{}")

    def forget(self) -> None:
        """Has the emulator forget all that it received, its subscriptions and its faults."""
        self.emulator("DELETE", "state")

    def subscribe(self, topic: str, *tokens: str) -> None:
        self.emulator("POST", "subscriptions", {"topic": topic, "tokens": tokens})

    def requests(self) -> list[dict]:
        """The sends that reached the emulator, in the order of their arrival."""
        entries = self.emulator("GET", "journal?limit=10000")["entries"]
        return sorted((entry for entry in entries if entry["path"] != "/token"), key=lambda entry: entry["id"])

    def bodies(self) -> list[dict]:
        """The JSON bodies of those sends."""
        return [json.loads(entry["body"]) for entry in self.requests()]

    def deliveries(self) -> list[dict]:
        """What devices were delivered, in the order of delivery."""
        return self.emulator("GET", "deliveries")["deliveries"][::-1]

    def recipients(self) -> list[str]:
        """The devices that were delivered something, once for each delivery, sorted."""
        return sorted(delivery["token"] for delivery in self.deliveries())
