"""A replica is cut off from everything for three minutes."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_replicas as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402
from network import Namespace  # noqa: E402


FAULT = "One replica cut off for three minutes"
INJECTED = (
    "a network namespace whose line carries nothing any more, in both directions and without a word, under load; before that "
    "the way to the store alone, for 20 s, while FCM stays in reach"
)
EXPECTED = (
    "its leases are taken over, its late writes refused; no record is lost or there twice, verify 0"
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        figures = [proofs.store_cut_off(cluster, 20)]
    with Namespace() as network, Lab(lab.program, lab.processes.keep) as other, Cluster(other, apart=network) as cluster:
        figures.append(proofs.cut_off(cluster, 180, network.cut, network.mend))
    return "; ".join(figures)
