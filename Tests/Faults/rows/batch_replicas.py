"""Replicas that send a batch die, sleep, lose commits, their store and FCM's favour."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_batches as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "Replicas die, sleep and are restarted during a batch; store, Redis and FCM fail"
INJECTED = (
    "20 × SIGKILL and 20 × SIGSTOP beyond the lease of a replica that holds slices, at five steps, by both protocols; SIGSTOP "
    "between claim and reservation; lost COMMITs and answers at eight steps; 429 of the project for ten minutes; PostgreSQL "
    "stopped, crashed and hung, Redis killed, for 30 s each; a rolling restart during 100,000 recipients; a failover."
)
EXPECTED = (
    "No device gets a message twice. The outcomes add up to the total, no recipient is reported accepted without a send, "
    "and no more are unknown than were being sent to. A rolling restart leaves none unknown."
)

SECONDS = 30


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        postgresql, redis = cluster.postgresql, cluster.redis
        figures = [
            proofs.interrupted(cluster, "kill", 20), proofs.interrupted(cluster, "pause", 20),
            proofs.paused_before_reservation(cluster), proofs.lost_commits(cluster), proofs.quota(cluster, 600),
            proofs.outage(cluster, "PostgreSQL stopped", postgresql.stop, postgresql.start, SECONDS),
            proofs.outage(cluster, "PostgreSQL killed", postgresql.kill, postgresql.start, SECONDS),
            proofs.outage(cluster, "PostgreSQL hung", postgresql.hang, postgresql.resume, SECONDS),
            proofs.outage(cluster, "Redis killed", redis.kill, redis.start, SECONDS),
            proofs.rolling(cluster, 100_000),
            f"`audit verify` 0 after {cluster.wait_verified():.0f} s",
        ]
    with Lab(lab.program, lab.processes.keep) as other, Cluster(other, standby=True) as cluster:
        figures.append(proofs.failed_over(cluster))
    return "; ".join(figures)
