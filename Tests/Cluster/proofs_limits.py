"""Limits are exact over replicas, whatever their clocks say and while policies change; and what a failing Redis costs."""

from __future__ import annotations

import contextlib
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator

from cluster import SIZE, Cluster, Shared, within
from servers import ROOT

sys.path.insert(0, str(ROOT / "Tests/Faults"))

from faked_clock import FakedClock  # noqa: E402
from lab import LIMIT_S, UNLIMITED, Load  # noqa: E402

RATE, BURST = 5, 20
CALLERS = 16
# How long after a change a replica may not know it.
LAG_S = 2.0
POLICY = [{"rate": RATE, "per_s": 1, "burst": BURST}]
FALLBACK = "fcmgw_limiter_fallback_active"
DECISIONS = "fcmgw_limiter_decisions_total"


def limits(scope: str, policy: list[dict] | None = None) -> dict:
    return {**UNLIMITED, scope: policy or POLICY}


def messages(scope: str, tenant: Shared) -> Callable[[int], bytes]:
    """Messages that all meet one bucket of a scope."""
    at = tenant.anywhere
    match scope:
        case "device":
            return lambda number: at.message("the-device")
        case "topic":
            return lambda number: at.message("", topic="the-topic")
        case _:
            return lambda number: at.message(f"{tenant.name}-{number}")


def load(cluster: Cluster, tenant: Shared, scope: str, seconds: float | None) -> Load:
    return tenant.anywhere.load(messages(scope, tenant), concurrency=CALLERS, seconds=seconds, timeout=30)


def counted(answered: Load, begin: float, burst: float, rate: float, what: str) -> int:
    """Asserts that exactly as much was admitted as one bucket holds, and returns that.

    - begin: before the first request, as `time.monotonic` counts.

    The bucket was full then. Nothing beyond burst + rate × time is admitted. When a request was refused the bucket was
    empty, so that up to the last refusal nothing less was, either.
    """
    assert set(answered.statuses) <= {200, 429}, f"{what}: {answered.statuses}, {answered.codes}"
    admitted, refused = answered.of(200), answered.of(429)
    assert refused, f"{what}: nothing was refused of {len(answered.answers)}"
    most = burst + rate * (max(answer.at for answer in answered.answers) - begin)
    assert len(admitted) <= most, f"{what}: {len(admitted)} admitted, {most:.1f} at most"
    last = max(refused, key=lambda answer: answer.at)
    # It was decided after it was sent, and the first request no later than it was answered.
    first = min(answer.at for answer in answered.answers)
    least = burst + rate * (last.at - last.seconds - first) - 1
    before = sum(answer.at - answer.seconds <= last.at for answer in admitted)
    assert before >= least, f"{what}: {before} admitted until the last refusal, {least:.1f} at least"
    return len(admitted)


def exactly(cluster: Cluster, scope: str, seconds: float, what: str) -> tuple[Shared, Load, int]:
    """One tenant's load, of which exactly as much is admitted as one bucket holds.

    Where the machine kept Redis from answering in time a replica decided by its own share, which `outage` is about: then
    the load is repeated.
    """
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        tenant, alone = cluster.tenant(limits=limits(scope)), decided_alone(cluster)
        begin = time.monotonic()
        answered = load(cluster, tenant, scope, seconds).run()
        if decided_alone(cluster) == alone:
            return tenant, answered, counted(answered, begin, BURST, RATE, what)
    raise AssertionError(f"{what}: replicas decide by their own shares while Redis is there")


def decided_alone(cluster: Cluster) -> float:
    """Decisions that were not Redis's."""
    return sum(
        value for gateway in cluster.gateways for name, value in gateway.metrics().items()
        if name.startswith(DECISIONS) and 'source="redis"' not in name
    )


def exact(cluster: Cluster, seconds: float = 3) -> str:
    """16 callers through HAProxy at one device, one topic, one tenant."""
    figures = []
    for scope in ("device", "topic", "tenant"):
        tenant, answered, admitted = exactly(cluster, scope, seconds, scope)
        cluster.wait_recorded(tenant.name, len(answered.answers))
        figures.append(f"{scope} {admitted} of {len(answered.answers)}")
    return f"admitted with a burst of {BURST} and {RATE} a second for {seconds:.0f} s: {', '.join(figures)}"


@contextlib.contextmanager
def skewed(cluster: Cluster, offset: int) -> Iterator[None]:
    """The second replica's clock is ahead and the third one's behind; both start anew for it."""
    before = [dict(gateway.environment) for gateway in cluster.gateways]
    with contextlib.ExitStack() as stack:
        for place, seconds in ((1, offset), (2, -offset)):
            clock = stack.enter_context(FakedClock(cluster.lab, f"clock-{place}-{offset}", seconds))
            cluster.gateways[place].environment.update(clock.environment)
        restart(cluster)
        try:
            yield
        finally:
            for gateway, environment in zip(cluster.gateways, before):
                gateway.environment = environment
            restart(cluster)


def restart(cluster: Cluster) -> None:
    """Those two end and start at the same time; requests go to the first one meanwhile."""
    for place in range(1, SIZE):
        cluster.gateways[place].signal(signal.SIGTERM)
    for place in range(1, SIZE):
        # Not by `stop`: a second SIGTERM would cut the drain short.
        process = cluster.gateways[place].process
        assert process and process.wait(LIMIT_S) == 0, f"{cluster.gateways[place].name} did not exit 0"
        cluster.lab.processes.stop(process)
        cluster.gateways[place].start(wait=False)
    for place in range(1, SIZE):
        cluster.gateways[place].wait_ready()
    cluster.wait_until_up()


def with_skewed_clocks(cluster: Cluster, seconds: float = 3) -> str:
    with skewed(cluster, 2):
        return f"clocks 2 s ahead and 2 s behind: {exact(cluster, seconds)}"


def with_a_change(cluster: Cluster, seconds: float = 3) -> str:
    """The policy becomes slower, then faster, while callers go on.

    Each policy has a bucket of its own, which is full when it begins. It admits a burst and its rate for as long as it is in
    force, and until the last replica has learnt of the next one.
    """
    tenant = cluster.tenant(limits=limits("device"))
    since = time.monotonic()
    answered = load(cluster, tenant, "device", None).start()
    bound, rate = 0.0, RATE
    for following in (1, 2 * RATE):
        time.sleep(seconds)
        cluster.gateways[0].admin(
            "PUT", f"tenants/{tenant.name}/limits", limits("device", [{"rate": following, "per_s": 1, "burst": BURST}])
        )
        now = time.monotonic()
        bound += BURST + rate * (now - since + LAG_S)
        since, rate = now, following
    time.sleep(LAG_S + seconds)
    answered.stop()
    bound += BURST + rate * (time.monotonic() - since)
    admitted = len(answered.of(200))
    assert set(answered.statuses) <= {200, 429}, (answered.statuses, answered.codes)
    assert admitted <= bound, f"{admitted} admitted, {bound:.1f} at most"
    late = [answer for answer in answered.of(200) if answer.at > since + LAG_S]
    assert late, "nothing was admitted under the last policy"
    return f"two changes of a policy under 16 callers: {admitted} admitted, {bound:.0f} at most"


# When Redis fails


def most(seconds: float, away: float) -> float:
    """What `local` lets through at most with one outage, all replicas together.

    - seconds: the whole time.
    - away: how much of it limits were not shared; infinite where the server has forgotten what was used up.

    To burst + rate × time an outage adds the whole quotas that the replicas begin with, together max(burst, N). And what
    they let through is not charged to Redis, whose buckets refill meanwhile.
    """
    return BURST + RATE * seconds + max(BURST, SIZE) + min(BURST, RATE * away)


def outage(cluster: Cluster, name: str, fail: Callable[[], None], mend: Callable[[], None], seconds: float = 3,
           is_failure: bool = True, forgets: bool = False) -> str:
    """Callers go on while Redis fails and afterwards; nothing but 200 and 429 is answered.

    - is_failure: whether replicas have to go by their own shares meanwhile.
    - forgets: whether the server that comes back knows nothing of what was used up.
    """
    tenant = cluster.tenant(limits=limits("device"))
    begin = time.monotonic()
    answered = load(cluster, tenant, "device", None).start()
    time.sleep(1)
    failed = time.monotonic()
    try:
        fail()
        if is_failure:
            within(f"{name}: each replica to say so", 2, lambda: active(cluster) == SIZE, cluster.lab)
        time.sleep(seconds)
    finally:
        mend()
    mended = time.monotonic()
    recovered = within(f"{name}: limits to be shared again", 2, lambda: active(cluster) == 0, cluster.lab)
    shared = time.monotonic()
    time.sleep(1)
    answered.stop()
    end = time.monotonic()
    assert set(answered.statuses) <= {200, 429}, f"{name}: {answered.statuses}, {answered.codes}"
    admitted = len(answered.of(200))
    bound = most(end - begin, math.inf if forgets else shared - failed)
    assert admitted <= bound, f"{name}: {admitted} admitted, {bound:.0f} at most"
    # Shared again means exact again.
    exactly(cluster, "device", 2, f"after {name}")
    return f"{name}: {admitted} admitted of at most {bound:.0f}, shared again {recovered:.1f} s after {mended - begin:.0f} s"


def active(cluster: Cluster) -> float:
    return sum(gateway.metric(FALLBACK) for gateway in cluster.gateways)


def redis_killed(cluster: Cluster, seconds: float = 3) -> str:
    return outage(cluster, "killed", cluster.redis.kill, cluster.redis.start, seconds, forgets=True)


def redis_hung(cluster: Cluster, seconds: float = 3, share: float = 0.99, noise: float = 0) -> str:
    """A hung server adds less than 30 ms to the p99 of the same load without it.

    - share: another percentile, where there are too few requests for that: those that find it out wait for Redis.
    - noise: seconds that a machine adds which does other things, too.
    """
    tenant = cluster.tenant()
    quiet = tenant.anywhere.load(concurrency=4, rate=40, seconds=seconds).run().percentile(share)
    running = tenant.anywhere.load(concurrency=4, rate=40).start()
    cluster.redis.hang()
    try:
        time.sleep(seconds)
    finally:
        running.stop()
        cluster.redis.resume()
    within("limits to be shared again", 2, lambda: active(cluster) == 0, cluster.lab)
    assert set(running.statuses) == {200}, (running.statuses, running.codes)
    slow = running.percentile(share)
    assert slow < quiet + 0.030 + noise, f"p{share * 100:.0f} {slow * 1000:.0f} ms while Redis hung, {quiet * 1000:.0f} before"
    said = outage(cluster, "hung", cluster.redis.hang, cluster.redis.resume, seconds)
    return f"{said}, p{share * 100:.0f} {quiet * 1000:.0f} ms, {slow * 1000:.0f} ms while it hung"


def redis_flaps(cluster: Cluster, times: int = 5) -> str:
    """A server that hangs for a second, again and again, is one outage for as long as it answers for moments only.

    Each outage of its own would let through what replicas begin with once more.
    """
    redis, rounds = cluster.redis, 0

    def hang() -> None:
        nonlocal rounds
        redis.hang()
        within("flaps: each replica to say so", 2, lambda: active(cluster) == SIZE, cluster.lab)
        for _ in range(times):
            redis.resume()
            resumed = time.monotonic()
            time.sleep(0.2)
            alone = active(cluster)
            # A machine with more to do may have given it the time to come back.
            if time.monotonic() - resumed < 0.4:
                assert alone == SIZE, f"flaps: {SIZE - alone} replicas share limits after a moment"
                rounds += 1
            redis.hang()
            time.sleep(1)

    said = outage(cluster, "flaps", hang, redis.resume, 0)
    assert rounds, "flaps: the machine never let the server answer for a moment only"
    return f"{said}, not shared in {rounds} moments between"


def redis_forgets_scripts(cluster: Cluster) -> str:
    redis = cluster.redis
    return outage(
        cluster, "SCRIPT FLUSH", lambda: redis.command("SCRIPT", "FLUSH"), lambda: None, seconds=1, is_failure=False
    )


def redis_full(cluster: Cluster, seconds: float = 2) -> str:
    """Full: it takes no writes until it has room again."""
    redis = cluster.redis
    return outage(
        cluster, "full", lambda: redis.command("CONFIG", "SET", "maxmemory", "1"),
        lambda: redis.command("CONFIG", "SET", "maxmemory", "0"), seconds,
    )


def redis_read_only(cluster: Cluster, seconds: float = 2) -> str:
    """It becomes a replica of nobody that answers: READONLY to each write."""
    redis = cluster.redis
    return outage(
        cluster, "READONLY", lambda: redis.command("REPLICAOF", "127.0.0.1", "1"),
        lambda: redis.command("REPLICAOF", "NO", "ONE"), seconds,
    )


def redis_failed_over(cluster: Cluster) -> str:
    """With a Sentinel: the server dies, the replica becomes the server, and no replica of ours is told."""
    cluster.lab.wait_until("the replica", lambda: cluster.redis_replica.info("master_link_status") == "up")
    known = f"{cluster.redis_replica.port}"
    cluster.lab.wait_until("the Sentinel", lambda: known in cluster.sentinel.command("SENTINEL", "REPLICAS", "limits"))

    def promoted() -> None:
        # The Sentinel names the server some time after that has become one, and replicas ask the Sentinel.
        asked = "SENTINEL", "GET-MASTER-ADDR-BY-NAME", "limits"
        cluster.lab.wait_until("the fail-over", lambda: known in cluster.sentinel.command(*asked).split(), 30)

    return outage(cluster, "failed over by Sentinel", cluster.redis.kill, promoted, 0, forgets=True)
