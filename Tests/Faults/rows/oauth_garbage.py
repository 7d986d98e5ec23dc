"""The token endpoint's answers are drips, garbage, or without end."""

from __future__ import annotations

import socket
import threading
import time

from lab import LIMIT_S, Emulator, Lab, read_request
from upstream_garbage import GIB, OK, ZEROS, drip, flood, plain, sized

FAULT = "The token endpoint drips, garbles or floods"
INJECTED = "Plain sockets in place of `/token`."
EXPECTED = (
    "Sends fail within 10 s, as `upstream_unavailable` or `upstream_credentials`. Memory grows by less than 8 MiB. "
    "When the endpoint is well again, a token is fetched after a pause of at most a minute."
)

CASES = [
    ("silence", lambda one: one.recv(1)),
    ("a head, byte by byte", drip(b"HTTP/1.1 200 OK\r\nX-Long: ", b"a")),
    ("a body, byte by byte", drip(OK + b"Content-Length: 100000\r\n\r\n", b" ")),
    ("chunks, byte by byte", drip(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n")),
    ("1 GiB with its length", flood(OK + b"Content-Length: %d\r\n\r\n" % GIB, ZEROS)),
    ("1 GiB in chunks", flood(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"100000\r\n" + ZEROS + b"\r\n")),
    ("1 GiB of one field", flood(OK + b"X-Long: ", ZEROS)),
    ("1 GiB of fields", flood(OK, b"X-Field: value\r\n" * 65_536)),
    ("1 GiB of informational heads", flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 40_000)),
    ("no HTTP", plain(b"\x16\x03\x01garbage\r\n\r\n" * 20)),
    ("a body that is no JSON", plain(sized(b"\xff\xfe not JSON"))),
    ("a token with line ends", plain(sized(b'{"access_token":"a\\r\\nHost: b","expires_in":3600}'))),
    ("a life without end", plain(sized(b'{"access_token":"a","expires_in":9223372036854775807}'))),
    ("a life that has ended", plain(sized(b'{"access_token":"a","expires_in":-1}'))),
]


def run(lab: Lab) -> str:
    fcm = lab.emulator()
    broken = [True] * len(CASES)
    stubs = []
    for number, (_, answer) in enumerate(CASES):

        def serve(one: socket.socket, number: int = number, answer=answer) -> None:
            first, headers, body = read_request(one)
            if broken[number]:
                answer(one)
            else:
                relay(one, fcm, first, headers, body)

        stubs.append(lab.stub(serve))
    gateway = lab.gateway({"upstream": {"allowedTokenHosts": [f"127.0.0.1:{stub.port}" for stub in stubs]}})
    tenants = []
    for number, stub in enumerate(stubs):
        account = fcm.account(f"project-{number}", token_uri=f"{stub.url}/token")
        tenants.append(gateway.tenant(f"case-{number}", fcm, api="v1", account=account))
    answers: dict[int, str] = {}
    slowest = 0.0
    lock = threading.Lock()

    def play(number: int) -> None:
        nonlocal slowest
        answer = tenants[number].send()
        with lock:
            slowest = max(slowest, answer.seconds)
            if answer.code not in ("upstream_unavailable", "upstream_credentials") or answer.seconds > 10.5:
                answers[number] = f"{CASES[number][0]}: {answer}"

    with gateway.memory() as memory:
        threads = [threading.Thread(target=play, args=(number,)) for number in range(len(CASES))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(LIMIT_S)
        growth = memory.growth_mib
    assert not answers, "; ".join(answers.values())
    assert growth < 8, f"memory grew by {growth:.1f} MiB"
    broken[:] = [False] * len(CASES)
    begin = time.monotonic()
    for number, tenant in enumerate(tenants):
        lab.wait_until(f"a token after {CASES[number][0]}", lambda: tenant.send().status == 200, 61, pause=0.1)
    return (
        f"{len(CASES)} kinds of answers at once: sends fail within {slowest:.1f} s, memory +{growth:.1f} MiB; all had a "
        f"token {time.monotonic() - begin:.1f} s after the endpoint was well"
    )


def relay(one: socket.socket, fcm: Emulator, first: str, headers: dict[str, str], body: bytes) -> None:
    head = "\r\n".join([first, *(f"{name}: {value}" for name, value in headers.items() if name != "connection")])
    with socket.create_connection(("127.0.0.1", fcm.port), LIMIT_S) as other:
        other.sendall(head.encode() + b"\r\nconnection: close\r\n\r\n" + body)
        while part := other.recv(65536):
            one.sendall(part)
