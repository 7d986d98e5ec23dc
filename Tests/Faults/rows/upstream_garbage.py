"""FCM's answers are drips, garbage, or without end."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable

from lab import Lab, read_request

FAULT = "FCM's answer drips, is garbage, or is 1 GiB long"
INJECTED = "Plain sockets that answer in these ways."
EXPECTED = (
    "The attempt fails within 10 s, as `upstream_protocol` if the answer can't be read. It is not retried. Redirects "
    "are not followed. Memory grows by less than 8 MiB."
)

GIB = 1 << 30
MIB = 1 << 20
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


def drip(before: bytes, part: bytes, pause: float = 0.25) -> Callable[[socket.socket], int]:
    def answer(one: socket.socket) -> int:
        one.sendall(before)
        for number in range(400):
            one.sendall(part)
            time.sleep(pause)
        return 0
    return answer


def flood(before: bytes, part: bytes, total: int = GIB) -> Callable[[socket.socket], int]:
    def answer(one: socket.socket) -> int:
        sent = one.send(before)
        with contextlib.suppress(OSError):
            while sent < total:
                sent += one.send(part)
        return sent
    return answer


def plain(data: bytes) -> Callable[[socket.socket], int]:
    def answer(one: socket.socket) -> int:
        one.sendall(data)
        time.sleep(0.2)
        return len(data)
    return answer


def sized(body: bytes, head: bytes = OK) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n" % len(body) + body


ZEROS = b"0" * MIB
# What comes, and the codes that callers may get.
CASES: list[tuple[str, Callable[[socket.socket], int], str]] = [
    ("a head, byte by byte", drip(b"HTTP/1.1 200 OK\r\nX-Long: ", b"a"), "outcome_unknown"),
    ("a body, byte by byte", drip(OK + b"Content-Length: 10000\r\n\r\n", b"a"), "outcome_unknown"),
    ("chunks, byte by byte", drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"), "outcome_unknown"),
    ("1 GiB with its length", flood(OK + b"Content-Length: %d\r\n\r\n" % GIB, ZEROS), "upstream_protocol"),
    ("1 GiB in chunks", flood(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + ZEROS + b"\r\n"),
     "upstream_protocol"),
    ("1 GiB in chunks of a byte", flood(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 100_000),
     "upstream_protocol"),
    ("1 GiB until the connection's end", flood(OK + b"\r\n", ZEROS), "upstream_protocol"),
    ("1 GiB of one field", flood(OK + b"X-Long: ", ZEROS), "upstream_protocol"),
    ("1 GiB of fields", flood(OK, b"X-Field: value\r\n" * 65_536), "upstream_protocol"),
    ("1 GiB of a chunk's extension", flood(OK + b"Transfer-Encoding: chunked\r\n\r\n1;", ZEROS), "upstream_protocol"),
    ("1 GiB of informational heads", flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000), "upstream_protocol"),
    ("1 GiB of line ends", flood(b"", b"\r\n" * 500_000), "upstream_protocol"),
    ("no HTTP", plain(b"\x16\x03\x01garbage\r\n\r\n" * 20), "upstream_protocol"),
    ("two lengths", plain(OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x"), "upstream_protocol"),
    ("a length and chunks", plain(OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
     "upstream_protocol"),
    ("a body that is no JSON", plain(sized(b"\xff\xfe not JSON")), "upstream_protocol"),
    ("a page for people", plain(sized(b"<html>hello</html>", OK.replace(b"application/json", b"text/html"))),
     "upstream_protocol"),
    ("JSON of 100,000 brackets", plain(sized(b"[" * 100_000)), "upstream_protocol"),
    ("an empty object", plain(sized(b"{}")), "upstream_protocol"),
    ("results of another number", plain(sized(b'{"multicast_id":1,"success":2,"failure":0,"canonical_ids":0,"results":'
                                              b'[{"message_id":"1"},{"message_id":"2"}]}')), "upstream_protocol"),
]
REDIRECTS = (301, 302, 307, 308)


def run(lab: Lab) -> str:
    gateway = lab.gateway()
    # A tenant each, so that no breaker opens for another's case.
    slowest, largest, sent_most = 0.0, 0.0, 0
    loads = []
    warm = lab.stub(lambda one: [read_request(one), one.sendall(sized(b"{}"))])
    gateway.tenant("warm", warm).load(count=4, concurrency=4).run()
    for number, (what, answer, expected) in enumerate(CASES):
        requests, sent = [], []

        def serve(one: socket.socket, answer=answer, requests=requests, sent=sent) -> None:
            read_request(one)
            requests.append(one)
            sent.append(answer(one))

        tenant = gateway.tenant(f"case-{number}", lab.stub(serve))
        if answer.__qualname__.startswith("drip"):
            # They take their time: all of them at once.
            loads.append((what, tenant.load(count=1, concurrency=1).start(), expected, requests))
            continue
        with gateway.memory() as memory:
            reply = tenant.send()
            growth = memory.growth_mib
        check(what, reply, expected, requests)
        assert growth < 8, f"{what}: memory grew by {growth:.1f} MiB"
        slowest, largest = max(slowest, reply.seconds), max(largest, growth)
        if answer.__qualname__.startswith("flood"):
            lab.wait_until(f"the end of {what}", lambda: sent)
            sent_most = max(sent_most, sent[0])
            assert sent[0] < 64 * MIB, f"{what}: {sent[0] / MIB:.0f} MiB were taken"
    dripped = []
    for what, load, expected, requests in loads:
        (reply,) = load.wait().answers
        check(what, reply, expected, requests)
        dripped.append(reply.seconds)
    redirects(lab, gateway)
    return (
        f"{len(CASES)} kinds of answers: drips end after {min(dripped):.1f} to {max(dripped):.1f} s, the others after "
        f"{slowest * 1000:.0f} ms at most; memory +{largest:.1f} MiB at most; of 1 GiB, {sent_most / MIB:.1f} MiB at most "
        f"left the server; {len(REDIRECTS)} redirects not followed"
    )


def check(what: str, reply, expected: str, requests: list) -> None:
    assert reply.code == expected, f"{what}: {reply}"
    assert reply.seconds < 10.5, f"{what}: {reply}"
    assert len(requests) == 1, f"{what}: {len(requests)} calls"


def redirects(lab: Lab, gateway) -> None:
    elsewhere = lab.stub(lambda one: None)
    for status in REDIRECTS:
        address = elsewhere.url.encode() + b"/fcm/send"
        head = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, address)
        stub = lab.stub(lambda one, head=head: [read_request(one), one.sendall(head)])
        reply = gateway.tenant(f"redirect-{status}", stub).send()
        assert reply.code == "upstream_protocol", f"{status}: {reply}"
    assert elsewhere.connections == 0, "a redirect was followed"
