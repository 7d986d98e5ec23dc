"""Something else keeps the store from being written for longer than the audit's queue lasts."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from lab import Gateway, Lab

FAULT = "The store can't be written"
INJECTED = (
    "Another process holds an exclusive lock on the database while messages are sent, with a queue of 500 records. "
    "Once the gateway is killed (SIGKILL) meanwhile."
)
EXPECTED = "Sends succeed and changes are refused. Afterwards the store has every record once, also after the kill."

QUEUE = 500
SENT = 4_000


def run(lab: Lab) -> str:
    fcm = lab.emulator()
    gateway = lab.gateway({"audit": {"queueRecords": QUEUE}})
    tenant = gateway.tenant("shop", fcm)
    store = gateway.data_dir / "gateway.sqlite"
    assert tenant.send().status == 200

    with locked(store):
        load = tenant.load(concurrency=16, count=SENT).run()
        assert load.statuses == {200: SENT}, (load.statuses, load.codes)
        slowest = max(answer.seconds for answer in load.answers)
        refused = gateway.try_admin("PUT", "tenants/late", {"display_name": "Late"})
        assert (refused.status, refused.code) == (503, "audit_unavailable"), refused
        lab.wait_until("the spool", lambda: spooled(gateway) >= SENT, 30, gateway.process)
        size = gateway.metric("fcmgw_audit_spool_bytes")
        assert size > 0
    recovered = lab.wait_until(
        "the store to have everything", lambda: gateway.metric("fcmgw_audit_spool_bytes") == 0, 60, gateway.process
    )
    assert tenant.send().status == 200
    assert gateway.verify() == 0, gateway.verification().stdout

    with locked(store):
        already = spooled(gateway)
        load = tenant.load(concurrency=16, count=SENT).run()
        assert load.statuses == {200: SENT}, (load.statuses, load.codes)
        lab.wait_until("the spool", lambda: spooled(gateway) >= already + SENT, 30, gateway.process)
        gateway.kill()
    assert gateway.verify() == 2, gateway.verification().stdout
    gateway.start()
    assert gateway.verify() == 0, gateway.verification().stdout
    assert gateway.stop() == 0
    assert gateway.verify() == 0, gateway.verification().stdout

    sent = fcm.hits()
    records, messages = recorded(store)
    assert records == messages == sent, f"{records} records of {messages} messages, {sent} sent"
    return (
        f"{2 * SENT} sends answered 200 while the store was locked, the slowest after {slowest * 1000:.0f} ms; "
        f"{size / 1024:.0f} KiB spooled, in the store {recovered:.1f} s after the lock had gone; killed with as many in the "
        f"spool; {records} records of {sent} messages, `audit verify` 2, then 0"
    )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keeps everybody else from writing."""
    with contextlib.closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as store:
        store.execute("BEGIN EXCLUSIVE")
        yield
        store.execute("ROLLBACK")


def spooled(gateway: Gateway) -> float:
    return gateway.metric('fcmgw_audit_records_total{result="spooled"}')


def recorded(path: Path) -> tuple[int, int]:
    """How many records of sends there are, and of how many messages."""
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        rows = [row[0] for row in store.execute("SELECT body FROM audit_records WHERE instr(body, ?)", [b"message.send"])]
    return len(rows), len(set(rows))
