"""The gateway is killed again and again while it sends a large batch."""

from __future__ import annotations

import collections
import contextlib
import itertools
import json
import re
import sqlite3

from lab import LIMIT_S, UNLIMITED, Emulator, Gateway, Lab, Tenant, call, v1_upstream

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
PART = 5_000
# Of one tenant's slices, four full ones or more are in flight only at high rates.
UNKNOWN_PER_SLICE = 200
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
    batch = start(tenant)
    arrivals = Arrivals(fcm)
    kills: collections.Counter[str] = collections.Counter()
    fcm.control("POST", "settings", {"latency_ms": 60})
    for step in itertools.islice(itertools.cycle(STEPS), KILLS):
        if not kill_at(step, lab, gateway, fcm, tenant, batch):
            break
        kills[step] += 1
        arrivals.read()
        assert gateway.verify() in (0, 2)
        gateway.start()
    fcm.control("POST", "settings", {"latency_ms": 0})

    def is_over() -> bool:
        arrivals.read()
        return show(tenant, batch)["state"] == "finished"

    lab.wait_until("the end of the batch", is_over, LIMIT_S, gateway.process, pause=0.5)
    arrivals.read()
    after = show(tenant, batch)
    assert gateway.verify() == 0, gateway.verification().stdout
    twice = [token for token, count in arrivals.counts.items() if count > 1]
    assert not twice, f"{len(twice)} sent to twice, such as {twice[0]}"
    assert after["accepted"] + after["unknown"] + after["rejected"] == TOTAL and after["waiting"] == 0, after
    unknown = set(results(tenant, batch, "unknown"))
    assert len(unknown) == after["unknown"]
    phantom = [token for token in names() if token not in unknown and not arrivals.counts[token]]
    assert not phantom, f"{len(phantom)} accepted and never sent to, such as {phantom[0]}"
    assert after["unknown"] <= 4 * UNKNOWN_PER_SLICE * sum(kills.values()), after
    assert sum(kills.values()) == KILLS, kills
    return (
        f"{KILLS} kills at {len(kills)} steps over {TOTAL:,} recipients: 0 sent to twice, {after['unknown']} unknown, "
        f"{after['accepted']} accepted; every accepted one was sent to"
    )


def names() -> list[str]:
    return [f"batch-{number}-end" for number in range(TOTAL)]


def start(tenant: Tenant) -> str:
    """Uploads the batch in parts and starts it."""
    url = tenant.url.replace("/messages", "/batches")
    answer = call("POST", url, tenant.headers, json.dumps({"message": {"data": {"k": "v"}}, "open": True}))
    assert answer.status == 202, answer
    batch = answer.json()["id"]
    tokens = names()
    for number, place in enumerate(range(0, TOTAL, PART), 1):
        body = json.dumps({"tokens": tokens[place:place + PART]})
        stored = call("PUT", f"{url}/{batch}/parts/{number}", tenant.headers, body)
        assert stored.status == 200, stored
    begun = call("POST", f"{url}/{batch}/start", tenant.headers,
                 json.dumps({"parts": TOTAL // PART, "recipients": TOTAL}))
    assert begun.status == 200, begun
    return batch


def show(tenant: Tenant, batch: str) -> dict:
    answer = call("GET", f"{tenant.url.replace('/messages', '/batches')}/{batch}", tenant.headers)
    assert answer.status == 200, answer
    return answer.json()


def results(tenant: Tenant, batch: str, outcome: str) -> list[str]:
    tokens, cursor = [], ""
    while True:
        url = f"{tenant.url.replace('/messages', '/batches')}/{batch}/results?limit=1000&outcome={outcome}{cursor}"
        page = call("GET", url, tenant.headers).json()
        tokens += [line["token"] for line in page["results"]]
        if not page.get("next_cursor"):
            return tokens
        cursor = f"&cursor={page['next_cursor']}"


def kill_at(step: str, lab: Lab, gateway: Gateway, fcm: Emulator, tenant: Tenant, batch: str) -> bool:
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


class Arrivals:
    """The calls that reached FCM, by token. The journal keeps the last 10,000, so it is read often."""

    def __init__(self, fcm: Emulator) -> None:
        self.fcm = fcm
        self.last = 0
        self.counts: collections.Counter[str] = collections.Counter()

    def read(self) -> None:
        entries = [entry for entry in self.fcm.journal() if entry["id"] > self.last]
        for entry in entries:
            self.counts.update(re.findall(r'"(batch-\d+-end)"', entry["body"]))
        if entries:
            self.last = entries[-1]["id"]
