"""A batch is sent to each of its recipients at most once, whatever happens to the replicas that send it."""

from __future__ import annotations

import collections
import itertools
import json
import signal
import sys
import time
from collections.abc import Callable

from cluster import NAMES, SIZE, Cluster, within
from proofs_idempotency import quiet
from proxy import CommitFault
from servers import ROOT

sys.path[:0] = [str(ROOT / "Tests/Faults")]

from batch import UNKNOWN_PER_SLICE, Arrivals, Batch, names  # noqa: E402
from lab import LIMIT_S, UNLIMITED  # noqa: E402

# Several slices of each protocol.
COUNT = 1_200
POINTS = ("slice claimed", "key stored", "calls at FCM", "response stored", "slice recorded")
CASES = tuple(itertools.product(POINTS, ("v1", "legacy")))
QUERIES = {
    "slice claimed": "SELECT count(*) FROM batch_chunks WHERE batch = '{0}' AND state = 1",
    "key stored": "SELECT count(*) FROM idempotency_records WHERE tenant = '{1}' AND is_finished = 0",
    "slice recorded": "SELECT accepted + rejected + unknown FROM batches WHERE id = '{0}'",
}
USED_UP = {
    "error": {
        "code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota", "details": [
            {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED", "domain": "googleapis.com"},
        ],
    },
}
_numbers = itertools.count(1)


class Case:
    """A batch at three replicas."""

    def __init__(self, cluster: Cluster, api: str, count: int = COUNT, limits: dict = UNLIMITED) -> None:
        self.cluster = cluster
        self.tenant = cluster.tenant(api=api, limits=limits)
        cluster.fcm.forget()
        cluster.fcm.control("POST", "settings", {"latency_ms": 0})
        self.arrivals = Arrivals(cluster.fcm)
        self.held: list[CommitFault] = []
        self.batch = Batch(self.tenant.at(0), names(f"batch-{next(_numbers)}", count))

    def at(self, place: int) -> Batch:
        """The same batch, asked at another replica."""
        self.batch.tenant = self.tenant.at(place)
        return self.batch

    def has_come(self, point: str) -> bool:
        if point == "response stored":
            return any(fault.hit for fault in self.held)
        if point == "calls at FCM":
            return self.cluster.fcm.hits() > 0
        return self.cluster.postgresql.value(QUERIES[point].format(self.batch.id, self.tenant.name)) != "0"

    def owner(self) -> int | None:
        """A replica that holds a slice."""
        for place, fault in enumerate(self.held):
            if fault.hit:
                return place
        rows = self.cluster.postgresql.query(
            f"SELECT owner FROM batch_chunks WHERE batch = '{self.batch.id}' AND state = 1 LIMIT 1"
        )
        return replicas(self.cluster).get(rows[0][0]) if rows else None

    def finish(self, most_unknown: int, seconds: float = LIMIT_S) -> dict:
        self.batch.wait_finished(self.cluster.lab, self.arrivals, seconds)
        quiet(self.cluster)
        # A machine that keeps calls waiting for longer than they may take makes more of them unknown.
        return self.batch.judge(self.arrivals, len(self.batch.tokens) if self.cluster.met_timeouts else most_unknown)


def replicas(cluster: Cluster) -> dict[str, int]:
    """The number of each replica, by the name under which it holds slices."""
    found = {}
    for place, gateway in enumerate(cluster.gateways):
        for line in gateway.log_lines():
            if "replica" in line:
                found[line["replica"]] = place
    return found


def interrupted(cluster: Cluster, deed: str, count: int = len(CASES), recipients: int = COUNT) -> str:
    """kill -9 or SIGSTOP of a replica that holds slices, at each step; the others send the rest. Then it returns."""
    seen: collections.Counter[str] = collections.Counter()
    for point, api in itertools.islice(itertools.cycle(CASES), count):
        case = Case(cluster, api, recipients)
        cluster.fcm.control("POST", "settings", {"latency_ms": 200})
        if point == "response stored":
            # That moment is short: the record of the round waits for its COMMIT.
            case.held = [
                proxy.lose(CommitFault("request", "hold", r"update\s+batch_contents")) for proxy in cluster.proxies
            ]
        case.batch.start()
        cluster.lab.wait_until(point, lambda case=case, point=point: case.has_come(point), pause=0)
        place = case.owner()
        seen["owners"] += place is not None
        # All of it may have been recorded meanwhile.
        place = place or 0
        case.at((place + 1) % SIZE)
        if deed == "kill":
            cluster.kill(place)
        else:
            cluster.gateways[place].signal(signal.SIGSTOP)
        for proxy in cluster.proxies:
            proxy.heal()
        # Calls that a busy machine keeps waiting are repeated after ever longer times.
        case.batch.wait_finished(cluster.lab, case.arrivals, 2 * LIMIT_S)
        if deed == "kill":
            cluster.start(place)
        else:
            cluster.gateways[place].signal(signal.SIGCONT)
        shown = case.finish(SIZE * 4 * UNKNOWN_PER_SLICE)
        seen.update({"recipients": recipients, "unknown": shown["unknown"], "played": 1})
    assert seen["owners"] > count / 2, f"slices were held in {seen['owners']} of {count} cases only"
    return (
        f"{seen['played']} × {deed}, {seen['owners']} of a replica with slices, {seen['recipients']:,} recipients, none sent "
        f"to twice: {seen['unknown']} unknown"
    )


def paused_before_reservation(cluster: Cluster) -> str:
    """A replica sleeps between its claim and its reservation, until another one has recorded the slice."""
    case = Case(cluster, "v1", count=50)
    faults = [
        proxy.lose(CommitFault("answer", "hold", r"update\s+batch_chunks\s+set\s+state\s*=\s*1"))
        for proxy in cluster.proxies
    ]
    case.batch.start()
    place: int | None = None

    def is_claimed() -> bool:
        nonlocal place
        place = case.owner()
        return place is not None and faults[place].hit > 0

    cluster.lab.wait_until("a claim whose answer waits", is_claimed, pause=0)
    assert place is not None
    with cluster.paused(place):
        for number, proxy in enumerate(cluster.proxies):
            if number != place:
                proxy.heal()
        case.at((place + 1) % SIZE)
        case.batch.wait_finished(cluster.lab, case.arrivals)
        assert all(case.arrivals.counts[token] == 1 for token in case.batch.tokens)
        cluster.proxies[place].heal()
    shown = case.finish(0)
    assert shown["accepted"] == 50, shown
    return "a replica that slept between claim and reservation sent nothing after another one had recorded the slice"


LOST = (
    ("answer", r"insert\s+into\s+batch_parts"), ("answer", r"update\s+batch_chunks\s+set\s+state\s*=\s*1"),
    ("answer", r"insert\s+into\s+idempotency_records"), ("request", r"insert\s+into\s+idempotency_records"),
    ("answer", r"update\s+idempotency_records"), ("request", r"update\s+idempotency_records"),
    ("answer", r"update\s+batch_contents"), ("request", r"update\s+batch_contents"),
)


def lost_commits(cluster: Cluster, lost: tuple[tuple[str, str], ...] = LOST) -> str:
    """COMMIT's answer, or the COMMIT itself, is lost: of a part, a claim, a reservation, a mark, a response, a record."""
    seen: collections.Counter[str] = collections.Counter()
    for point, statements in lost:
        faults = [proxy.lose(CommitFault(point, "drop", statements)) for proxy in cluster.proxies]
        try:
            case = Case(cluster, "v1", count=120)
            case.batch.start()
            case.batch.wait_finished(cluster.lab, case.arrivals)
        finally:
            for proxy in cluster.proxies:
                proxy.heal()
        shown = case.finish(UNKNOWN_PER_SLICE)
        seen.update({"lost": sum(fault.hit for fault in faults), "unknown": shown["unknown"], "played": 1})
        assert any(fault.hit for fault in faults), f"no COMMIT was met: {statements}"
    return f"{seen['lost']} COMMITs lost in {seen['played']} batches: none sent to twice, {seen['unknown']} unknown"


def quota(cluster: Cluster, seconds: float = 3, recipients: int = COUNT) -> str:
    """FCM's 429 for the project pauses all replicas at once, live sends included, and costs no recipient."""
    case = Case(cluster, "v1", recipients)
    live = [case.tenant.at(place) for place in range(SIZE)]
    # Each replica has its access token then.
    assert all(one.send().status == 200 for one in live)
    cluster.fcm.fault("status", times=1_000_000, status=429, body=json.dumps(USED_UP),
                      headers={"Retry-After": "60", "Content-Type": "application/json"})
    case.batch.start()
    cluster.lab.wait_until("a pause", lambda: paused_projects(cluster) > 0)
    within("the pause of all replicas", 3, lambda: all(one.send().code == "tenant_rate_exceeded" for one in live), cluster.lab)
    quiet(cluster)
    before, begun = cluster.fcm.hits(), time.monotonic()
    while time.monotonic() - begun < seconds:
        time.sleep(min(5, seconds))
        case.arrivals.read()
    calls = cluster.fcm.hits() - before
    # After each pause some calls find out that the quota is still used up.
    assert calls <= (seconds // 60) * 4 * SIZE * 200, f"{calls} calls in {seconds:.0f} s of pause"
    shown = case.batch.show()
    # On a busy machine FCM's answer may come after the call's timeout.
    assert shown["accepted"] == shown["rejected"] == 0 and shown["state"] == "running", shown
    cluster.fcm.heal()
    if seconds < 60:
        shown = case.batch.change("cancel")
        within("the end of slices", LIMIT_S, lambda: case.batch.show()["waiting"] == 0, cluster.lab)
        return f"a 429 paused {SIZE} replicas; {calls} calls in {seconds:.0f} s after it"
    cluster.fcm.forget()
    case.batch.wait_finished(cluster.lab, case.arrivals, 900)
    shown = case.batch.show()
    assert shown["accepted"] + shown["unknown"] == recipients, shown
    return f"429 for {seconds:.0f} s: {calls} calls meanwhile, then {shown['accepted']} of {recipients} accepted"


def paused_projects(cluster: Cluster) -> int:
    return int(cluster.postgresql.value("SELECT count(*) FROM project_pauses"))


def outage(cluster: Cluster, name: str, fail: Callable[[], None], restore: Callable[[], None], seconds: float = 4,
           count: int = COUNT) -> str:
    """Something that replicas need is away amid a batch; the batch is finished when it is back."""
    case = Case(cluster, "v1", count)
    cluster.fcm.control("POST", "settings", {"latency_ms": 100})
    case.batch.start()
    cluster.lab.wait_until("the first calls", lambda: cluster.fcm.hits() > 0, pause=0)
    fail()
    time.sleep(seconds)
    restore()
    shown = case.finish(SIZE * 4 * UNKNOWN_PER_SLICE, LIMIT_S + seconds)
    return f"{name} for {seconds:.0f} s: {shown['accepted']} of {count} accepted, {shown['unknown']} unknown, none sent to twice"


def rolling(cluster: Cluster, count: int = 20_000) -> str:
    """Each replica is stopped and started during a batch, which loses nothing by it."""
    # Slow enough to be there while all are restarted, and for the journal of FCM.
    case = Case(cluster, "v1", count, {**UNLIMITED, "tenant": [{"rate": 1_500, "per_s": 1, "burst": 1_500}]})
    case.batch.start()
    for place in range(SIZE):
        case.at((place + 1) % SIZE)
        status = cluster.gateways[place].stop()
        assert status == 0, f"{NAMES[place]} exited {status}"
        cluster.start(place)
        case.arrivals.read()
    assert case.batch.show()["state"] == "running", "the batch ended before the last restart"
    cluster.wait_until_up()
    shown = case.finish(0, LIMIT_S + count / 500)
    return f"{SIZE} replicas restarted in turn during a batch of {count:,}: {shown['accepted']:,} accepted, 0 unknown"


def failed_over(cluster: Cluster) -> str:
    """A standby takes over amid a batch, which waits for an operator then."""
    # Slow enough that most is not even claimed when the standby takes over, however busy the machine.
    case = Case(cluster, "v1", COUNT, {**UNLIMITED, "tenant": [{"rate": 200, "per_s": 1, "burst": 200}]})
    cluster.fcm.control("POST", "settings", {"latency_ms": 200})
    case.batch.start()
    cluster.lab.wait_until("the first calls", lambda: cluster.fcm.hits() > 0, pause=0)
    seconds = cluster.fail_over()
    cluster.lab.wait_until(
        "the pause", lambda: case.batch.show().get("state") not in (None, "queued", "running"), pause=0.2
    )
    shown = case.batch.show()
    assert (shown["state"], shown["reason"]) == ("paused", "failover"), shown
    case.batch.change("resume")
    shown = case.finish(SIZE * 4 * UNKNOWN_PER_SLICE)
    return (
        f"a failover of {seconds:.1f} s paused the batch; after a resume {shown['accepted']} of {COUNT} accepted, "
        f"{shown['unknown']} unknown, none sent to twice"
    )
