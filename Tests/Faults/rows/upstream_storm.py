"""FCM answers 503 to everything, or to a part, while another tenant's FCM is well."""

from __future__ import annotations

import json
import socket
import threading

from lab import Gateway, Lab, read_request, v1_upstream

FAULT = "FCM answers 5xx"
INJECTED = (
    "An emulated FCM that answers 503 to every call, to a third of the calls, or to the first call for each message."
)
EXPECTED = (
    "At most 1.1 × messages + 3 calls reach FCM. A legacy server that fails once is called again, and the caller gets "
    "`200`. HTTP v1 is not called again. Another tenant is not affected."
)

MESSAGES = 2_000
TROUBLE = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n"
ANSWER = b'{"multicast_id":1,"success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"0:1%1"}]}'
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


def run(lab: Lab) -> str:
    well, legacy, v1 = lab.emulator(), lab.emulator(), lab.emulator(tls=True)
    gateway = lab.gateway({"upstream": v1_upstream(v1)})
    others = gateway.tenant("well", well).load(concurrency=4, rate=100).start()
    figures = []
    for api, fcm in (("legacy", legacy), ("v1", v1)):
        tenant = gateway.tenant(f"storm-{api}", fcm, api=api)
        # A full budget, as in a gateway that has run for a while.
        assert tenant.load(count=MESSAGES, concurrency=20).run().statuses == {200: MESSAGES}
        fcm.forget()
        fcm.fault("status", status=503, times=1_000_000, path=None if api == "legacy" else "/v1/projects/"
                  f"project-storm-{api}/messages:send")
        load = tenant.load(count=MESSAGES, concurrency=50).run()
        assert set(load.statuses) == {503}, f"{api}: {load.statuses}"
        assert all("retry-after" in answer.headers for answer in load.answers), f"{api}: no Retry-After"
        calls = fcm.hits()
        most = 1.1 * MESSAGES + 3 if api == "legacy" else MESSAGES
        assert 5 <= calls <= most, f"{api}: {calls} calls for {MESSAGES} messages"
        figures.append(f"{api}, all 503: {calls} calls for {MESSAGES} messages")
    figures += [once(lab, gateway), third(lab, gateway), ramp(lab, gateway)]
    others.stop()
    assert set(others.statuses) == {200}, f"the other tenant was answered {others.statuses}"
    figures.append(f"the other tenant: {len(others.answers)} sends, no error")
    return "; ".join(figures)


def once(lab: Lab, gateway: Gateway) -> str:
    """The first call for a message fails, the next one does not: it is worth asking again."""
    fcm = lab.emulator()
    tenant = gateway.tenant("once", fcm)
    assert tenant.load(count=100, concurrency=10).run().statuses == {200: 100}
    fcm.forget()
    for number in range(5):
        fcm.fault("status", status=503, token=f"once-{number}")
        answer = tenant.send(f"once-{number}")
        assert answer.status == 200, f"failed once: {answer}"
        assert answer.seconds < 1.5, f"the first repeat came after {answer.seconds:.2f} s"
        # Between them, so that failures are not in a row.
        assert tenant.send().status == 200
    assert fcm.hits('"once-') == 10, f"{fcm.hits()} calls"
    return "5 calls that failed once: 5 × 200 with 10 calls"


def third(lab: Lab, gateway: Gateway) -> str:
    """A third of the calls fails, too few for the breaker; the budget alone bounds the repeats."""
    lock = threading.Lock()
    calls = 0

    def serve(one: socket.socket) -> None:
        nonlocal calls
        while True:
            json.loads(read_request(one)[2])
            with lock:
                calls += 1
                number = calls
            one.sendall(REPLY if number % 3 else TROUBLE)

    tenant = gateway.tenant("third", lab.stub(serve))
    load = tenant.load(count=900, concurrency=30).run()
    assert set(load.statuses) <= {200, 503}, load.statuses
    assert 900 * 1.08 <= calls <= 900 * 1.1 + 3, f"{calls} calls for 900 messages, of which a third failed"
    exhausted = gateway.metric('fcmgw_retry_budget_exhausted_total{reason="upstream_5xx"}')
    assert exhausted > 0, "nothing counted of an exhausted budget"
    return f"a third 503: {calls} calls for 900 messages, {load.statuses.get(503, 0)} × 503"


def ramp(lab: Lab, gateway: Gateway) -> str:
    """After the rest, calls follow little by little."""
    fcm = lab.emulator()
    tenant = gateway.tenant("ramp", fcm)
    fcm.fault("status", status=503, times=5)
    # One attempt each, as their time is too short for a second.
    for _ in range(5):
        assert tenant.send(headers={"X-Request-Timeout-Ms": "400"}).status in (200, 503)
    fcm.heal()
    lab.wait_until("the breaker", lambda: gateway.metric("fcmgw_breaker_state") >= 1, 5)
    lab.wait_until("the first answer", lambda: tenant.send().status == 200, 40, pause=0.1)
    load = tenant.load(concurrency=4, rate=100, seconds=12).run()
    begin = min(answer.at for answer in load.answers)
    shares = []
    for second in range(12):
        part = [answer for answer in load.answers if second <= answer.at - begin < second + 1]
        shares.append(sum(answer.status == 200 for answer in part) / max(1, len(part)))
    assert shares[0] < 0.3 and 0.3 < shares[5] < 0.8 and shares[11] == 1, f"of 100 a second, {shares}"
    return "admitted in seconds 1, 6 and 12 after the rest: " + ", ".join(f"{shares[n]:.0%}" for n in (0, 5, 11))
