"""The release before and this one, side by side on one store."""

from __future__ import annotations

import sys

from lab import ROOT, Lab, NotPlayed

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_releases as proofs  # noqa: E402
from cluster import SIZE, Cluster  # noqa: E402


FAULT = "Two releases side by side"
INJECTED = (
    "Three replicas of the previous release under load. `store migrate` of this release; each replica is replaced by "
    "this release, then by the previous one again, then one of them by this one. In the mixed fleet owners are "
    "killed, keys revoked and groups changed."
)
EXPECTED = (
    "No request fails, and each message is sent once and recorded once. Each release reads what the other one writes. "
    "`audit verify` exits with 0."
)


def run(lab: Lab) -> str:
    if lab.before is None:
        raise NotPlayed("no program of the release before was given (`--before PATH`)")
    with Cluster(lab, programs=(lab.before,) * SIZE) as cluster:
        return proofs.side_by_side(cluster, lab.program)
