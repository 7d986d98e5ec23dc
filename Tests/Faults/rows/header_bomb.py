"""A million header fields, streamed without an end in sight."""

from __future__ import annotations

import contextlib
import time

from lab import Gateway, Lab, connect

FAULT = "A header bomb"
INJECTED = "1,000,000 fields streamed to each listener, then 20 times more."
EXPECTED = "The sender can read a 431, the connection is closed, and memory stays flat."

FIELDS = 1_000_000
# What was held of the bombs would be 10 MiB for each.
GROWTH_MIB = 16


def run(lab: Lab) -> str:
    gateway = lab.gateway()
    for port in (gateway.port, gateway.admin_port):
        bomb(port)
    seen = []
    with gateway.memory() as memory:
        for listener, port in (("data", gateway.port), ("admin", gateway.admin_port)):
            sent, seconds = bomb(port)
            seen.append(f"{listener}: 431 and closed after {sent:,} of {FIELDS:,} fields, {seconds * 1000:.0f} ms")
        for _ in range(20):
            bomb(gateway.port)
    assert memory.growth_mib < GROWTH_MIB, f"RSS grew by {memory.growth_mib:.1f} MiB"
    count = gateway.metrics()['fcmgw_http_rejected_total{reason="header_too_large"}']
    assert count == 24, f"{count} counted"
    check_served(gateway)
    return "; ".join(seen) + f"; RSS +{memory.growth_mib:.1f} MiB over 22 bombs"


def bomb(port: int) -> tuple[int, float]:
    """Streams fields until the listener has had enough; returns how many were sent, and how long that took."""
    start = time.monotonic()
    sent = 0
    with connect(("127.0.0.1", port)) as one:
        one.settimeout(10)
        with contextlib.suppress(ConnectionError):
            one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n")
            while sent < FIELDS:
                one.sendall(b"".join(b"X-%d: y\r\n" % number for number in range(sent, sent + 1_000)))
                sent += 1_000
            one.sendall(b"\r\n")
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := one.recv(65536):
                received += part
    assert received.startswith(b"HTTP/1.1 431 "), received[:200]
    assert b"\r\nConnection: close\r\n" in received and b'"header_too_large"' in received, received
    assert received.count(b"HTTP/1.1 ") == 1, received
    return sent, time.monotonic() - start


def check_served(gateway: Gateway) -> None:
    answer = gateway.try_admin("GET", "tenants")
    assert answer.status == 200, answer
