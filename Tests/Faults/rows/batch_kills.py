"""The gateway is killed again and again while it sends a large batch."""

from __future__ import annotations

import collections
import contextlib
import itertools
import sqlite3

from batch import UNKNOWN_PER_SLICE, Arrivals, Batch, names
from lab import LIMIT_S, UNLIMITED, Emulator, Gateway, Lab, v1_upstream

FAULT = "kill -9 amid a batch of 100,000"
INJECTED = (
    "200 × SIGKILL: when a slice is claimed, when its key is in the store, when its calls are at FCM, when FCM has "
    "answered, when its response is stored, and when it is recorded. Then the rest is sent."
)
EXPECTED = (
    "No device gets a message twice. The outcomes add up to the total, no recipient is reported accepted without a send, "
    "and each kill leaves at most 200 unknown for each slice in flight. The audit verifies."
)

KILLS = 200
TOTAL = 100_000
# Of one tenant's slices, four full ones or more are in flight only at high rates.
SLICES = 4
STEPS = ("slice claimed", "key stored", "calls at FCM", "FCM answered", "response stored", "slice recorded")
STORED = {
    "slice claimed": "SELECT 1 FROM batch_chunks WHERE state = 1",
    "key stored": "SELECT 1 FROM idempotency_records WHERE route = 'batch' AND NOT is_finished",
    "response stored": "SELECT 1 FROM idempotency_records WHERE route = 'batch' AND is_finished",
}


def run(lab: Lab) -> str:
    fcm = lab.emulator(tls=True)
    gateway = lab.gateway({"upstream": v1_upstream(fcm)})
    # A small rate keeps few slices in flight, so that a kill leaves most of the batch for the next one.
    limits = {**UNLIMITED, "tenant": [{"rate": 5_000, "per_s": 1, "burst": 5_000}]}
    tenant = gateway.tenant("shop", fcm, api="v1", limits=limits)
    batch = Batch(tenant, names("batch", TOTAL)).start()
    arrivals = Arrivals(fcm)
    kills: collections.Counter[str] = collections.Counter()
    fcm.control("POST", "settings", {"latency_ms": 60})
    for step in itertools.islice(itertools.cycle(STEPS), KILLS):
        if not kill_at(step, lab, gateway, fcm):
            break
        kills[step] += 1
        arrivals.read()
        assert gateway.verify() in (0, 2)
        gateway.start()
    fcm.control("POST", "settings", {"latency_ms": 0})

    batch.wait_finished(lab, arrivals)
    assert gateway.verify() == 0, gateway.verification().stdout
    after = batch.judge(arrivals, SLICES * UNKNOWN_PER_SLICE * sum(kills.values()))
    assert sum(kills.values()) == KILLS, kills
    return (
        f"{KILLS} kills at {len(kills)} steps over {TOTAL:,} recipients: 0 sent to twice, {after['unknown']} unknown, "
        f"{after['accepted']} accepted; every accepted one was sent to"
    )


def kill_at(step: str, lab: Lab, gateway: Gateway, fcm: Emulator) -> bool:
    """Kills the gateway at a step of a slice. Returns false if nothing is left to send."""
    before = progress(gateway)
    if before == TOTAL:
        return False
    first = fcm.control("GET", "journal?limit=1")["entries"]
    newest = first[0]["id"] if first else 0

    def is_there() -> bool:
        if step in STORED:
            return stored(gateway, STORED[step])
        if step == "slice recorded":
            return progress(gateway) > before
        entries = fcm.control("GET", "journal?limit=50")["entries"]
        return any(entry["id"] > newest and (step == "calls at FCM" or "decision" in entry) for entry in entries)

    lab.wait_until(step, is_there, LIMIT_S, pause=0)
    gateway.kill()
    return True


def stored(gateway: Gateway, query: str) -> bool:
    uri = f"file:{gateway.data_dir}/gateway.sqlite?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=LIMIT_S)) as store:
        return store.execute(f"{query} LIMIT 1").fetchone() is not None


def progress(gateway: Gateway) -> int:
    uri = f"file:{gateway.data_dir}/gateway.sqlite?mode=ro"
    with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=LIMIT_S)) as store:
        return store.execute("SELECT accepted + rejected + unknown FROM batches").fetchone()[0]
