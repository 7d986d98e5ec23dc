"""The replica that has an idempotent request dies or sleeps, and another one takes over."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_idempotency as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "The replica that owns an idempotent request dies, or pauses beyond its lease"
INJECTED = (
    "200 × SIGKILL and 48 × SIGSTOP of one of three replicas at six steps of a request, to one device and to lists, "
    "by both protocols. Each request is repeated on another replica. COMMITs of its records are lost."
)
EXPECTED = (
    "No device gets a message twice, and no recipient is reported accepted without a send. A replica that wakes sends "
    "nothing that it had not marked before. In the end `audit verify` exits with 0."
)

KILLS, PAUSES = 200, 48


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return "; ".join((
            proofs.at_once(cluster, rounds=50), proofs.kills(cluster, KILLS), proofs.pauses(cluster, PAUSES),
            proofs.lost_commits(cluster), f"`audit verify` 0 after {cluster.wait_verified():.0f} s",
        ))
