"""The replica that has an idempotent request dies or sleeps, and another one takes over."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_idempotency as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "The owner of an idempotent request dies, or sleeps beyond its lease"
INJECTED = (
    "200 × SIGKILL and 48 × SIGSTOP of one of three replicas at six steps of a request, to one device and to lists, by both "
    "protocols; each is repeated elsewhere; COMMITs of its records are lost"
)
EXPECTED = (
    "no device is sent to twice, none is called accepted that was not sent to, and who wakes sends nothing that it had not "
    "marked before; `audit verify` 0 in the end"
)

KILLS, PAUSES = 200, 48


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return "; ".join((
            proofs.at_once(cluster, rounds=50), proofs.kills(cluster, KILLS), proofs.pauses(cluster, PAUSES),
            proofs.lost_commits(cluster), f"`audit verify` 0 after {cluster.wait_verified():.0f} s",
        ))
