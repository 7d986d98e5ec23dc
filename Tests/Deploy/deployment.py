"""What the tests of deploy/ have in common: the files, the program, and two gateways that know the same tenants."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
PROGRAM = ROOT / ".build/debug/fcm-gateway"
# Only something that hangs comes near it.
LIMIT_S = 600
# What becomes of a stop beyond its two configured parts, as docs/operations/one-gateway.md says.
CLOSING_S = 15
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import PATIENT, Emulator, Gateway, Lab, Tenant  # noqa: E402


def documents(path: Path) -> list[dict]:
    """The documents of a YAML file."""
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def substituted(text: str, *pairs: tuple[str, str]) -> str:
    """A text with parts replaced; each of them has to occur exactly once."""
    for old, new in pairs:
        count = text.count(old)
        assert count == 1, f"{old!r} occurs {count} times"
        text = text.replace(old, new)
    return text


def config_show(*arguments: str) -> dict[str, str]:
    """Every key of the configuration and its value in force."""
    done = subprocess.run(
        [PROGRAM, "config", "show", "--output", "json", *arguments], env={}, capture_output=True, text=True,
        timeout=LIMIT_S,
    )
    assert done.returncode == 0, done.stderr
    return {row["key"]: row["value"] for row in json.loads(done.stdout)["settings"]}


def longest_stop_s() -> float:
    """Within how many seconds of SIGTERM a gateway with the default configuration has ended."""
    values = config_show()
    return (int(values["http.drainGraceMs"]) + int(values["http.shutdownTimeoutMs"])) / 1000 + CLOSING_S


def gateway_pair(lab: Lab) -> tuple[Emulator, Tenant, Gateway, Gateway]:
    """Two gateways with stores of their own, in which the same tenant has the same key; both are up."""
    fcm = lab.emulator()
    one = lab.gateway({"http": {"drainGraceMs": 0}}, name="gateway-1")
    tenant = one.tenant("shop", fcm)
    assert one.stop() == 0
    # From here on with the default grace, which the examples count on.
    one.write_config({"http": {"drainGraceMs": None}})
    two = lab.gateway(name="gateway-2", start=False)
    shutil.copytree(one.data_dir, two.data_dir)
    shutil.copy(one.folder / "master.key", two.folder / "master.key")
    return fcm, tenant, one.start(), two.start()
