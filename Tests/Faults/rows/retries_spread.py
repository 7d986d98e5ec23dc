"""A thousand messages fail at the same moment."""

from __future__ import annotations

import asyncio
import collections
import concurrent.futures
import datetime
import re
import time

from lab import Lab, Load

FAULT = "A thousand calls fail at once"
INJECTED = (
    "An emulated FCM that answers 503 to the first call for each of 1,000 messages, which 500 tenants send together."
)
EXPECTED = "The retries are spread evenly over the following second, and all callers get `200`."

TENANTS = 500
EACH = 2


def run(lab: Lab) -> str:
    fcm = lab.emulator()
    # A thousand at once are to be repeated here, not shed.
    gateway = lab.gateway({"http": {"maxInFlight": 4 * TENANTS * EACH, "maxLagMs": 60_000}})
    # The budget of one tenant is three, and five failures in a row open its breaker.
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        tenants = list(pool.map(lambda number: gateway.tenant(f"tenant-{number}", fcm), range(TENANTS)))
        # For each message one, so that no repeat takes another's.
        each = [f"spread-{tenant}-{number}" for tenant in range(TENANTS) for number in range(EACH)]
        list(pool.map(lambda token: fcm.fault("status", status=503, token=token), each))
    messages = TENANTS * EACH
    loads = [
        Load(one.url, one.headers, lambda n, i=i: one.message(f"spread-{i}-{n}"), count=EACH, concurrency=EACH)
        for i, one in enumerate(tenants)
    ]
    together(loads)
    statuses = collections.Counter(answer.status for load in loads for answer in load.answers)
    assert statuses == {200: messages}, f"answered {dict(statuses)}"
    times = collections.defaultdict(list)
    for entry in fcm.journal():
        token = re.search(r'"(spread-\d+-\d+)"', entry["body"])
        times[token[1]].append(datetime.datetime.fromisoformat(entry["time"]).timestamp())
    assert all(len(each) == 2 for each in times.values()) and len(times) == messages, "not two calls for each"
    waits = sorted(max(each) - min(each) for each in times.values())
    begin, end = min(min(each) for each in times.values()), max(min(each) for each in times.values())
    # How far the waits are from an even spread over one second, at most (Kolmogorov and Smirnov).
    distance = max(abs((number + 1) / messages - min(1, wait)) for number, wait in enumerate(waits))
    tenths = collections.Counter(min(9, int(wait * 10)) for wait in waits)
    counts = [tenths[number] for number in range(10)]
    assert distance < 0.1, f"waits are {distance:.3f} from even; in tenths of a second {counts}"
    assert max(counts) < 2 * messages / 10, f"repeats in tenths of a second: {counts}"
    return (
        f"{messages} × 503 within {end - begin:.2f} s, then {messages} × 200; repeats in each tenth of a second "
        f"{min(counts)} to {max(counts)}, {distance:.3f} from even"
    )


def together(loads: list[Load]) -> None:
    """All loads on one thread's loop."""
    async def all_of_them() -> None:
        await asyncio.gather(*(load._all() for load in loads))

    for load in loads:
        load._begin = time.monotonic()
    asyncio.run(all_of_them())
