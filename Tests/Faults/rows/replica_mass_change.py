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
    "the credentials of 10,000 tenants replaced through one of three replicas, then all of them changed in one transaction; "
    "`/readyz`, `/metrics` and the data listener of another replica asked all the time, and its threads watched"
)
EXPECTED = (
    "p99 of each ≤ 20 ms, no event loop busy for more than 20 ms at a time; the last change seen, and revoked keys refused "
    "everywhere, within 5 s"
)

# Fewer for a program built for tests.
TENANTS = int(os.environ.get("MASS_CHANGE_TENANTS", "10000"))


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        return proofs.mass_change(cluster, TENANTS)
