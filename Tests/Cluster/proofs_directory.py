"""What replicas of one store know of each other's changes: revoked keys, the feed of retired tokens, device groups."""

from __future__ import annotations

import itertools
import json
import re
import sys
import threading
import time
import urllib.parse
import urllib.request

from cluster import NOISE_S, SEEN_S, SIZE, At, Cluster, Shared, within
from proxy import CommitFault, losing
from servers import ROOT

sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, Answer, Gateway, call  # noqa: E402

SENDER = "123456789012"
# A statement of a gateway has ten seconds, so that a transaction can't be held open for longer by its COMMIT.
HELD_S = 9.0
_numbers = itertools.count(1)


def revocation(cluster: Cluster, rounds: int = 2) -> str:
    """A key that is revoked at one replica is refused at all, also when nobody is notified."""
    tenant = cluster.tenant()
    slowest = 0.0
    for number in range(rounds):
        for proxy in cluster.proxies:
            proxy.drops_notifications = number > 0
        made = cluster.gateways[0].admin(
            "POST", f"tenants/{tenant.name}/keys", {"name": f"short-{number}", "scopes": ["messages:send"]}
        )
        short = Shared(cluster, At(cluster.gateways[0], tenant.name, made["key"]))
        for place in range(SIZE):
            within("the key to be known", SEEN_S, lambda place=place: short.at(place).send().status == 200, cluster.lab)
        begin = time.monotonic()
        cluster.gateways[0].admin("DELETE", f"tenants/{tenant.name}/keys/{made['id']}")
        for place in range(SIZE):
            within(
                f"the key to be refused by replica {place + 1}", SEEN_S,
                lambda place=place: short.at(place).send().status == 401, cluster.lab,
            )
        slowest = max(slowest, time.monotonic() - begin)
        assert slowest <= SEEN_S + NOISE_S, f"refused everywhere after {slowest:.1f} s"
    for proxy in cluster.proxies:
        proxy.drops_notifications = False
    return f"{rounds} keys, notifications dropped for all but the first: refused everywhere after at most {slowest:.1f} s"


def admin_token(cluster: Cluster) -> str:
    """A token that an operator gets at one replica works at all, as does a session of the console that begins with it; once
    the token is revoked at another one, none accepts either."""
    first, second, third = cluster.gateways
    name = f"operator-{next(_numbers)}"
    made = first.admin("POST", "admin-tokens", {"name": name, "role": "operator"})
    headers = {"Authorization": f"Bearer {made['token']}"}

    def status(gateway: Gateway, method: str = "GET") -> int:
        return call(method, f"{gateway.admin_url}/admin/v1/tenants/{name}", headers).status

    for gateway in cluster.gateways:
        # A replica that knows the token finds no such tenant, and the role may not delete one.
        within("the token to be known", SEEN_S, lambda gateway=gateway: status(gateway) == 404, cluster.lab)
        assert status(gateway, "DELETE") == 403, f"{gateway.name} lets an operator delete a tenant"
    browser = logged_in(first, made["token"])

    def has_session(gateway: Gateway) -> bool:
        with browser.open(f"{gateway.admin_url}/console", timeout=LIMIT_S) as page:
            return page.geturl().endswith("/console")

    for gateway in cluster.gateways:
        assert has_session(gateway), f"{gateway.name} does not know the session"
    begin = time.monotonic()
    third.admin("DELETE", f"admin-tokens/{name}")
    for gateway in (third, second, first):
        within("the token to be refused", SEEN_S, lambda gateway=gateway: status(gateway) == 401, cluster.lab)
        within("the session to end", SEEN_S, lambda gateway=gateway: not has_session(gateway), cluster.lab)
    seconds = time.monotonic() - begin
    assert seconds <= SEEN_S + NOISE_S, f"refused everywhere after {seconds:.1f} s"
    return f"known to {SIZE} replicas, and refused by all {seconds:.1f} s after it was revoked"


def logged_in(gateway: Gateway, token: str) -> urllib.request.OpenerDirector:
    """A client with the cookie of a session of the console."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    address = f"{gateway.admin_url}/console/log-in"
    with browser.open(address, timeout=LIMIT_S) as page:
        form = re.search(r'name="form_token" value="(\w+)"', page.read().decode())[1]
    fields = urllib.parse.urlencode({"token": token, "form_token": form})
    browser.open(address, fields.encode(), timeout=LIMIT_S).close()
    return browser


def changes_anywhere(cluster: Cluster, rounds: int = 3) -> str:
    """Changes of one tenant through one replica after the other, none of which waits or is notified of the others'."""
    first, second, third = cluster.gateways
    name = f"anywhere-{next(_numbers)}"
    tenant, keys = f"tenants/{name}", f"tenants/{name}/keys"
    members = {"display_name": name, "upstream": "legacy"}
    salts: list[str] = []
    for proxy in cluster.proxies:
        proxy.drops_notifications = True
    try:
        for number in range(rounds):
            made = first.try_admin("PUT", tenant, members)
            assert made.status == 201, f"round {number}, a new tenant: {made}"
            again = second.try_admin("PUT", tenant, members)
            assert again.status == 200, f"round {number}, a tenant that another replica has just made: {again}"
            assert again.json()["created_at"] == made.json()["created_at"], f"{made} became {again}"
            key = second.admin("POST", keys, {"name": "short", "scopes": ["messages:send"]})
            revoked = third.try_admin("DELETE", f"{keys}/{key['id']}")
            assert revoked.status == 204, f"round {number}, a key that another replica has just made: {revoked}"
            rotated = second.try_admin("POST", f"{keys}/{key['id']}/rotate", {"overlap_s": 60})
            assert rotated.status == 409, f"round {number}, a key that another replica has just revoked: {rotated}"
            reader = third.admin("POST", keys, {"name": "reader", "scopes": ["audit:read"]})
            # Only the replica that made the key is sure to know it by now.
            records = At(third, name, reader["key"]).read("audit?limit=100")["records"]
            put_here = sorted(record["outcome"] for record in records if record["action"] == "tenant.put")
            # Those of this life and of no other, each with its intent.
            assert put_here == ["done", "done", "intent", "intent"], f"round {number}, the tenant reads: {records}"
            salt = cluster.postgresql.value(f"SELECT encode(salt, 'hex') FROM tenants WHERE id = '{name}'")
            assert salt not in salts, "a tenant that was made again has the salt of the one before it"
            salts.append(salt)
            deleted = second.try_admin("DELETE", tenant)
            assert deleted.status == 204, f"round {number}, a tenant that others have just changed: {deleted}"
    finally:
        for proxy in cluster.proxies:
            proxy.drops_notifications = False
    return f"{rounds} lives of one tenant, changed through {SIZE} replicas in turn: no change planned from an outdated state"


def cut_off_replica_revokes_in_the_end(cluster: Cluster) -> str:
    """A replica whose way to the store is cut serves what it knows; once mended it refuses what was revoked."""
    tenant = cluster.tenant()
    made = cluster.gateways[0].admin(
        "POST", f"tenants/{tenant.name}/keys", {"name": "cut", "scopes": ["messages:send"]}
    )
    short = Shared(cluster, At(cluster.gateways[0], tenant.name, made["key"]))
    within("the key to be known", SEEN_S, lambda: short.at(1).send().status == 200, cluster.lab)
    cluster.proxies[1].cut()
    try:
        cluster.gateways[0].admin("DELETE", f"tenants/{tenant.name}/keys/{made['id']}")
        within("the key to be refused elsewhere", SEEN_S, lambda: short.at(2).send().status == 401, cluster.lab)
        assert short.at(1).send().status == 200, "a replica without its store does not serve its snapshot"
        ready = call("GET", cluster.gateways[1].admin_url + "/readyz")
        assert ready.status == 200, f"/readyz while queue and spool take records: {ready}"
        answer = short.at(1).idempotent(f"cut-{next(_numbers)}", short.at(1).message())
        assert answer.status == 503, f"an idempotent request without a store: {answer}"
    finally:
        cluster.proxies[1].mend()
    # A connection that was silent for so long may have to be given up first.
    seen = within("the key to be refused", SEEN_S + 10, lambda: short.at(1).send().status == 401, cluster.lab)
    return f"a replica that was cut off served its snapshot, and refused the key {seen:.1f} s after it was back"


def retired_tokens(cluster: Cluster) -> str:
    """A dead token is refused by all replicas, a replaced one is listed by all, and a deleted one is forgotten by all."""
    tenant = cluster.tenant()
    replaced = f"CANONICAL_new-{next(_numbers)}"
    # Fewer than a spike has, and more than were reported just before.
    several = [f"ERROR_NotRegistered-{next(_numbers)}" for _ in range(12)]

    def known(place: int) -> float:
        return cluster.gateways[place].metric('fcmgw_retired_tokens{state="unregistered"}')

    def asks(at: At, token: str) -> bool:
        before = cluster.fcm.hits(token)
        assert at.send(token).code == "unregistered"
        return cluster.fcm.hits(token) > before

    before = [known(place) for place in range(SIZE)]
    for token in several:
        assert tenant.at(0).send(token).code == "unregistered"
    for place in range(SIZE):
        within(
            f"replica {place + 1} to learn of dead tokens", 2 * SEEN_S,
            lambda place=place: known(place) >= before[place] + len(several), cluster.lab,
        )
        assert not asks(tenant.at(place), several[0]), f"replica {place + 1} asked FCM about a token that another one reported"

    begin = time.monotonic()
    assert tenant.at(0).send(replaced).status == 200
    for place in range(SIZE):
        at = tenant.at(place)
        within(f"replica {place + 1} to list it", 2 * SEEN_S, lambda at=at: feed(at, "")[0] == [replaced], cluster.lab)
    listed = time.monotonic() - begin

    made = cluster.gateways[0].admin(
        "POST", f"tenants/{tenant.name}/keys", {"name": "manager", "scopes": ["tokens:manage"]}
    )
    manager = At(cluster.gateways[0], tenant.name, made["key"])
    begin = time.monotonic()
    # A token for each, since the first replica that asks reports the token to all again.
    for place in range(SIZE):
        deleted = manager.request("DELETE", f"retired-tokens?token={several[place]}", b"")
        assert deleted.status == 204, deleted
    for place in range(SIZE):
        within(
            f"replica {place + 1} to ask FCM again", 2 * SEEN_S,
            lambda place=place: asks(tenant.at(place), several[place]), cluster.lab, pause=0.2,
        )
    return (
        f"a dead token reported to one of {SIZE} replicas is refused by all; a replaced one listed by all after {listed:.1f} s; "
        f"one taken off asked about again by all after {time.monotonic() - begin:.1f} s"
    )


def held_report(cluster: Cluster, held: float = HELD_S) -> str:
    """A report whose transaction stays open while others commit is not missed by the feed, nor listed twice."""
    tenant = cluster.tenant()
    names = [f"{which}-{next(_numbers)}" for which in ("late", "early", "later")]
    late, early, later = (f"CANONICAL_new-{name}" for name in names)
    cursor = ""
    with losing(cluster.proxies[0], CommitFault("request", "hold", r"(insert\s+into|update)\s+retired_tokens")) as fault:
        assert tenant.at(0).send(late).status == 200
        within("the report's transaction to be held", 10, lambda: fault.hit == 1, cluster.lab)
        assert tenant.at(1).send(early).status == 200
        end = time.monotonic() + held
        listed: list[str] = []
        while time.monotonic() < end:
            page, cursor = feed(tenant.at(2), cursor)
            listed += page
            time.sleep(0.5)
        assert late not in listed, "what was not committed was listed"
    assert tenant.at(1).send(later).status == 200

    def read_on() -> bool:
        nonlocal cursor
        page, cursor = feed(tenant.at(2), cursor)
        listed.extend(page)
        return {late, early, later} <= set(listed)

    within(f"the feed to have all three; it has {listed}", SEEN_S + 30, read_on, cluster.lab)
    assert sorted(listed) == sorted({late, early, later}), f"listed: {listed}"
    return f"a report held open for {held:.0f} s, others made meanwhile: the feed has all three, each once"


def feed(at: At, cursor: str) -> tuple[list[str], str]:
    content = at.read("retired-tokens?limit=100" + (f"&cursor={cursor}" if cursor else ""))
    return [one["token"] for one in content["retired_tokens"]], content.get("next_cursor") or content["resume_cursor"]


# Device groups


def groups(cluster: Cluster, rounds: int = 3) -> str:
    """PUTs of one group on three replicas, one of them paused amid its change; then one change settles it all."""
    tenant = cluster.tenant(sender_id=SENDER)
    codes: set[str] = set()
    for number in range(rounds):
        name = f"family-{next(_numbers)}"
        settle(tenant.at(0), name, ["first"])
        cluster.fcm.control("POST", "settings", {"latency_ms": 150})
        place = number % SIZE
        answers: list[Answer | None] = [None] * SIZE

        def change(at: int) -> None:
            answers[at] = put(tenant.at(at), name, [f"device-{at}", f"other-{at}"])

        threads = [threading.Thread(target=change, args=(at,), daemon=True) for at in range(SIZE)]
        before = cluster.fcm.hits(name)
        threads[place].start()
        # Its change has begun: it has the group's lease, and a call is at FCM.
        cluster.lab.wait_until("a call of FCM", lambda: cluster.fcm.hits(name) > before)
        with cluster.paused(place):
            for at, thread in enumerate(threads):
                if at != place:
                    thread.start()
            for at, thread in enumerate(threads):
                if at != place:
                    thread.join(LIMIT_S)
        threads[place].join(LIMIT_S)
        cluster.fcm.control("POST", "settings", {"latency_ms": 0})
        for at, answer in enumerate(answers):
            assert answer, f"replica {at + 1} did not answer"
            # Told to repeat, or that a lease was lost; never that something is there that is not.
            assert answer.status in (200, 201, 409, 503, 504), f"replica {at + 1}: {answer}"
            codes.add(answer.code or str(answer.status))
        meant = [f"last-{number}", "and-another"]
        settle(tenant.at((place + 1) % SIZE), name, meant)
        agree(cluster, tenant, name, meant)
    listed = ", ".join(f"`{code}`" for code in sorted(codes))
    return f"{rounds} groups changed on {SIZE} replicas at once, one paused: answers {listed}; the store and FCM agree"


def put(at: At, name: str, tokens: list[str]) -> Answer:
    return at.request("PUT", f"device-groups/{name}", json.dumps({"tokens": tokens}).encode())


def settle(at: At, name: str, tokens: list[str]) -> None:
    """Repeats a change until it is made: another one's lease may be in the way, or FCM was too slow."""
    def is_made() -> bool:
        answer = put(at, name, tokens)
        assert answer.status in (200, 201, 409, 503, 504), f"{name}: {answer}"
        return answer.status in (200, 201)

    at.gateway.lab.wait_until(f"the change of {name}", is_made, pause=0.1)


def agree(cluster: Cluster, tenant: Shared, name: str, meant: list[str]) -> None:
    """Asserts that FCM has one group of these members, and each replica's books say so."""
    row = cluster.postgresql.value(
        f"SELECT upstream_name FROM device_groups WHERE tenant = '{tenant.name}' AND name = '{name}'"
    )
    there = [group for group in cluster.fcm.control("GET", "groups")["groups"] if group["name"] == row]
    assert len(there) == 1, f"FCM has {len(there)} groups {row}"
    assert sorted(there[0]["tokens"]) == sorted(meant), f"FCM has {there[0]['tokens']}, meant are {meant}"
    for place in range(SIZE):
        tokens = tenant.at(place).read(f"device-groups/{name}")["tokens"]
        assert sorted(tokens) == sorted(meant), f"replica {place + 1}: {tokens}"
    known = {
        each for (each,) in cluster.postgresql.query("SELECT upstream_name FROM device_groups")
    }
    orphans = [group["name"] for group in cluster.fcm.control("GET", "groups")["groups"] if group["name"] not in known]
    assert not orphans, f"groups at FCM that nobody knows: {orphans}"
