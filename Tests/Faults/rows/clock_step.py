"""The clock of the machine is set by an hour, forward and back, while the gateway serves."""

from __future__ import annotations

import threading
import time

from faked_clock import FakedClock
from lab import Answer, Gateway, Lab, Tenant

FAULT = "The clock jumps by an hour, forward and back"
INJECTED = "libfaketime moves the time of day; the monotonic clock continues, as when a clock is set."
EXPECTED = "Deadlines do not move. Each jump gives a device at most one burst more, and takes at most one away."

HOUR = 3600
BURST = 10
DEADLINE_S = 2.0
LIMITS = {
    "tenant": [{"rate": 100_000, "per_s": 1, "burst": 100_000}],
    "device": [{"rate": 1, "per_s": 1, "burst": BURST}],
}


def run(lab: Lab) -> str:
    with FakedClock(lab) as clock:
        return play(lab, clock)


def play(lab: Lab, clock: FakedClock) -> str:
    gateway = lab.gateway(environment=clock.environment)
    fcm = lab.emulator()
    tenant = gateway.tenant("shop", fcm, limits=LIMITS)
    figures = []
    for name, before, offset in [
        ("forward", 0, HOUR), ("back", HOUR, 0), ("further back", 0, -HOUR), ("forward again", -HOUR, 0),
    ]:
        figures.append(
            f"{name}: {deadline(fcm, tenant, clock, before, offset)}, {limits(gateway, tenant, clock, before, offset)}"
        )
    assert gateway.verify() == 0, gateway.verification().stdout
    assert gateway.stop() == 0
    assert gateway.verify() == 0, gateway.verification().stdout
    return "; ".join(figures)


def deadline(fcm, tenant: Tenant, clock: FakedClock, before: int, offset: int) -> str:
    """The jump comes while a call waits for FCM, which never answers; then the clock goes back to where it was."""
    fcm.fault("hang", times=1)
    answers: list[Answer] = []
    headers = {"X-Request-Timeout-Ms": str(int(DEADLINE_S * 1000))}
    sender = threading.Thread(target=lambda: answers.append(tenant.send(headers=headers)))
    sender.start()
    time.sleep(DEADLINE_S / 4)
    clock.set(offset)
    sender.join()
    fcm.heal()
    clock.set(before)
    (answer,) = answers
    assert answer.status == 504 and answer.code == "outcome_unknown", answer
    assert DEADLINE_S - 0.1 <= answer.seconds <= DEADLINE_S + 1, answer
    return f"504 after {answer.seconds:.2f} s"


def limits(gateway: Gateway, tenant: Tenant, clock: FakedClock, moment: int, offset: int) -> str:
    """A device's quota is used up, the clock jumps, and it is asked for all that it gives."""
    # A device of its own for each jump, so that one does not pay for another.
    token = f"limited-{offset}-{moment}"
    start = time.monotonic()
    before = admitted(tenant, token)
    clock.set(offset)
    answer = tenant.send(token)
    after = admitted(tenant, token) + (answer.status == 200)
    seconds = time.monotonic() - start
    assert before >= BURST, before
    assert before + after <= 2 * BURST + seconds + 1, (before, after, seconds)
    # What the jump has taken comes back at the policy's own pace, not after an hour.
    start = time.monotonic()
    while (answer := tenant.send(token)).status != 200:
        assert answer.status == 429, answer
        wait = int(answer.headers.get("retry-after", "0"))
        assert 1 <= wait <= BURST + 2, answer.headers
        assert time.monotonic() - start < BURST + 5, answer
        time.sleep(0.1)
    # By the request, since lists go by time: before a jump back there are records with later ones.
    query = f"audit?limit=1&request_id={answer.headers['x-request-id']}"
    gateway.lab.wait_until("the send's record", lambda: gateway.admin("GET", query)["records"])
    (record,) = gateway.admin("GET", query)["records"]
    shown = time.time() + offset
    stamp = time.strftime("%Y-%m-%dT%H", time.gmtime(shown))
    near = time.strftime("%Y-%m-%dT%H", time.gmtime(shown - 60))
    assert record["time"][:13] in (stamp, near), (record["time"], stamp)
    return f"{before} admitted before the jump and {after} after it, with a burst of {BURST}, within {seconds:.1f} s"


def admitted(tenant: Tenant, token: str) -> int:
    """How many messages to a device go out until one is refused, and twenty more are tried."""
    count = refused = 0
    while refused < 20:
        status = tenant.send(token).status
        assert status in (200, 429), status
        count += status == 200
        refused += status == 429
    return count
