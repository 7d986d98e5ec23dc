"""The release before and this one, side by side on one store."""

from __future__ import annotations

import sys

from lab import ROOT, Lab, NotPlayed

sys.path.insert(0, str(ROOT / "Tests/Cluster"))

import proofs_releases as proofs  # noqa: E402
from cluster import SIZE, Cluster  # noqa: E402


FAULT = "Two releases side by side"
INJECTED = (
    "three replicas of the release before under load; `store migrate` of this one, each replica replaced by this release, then "
    "by the one before again, then one of them by this one; owners killed, keys revoked, groups changed in the mixed fleet"
)
EXPECTED = (
    "no request fails, each message is sent once and recorded once; what one release writes the other one reads; verify 0"
)


def run(lab: Lab) -> str:
    if lab.before is None:
        raise NotPlayed("no program of the release before was given (`--before PATH`)")
    with Cluster(lab, programs=(lab.before,) * SIZE) as cluster:
        return proofs.side_by_side(cluster, lab.program)
