"""Heads, targets and bodies beyond their bounds, and bytes that are no HTTP, on both listeners."""

from __future__ import annotations

import contextlib

from lab import Lab, connect

FAULT = "Oversized or malformed requests"
INJECTED = (
    "Heads, fields, targets, bodies, chunks and extensions beyond their bounds, and bytes that are no HTTP, on both "
    "listeners."
)
EXPECTED = "The sender can read a 413, 414, 431 or 400, and the connection is closed."

SEND = "/v1/tenants/demo/messages"
KIB = 1024
CHUNKED = f"POST {SEND} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


def head(*fields: str, line: str = f"POST {SEND} HTTP/1.1") -> str:
    return "\r\n".join([line, "Host: a", *fields, "", ""])


# What is sent, and the status; both listeners have the same bounds but for the body, 1 MiB on the data listener's sends.
CASES = [
    ("a target over 4 KiB", head(line=f"GET /{'u' * 4096} HTTP/1.1"), 414),
    ("a target of 1 MiB", head(line=f"GET /{'u' * KIB * KIB} HTTP/1.1"), 414),
    ("a field over 8 KiB", head(f"F: {'f' * 8 * KIB}"), 431),
    ("a field of 1 MiB", head(f"F: {'f' * KIB * KIB}"), 431),
    ("65 fields", head(*(f"F{number}: f" for number in range(64))), 431),
    ("a head over 16 KiB", head(*(f"F{number}: {'f' * 800}" for number in range(21))), 431),
    ("a length over 1 MiB", head("Content-Length: 1048577") + "b" * 1_048_577, 413),
    ("a length beyond any number", head("Content-Length: " + "9" * 40), 413),
    ("chunks over 1 MiB", CHUNKED + ("10000\r\n" + "b" * 65536 + "\r\n") * 20, 413),
    ("a chunk of 2 GiB", CHUNKED + "80000000\r\n" + "b" * 4 * KIB * KIB, 413),
    ("an extension of 1 MiB", CHUNKED + "1;" + "x" * KIB * KIB, 413),
    ("single bytes in chunks of 10 KiB of extensions", CHUNKED + ("1;" + "x" * 10 * KIB + "\r\nb\r\n") * 10, 413),
    ("trailers of 1 MiB", CHUNKED + "0\r\n" + "T: t\r\n" * 175_000, 413),
    ("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + "\x00" * 500, 400),
    ("zeros", "\x00" * 100_000, 400),
    ("line ends", "\r\n" * 100_000, 431),
    ("a line without an end", "A" * KIB * KIB, 414),
]


def run(lab: Lab) -> str:
    gateway = lab.gateway()
    with gateway.memory() as memory:
        for port in (gateway.port, gateway.admin_port):
            for name, text, status in CASES:
                received = refused(port, text.encode("latin-1"))
                answer = received.split(b"\r\n")[0].decode(errors="replace")
                assert answer.startswith(f"HTTP/1.1 {status} "), f"{name}: {answer or 'no answer'}, not {status}"
                assert b"\r\nConnection: close\r\n" in received, f"{name}: {received[:300]!r}"
                assert received.count(b"HTTP/1.1 ") == 1, f"{name}: {received[:600]!r}"
    assert memory.growth_mib < 24, f"RSS grew by {memory.growth_mib:.1f} MiB"
    counted = int(gateway.metric("fcmgw_http_rejected_total"))
    assert counted >= 2 * len(CASES), f"{counted} counted"
    assert gateway.try_admin("GET", "tenants").status == 200
    return f"{len(CASES)} kinds on both listeners, each refused as expected and closed; RSS +{memory.growth_mib:.1f} MiB"


def refused(port: int, data: bytes) -> bytes:
    """What comes back before the connection ends, as a client sees it that sends everything before it reads."""
    received = b""
    with connect(("127.0.0.1", port), 15) as one:
        with contextlib.suppress(ConnectionError):
            one.sendall(data)
        with contextlib.suppress(ConnectionError):
            while part := one.recv(65536):
                received += part
    return received
