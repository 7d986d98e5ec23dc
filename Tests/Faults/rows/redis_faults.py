"""Redis dies, hangs, comes for moments, forgets, is full, refuses writes, and is failed over."""

from __future__ import annotations

import sys

from lab import ROOT, Lab

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_limits as proofs  # noqa: E402
from cluster import Cluster  # noqa: E402


FAULT = "Redis is killed, hangs, flaps, is emptied, is full, is read-only, fails over"
INJECTED = (
    "SIGKILL, SIGSTOP once and repeatedly, `SCRIPT FLUSH`, `maxmemory`, READONLY, and Sentinel's failover, each under "
    "16 callers of one device."
)
EXPECTED = (
    "Callers get only 200 and 429. At most burst + rate × time is admitted; an outage adds max(burst, N), and at most "
    "one burst that Redis refilled or forgot meanwhile. Redis that answers for moments ends no outage. p99 grows by "
    "less than 30 ms. Limits are shared again within 2 s."
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
