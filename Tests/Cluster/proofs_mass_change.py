"""One replica changes thousands of tenants, and the event loops of another one stay free."""

from __future__ import annotations

import collections
import contextlib
import http.client
import itertools
import json
import multiprocessing
import sys
import threading
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

import proofs_directory
from cluster import SEEN_S, At, Cluster, Shared, within
from servers import ROOT

sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, Gateway, LabError, Load  # noqa: E402

FORK = multiprocessing.get_context("fork")
WRITERS = 8
# Of `/readyz` and of requests on the data listener, a second; of `/metrics`.
RATE, METRICS_RATE = 100, 4
# Promised for the p99 of an answer, and for the longest stall of an event loop.
PROMISED_S = 0.020
# The work that a loop may have in any such time. A stall takes all of it; the kernel counts by ticks of up to 4 ms.
WORK_S = 0.015
# The processor may be another's for so long.
SCHEDULING_S = 0.1
SAMPLE_S = 0.002
# NIO's name for the thread of an event loop.
LOOP_THREAD = "NIO-ELT-"
_numbers = itertools.count(1)


def mass_change(cluster: Cluster, tenants: int) -> str:
    """Replica 2 makes tenants and replaces their credentials one by one, then all change at once; replica 1 is watched."""
    watched, busy = cluster.gateways[:2]
    prefix = f"mass-{next(_numbers)}"
    names = [f"{prefix}-{number}" for number in range(tenants)]
    account = {"service_account": cluster.fcm.account(prefix), "endpoint": cluster.fcm.url}
    credentials = [(f"tenants/{name}/credentials/v1", account) for name in names]
    put(busy, [(f"tenants/{name}", {"display_name": name, "upstream": "v1"}) for name in names])
    put(busy, credentials)
    marker = cluster.tenant()
    cluster.postgresql.query(f"CREATE TABLE first_credentials AS SELECT * FROM credentials WHERE tenant LIKE '{prefix}-%'")
    with watching(watched) as quiet:
        time.sleep(5)

    with watching(watched) as one_by_one:
        writers = threading.Thread(target=put, args=(busy, credentials), daemon=True)
        writers.start()
        revoked = proofs_directory.revocation(cluster, rounds=5)
        writers.join(LIMIT_S + tenants)
        assert not writers.is_alive(), "the changes did not end"
        seen_after = wait_until_seen(cluster, marker)
    changed = cluster.postgresql.value(f"SELECT count(*) FROM credentials WHERE tenant LIKE '{prefix}-%' AND version = 2")
    assert int(changed) == tenants, f"{changed} of {tenants} credentials were replaced"

    # A replica that has missed them all opens all at once: the first credentials again, which are as genuine.
    with watching(watched) as at_once:
        cluster.postgresql.query(
            "UPDATE credentials SET version = earlier.version, wrapped_key = earlier.wrapped_key, sealed = earlier.sealed, "
            "created_at = earlier.created_at FROM first_credentials AS earlier "
            "WHERE credentials.tenant = earlier.tenant AND credentials.kind = earlier.kind; "
            "UPDATE directory_version SET version = version + 1; "
            "UPDATE directory_changes SET version = (SELECT version FROM directory_version) "
            f"WHERE tenant LIKE '{prefix}-%'; SELECT gateway_notify()"
        )
        seen_at_once_after = wait_until_seen(cluster, marker)
    cluster.postgresql.query("DROP TABLE first_credentials")
    assert watched.metric("fcmgw_directory_refused_rows") == 0, "credentials of the test do not open"
    for what, found in (("while idle", quiet), ("one by one", one_by_one), ("at once", at_once)):
        found.check(what)
    return (
        f"{tenants:,} tenants changed one by one, the last one seen after {seen_after:.1f} s: {one_by_one}; all at once, "
        f"seen after {seen_at_once_after:.1f} s: {at_once}; idle: {quiet}; meanwhile {revoked}"
    )


def put(gateway: Gateway, changes: list[tuple[str, dict]]) -> None:
    """Makes changes through a replica's admin listener, over a few connections that stay open."""
    headers = {"Authorization": f"Bearer {gateway.admin_token}", "Content-Type": "application/json"}
    failures: list[str] = []

    def write(part: list[tuple[str, dict]]) -> None:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", gateway.admin_port, timeout=LIMIT_S)) as connection:
            for path, body in part:
                connection.request("PUT", f"/admin/v1/{path}", json.dumps(body), headers)
                answer = connection.getresponse()
                content = answer.read()
                if answer.status not in (200, 201, 204):
                    failures.append(f"PUT {path}: {answer.status} {content[:200]!r}")
                    return

    threads = [threading.Thread(target=write, args=(changes[start::WRITERS],), daemon=True) for start in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S + len(changes))
    if failures:
        raise LabError(failures[0])


def wait_until_seen(cluster: Cluster, marker: Shared) -> float:
    """Waits until replica 1 shows what replica 2 has changed until now; how long that took."""
    body = {"name": "marker", "scopes": ["tokens:read"]}
    made = cluster.gateways[1].admin("POST", f"tenants/{marker.name}/keys", body)
    at = At(cluster.gateways[0], marker.name, made["key"])
    return within("the last change to be seen", SEEN_S, at.knows, cluster.lab)


# Watching a replica


class Watch:
    """What was seen of a replica's event loops, from a process of its own."""

    def __init__(self) -> None:
        self.p99: dict[str, float] = {}
        self.slowest: dict[str, float] = {}
        self.statuses: set[int] = set()
        self.most_work = 0.0
        """The most processor time that the thread of an event loop took within `PROMISED_S`, in seconds."""

    def check(self, what: str) -> None:
        assert self.p99, f"{what}: nothing was seen"
        # There is no such route on the data listener.
        assert self.statuses == {200, 404}, f"{what}: answers {self.statuses}"
        for name in ("/readyz", "/metrics", "data"):
            assert self.p99[name] <= PROMISED_S, f"{what}: p99 of {name} {self.p99[name] * 1000:.1f} ms"
            assert self.slowest[name] <= PROMISED_S + SCHEDULING_S, f"{what}: {name} took {self.slowest[name] * 1000:.0f} ms"
        assert self.most_work <= WORK_S, f"{what}: an event loop worked for {self.most_work * 1000:.1f} of 20 ms"

    def __str__(self) -> str:
        times = ", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in self.p99.items())
        return f"p99 {times}, an event loop worked for at most {self.most_work * 1000:.1f} of any 20 ms"


@contextlib.contextmanager
def watching(gateway: Gateway) -> Iterator[Watch]:
    """Asks a replica all the time and looks at its threads; the figures are there once the block has ended.

    In a process of its own: here it would take its time from what is measured.
    """
    watch = Watch()
    here, there = FORK.Pipe()
    process = FORK.Process(target=watch_until_told, args=(gateway, there), daemon=True)
    process.start()
    try:
        assert here.poll(LIMIT_S) and here.recv() == "begun", "the watch did not begin"
        yield watch
        here.send("end")
        assert here.poll(LIMIT_S), "the watch did not end"
        watch.__dict__.update(here.recv())
    finally:
        process.join(10)
        process.kill()


def watch_until_told(gateway: Gateway, pipe: Connection) -> None:
    found, loops = Watch(), Loops(gateway.pid)
    loads = {
        "/readyz": Load(f"{gateway.admin_url}/readyz", {}, b"", method="GET", concurrency=2, rate=RATE),
        "/metrics": Load(f"{gateway.admin_url}/metrics", {}, b"", method="GET", concurrency=1, rate=METRICS_RATE),
        # No route: what each event loop of the data listener answers by itself.
        "data": Load(f"{gateway.url}/no-such-route", {}, b"", method="GET", concurrency=4, rate=RATE),
    }
    for load in loads.values():
        load.start()
    pipe.send("begun")
    while not pipe.poll(0):
        loops.sample()
        time.sleep(SAMPLE_S)
    for name, load in loads.items():
        load.stop()
        found.p99[name] = load.percentile(0.99)
        found.slowest[name] = load.percentile(1)
        found.statuses |= set(load.statuses)
    found.most_work = loops.most_work
    pipe.send(found.__dict__)


class Loops:
    """The processor time of the threads of event loops, as the kernel counts it for each.

    A loop that decrypts or computes shows here. A loop that waits for something shows in the answers alone.
    """

    def __init__(self, pid: int) -> None:
        self.most_work = 0.0
        self._files = [
            task / "schedstat" for task in Path(f"/proc/{pid}/task").iterdir()
            if (task / "comm").read_text().startswith(LOOP_THREAD)
        ]
        if not self._files:
            raise LabError(f"process {pid} has no thread {LOOP_THREAD}…")
        # For each thread: the time without that in which it waited for a processor, and its processor time. The first
        # sample is as old as a stall, or older.
        self._samples: list[collections.deque[tuple[float, float]]] = [collections.deque() for _ in self._files]

    def sample(self) -> None:
        for file, samples in zip(self._files, self._samples):
            now = time.monotonic()
            work, waited, _ = file.read_text().split()
            samples.append((now - int(waited) / 1e9, int(work) / 1e9))
            (begin, before), (end, after) = samples[0], samples[-1]
            while len(samples) > 1 and end - samples[1][0] >= PROMISED_S:
                samples.popleft()
                begin, before = samples[0]
            if end - begin >= PROMISED_S:
                # A sample that came late covers more time.
                self.most_work = max(self.most_work, min(1, (after - before) / (end - begin)) * PROMISED_S)
