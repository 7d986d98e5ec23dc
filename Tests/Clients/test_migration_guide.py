"""Runs what docs/migrating-from-legacy.md tells its readers to type, in their order, and compares what it shows."""

from __future__ import annotations

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from gateway import LIMIT_S, ROOT, Gateway

GUIDE = ROOT / "docs/migrating-from-legacy.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run.
ID = re.compile(r'(?<="multicast_id":)\d+|\d+:\d+%[0-9a-f]+')
BETWEEN = "@@@"


class MigrationGuide(unittest.TestCase):
    maxDiff = None

    def test_commands(self) -> None:
        blocks = BLOCK.findall(GUIDE.read_text())
        commands = [text for language, text in blocks if language == "sh"]
        self.assertGreater(len(commands), 5)
        with Gateway() as gateway, tempfile.TemporaryDirectory() as folder:
            addresses = {
                "http://127.0.0.1:8080": gateway.url,
                "http://127.0.0.1:8081": gateway.admin_url,
                "http://127.0.0.1:8085": gateway.emulator_url,
            }
            # Readers stand in the project's folder, with a gateway on the usual ports and nothing set up.
            Path(folder, ".build").symlink_to(ROOT / ".build")
            Path(folder, "var").mkdir()
            Path(folder, "var/dev").symlink_to(gateway.data_dir)
            environment = {name: gateway.environment[name] for name in ("PATH", "GATEWAY_URL", "GATEWAY_ADMIN_URL")}
            script = f"\necho; echo {BETWEEN}\n".join(commands)
            for usual, actual in addresses.items():
                script = script.replace(usual, actual)
            outcome = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", script], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                capture_output=True, text=True, timeout=LIMIT_S,
            )
            output = outcome.stdout
            for usual, actual in addresses.items():
                output = output.replace(actual, usual)
            self.assertEqual(outcome.returncode, 0, f"{output}\n{outcome.stderr}")
            self.assertEqual(gateway.recipients(), ["phone-1", "phone-1"])

        outputs = iter(output.split(f"\n{BETWEEN}\n"))
        for (language, _), (next_language, shown) in zip(blocks, [*blocks[1:], ("", "")]):
            if language != "sh":
                continue
            written = next(outputs)
            # A block that is no command is the output of the one before it.
            if next_language not in ("sh", ""):
                self.assertEqual(ID.sub("ID", written.strip()), ID.sub("ID", shown.strip()))


if __name__ == "__main__":
    unittest.main()
