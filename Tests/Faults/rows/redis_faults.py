"""Redis dies, hangs, comes for moments, forgets, is full, refuses writes, and is failed over."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_limits as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "Redis down, hung, there for moments, emptied, full, read-only, failed over by Sentinel"
INJECTED = (
    "SIGKILL, SIGSTOP once and again and again, `SCRIPT FLUSH`, `maxmemory`, READONLY, and a Sentinel's fail-over, each under 16 "
    "callers of one device"
)
EXPECTED = (
    "nothing but 200 and 429; at most burst + rate × time, and for the outage max(burst, N) and what Redis refilled meanwhile or "
    "forgot, at most a burst; moments end no outage; less than 30 ms more at p99; shared again within 2 s"
)


def run(lab: Lab) -> str:
    with Cluster(lab) as cluster:
        figures = [
            proofs.redis_killed(cluster, 10), proofs.redis_hung(cluster, 10), proofs.redis_forgets_scripts(cluster),
            proofs.redis_full(cluster), proofs.redis_read_only(cluster), proofs.redis_flaps(cluster),
        ]
    with Lab(lab.program, lab.processes.keep) as other, Cluster(other, sentinel=True) as cluster:
        figures.append(proofs.redis_failed_over(cluster))
    return "; ".join(figures)
