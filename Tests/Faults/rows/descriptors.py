"""Gateways that may have 64 file descriptors, and more callers than that.

One that is started with so few lets in as many callers as leave it enough. One that loses the others while it runs has no
plan for that, and has to survive it.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import time

from lab import Gateway, Lab, Tenant, call, connect

FAULT = "File descriptors run out"
INJECTED = (
    "400 connections that stay open: to a gateway started with `ulimit -n 64`, and to one whose limit drops to 64 "
    "while it runs."
)
EXPECTED = (
    "The first gateway refuses connections and has descriptors left. The second keeps its listener, serves open "
    "sessions, accepts callers again when descriptors are free, and logs one line."
)

HELD = 400
LIMIT = 64
# Of these, for callers.
CALLERS = 12
SENDS = 200
CONFIG = {"eventLoops": 1, "http": {"headTimeoutMs": 60000}}


def run(lab: Lab) -> str:
    return f"{planned(lab)}; {exhausted(lab)}"


def planned(lab: Lab) -> str:
    gateway = lab.gateway(CONFIG, prefix=["prlimit", f"--nofile={LIMIT}"])
    operators = http.client.HTTPConnection("127.0.0.1", gateway.admin_port, timeout=20)
    with contextlib.ExitStack() as stack:
        for number in range(HELD):
            stack.enter_context(connect(("127.0.0.1", gateway.port)))
        lab.wait_until("callers to be refused", lambda: turned_away(operators, "too_many_connections") >= HELD - CALLERS)
        refused, descriptors = turned_away(operators, "too_many_connections"), gateway.descriptors()
        assert descriptors < LIMIT and turned_away(operators) == 0, f"{descriptors} descriptors are open"
    lab.wait_until("new callers to be served", lambda: call("GET", gateway.url + "/v1/x").status == 404)
    gateway.stop()
    return f"the first refused {refused} of {HELD} with {descriptors} descriptors open"


def exhausted(lab: Lab) -> str:
    fcm = lab.emulator()
    gateway = lab.gateway(CONFIG)
    tenant = gateway.tenant("demo", fcm)
    session = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    operators = http.client.HTTPConnection("127.0.0.1", gateway.admin_port, timeout=20)
    send(session, tenant)
    turned_away(operators)
    subprocess.run(["prlimit", "--pid", str(gateway.pid), f"--nofile={LIMIT}:"], check=True, timeout=60)
    lines = len(gateway.log_lines())
    with contextlib.ExitStack() as stack:
        held: list[socket.socket] = []
        for number in range(HELD):
            held.append(stack.enter_context(connect(("127.0.0.1", gateway.port))))
        lab.wait_until("callers to be turned away", lambda: turned_away(operators) >= HELD - LIMIT)
        before = cpu_seconds(gateway)
        start = time.monotonic()
        slowest = max(send(session, tenant) for _ in range(SENDS))
        share = (cpu_seconds(gateway) - before) / (time.monotonic() - start)
        # Idle again, the gateway must not spin for want of a descriptor.
        before, start = cpu_seconds(gateway), time.monotonic()
        time.sleep(1)
        idle = (cpu_seconds(gateway) - before) / (time.monotonic() - start)
        assert idle < 0.2, f"{idle:.0%} of a core while nothing happened"
        away = turned_away(operators)
        descriptors = gateway.descriptors()
    seconds = lab.wait_until("new callers to be served", lambda: call("GET", gateway.url + "/v1/x").status == 404)
    send(session, tenant)
    new = [line for line in gateway.log_lines()[lines:] if line.get("message") != "Request answered"]
    assert len([line for line in new if "descriptor" in line["message"]]) == 1 and len(new) < 5, new
    return (
        f"the second turned away {away} of {HELD} with {descriptors} descriptors open; {SENDS} sends over an open session, slowest "
        f"{slowest * 1000:.0f} ms, at {share:.0%} of a core ({idle:.0%} when idle); new callers served {seconds:.2f} s after; "
        f"{len(new)} line of log"
    )


def send(session: http.client.HTTPConnection, tenant: Tenant) -> float:
    start = time.monotonic()
    session.request("POST", f"/v1/tenants/{tenant.name}/messages", tenant.message(), tenant.headers)
    response = session.getresponse()
    body = response.read()
    assert response.status == 200, (response.status, json.loads(body))
    return time.monotonic() - start


def turned_away(operators: http.client.HTTPConnection, reason: str = "out_of_descriptors") -> int:
    operators.request("GET", "/metrics")
    for line in operators.getresponse().read().decode().splitlines():
        if line.startswith(f'fcmgw_http_rejected_total{{reason="{reason}"}}'):
            return int(line.split()[-1])
    return 0


def cpu_seconds(gateway: Gateway) -> float:
    with open(f"/proc/{gateway.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100
