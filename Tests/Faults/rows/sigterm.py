"""SIGTERM while requests are in flight at a slow upstream, and while some hang there for longer than anybody waits."""

from __future__ import annotations

import json
import time

from lab import Lab, call

FAULT = "SIGTERM with requests in flight"
INJECTED = (
    "SIGTERM while 100 sends wait for an emulated FCM that takes 8 s, and again while 20 sends wait for one that "
    "never answers."
)
EXPECTED = (
    "`/readyz` answers 503 at once and until the end. Requests in flight are answered, and the process exits with 0 "
    "within 30 s. Requests that take longer than the time to finish are cut off, logged and audited. `audit verify` "
    "exits with 0."
)

SLOW_S = 8
IN_FLIGHT = 100
HUNG = 20


def run(lab: Lab) -> str:
    return f"{slow(lab)}; {hung(lab)}"


def slow(lab: Lab) -> str:
    fcm = lab.emulator()
    gateway = lab.gateway()
    tenant = gateway.tenant("slow", fcm)
    fcm.fault("delay", times=IN_FLIGHT, ms=SLOW_S * 1000)
    load = tenant.load(count=IN_FLIGHT, concurrency=IN_FLIGHT).start()
    lab.wait_until("all to be in flight", lambda: gateway.metric("fcmgw_upstream_inflight") >= IN_FLIGHT)
    begin = time.monotonic()
    gateway.signal(15)
    lab.wait_until(
        "readiness to end", lambda: call("GET", gateway.admin_url + "/readyz", timeout=5).status == 503, 2
    )
    noticed = time.monotonic() - begin
    assert gateway.metric("fcmgw_draining") == 1
    # For the grace it serves whoever comes.
    late = tenant.send()
    assert late.status == 200 and late.headers.get("connection") == "close", late
    readiness: set[int] = set()
    while gateway.process.poll() is None:
        readiness.add(call("GET", gateway.admin_url + "/readyz", timeout=5).status)
        assert time.monotonic() - begin < 35, "it did not end"
        time.sleep(0.02)
    ended = time.monotonic() - begin
    load.wait()
    lab.processes.stop(gateway.process)
    assert load.statuses == {200: IN_FLIGHT}, f"requests in flight were answered {load.statuses}"
    assert all(answer.headers.get("connection") == "close" for answer in load.answers)
    # Once the process ends nobody is there to answer.
    assert readiness <= {503, 0}, readiness
    assert gateway.process.returncode == 0, gateway.process.returncode
    assert ended <= 30, f"it took {ended:.1f} s"
    assert gateway.verify() == 0, gateway.verification().stdout
    return (
        f"{IN_FLIGHT} sends of {SLOW_S} s all answered 200, `/readyz` 503 after {milliseconds(noticed)}, exit 0 after "
        f"{ended:.1f} s, verify 0"
    )


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms"


def hung(lab: Lab) -> str:
    fcm = lab.emulator()
    gateway = lab.gateway({
        "http": {"drainGraceMs": 500, "shutdownTimeoutMs": 2000},
        "upstream": {"timeoutMs": 60_000, "deadlineMs": 60_000},
    })
    tenant = gateway.tenant("hung", fcm)
    fcm.fault("hang", times=HUNG)
    load = tenant.load(count=HUNG, concurrency=HUNG).start()
    lab.wait_until("all to be in flight", lambda: gateway.metric("fcmgw_upstream_inflight") >= HUNG)
    begin = time.monotonic()
    assert gateway.stop() == 0
    ended = time.monotonic() - begin
    load.wait()
    assert load.statuses == {0: HUNG}, f"requests that hang were answered {load.statuses}"
    cut = [line for line in gateway.log_lines() if line["message"].startswith("Requests were cut off")]
    assert sum(int(line["requests"]) for line in cut) == HUNG, cut
    assert gateway.verify() == 0, gateway.verification().stdout
    gateway.start()
    records = gateway.admin("GET", "audit?limit=500&tenant=hung")["records"]
    sends = [record for record in records if record["action"] == "message.send"]
    assert len(sends) == HUNG, f"{len(sends)} records of {HUNG} sends: {json.dumps(records)[:500]}"
    return f"{HUNG} that hang cut off and logged after {ended:.1f} s (limits 0.5 s + 2 s), all audited, exit 0, verify 0"
