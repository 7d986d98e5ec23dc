"""Replicas that come, go, die, sleep and are cut off, and a store that fails: nothing fails that need not, nothing is lost."""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Callable

from cluster import CLOSING_S, LEASE_S, NAMES, NOISE_S, SEEN_S, SIZE, TAKEOVER_S, Cluster, Shared, within
from proxy import CommitFault, losing
from servers import ROOT

sys.path[:0] = [str(ROOT / "Tests/Faults"), str(ROOT / "Tests/Monitoring")]

from lab import Load, call  # noqa: E402
from monitoring import FLEET  # noqa: E402

RATE = 60
CONNECTIONS = 6
# The spool is emptied as soon as the store takes records; some seconds are for connections to come back.
BACK_S = 10
# A call waits ten seconds for a connection and ten for an answer.
REFUSED_S = 20
_numbers = itertools.count(1)


def loads(tenant: Shared, *, keep_alive: tuple[bool, ...] = (True, False), rate: float = RATE) -> list[Load]:
    """Load through HAProxy over kept and over fresh connections, each message to a device of its own."""
    part = next(_numbers)
    return [
        tenant.anywhere.load(
            lambda number, kept=kept: tenant.anywhere.message(f"load-{part}-{kept}-{number}-end"),
            concurrency=CONNECTIONS, rate=rate / len(keep_alive), keep_alive=kept, timeout=60,
        ).start()
        for kept in keep_alive
    ]


def ended(running: list[Load]) -> list:
    for load in running:
        load.stop()
    return [answer for load in running for answer in load.answers]


def sent_once(cluster: Cluster, since: int) -> int:
    """Asserts that no message came to FCM twice; how many did."""
    bodies = [entry["body"] for entry in cluster.fcm.journal("-end")]
    assert len(set(bodies)) == len(bodies), f"{len(bodies) - len(set(bodies))} messages were sent twice"
    return len(bodies) - since


def rolling(cluster: Cluster, rounds: int = 1) -> str:
    """Each replica is stopped and started in turn while clients send."""
    tenant = cluster.tenant()
    cluster.fcm.forget()
    running = loads(tenant)
    slowest = 0.0
    for place in itertools.chain(*[range(SIZE)] * rounds):
        start = time.monotonic()
        status = cluster.gateways[place].stop()
        slowest = max(slowest, time.monotonic() - start)
        assert status == 0, f"{NAMES[place]} exited {status}"
        cluster.start(place)
        cluster.wait_until_up()
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    assert not failed, f"{len(failed)} of {len(answers)} failed, such as {failed[0]}"
    # FCM's journal has the last 10,000.
    sent_once(cluster, 0)
    cluster.wait_recorded(tenant.name, len(answers))
    verified = cluster.wait_verified(SEEN_S)
    return (
        f"{rounds} rounds over {SIZE} replicas, {len(answers)} requests, 0 failed; the slowest stop {slowest:.1f} s; "
        f"`audit verify` 0 after {verified:.1f} s"
    )


def killed_under_load(cluster: Cluster, place: int = 1) -> str:
    """kill -9: what was under way there fails, nothing else, and the leader closes the chains that nobody will."""
    tenant = cluster.tenant()
    cluster.fcm.forget()
    running = loads(tenant)
    time.sleep(2)
    killed = time.monotonic()
    cluster.kill(place)
    time.sleep(4)
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    # One request at a time on a connection, of which a third was there.
    assert len(failed) <= 2 * CONNECTIONS, f"{len(failed)} of {len(answers)} failed"
    assert all(answer.status in (0, 502, 503) for answer in failed), failed[0]
    late = [answer for answer in failed if answer.at - answer.seconds > killed + 3]
    assert not late, f"{len(late)} failed that began 3 s after the kill, such as {late[0]}"
    sent_once(cluster, 0)
    # Ten seconds after its last heartbeat its chain counts as one that nobody writes.
    cluster.lab.wait_until("audit verify 2", lambda: cluster.verification()[0] == 2, pause=0.5)
    # Not started again: it is the leader that closes its chains.
    closed = cluster.wait_verified()
    cluster.start(place)
    cluster.wait_until_up()
    # Its spool comes back with it, once and in order.
    good = len(answers) - len(failed)
    cluster.lab.wait_until("the records", lambda: cluster.records(tenant.name)[0] >= good, pause=0.2)
    count, distinct = cluster.records(tenant.name)
    assert count == distinct and good <= count <= len(answers), f"{count} records, {distinct} different, {good} answers"
    cluster.wait_verified(SEEN_S)
    return f"one killed: {len(failed)} of {len(answers)} requests failed; chains closed by the leader {closed:.0f} s after the end"


def replaced_in_outage(cluster: Cluster, place: int = 1) -> str:
    """A replica ends while the store is away, as by a rollout; the next one of another host name gets its data directory."""
    tenant, gateway = cluster.tenant(), cluster.gateways[place]
    running = loads(tenant)
    time.sleep(1)
    cluster.postgresql.stop()
    try:
        within("records in its spool", SEEN_S, lambda: gateway.metric("fcmgw_audit_spool_bytes") > 0, cluster.lab)
        gateway.stop()
    finally:
        cluster.postgresql.start()
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    assert not failed, f"{len(failed)} of {len(answers)} failed, such as {failed[0]}"
    # The leader closes its chain meanwhile.
    cluster.wait_verified()
    missing = len(answers) - cluster.records(tenant.name)[0]
    assert missing > 0, "no record was in its spool"
    gateway.prefix = ["unshare", "--uts", "sh", "-c", 'hostname another-pod && exec "$@"', "sh"]
    try:
        cluster.start(place)
        cluster.wait_until_up()
        cluster.wait_recorded(tenant.name, len(answers))
        cluster.wait_verified(SEEN_S)
    finally:
        gateway.prefix = []
    return f"replaced while the store was away: {missing} of {len(answers)} records came with the data directory, each once"


def cut_off(cluster: Cluster, seconds: float, cut: Callable[[], None], mend: Callable[[], None], place: int = SIZE - 1) -> str:
    """A replica loses store and neighbours under load; others take over, and its late writes are refused."""
    tenant = cluster.tenant()
    cluster.fcm.forget()
    # All of it has to find room in what the fake FCM remembers, which are 10,000 requests.
    running = loads(tenant, rate=min(RATE, 7_000 / seconds))
    time.sleep(1)
    # It has a key's reservation and no time to end it.
    key, token = f"cut-{next(_numbers)}", f"cut-{next(_numbers)}-end"
    body = tenant.at(place).message(token)
    cluster.fcm.fault("delay", token=token, ms=1500)
    own = tenant.at(place).load(
        body, headers={"Idempotency-Key": key}, count=1, concurrency=1, timeout=seconds + 60
    ).start()
    cluster.lab.wait_until("the call at FCM", lambda: cluster.fcm.hits(token) == 1)
    begin = time.monotonic()
    cut()
    try:
        end = begin + LEASE_S + TAKEOVER_S + NOISE_S
        while (taken := tenant.at(0).idempotent(key, body)).code == "idempotency_in_progress":
            assert time.monotonic() < end, "its lease is not taken over"
            time.sleep(0.1)
        assert taken.code == "outcome_unknown", f"what it had marked: {taken}"
        time.sleep(max(0.0, seconds - (time.monotonic() - begin)))
    finally:
        mend()
    answers = ended(running)
    own.wait()
    cluster.wait_until_up()
    assert cluster.fcm.hits(token) == 1, f"{cluster.fcm.hits(token)} calls of FCM for one key"
    again = tenant.at(place).idempotent(key, body)
    assert (again.status, again.body) == (taken.status, taken.body), f"{taken} elsewhere, {again} where it was"
    sent_once(cluster, 0)
    good = sum(answer.status == 200 for answer in answers)
    cluster.lab.wait_until(
        f"{good} records", lambda: cluster.records(tenant.name)[0] >= good, CLOSING_S, pause=0.5
    )
    count, distinct = cluster.records(tenant.name)
    assert count == distinct, f"{count - distinct} records twice"
    verified = cluster.wait_verified()
    return (
        f"cut off for {seconds:.0f} s: {good} of {len(answers)} requests answered 200, {count} records, none lost or doubled, "
        f"its key settled elsewhere, `audit verify` 0 after {verified:.0f} s"
    )


def store_cut_off(cluster: Cluster, seconds: float = 8) -> str:
    """Only the way to the store is cut, so that the replica goes on calling FCM, and its spool takes the records."""
    proxy = cluster.proxies[SIZE - 1]
    return cut_off(cluster, seconds, proxy.cut, proxy.mend)


def paused_leader(cluster: Cluster, seconds: float = 6) -> str:
    """The leader sleeps amid the COMMIT of a checkpoint until another leads and wants the same number: that one gives way, and
    the checkpoints go on, each signed over the one before.

    That nothing is closed or truncated twice, and who gives way to whom, is the Swift tests' to prove, which choose the moment:
    AuditChainCloserTests, AuditRetentionLeaderTests, AuditCheckpointerTests.
    """
    leader: int | None = None

    def is_led() -> bool:
        nonlocal leader
        leader = cluster.leader()
        return leader is not None

    within("a leader", SEEN_S, is_led, cluster.lab)
    assert leader is not None
    tenant, other = cluster.tenant(), (leader + 1) % SIZE
    fault = CommitFault("request", "hold", r"insert\s+into\s+audit_checkpoints")
    with losing(cluster.proxies[leader], fault):
        assert tenant.at(other).send().status == 200
        within("the leader's checkpoint", SEEN_S, lambda: fault.hit, cluster.lab)
        before = last_checkpoint(cluster)
        with cluster.paused(leader):
            # Its lead goes with its lasting connection; the one with the checkpoint stays.
            cluster.postgresql.query(
                "SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid) "
                f"WHERE locktype = 'advisory' AND granted AND application_name = '{NAMES[leader]}'"
            )
            # The store rolls a transaction back that says nothing for ten seconds.
            within("the next leader to want the same number", SEEN_S, lambda: cluster.postgresql.value(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'replica-%' "
                f"AND application_name <> '{NAMES[leader]}' AND wait_event_type = 'Lock' "
                "AND query ~* 'insert\\s+into\\s+audit_checkpoints'"
            ) == "1", cluster.lab)
            assert last_checkpoint(cluster) == before, "a checkpoint was made while another one of its number was under way"
            fault.release()
            within("the checkpoint", SEEN_S, lambda: last_checkpoint(cluster) > before, cluster.lab)
            time.sleep(seconds)
    after = last_checkpoint(cluster)
    assert tenant.at(other).send().status == 200
    within("the next checkpoint", SEEN_S, lambda: last_checkpoint(cluster) > after, cluster.lab)
    within("one leader", SEEN_S, lambda: cluster.leader() is not None, cluster.lab)
    cluster.wait_verified()
    return "the leader paused in a checkpoint until another replica needed its number: one leads, `audit verify` 0"


def checkpoints_seen(cluster: Cluster) -> str:
    """Each replica shows how far checkpoints have come, whether it leads or not, and while nothing is written too."""
    name = "fcmgw_audit_last_checkpoint_timestamp_seconds"

    def are_beyond(moment: float) -> bool:
        return all(gateway.metric(name) > moment for gateway in cluster.gateways)

    within("one leader", SEEN_S, lambda: cluster.leader() is not None, cluster.lab)
    begun = time.time()
    assert cluster.tenant().anywhere.send().status == 200
    within("each replica to show the checkpoint of a send", SEEN_S, lambda: are_beyond(begun), cluster.lab)
    # Twelve intervals are two minutes of the default.
    quiet = time.time() + 12 * cluster.gateways[0].metric("fcmgw_audit_checkpoint_interval_seconds")
    took = within("each replica to show the end of a rest", quiet - time.time() + SEEN_S, lambda: are_beyond(quiet), cluster.lab)
    return f"each of {SIZE} replicas showed the checkpoints, and {took:.0f} s of rest after them"


def last_checkpoint(cluster: Cluster) -> int:
    return int(cluster.postgresql.value("SELECT number FROM gateway_checkpoint_end"))


def metrics(cluster: Cluster) -> str:
    """Each replica shows what only a fleet has, and counts the others; one says that it leads, and does."""
    for gateway in cluster.gateways:
        missing = FLEET - {name.partition("{")[0] for name in gateway.metrics()}
        assert not missing, f"{gateway.name} does not show {sorted(missing)}"
    # One that died a moment ago counts for ten seconds.
    within(
        "each replica to count all", 10 + SEEN_S,
        lambda: all(gateway.metric("fcmgw_replicas") == SIZE for gateway in cluster.gateways), cluster.lab,
    )

    def leaders() -> list[int]:
        return [place for place in range(SIZE) if cluster.gateways[place].metric("fcmgw_leader") == 1]

    # Asked with each checkpoint, every second.
    within("one leader", SEEN_S, lambda: leaders() == [cluster.leader()], cluster.lab)
    ages: list[float] = []

    def is_fresh() -> bool:
        ages[:] = [gateway.metric("fcmgw_cache_age_seconds{") for gateway in cluster.gateways]
        return max(ages) < SEEN_S

    within("what is cached to be fresh", 0, is_fresh, cluster.lab)
    return f"{SIZE} replicas, one leader, what is cached {max(ages):.1f} s old at most"


# The store


def store_fault(cluster: Cluster, name: str, fail: Callable[[], object], mend: Callable[[], object], seconds: float = 4) -> str:
    """The store fails under load: sends go on, what must be written is 503 in time, and each record is there once in the end."""
    tenant = cluster.tenant()
    cluster.fcm.forget()
    running = loads(tenant)
    time.sleep(1)
    fail()
    try:
        begin = time.monotonic()
        probed = []
        while time.monotonic() - begin < seconds:
            for place in range(SIZE):
                ready = call("GET", cluster.gateways[place].admin_url + "/readyz")
                assert ready.status == 200, f"{name}: /readyz of {NAMES[place]}: {ready}"
            probed.append(tenant.anywhere.idempotent(f"{name}-{next(_numbers)}", tenant.anywhere.message()))
            time.sleep(0.5)
    finally:
        mend()
    assert all(answer.status == 503 for answer in probed), f"{name}: idempotent requests: {list(map(str, probed))}"
    slowest = max(answer.seconds for answer in probed)
    assert slowest < REFUSED_S + NOISE_S, f"{name}: 503 after {slowest:.1f} s"
    back = within(
        f"{name}: writes", BACK_S,
        lambda: tenant.anywhere.idempotent(f"back-{next(_numbers)}", tenant.anywhere.message()).status == 200, cluster.lab,
    )
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    assert not failed, f"{name}: {len(failed)} of {len(answers)} sends failed, such as {failed[0]}"
    sent_once(cluster, 0)
    recorded_once(cluster, tenant, len(answers), name)
    verified = cluster.wait_verified()
    return (
        f"{name}: {len(answers)} sends, all 200, {len(probed)} idempotent ones 503 after {slowest:.1f} s at most, writes "
        f"{back:.1f} s after its return, verify 0 after {verified:.0f} s"
    )


def recorded_once(cluster: Cluster, tenant: Shared, least: int, name: str) -> None:
    cluster.lab.wait_until(f"{name}: the records", lambda: cluster.records(tenant.name)[0] >= least, pause=0.2)
    count, distinct = cluster.records(tenant.name)
    assert count == distinct, f"{name}: {count - distinct} records twice"


def store_stopped(cluster: Cluster, seconds: float = 4) -> str:
    return store_fault(cluster, "stopped", cluster.postgresql.stop, cluster.postgresql.start, seconds)


def store_crashed(cluster: Cluster, seconds: float = 4) -> str:
    return store_fault(cluster, "killed", cluster.postgresql.kill, cluster.postgresql.start, seconds)


def store_hung(cluster: Cluster, seconds: float = 4) -> str:
    """All of it is stopped: connections stay, new ones are accepted, and nothing is answered."""
    return store_fault(cluster, "hung", cluster.postgresql.hang, cluster.postgresql.resume, seconds)


def store_full(cluster: Cluster, seconds: float = 4) -> str:
    """Its disk, which is a small one (`disk`), takes nothing more."""
    tenant = cluster.tenant()
    refusals = 0

    def is_refused() -> bool:
        """Each connection may have a page left that it began."""
        nonlocal refusals
        answer = tenant.anywhere.idempotent(f"filling-{next(_numbers)}", tenant.anywhere.message())
        refusals = refusals + 1 if answer.status == 503 else 0
        return refusals >= 40

    def fail() -> None:
        cluster.postgresql.fill()
        within("the store to be full", 60, is_refused, cluster.lab)

    return store_fault(cluster, "full", fail, cluster.postgresql.make_room, seconds)


def store_read_only(cluster: Cluster, seconds: float = 4) -> str:
    return store_fault(
        cluster, "read-only", lambda: cluster.postgresql.set_read_only(True),
        lambda: cluster.postgresql.set_read_only(False), seconds,
    )


def lost_commits(cluster: Cluster, times: int = 5) -> str:
    """COMMITs and their answers are lost under load, of the audit's records among others: each record is there once."""
    tenant = cluster.tenant()
    cluster.fcm.forget()
    running = loads(tenant)
    faults = []
    try:
        for point in ("answer", "request"):
            for proxy in cluster.proxies:
                faults.append(proxy.lose(CommitFault(point, "drop", r"insert\s+into\s+audit_records", times)))
        cluster.lab.wait_until("COMMITs to be lost", lambda: all(fault.hit == times for fault in faults))
    finally:
        for proxy in cluster.proxies:
            proxy.heal()
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    assert not failed, f"{len(failed)} of {len(answers)} failed, such as {failed[0]}"
    cluster.wait_recorded(tenant.name, len(answers))
    cluster.wait_verified()
    return f"{sum(fault.hit for fault in faults)} COMMITs of records lost, half of them done: {len(answers)} records, each once"


def failed_over(cluster: Cluster) -> str:
    """The primary dies under load and its synchronous standby takes over."""
    tenant = cluster.tenant()
    key, body = f"over-{next(_numbers)}", tenant.anywhere.message(f"over-{next(_numbers)}")
    before = tenant.anywhere.idempotent(key, body)
    assert before.status == 200, before
    cluster.fcm.forget()
    running = loads(tenant)
    time.sleep(2)
    took = cluster.fail_over()
    back = within(
        "writes", BACK_S,
        lambda: tenant.anywhere.idempotent(f"back-{next(_numbers)}", tenant.anywhere.message()).status == 200, cluster.lab,
    )
    answers = ended(running)
    failed = [answer for answer in answers if answer.status != 200]
    assert not failed, f"{len(failed)} of {len(answers)} sends failed, such as {failed[0]}"
    after = tenant.anywhere.idempotent(key, body)
    assert after.body == before.body, f"{before} before the fail-over, {after} after it"
    sent_once(cluster, 0)
    recorded_once(cluster, tenant, len(answers), "failed over")
    cluster.wait_verified()
    return f"failed over in {took:.1f} s, writes {back:.1f} s later, {len(answers)} sends, all 200, committed data is there"
