"""Somebody reads a long audit all the time, with as many connections as he likes."""

from __future__ import annotations

import contextlib
import itertools
import multiprocessing
import os
import sqlite3
import threading
import time
from collections.abc import Iterator

from lab import Gateway, Lab, Load, Tenant, call

FAULT = "Readers page through a long audit without end"
INJECTED = (
    "1,000,000 records. 16 connections of one tenant look, page after page, for a target that no record has, while "
    "another tenant sends with `Idempotency-Key` and an operator revokes keys. Then three readers of three tenants."
)
EXPECTED = (
    "The other tenant's sends take at most three times as long at p99. A revocation is in force within 200 ms. The "
    "write-ahead log stays bounded."
)

FORK = multiprocessing.get_context("fork")
# Fewer for a program built for tests.
RECORDS = int(os.environ.get("AUDIT_READERS_RECORDS", "1000000"))
READERS = 16
SECONDS = 10.0
RATE = 50
REVOCATIONS = 5
# Below this nobody notices, and three times next to nothing is next to nothing.
NOISE_S = 0.010
LOG_MIB = 256


def run(lab: Lab) -> str:
    fcm = lab.emulator()
    gateway = lab.gateway()
    reader, other = gateway.tenant("reader", fcm), gateway.tenant("other", fcm)
    watchers = [reader, gateway.tenant("second", fcm), gateway.tenant("third", fcm)]
    for each in watchers:
        assert each.send().status == 200
    assert gateway.stop() == 0
    fill(gateway, [each.name for each in watchers])
    gateway.start()
    sends(other, 1.0)

    quiet = sends(other, SECONDS).percentile(0.99)
    with reading([reader] * READERS) as pages:
        busy = sends(other, SECONDS).percentile(0.99)
        slowest = max(revocation(gateway, other) for _ in range(REVOCATIONS))
    assert pages.answered.value, "no page was answered"
    assert not pages.others.value, f"{pages.others.value} answers were neither 200 nor 503"
    assert busy <= max(3 * quiet, NOISE_S), f"p99 {busy * 1000:.1f} ms with readers, {quiet * 1000:.1f} ms without"
    assert slowest <= 0.2, f"a revocation was in force after {slowest * 1000:.0f} ms"

    log = gateway.data_dir / "gateway.sqlite-wal"
    largest = 0
    with reading(watchers):
        load = other.load(concurrency=16).start()
        end = time.monotonic() + 3 * SECONDS
        while time.monotonic() < end:
            largest = max(largest, log.stat().st_size)
            time.sleep(0.05)
        load.stop()
    assert set(load.statuses) == {200}, (load.statuses, load.codes)
    assert largest < LOG_MIB * 1024 * 1024, f"the log had {largest / 1024 / 1024:.0f} MiB"
    assert gateway.metric("fcmgw_store_wal_bytes") <= largest + 4 * 1024 * 1024
    assert gateway.stop() == 0
    return (
        f"{RECORDS:,} records; p99 of a send with a key {quiet * 1000:.1f} ms, {busy * 1000:.1f} ms beside {READERS} "
        f"readers that got {pages.answered.value} pages; a revocation in force after at most {slowest * 1000:.0f} ms; with three "
        f"readers and {len(load.answers)} sends the log had at most {largest / 1024 / 1024:.0f} MiB"
    )


def fill(gateway: Gateway, tenants: list[str]) -> None:
    """Repeats a record of each tenant in a chain before all others, whose places are not the genuine record's.

    `audit verify` would say so; pages do not check chains, and a million sends would take a quarter of an hour.
    """
    with contextlib.closing(sqlite3.connect(gateway.data_dir / "gateway.sqlite")) as store, store:
        store.execute("CREATE TEMP TABLE model AS SELECT * FROM audit_records WHERE 0")
        for tenant in tenants:
            store.execute(
                "INSERT INTO model SELECT * FROM audit_records WHERE tenant = ? AND instr(body, ?) LIMIT 1",
                [tenant, b"message.send"],
            )
        count = store.execute("SELECT count(*) FROM model").fetchone()[0]
        assert count == len(tenants), f"{count} models"
        store.execute(
            """
            WITH RECURSIVE places (place) AS (SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < ?)
            INSERT INTO audit_records (writer, sequence, time, tenant, tenant_uid, body, hash)
            SELECT 0, place, time, tenant, tenant_uid, body, hash FROM places JOIN model ON model.rowid = 1 + place % ?
            """,
            [RECORDS, count],
        )


def sends(tenant: Tenant, seconds: float) -> Load:
    """Sends with keys at an even pace; all have to succeed."""
    numbers = itertools.count()
    prefix = f"k{time.monotonic_ns()}"
    load = tenant.load(
        concurrency=8, rate=RATE, seconds=seconds,
        on_number=lambda _: {"Idempotency-Key": f"{prefix}-{next(numbers)}"},
    ).run()
    assert set(load.statuses) == {200}, (load.statuses, load.codes)
    return load


def revocation(gateway: Gateway, tenant: Tenant) -> float:
    """Seconds from the request to revoke a key to the first 401 that it gets."""
    made = gateway.admin("POST", f"tenants/{tenant.name}/keys", {"name": "short", "scopes": ["messages:send"]})
    headers = {"Authorization": f"Bearer {made['key']}", "Content-Type": "application/json"}
    start = time.monotonic()
    gateway.admin("DELETE", f"tenants/{tenant.name}/keys/{made['id']}")
    while call("POST", tenant.url, headers, tenant.message()).status != 401:
        assert time.monotonic() < start + 60, "the key was not revoked"
    return time.monotonic() - start


class Pages:
    """What readers were answered; shared with their process."""

    def __init__(self) -> None:
        self.answered, self.overloaded, self.others = (FORK.Value("i", 0) for _ in range(3))
        self.stop = FORK.Event()

    def count(self, status: int) -> None:
        counter = {200: self.answered, 503: self.overloaded}.get(status, self.others)
        with counter.get_lock():
            counter.value += 1


@contextlib.contextmanager
def reading(tenants: list[Tenant]) -> Iterator[Pages]:
    """Reads page after page meanwhile, one connection for each of the tenants, and waits as it is told to.

    In a process of its own: here it would take its time from what is measured.
    """
    pages = Pages()
    process = FORK.Process(target=read_all, args=(tenants, pages), daemon=True)
    process.start()
    try:
        yield pages
    finally:
        pages.stop.set()
        process.join(60)
        process.kill()


def read_all(tenants: list[Tenant], pages: Pages) -> None:
    threads = [threading.Thread(target=read, args=(tenant, pages), daemon=True) for tenant in tenants]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)


def read(tenant: Tenant, pages: Pages) -> None:
    url = f"{tenant.gateway.url}/v1/tenants/{tenant.name}/audit?target=nobody&limit=500"
    cursor = ""
    while not pages.stop.is_set():
        answer = call("GET", url + cursor, tenant.headers)
        pages.count(answer.status)
        if answer.status == 503:
            pages.stop.wait(float(answer.headers.get("retry-after", 1)))
        following = answer.json().get("next_cursor")
        cursor = f"&cursor={following}" if following else ""
