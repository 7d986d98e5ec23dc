"""Peers that are slow with a head, with a body or with reading, on both listeners, in real time."""

from __future__ import annotations

import contextlib
import socket
import time
from concurrent.futures import ThreadPoolExecutor

from lab import Gateway, Lab, call, connect

FAULT = "Slow heads, bodies or readers"
INJECTED = (
    "Heads and bodies at a byte a second, silence, and readers that read nothing or little, on both listeners at "
    "once."
)
EXPECTED = (
    "Connections are closed on time: head 5 s, body 10 s, writing 10 s without progress, idle 75 s. Other callers are "
    "served meanwhile."
)

# How much later than its deadline a connection may end, on a machine that is busy with others.
SLACK_S = 3
REQUEST = b"GET /v1/x HTTP/1.1\r\nHost: a\r\n\r\n"


def run(lab: Lab) -> str:
    gateway = lab.gateway()
    # How each is slow, the shortest and longest time it may be held, and the answer.
    cases = [("silence", silence, 5, 5, 408), ("dripping head", dripping_head, 5, 5, 408),
             ("dripping body", dripping_body, 10, 10, 408), ("dripping chunks", dripping_chunks, 10, 10, 408),
             ("no reader", lambda port: slow_reader(port, 0), 10, 10, None),
             # What the kernel still had room for may count as read in the first span.
             ("drop by drop reader", lambda port: slow_reader(port, 64), 10, 20, None), ("idle", idle, 75, 75, None)]
    seen: dict[str, list[float]] = {}
    with ThreadPoolExecutor(max_workers=2 * len(cases) + 1) as pool:
        running = [(case, pool.submit(case[1], port)) for case in cases for port in (gateway.port, gateway.admin_port)]
        others = pool.submit(serve_others, gateway, 30)
        for (name, _, shortest, longest, status), future in running:
            seconds, received = future.result(timeout=120)
            assert shortest - 0.5 <= seconds <= longest + SLACK_S, f"{name}: closed after {seconds:.1f} s, not {longest} s"
            if status:
                assert received.startswith(f"HTTP/1.1 {status} ".encode()), f"{name}: {received[:200]!r}"
                assert b"\r\nConnection: close\r\n" in received, f"{name}: {received[:300]!r}"
            seen.setdefault(name, []).append(seconds)
        slowest = others.result(timeout=120)
    assert slowest < 1, f"others waited up to {slowest:.2f} s"
    counted = {reason: gateway.metrics().get(f'fcmgw_http_rejected_total{{reason="{reason}"}}')
               for reason in ("head_timeout", "body_timeout", "write_stalled")}
    assert list(counted.values()) == [4, 4, 4], counted
    figures = ", ".join(f"{name} {min(times):.1f} and {max(times):.1f} s" for name, times in seen.items())
    return f"closed after (by the listeners): {figures}; others waited {slowest * 1000:.0f} ms at most"


def until_closed(one: socket.socket, start: float, drip: bytes = b"", every: float = 1) -> tuple[float, bytes]:
    """Waits for the end of a connection, sending a drop now and then; returns when it came and what was said."""
    received = b""
    one.settimeout(every)
    while time.monotonic() - start < 100:
        try:
            part = one.recv(65536)
            received += part
            if not part:
                break
        except TimeoutError:
            if drip:
                with contextlib.suppress(ConnectionError):
                    one.send(drip)
        except ConnectionError:
            break
    return time.monotonic() - start, received


def silence(port: int) -> tuple[float, bytes]:
    with connect(("127.0.0.1", port)) as one:
        return until_closed(one, time.monotonic())


def dripping_head(port: int) -> tuple[float, bytes]:
    with connect(("127.0.0.1", port)) as one:
        start = time.monotonic()
        one.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        return until_closed(one, start, b"y", 0.5)


def dripping_body(port: int) -> tuple[float, bytes]:
    with connect(("127.0.0.1", port)) as one:
        one.sendall(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n")
        return until_closed(one, time.monotonic(), b"b", 0.5)


def dripping_chunks(port: int) -> tuple[float, bytes]:
    with connect(("127.0.0.1", port)) as one:
        one.sendall(b"POST /v1/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        return until_closed(one, time.monotonic(), b"1\r\nb\r\n", 0.5)


def idle(port: int) -> tuple[float, bytes]:
    with connect(("127.0.0.1", port)) as one:
        one.sendall(REQUEST)
        return until_closed(one, time.monotonic())


def slow_reader(port: int, drop: int) -> tuple[float, bytes]:
    """Asks a great deal and reads little of it; a connection that the listener gave up has its answers cut off."""
    with socket.socket() as one:
        # Little room on the way, so that the listener notices soon.
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 536)
        one.connect(("127.0.0.1", port))
        one.setblocking(False)
        requests = memoryview(REQUEST * 200_000)
        last = start = time.monotonic()
        received = b""
        while time.monotonic() - start < 100:
            try:
                requests = requests[one.send(requests):]
                last = time.monotonic()
            except BlockingIOError:
                pass
            except ConnectionError:
                break
            if time.monotonic() - last > 0.2:
                # Both ways are full: from here on the listener waits.
                if drop:
                    with contextlib.suppress(BlockingIOError):
                        received += one.recv(drop)
                time.sleep(0.2)
        return time.monotonic() - last, received


def serve_others(gateway: Gateway, seconds: float) -> float:
    """Calls both listeners all the while; returns how long the slowest call took."""
    slowest = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answers = call("GET", gateway.url + "/v1/x"), gateway.try_admin("GET", "tenants")
        assert [answer.status for answer in answers] == [404, 200], answers
        slowest = max(slowest, *(answer.seconds for answer in answers))
        time.sleep(0.05)
    return slowest
