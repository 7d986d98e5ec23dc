"""Connections to FCM are reset: before a request has left, and after."""

from __future__ import annotations

import json
import socket
import threading

from lab import Emulator, Gateway, Lab, Tenant, read_request, reset, v1_upstream

FAULT = "Connections are reset before a request has left, and after"
INJECTED = (
    "Servers that reset idle connections, TLS handshakes, and requests that they have read; HTTP/2 streams that are "
    "refused."
)
EXPECTED = (
    "A request that had not left is sent over another connection, once. A request that had left gets "
    "`outcome_unknown` and reaches FCM once. Nothing arrives twice."
)

MESSAGES = 200
ANSWER = b'{"multicast_id":1,"success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"0:1%1"}]}'
REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(ANSWER), ANSWER)


def run(lab: Lab) -> str:
    plain, tls = lab.emulator(), lab.emulator(tls=True)
    gateway = lab.gateway({"upstream": v1_upstream(tls)})
    legacy, v1 = gateway.tenant("legacy", plain), gateway.tenant("v1", tls, api="v1")
    for tenant in (legacy, v1):
        # An access token and a connection are there before anything goes wrong.
        answer = tenant.send()
        assert answer.status == 200, answer
    figures = [
        idle(lab, gateway),
        handshake(lab, gateway, tls),
        refused(lab, gateway),
        stream(v1, tls, "refuse", {}),
        stream(v1, tls, "goaway", {"refuse": True}),
        after(legacy, plain, "legacy"),
        after(v1, tls, "v1"),
        half_an_answer(lab, gateway),
    ]
    return "; ".join(figures)


def idle(lab: Lab, gateway: Gateway) -> str:
    """Connections that wait for their next request are reset; then the next request."""
    waiting: list[socket.socket] = []
    tokens: list[str] = []

    def serve(one: socket.socket) -> None:
        while True:
            tokens.append(json.loads(read_request(one)[2])["to"])
            one.sendall(REPLY)
            if one not in waiting:
                waiting.append(one)

    tenant = gateway.tenant("idle", lab.stub(serve))
    for _ in range(20):
        assert tenant.load(count=8, concurrency=8).run().statuses == {200: 8}
        while waiting:
            one = waiting.pop()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
            # The thread that reads it ends with it.
            one.shutdown(socket.SHUT_RD)
            lab.wait_until("the connection's end", lambda: one.fileno() < 0, pause=0.001)
    assert len(tokens) == 160, f"{len(tokens)} calls for 160 messages"
    return "160 sends over connections reset while idle: 160 × 200, 160 calls"


def handshake(lab: Lab, gateway: Gateway, tls: Emulator) -> str:
    """Two connections are reset before their handshake is over, at once and amid it; the third leads to FCM."""
    connections = 0

    def relay(one: socket.socket) -> None:
        nonlocal connections
        connections += 1
        if connections == 1:
            reset(one)
            return
        if connections == 2:
            one.recv(65536)
            reset(one)
            return
        with socket.create_connection(("127.0.0.1", tls.port)) as other:
            threading.Thread(target=copy, args=(other, one), daemon=True).start()
            copy(one, other)

    url = f"https://127.0.0.1:{lab.stub(relay).port}"
    tenant = gateway.tenant("handshake", url, api="v1", account=tls.account("project-handshake"))
    answer = tenant.send("handshake")
    assert answer.status == 200, f"handshakes that were reset: {answer}"
    assert connections == 3 and tls.hits('"handshake"') == 1, f"{connections} connections"
    return "two handshakes reset: 200 by the third connection, one call"


def copy(one: socket.socket, other: socket.socket) -> None:
    try:
        while part := one.recv(65536):
            other.sendall(part)
    except OSError:
        pass
    for end in (one, other):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def refused(lab: Lab, gateway: Gateway) -> str:
    """Nobody listens: three attempts, none of which left, at once."""
    stub = lab.stub(lambda one: None)
    stub.close()
    before = gateway.metric('fcmgw_retries_total{reason="not_sent"}')
    answer = gateway.tenant("refused", stub).send()
    assert answer.status == 503 and answer.code == "upstream_unavailable", answer
    assert answer.seconds < 1, answer
    repeats = gateway.metric('fcmgw_retries_total{reason="not_sent"}') - before
    assert repeats == 2, f"{repeats:.0f} repeats"
    return f"no listener: 503 after three attempts in {answer.seconds * 1000:.0f} ms"


def stream(tenant: Tenant, fcm: Emulator, type: str, members: dict) -> str:
    """HTTP/2 says that a request was not looked at."""
    before = len(fcm.deliveries())
    for _ in range(20):
        fcm.fault(type, **members)
        answer = tenant.send()
        assert answer.status == 200, f"{type}: {answer}"
    delivered = len(fcm.deliveries()) - before
    assert delivered == 20, f"{type}: {delivered} deliveries of 20 messages"
    name = "refused streams" if type == "refuse" else "streams refused by GOAWAY"
    return f"20 {name}: 20 × 200, 20 deliveries"


def after(tenant: Tenant, fcm: Emulator, api: str) -> str:
    """Every tenth request is reset after it was read, amid others."""
    fcm.forget()
    tokens = [f"reset-{api}-{number}" for number in range(0, MESSAGES, 10)]
    for token in tokens:
        fcm.fault("reset", token=token)
    # One by one, since over HTTP/2 a connection takes along whatever it carries.
    load = tenant.load(
        lambda number: tenant.message(f"reset-{api}-{number}"), count=MESSAGES, concurrency=1
    ).run()
    unknown = [answer for answer in load.answers if answer.status == 504 and answer.code == "outcome_unknown"]
    assert load.statuses == {200: MESSAGES - len(tokens), 504: len(tokens)}, f"{api}: {load.statuses}"
    assert [answer.number for answer in unknown] == list(range(0, MESSAGES, 10)), f"{api}: others were lost"
    bodies = [entry["body"] for entry in fcm.journal()]
    twice = [n for n in range(MESSAGES) if sum(f'"reset-{api}-{n}"' in body for body in bodies) != 1]
    assert not twice, f"{api}: not exactly one call for {twice}"
    # All at once: what is lost is unknown, and still nothing is sent twice.
    fcm.forget()
    for number in range(0, MESSAGES, 50):
        fcm.fault("reset", token=f"crowd-{number}")
    crowd = tenant.load(lambda number: tenant.message(f"crowd-{number}"), count=MESSAGES, concurrency=50).run()
    assert set(crowd.statuses) <= {200, 504}, f"{api}: {crowd.statuses} {crowd.codes}"
    bodies = [entry["body"] for entry in fcm.journal()]
    hits = [sum(f'"crowd-{number}"' in body for body in bodies) for number in range(MESSAGES)]
    assert max(hits) == 1, f"{api}: {max(hits)} calls for one message"
    return (
        f"{api}: {len(tokens)} of {MESSAGES} reset after they were read: {len(tokens)} × `outcome_unknown`, one call "
        f"each; {api}, 50 at a time: {crowd.statuses.get(504, 0)} unknown, none sent twice"
    )


def half_an_answer(lab: Lab, gateway: Gateway) -> str:
    """A reset amid the answer."""
    requests = 0

    def serve(one: socket.socket) -> None:
        nonlocal requests
        read_request(one)
        requests += 1
        one.sendall(REPLY[:-20])
        reset(one)

    answer = gateway.tenant("half", lab.stub(serve)).send()
    assert answer.status == 504 and answer.code == "outcome_unknown" and requests == 1, f"{answer}, {requests} calls"
    return "reset in the middle of the answer: `outcome_unknown`, one call"
