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
    "ten rolling restarts of three replicas behind HAProxy, then `kill -9` of one, SIGSTOP of the leader, SIGTERM of one while "
    "PostgreSQL is away and another host name on its data directory, and a step of the schema as the next release may take it with "
    "restarts after it, all under load"
)
EXPECTED = (
    "no request fails by a restart, by a kill those on its connections alone; the leader closes its chains, and nothing is "
    "checkpointed or closed twice; what was spooled comes with the data directory"
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return "; ".join((
            proofs.rolling(cluster, rounds=10), proofs.killed_under_load(cluster), proofs.paused_leader(cluster, 20),
            proofs.replaced_in_outage(cluster), proofs_releases.later_schema(cluster, restarts=SIZE),
        ))
