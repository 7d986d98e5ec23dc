"""PostgreSQL stops, dies, hangs, has no disk left, only reads, loses COMMITs, and is failed over."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_replicas as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "PostgreSQL stops, crashes, hangs, is full, is read-only, loses COMMITs, fails over"
INJECTED = (
    "A stop and a crash of 30 s, SIGSTOP of all its processes, a data directory on a full file system of 128 MiB, "
    "`default_transaction_read_only`, a proxy that drops COMMITs and their answers, and a synchronous standby that "
    "takes over; each under load of three replicas."
)
EXPECTED = (
    "Sends without a key succeed. Requests that must write to the store get 503 within 20 s. `/readyz` stays 200. The "
    "store has each record once, and `audit verify` exits with 0."
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        figures = [
            proofs.store_stopped(cluster, 30), proofs.store_crashed(cluster, 30), proofs.store_read_only(cluster, 15),
            proofs.store_hung(cluster, 20), proofs.lost_commits(cluster, times=20),
        ]
    with Lab(lab.program, lab.processes.keep) as other, Cluster(other, disk="128m") as cluster:
        figures.append(proofs.store_full(cluster, 15))
    with Lab(lab.program, lab.processes.keep) as other, Cluster(other, standby=True) as cluster:
        figures.append(proofs.failed_over(cluster))
    return "; ".join(figures)
