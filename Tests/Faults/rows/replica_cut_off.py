"""A replica is cut off from everything for three minutes."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_replicas as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402
from network import Namespace  # noqa: E402


FAULT = "One replica is cut off for three minutes"
INJECTED = (
    "A network namespace whose line silently drops everything in both directions, under load. Before that, only the "
    "way to the store is cut for 20 s, while FCM stays in reach."
)
EXPECTED = (
    "Other replicas take over its leases, and the store refuses its late writes. No record is lost or doubled, and "
    "`audit verify` exits with 0."
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        figures = [proofs.store_cut_off(cluster, 20)]
    with Namespace() as network, Lab(lab.program, lab.processes.keep) as other, Cluster(other, apart=network) as cluster:
        figures.append(proofs.cut_off(cluster, 180, network.cut, network.mend))
    return "; ".join(figures)
