"""Replicas are stopped, killed and put to sleep under load."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_releases  # noqa: E402
import proofs_replicas as proofs  # noqa: E402
from cluster import SIZE, Cluster  # noqa: E402


FAULT = "Replicas are restarted one by one, killed, paused, replaced in an outage"
INJECTED = (
    "Ten rolling restarts of three replicas behind HAProxy; `kill -9` of one; SIGSTOP of the leader; SIGTERM of one "
    "while PostgreSQL is down, and a start under another host name on its data directory; a step of the schema as the "
    "next release may take it, with restarts after it. All under load."
)
EXPECTED = (
    "No request fails by a restart. A kill fails only requests on the killed replica's connections. The leader closes "
    "its chains, and nothing is checkpointed or closed twice. Spooled records arrive with the data directory."
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return "; ".join((
            proofs.rolling(cluster, rounds=10), proofs.killed_under_load(cluster), proofs.paused_leader(cluster, 20),
            proofs.replaced_in_outage(cluster), proofs_releases.later_schema(cluster, restarts=SIZE),
        ))
