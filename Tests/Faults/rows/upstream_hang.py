"""FCM takes requests and never answers, by both protocols, while another tenant's FCM is well."""

from __future__ import annotations

import threading
import time

from lab import Emulator, Gateway, Lab, Tenant, v1_upstream

FAULT = "FCM hangs"
INJECTED = "An emulated FCM that reads requests and never answers, by the legacy protocol and by HTTP v1."
EXPECTED = (
    "Each send gets 504 when its attempt's 10 s are over. Then the breaker opens: sends are refused at once and FCM "
    "gets no calls. Memory stays flat, another tenant is not affected, and sends succeed again after a rest of 30 s."
)

REST_S = 30
RAMP_S = 10
CALLERS = 200


def run(lab: Lab) -> str:
    well, legacy, v1 = lab.emulator(), lab.emulator(), lab.emulator(tls=True)
    gateway = lab.gateway({"upstream": v1_upstream(v1)})
    healthy = gateway.tenant("well", well)
    hung = {"legacy": (gateway.tenant("hung-legacy", legacy), legacy),
            "v1": (gateway.tenant("hung-v1", v1, api="v1"), v1)}
    # Connections, caches and an access token are there before anything goes wrong.
    for tenant in (healthy, *(tenant for tenant, _ in hung.values())):
        assert tenant.load(count=200, concurrency=20).run().statuses == {200: 200}
    hurried(gateway, lab)
    figures: dict[str, str] = {}
    failures: list[BaseException] = []

    def watch(api: str) -> None:
        try:
            figures[api] = hang(lab, *hung[api])
        except BaseException as error:
            failures.append(error)

    others = healthy.load(concurrency=4, rate=100).start()
    with gateway.memory() as memory:
        threads = [threading.Thread(target=watch, args=(api,)) for api in hung]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        growth = memory.growth_mib
    others.stop()
    for failure in failures:
        raise failure
    assert set(others.statuses) == {200}, f"the other tenant was answered {others.statuses}"
    p99 = others.percentile(0.99)
    assert p99 < 0.25, f"the other tenant's p99 was {p99:.3f} s"
    # 400 calls in flight and their answers; nothing that grows with time.
    assert growth < 16, f"memory grew by {growth:.1f} MiB"
    return (
        f"legacy: {figures['legacy']}; v1: {figures['v1']}; memory +{growth:.1f} MiB; "
        f"the other tenant: {len(others.answers)} sends, no error, p99 {p99 * 1000:.0f} ms"
    )


def hurried(gateway: Gateway, lab: Lab) -> None:
    """A caller's own deadline ends its wait, and says nothing of the server."""
    fcm = lab.emulator()
    tenant = gateway.tenant("hurried", fcm)
    fcm.fault("hang", times=8)
    for _ in range(8):
        answer = tenant.send(headers={"X-Request-Timeout-Ms": "300"})
        assert answer.status == 504 and answer.code == "outcome_unknown", answer
        assert 0.29 < answer.seconds < 0.8, f"X-Request-Timeout-Ms: 300 was answered {answer}"
    answer = tenant.send()
    assert answer.status == 200, f"after calls that were in a hurry: {answer}"


def hang(lab: Lab, tenant: Tenant, fcm: Emulator) -> str:
    before = fcm.hits()
    path = fcm.journal()[-1]["path"]
    fcm.fault("hang", times=1_000_000, path=path)
    first = tenant.load(count=CALLERS, concurrency=CALLERS).run()
    assert first.statuses == {504: CALLERS}, f"calls that hang were answered {first.statuses}"
    assert set(first.codes) == {"outcome_unknown"}, first.codes
    low, high = first.percentile(0), first.percentile(1)
    assert 9.9 < low and high < 12, f"calls that hang were answered after {low:.2f} to {high:.2f} s"
    opened = time.monotonic()
    refused = tenant.load(count=500, concurrency=10).run()
    assert refused.statuses == {503: 500}, f"with the breaker open: {refused.statuses}"
    assert set(refused.codes) == {"upstream_unavailable"}, refused.codes
    assert all(1 <= int(answer.headers["retry-after"]) <= REST_S for answer in refused.answers)
    hits = fcm.hits() - before
    assert hits == CALLERS, f"{hits} calls for {CALLERS} messages"
    fcm.heal()
    # A sender that goes on, every 100 ms.
    lab.wait_until("the first answer", lambda: tenant.send().status == 200, REST_S + 5, pause=0.1)
    recovered = time.monotonic() - opened
    assert recovered < REST_S + 2, f"recovered after {recovered:.1f} s"
    time.sleep(RAMP_S + 1)
    after = tenant.load(count=200, concurrency=20).run()
    assert after.statuses == {200: 200}, f"after the ramp: {after.statuses}"
    return (
        f"{CALLERS} × 504 after {low:.2f} to {high:.2f} s, then 503 in {refused.percentile(0.99) * 1000:.0f} ms (p99) "
        f"with no call, first 200 after a rest of {recovered:.1f} s"
    )
