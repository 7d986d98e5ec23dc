"""One replica changes ten thousand tenants."""

from __future__ import annotations

import os
import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_mass_change as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "One replica changes ten thousand tenants"
INJECTED = (
    "The credentials of 10,000 tenants are replaced through one of three replicas; then all are changed in one "
    "transaction. Meanwhile `/readyz`, `/metrics` and the data listener of another replica are requested all the "
    "time, and its threads are watched."
)
EXPECTED = (
    "The p99 of each is at most 20 ms, and no event loop is busy for more than 20 ms at a time. The last change is "
    "seen, and revoked keys are refused everywhere, within 5 s."
)

# Fewer for a program built for tests.
TENANTS = int(os.environ.get("MASS_CHANGE_TENANTS", "10000"))


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return proofs.mass_change(cluster, TENANTS)
