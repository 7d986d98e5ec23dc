"""The disk of the store runs full, and has room again."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from lab import LIMIT_S, Gateway, Lab, LabError, call

FAULT = "The disk is full"
INJECTED = "A file system of 2 MiB, filled to its last byte while messages are sent."
EXPECTED = (
    "A send that can't be recorded gets 503 and does not reach FCM. `/readyz` reports it to balancers. No record is "
    "partial. With room again, the gateway recovers by itself."
)

SIZE = "2m"
REFUSED = 100


def run(lab: Lab) -> str:
    if os.geteuid() != 0 or not shutil.which("mount"):
        raise LabError("mounting a small file system needs root")
    fcm = lab.emulator()
    gateway = lab.gateway(start=False)
    gateway.data_dir.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=700", "tmpfs", gateway.data_dir], check=True,
                   timeout=LIMIT_S)
    try:
        return play(lab, fcm, gateway)
    finally:
        if gateway.process and gateway.process.poll() is None:
            gateway.kill()
        subprocess.run(["umount", gateway.data_dir], check=True, timeout=LIMIT_S)


def play(lab: Lab, fcm, gateway: Gateway) -> str:
    gateway.start()
    tenant = gateway.tenant("shop", fcm)
    assert tenant.send().status == 200
    ballast = gateway.data_dir / "ballast"
    fill(ballast)

    start = time.monotonic()
    lab.wait_until("the first refusal", lambda: tenant.send().status == 503, 30, gateway.process, pause=0)
    until_refused = time.monotonic() - start
    hits = fcm.hits()
    load = tenant.load(concurrency=8, count=REFUSED).run()
    assert load.statuses == {503: REFUSED}, load.statuses
    assert load.codes == {"audit_unavailable": REFUSED}, load.codes
    assert all(answer.headers.get("retry-after") for answer in load.answers)
    assert fcm.hits() == hits, "something was sent that could not be recorded"
    change = gateway.try_admin("PUT", "tenants/late", {"display_name": "Late"})
    assert change.status == 503, change
    assert gateway.try_admin("GET", "tenants/late").status == 404
    lab.wait_until("the end of readiness", lambda: ready(gateway).status == 503, 10, gateway.process)
    assert b"audit" in ready(gateway).body, ready(gateway).body
    assert call("GET", gateway.admin_url + "/livez").status == 200
    partial(gateway)

    ballast.unlink()
    lab.wait_until("readiness", lambda: ready(gateway).status == 200, 30, gateway.process)
    recovered = lab.wait_until("the recovery", lambda: tenant.send().status == 200, 30, gateway.process)
    assert tenant.load(concurrency=8, count=REFUSED).run().statuses == {200: REFUSED}
    assert gateway.try_admin("PUT", "tenants/late", {"display_name": "Late"}).status < 300
    assert gateway.verify() == 0, gateway.verification().stdout

    # Every message that reached FCM is there once, those of the moment in which the disk ran full as well.
    sent = fcm.hits()
    assert gateway.stop() == 0
    assert gateway.verify() == 0, gateway.verification().stdout
    records = partial(gateway)
    gateway.start()
    accepted = accepted_records(gateway)
    assert accepted == sent, f"{accepted} records of {sent} messages"
    assert gateway.stop() == 0
    assert gateway.verify() == 0
    return (
        f"refused {until_refused:.1f} s after the last byte, {REFUSED + 1} refusals with 503 and none of them sent, "
        f"recovered {recovered:.1f} s after there was room; {accepted} records of {sent} messages, {records} in all"
    )


def ready(gateway: Gateway):
    return call("GET", gateway.admin_url + "/readyz")


def accepted_records(gateway: Gateway) -> int:
    count, cursor = 0, ""
    while True:
        page = gateway.admin("GET", f"audit?limit=500&action=message.send&outcome=accepted{cursor}")
        count += len(page["records"])
        if not page.get("next_cursor"):
            return count
        cursor = f"&cursor={page['next_cursor']}"


def fill(path: Path) -> None:
    """Writes until nothing more fits, in ever smaller parts."""
    with path.open("wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while file.write(b"\0" * size):
                    pass
            except OSError:
                continue


def partial(gateway: Gateway) -> int:
    """Looks for anything half written; returns how many records there are."""
    path = gateway.data_dir / "gateway.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        gaps = store.execute(
            "SELECT writer FROM audit_records GROUP BY writer HAVING count(*) <> max(sequence) OR min(sequence) <> 1"
        ).fetchall()
        assert not gaps, f"writers with gaps: {gaps}"
        return store.execute("SELECT count(*) FROM audit_records").fetchone()[0]
