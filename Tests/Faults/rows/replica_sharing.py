"""What one replica learns, and what all of them count."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_directory  # noqa: E402
import proofs_limits  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "Replicas learn late, out of order, and with wrong clocks"
INJECTED = (
    "Clocks that are 2 s fast and slow; lost notifications; a report whose transaction stays open; changes of one "
    "group on three replicas, one of them paused; a policy that changes under 16 callers."
)
EXPECTED = (
    "Limits are as exact as in one process. Revoked keys are refused everywhere within 5 s. A token that is dead for one "
    "replica is refused by all. The feed of retired tokens is the same on all replicas and misses nothing. The store and "
    "FCM agree on groups."
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return "; ".join((
            proofs_limits.exact(cluster, 20), proofs_limits.with_skewed_clocks(cluster, 20),
            proofs_limits.with_a_change(cluster, 10), proofs_directory.revocation(cluster, rounds=10),
            proofs_directory.cut_off_replica_revokes_in_the_end(cluster), proofs_directory.retired_tokens(cluster),
            proofs_directory.changes_anywhere(cluster, rounds=20), proofs_directory.held_report(cluster), proofs_directory.groups(cluster, rounds=15),
        ))
