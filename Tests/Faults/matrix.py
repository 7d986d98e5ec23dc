"""The order of the fault matrix, and its page."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

ORDER = [
    "sudden_death", "batch_kills", "batch_store", "upstream_hang", "upstream_reset", "upstream_storm", "retries_spread",
    "retry_after",
    "upstream_garbage", "oauth_down", "oauth_garbage", "disk_full", "store_locked", "audit_readers", "clock_step", "descriptors",
    "sigterm", "rolling_restart", "bad_reload", "overload", "idle_connections", "slow_peers", "oversized", "smuggling",
    "header_bomb", "json_bombs", "replica_owner", "batch_replicas", "replica_restarts", "replica_cut_off", "replica_sharing",
    "replica_mass_change",
    "postgresql_faults", "redis_faults", "two_releases",
]


@dataclass
class Outcome:
    """The result of one row."""

    name: str
    fault: str
    injected: str
    expected: str
    # Findings, separated by "; ". For a row that was not played, the reason.
    seen: str
    # None if the row was not played.
    held: bool | None
    seconds: float


def page(outcomes: list[Outcome], conditions: str) -> str:
    """The page docs/fault-matrix.md: a heading and a short list for each row."""
    played = [one for one in outcomes if one.held is not None]
    skipped = [f"`{one.name}`" for one in outcomes if one.held is None]
    lost = [f"`{one.name}`" for one in played if not one.held]
    lines = [
        "# Fault matrix",
        "",
        "Written by `make faults`; [Tests/Faults](../Tests/Faults) holds a module for each row. Do not edit.",
        "",
        f"{conditions} {len(played) - len(lost)} of {len(played)} rows held."
        + (f" Not played: {', '.join(skipped)}." if skipped else ""),
        *([f"**Not held: {', '.join(lost)}.**"] if lost else []),
    ]
    for one in played:
        lines += [*_heading(one), "- Seen:", *(f"  - {_sentence(finding)}" for finding in re.split(r";\s", one.seen)),
                  f"- Held: {'yes' if one.held else '**no**'}"]
    for one in outcomes:
        if one.held is None:
            lines += [*_heading(one), f"- Not played: {_sentence(one.seen)}"]
    return "\n".join(lines) + "\n"


def counts(seen: Mapping[str, int]) -> str:
    """Counts of outcomes as a row reports them, the most frequent first: `50 accepted, 3 outcome_unknown`."""
    return ", ".join(f"{count} `{name}`" for name, count in sorted(seen.items(), key=lambda one: (-one[1], one[0])))


def _heading(one: Outcome) -> list[str]:
    return ["", f"## `{one.name}`: {one.fault}", "",
            f"- Injected by: {_sentence(one.injected)}", f"- Expected: {_sentence(one.expected)}"]


def _sentence(text: str) -> str:
    """The text on one line, with a full stop; a word such as `p99` or `v1` keeps its small letter."""
    line = " ".join(text.split()).rstrip(".")
    first = line.split(" ")[0]
    return (line[:1].upper() + line[1:] if first.strip(":,.").isalpha() else line) + "."
