"""One key sends once, whichever replica has it, and whatever happens to that replica."""

from __future__ import annotations

import collections
import contextlib
import itertools
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator

from cluster import ATTEMPT_S, LEASE_S, NAMES, NOISE_S, SIZE, TAKEOVER_S, At, Cluster, Shared
from proxy import CommitFault, losing
from servers import ROOT

sys.path[:0] = [str(ROOT / "Tests/Faults"), str(ROOT / "Tests/Faults/rows")]

from lab import LIMIT_S, Answer  # noqa: E402
from matrix import counts  # noqa: E402
from sudden_death import MARK, POINTS, outcomes, parsed, read_all  # noqa: E402

# As in `sudden_death`: more than are marked at once, so that a kill amid the list leaves some that were not.
LIST = 260
KINDS = tuple(itertools.product(("one device", "a list"), ("legacy", "v1")))
# FCM was not asked: the same key may be used again.
NOT_SENT = ("overloaded", "upstream_unavailable")
_numbers = itertools.count(1)


def at_once(cluster: Cluster, rounds: int = 5) -> str:
    """The same key on three replicas at the same moment: one of them sends, the others say that it runs or repeat it."""
    tenant = cluster.tenant()
    seen: collections.Counter[str] = collections.Counter()
    cluster.fcm.forget()
    cluster.fcm.control("POST", "settings", {"latency_ms": 200})
    for number in range(rounds):
        token, key = f"once-{number}-{next(_numbers)}", f"once-{next(_numbers)}"
        body = tenant.at(0).message(token)
        answers = together(lambda place: tenant.at(place).idempotent(key, body))
        codes = [answer.code if answer.status != 200 else "accepted" for answer in answers]
        assert set(codes) <= {"accepted", "idempotency_in_progress"}, [str(answer) for answer in answers]
        assert "accepted" in codes, codes
        seen.update(codes)
        repeats = [tenant.at(place).idempotent(key, body) for place in range(SIZE)]
        assert {(each.status, each.body) for each in repeats} == {(200, repeats[0].body)}, list(map(str, repeats))
        assert all(each.headers.get("idempotent-replayed") == "true" for each in repeats)
        assert cluster.arrivals([token]) == {token: 1}, cluster.arrivals([token])
    cluster.fcm.control("POST", "settings", {"latency_ms": 0})
    return f"{rounds} keys on {SIZE} replicas at once: {counts(seen)}, each sent once"


def together(call) -> list[Answer]:  # noqa: ANN001
    """A call for each replica, all at the same moment."""
    barrier = threading.Barrier(SIZE)
    answers: list[Answer | None] = [None] * SIZE

    def one(place: int) -> None:
        barrier.wait(LIMIT_S)
        answers[place] = call(place)

    threads = [threading.Thread(target=one, args=(place,), daemon=True) for place in range(SIZE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT_S)
    assert None not in answers, "not all were answered"
    return [answer for answer in answers if answer]


class Interrupted:
    """A request at a replica that something happens to at one point of it."""

    def __init__(self, cluster: Cluster, tenant: Shared, place: int, point: str, kind: str, api: str) -> None:
        self.cluster, self.tenant, self.place, self.point = cluster, tenant, place, point
        number = next(_numbers)
        self.key = f"interrupted-{number}"
        self.tokens = [f"struck-{number}-{each}-end" for each in range(1 if kind == "one device" else LIST)]
        at = tenant.at(0)
        self.body = at.message(self.tokens[0]) if kind == "one device" else at.message("", tokens=self.tokens)
        self.calls = len(self.tokens) if api == "v1" else 1
        self.name = f"{point}, {kind} by {api} on {NAMES[place]}"
        self.received = bytearray()
        self.fcm = cluster.fcm
        self.fcm.forget()
        is_slow = point in ("key stored", "call at FCM")
        self.fcm.control(
            "POST", "settings", {"latency_ms": 0 if not is_slow else 60 if kind == "a list" and api == "v1" else 250}
        )

    def begin(self) -> None:
        """Sends the request until the point has come."""
        with self.timed():
            self._begin()

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Notes whether the block took as long as a call to FCM may."""
        start = time.monotonic()
        yield
        self.cluster.met_timeouts |= time.monotonic() - start >= ATTEMPT_S

    def _begin(self) -> None:
        at = self.tenant.at(self.place)
        host, port = at.gateway.url.removeprefix("http://").split(":")
        lines = (
            f"POST /v1/tenants/{at.name}/messages HTTP/1.1", "Host: gateway", f"Content-Length: {len(self.body)}",
            *(f"{name}: {value}" for name, value in at.headers.items()), f"Idempotency-Key: {self.key}",
            "Connection: close", "", "",
        )
        self.connection = socket.create_connection((host, int(port)), LIMIT_S)
        self.reader = threading.Thread(target=read_all, args=(self.connection, self.received), daemon=True)
        self.connection.sendall("\r\n".join(lines).encode())
        if self.point == "head written":
            return
        self.connection.sendall(self.body)
        self.reader.start()
        comes = {
            "key stored": self.is_reserved,
            "call at FCM": lambda: self.fcm.hits() >= min(self.calls, 30),
            "FCM answered": lambda: sum("decision" in entry for entry in self.fcm.journal()) >= self.calls,
        }
        if condition := comes.get(self.point):
            # A busy machine may look too late: then the request was answered. Without a pause, since moments matter here.
            self.cluster.lab.wait_until(self.point, lambda: self.received or condition(), pause=0)
        elif self.point == "answer read":
            self.reader.join(LIMIT_S)

    def is_reserved(self) -> bool:
        return self.cluster.postgresql.value(
            f"SELECT count(*) FROM idempotency_records WHERE tenant = '{self.tenant.name}' AND is_finished = 0"
        ) != "0"

    def end(self) -> Answer | None:
        """The answer, when it was one."""
        if self.point == "head written":
            # The rest never comes: of a paused replica this is the caller that has given up.
            self.connection.close()
            return None
        self.reader.join(LIMIT_S)
        assert not self.reader.is_alive(), f"{self.name}: the request does not end"
        self.connection.close()
        return parsed(bytes(self.received))

    def repeat(self, at: At) -> tuple[Answer, float]:
        """Repeats it until it is no longer said to run, or not to have been sent; the answer, and how long that took."""
        start = time.monotonic()
        while True:
            with self.timed():
                answer = at.idempotent(self.key, self.body)
            waited = time.monotonic() - start
            if answer.code not in ("idempotency_in_progress", *NOT_SENT):
                return answer, waited
            # A breaker that opened on a busy machine stays so for longer than a lease lasts.
            longest = LIMIT_S if answer.code in NOT_SENT else LEASE_S + TAKEOVER_S + NOISE_S
            assert waited < longest, f"{self.name}: still {answer.code} after {waited:.1f} s"
            time.sleep(0.1)

    def check(self, answer: Answer, first: Answer | None, is_lost: bool = False) -> dict[str, int]:
        """Asserts what holds of it in the end, and counts what was seen.

        - is_lost: whether another replica may have settled it before its owner knew what became of it. The owner tells its
          caller what it knows all the same, of which a repeat may hear that it is unknown; what the owner had not begun with the
          other replica sends.
        """
        results, arrivals = outcomes(answer, len(self.tokens)), self.cluster.arrivals(self.tokens)
        assert set(results) <= {"accepted", "outcome_unknown", *NOT_SENT}, f"{self.name}: {set(results)}: {answer}"
        twice = [token for token in self.tokens if arrivals[token] > 1]
        assert not twice, f"{self.name}: sent to {len(twice)} twice, such as {twice[0]}"
        phantom = [
            token for token, result in zip(self.tokens, results) if result == "accepted" and not arrivals[token]
        ]
        assert not phantom, f"{self.name}: {len(phantom)} accepted and never sent to"
        denied = [token for token, result in zip(self.tokens, results) if result in NOT_SENT and arrivals[token]]
        assert not denied, f"{self.name}: {len(denied)} said not to be sent to, and were"
        unknown = results.count("outcome_unknown")
        if not self.cluster.met_timeouts:
            assert not set(results) & set(NOT_SENT), f"{self.name}: not sent to all: {answer}"
            if self.point == "head written":
                assert not unknown, f"{self.name}: {unknown} unknown of a request that had not come"
            assert unknown <= MARK or self.calls == 1, f"{self.name}: {unknown} unknown"
        if first and first.status == 200:
            assert answer.body == first.body or is_lost and agree(answer, first, len(self.tokens)), \
                f"{self.name}: {first}, then {answer}"
        elif first:
            # Whoever lost its lease tells its caller so, and never that something was sent that was not.
            assert first.status >= 400, f"{self.name}: {first}"
        return {"played": 1, "recipients": len(self.tokens), "unknown": unknown, "replayed": int(first is not None)}


def agree(answer: Answer, first: Answer, count: int) -> bool:
    """Whether two answers differ by nothing but recipients of whom one says that it is not known, or the first one that it
    has not sent to them, and that the same key may be used again.
    """
    open_ends = ("outcome_unknown", "idempotency_in_progress", *NOT_SENT)
    pairs = zip(outcomes(answer, count), outcomes(first, count), strict=True)
    return all(earlier in (later, *open_ends) or later == "outcome_unknown" for later, earlier in pairs)


def tenants(cluster: Cluster) -> Callable[[str, str], Shared]:
    """The tenant of a case, by its kind and protocol: another one for each list by HTTP v1, since many calls that are cut off
    at once open the breaker of their tenant.
    """
    lasting = {api: cluster.tenant(api=api) for api in ("legacy", "v1")}
    return lambda kind, api: cluster.tenant(api=api) if (kind, api) == ("a list", "v1") else lasting[api]


def cases(count: int, points: tuple[str, ...] = POINTS) -> list[tuple[str, tuple[str, str], int]]:
    """So many points, kinds and replicas; each point as often as the others, and each with every kind in the long run."""
    return [
        (points[number % len(points)], KINDS[(number + number // len(points)) % len(KINDS)],
         (number + number // (len(points) * len(KINDS))) % SIZE)
        for number in range(count)
    ]


def kills(cluster: Cluster, count: int) -> str:
    """kill -9 of the owner at each step, then a repeat elsewhere, where nothing but waiting for the lease is in the way.

    It leaves chains of the audit that the leader closes a minute later: `wait_verified`.
    """
    tenant_of = tenants(cluster)
    seen: collections.Counter[str] = collections.Counter()
    longest = 0.0
    for point, (kind, api), place in cases(count):
        tenant = tenant_of(kind, api)
        request = Interrupted(cluster, tenant, place, point, kind, api)
        request.begin()
        cluster.kill(place)
        first = request.end()
        cluster.fcm.control("POST", "settings", {"latency_ms": 0})
        status, said = cluster.verification()
        assert status in (0, 2), f"{request.name}: audit verify {status}: {said}"
        second, waited = request.repeat(tenant.at((place + 1) % SIZE))
        cluster.start(place)
        third = tenant.at(place).idempotent(request.key, request.body)
        assert third.body == second.body, f"{request.name}: {second} elsewhere, {third} where it was"
        assert point != "answer read" or first, f"{request.name}: not answered"
        seen.update(request.check(second, first))
        longest = max(longest, waited)
    assert seen["played"] == count
    return (
        f"{count} kills, {seen['recipients']} recipients, none sent to twice: {seen['unknown']} unknown, "
        f"{seen['replayed']} answers given again, taken over after at most {longest:.1f} s"
    )


def pauses(cluster: Cluster, count: int, points: tuple[str, ...] = POINTS) -> str:
    """SIGSTOP of the owner beyond its lease at each step; a repeat elsewhere settles it; then the owner wakes."""
    tenant_of = tenants(cluster)
    seen: collections.Counter[str] = collections.Counter()
    for point, (kind, api), place in cases(count, points):
        tenant = tenant_of(kind, api)
        request = Interrupted(cluster, tenant, place, point, kind, api)
        request.begin()
        with cluster.paused(place):
            cluster.fcm.control("POST", "settings", {"latency_ms": 0})
            second, _ = request.repeat(tenant.at((place + 1) % SIZE))
            before = cluster.arrivals(request.tokens)
        first = request.end()
        # The owner's own end of it may come after its caller's: a call that it had begun has two seconds.
        quiet(cluster)
        results = outcomes(second, len(request.tokens))
        after = cluster.arrivals(request.tokens)
        late = [token for token in request.tokens if after[token] > before[token]]
        unmarked = [
            token for token, result in zip(request.tokens, results) if token in late and result != "outcome_unknown"
        ]
        assert not unmarked, f"{request.name}: it woke and sent to {len(unmarked)} that it had not marked"
        # What was settled is what a repeat hears, also where the owner knew better.
        third, _ = request.repeat(tenant.at(place))
        assert third.body == second.body, f"{request.name}: {second} elsewhere, {third} where it was"
        seen.update(request.check(second, first, is_lost=True))
        seen["late"] += len(late)
    assert seen["played"] == count
    return (
        f"{count} pauses beyond the lease, {seen['recipients']} recipients, none sent to twice: {seen['unknown']} unknown, "
        f"{seen['late']} sent to after the owner woke, all of them marked before"
    )


def quiet(cluster: Cluster) -> None:
    """Waits until nothing new has come to FCM for as long as a call may take."""
    seen, since = cluster.fcm.hits(), time.monotonic()
    end = since + LIMIT_S
    while time.monotonic() - since < TAKEOVER_S - LEASE_S:
        assert time.monotonic() < end, "FCM is called without an end"
        time.sleep(0.1)
        if (hits := cluster.fcm.hits()) != seen:
            seen, since = hits, time.monotonic()


def lost_commits(cluster: Cluster) -> str:
    """COMMIT's answer or the COMMIT itself is lost, of a reservation, of a mark and of a result."""
    tenant = cluster.tenant()
    seen: collections.Counter[str] = collections.Counter()
    hit = 0
    for point in ("answer", "request"):
        for statements in (r"insert\s+into\s+idempotency_records", r"update\s+idempotency_records"):
            token, key = f"lost-{next(_numbers)}-end", f"lost-{next(_numbers)}"
            body = tenant.at(0).message(token)
            with losing(cluster.proxies[0], CommitFault(point, "drop", statements)) as fault:
                first = tenant.at(0).idempotent(key, body)
                hit += fault.hit
            deadline = time.monotonic() + LEASE_S + TAKEOVER_S + NOISE_S
            while (second := tenant.at(1).idempotent(key, body)).code in ("idempotency_in_progress", *NOT_SENT):
                assert time.monotonic() < deadline, f"{point} of {statements}: {second}"
                time.sleep(0.1)
            arrived = cluster.arrivals([token])[token]
            (result,) = outcomes(second, 1)
            assert arrived <= 1, f"{point} of {statements}: sent {arrived} times"
            assert result in ("accepted", "outcome_unknown"), f"{point} of {statements}: {second}"
            assert result != "accepted" or arrived == 1, f"{point} of {statements}: accepted and not sent"
            if first.status == 200:
                # The result was lost and not the message: its caller hears so, and who repeats it that it is unknown.
                assert agree(second, first, 1), f"{point} of {statements}: {first}, then {second}"
            seen[result] += 1
    assert hit, "no COMMIT was met: the statements have other names"
    return f"{hit} COMMITs lost: {counts(seen)}, none sent twice"
