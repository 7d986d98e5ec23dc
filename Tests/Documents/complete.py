"""What the program has and a document must tell of: keys of the configuration, verbs, metrics."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

from links import subcommands

# Refused in the file.
NOT_IN_THE_EXAMPLE = {
    "masterKey", "previousMasterKey", "admin.token", "store.password", "limits.redisPassword",
    "tracing.otlpHeaders", "upstream.proxyPassword",
}


def untold(root: Path, program: Path) -> list[str]:
    """What is told nowhere, each with the document in which readers would look for it."""
    shown = subprocess.run(
        [program, "config", "show", "--output", "json"], capture_output=True, text=True, timeout=60, env={}
    ).stdout
    keys = [row["key"] for row in json.loads(shown)["settings"]]
    table = (root / "Sources/GatewaySupport/GatewayMetric.swift").read_text()
    metrics = re.findall(r'case \w+ = "(fcmgw_\w+)"', table)
    verbs = []
    for verb in sorted(subcommands(program, ())):
        below = sorted(subcommands(program, (verb,)))
        verbs += [f"fcm-gateway {verb} {each}" for each in below] or [f"fcm-gateway {verb}"]
    wrong = absent(root, "docs/operations/configuration.md", keys)
    wrong += absent(root, "docs/operations/monitoring.md", metrics)
    wrong += absent(root, "docs/operations/command-line.md", verbs)
    example = (root / "deploy/gateway.example.yaml").read_text()
    wrong += [
        f"deploy/gateway.example.yaml: {key} is not there"
        for key in keys
        if key not in NOT_IN_THE_EXAMPLE and not re.search(rf"\b{key.split('.')[-1]}:", example)
    ]
    return wrong


def absent(root: Path, document: str, names: list[str]) -> list[str]:
    """Names that a document does not have as code; to have none to look for is a fault too."""
    if not names:
        return [f"{document}: nothing was found that it should name"]
    text = (root / document).read_text()
    return [f"{document}: `{name}` is not there" for name in names if f"`{name}`" not in text]
