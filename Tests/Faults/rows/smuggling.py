"""Requests that two readers could take in two ways: to both listeners, and through HAProxy and nginx."""

from __future__ import annotations

import collections
import contextlib
import json
import re
import socket
import threading
from dataclasses import dataclass
from pathlib import Path

from lab import Gateway, Lab, Stub, connect, raw

FAULT = "Request smuggling"
INJECTED = "Each request of Tests/Hostile/smuggling.json, sent to both listeners, through HAProxy and through nginx."
EXPECTED = (
    "Each request is refused or answered once, as the table says. Behind a proxy, the gateway serves no request that "
    "the proxy did not see."
)

TABLE = Path(__file__).resolve().parents[2] / "Hostile/smuggling.json"
# The id of every request that is hidden in another one.
HIDDEN = "smuggled"

HAPROXY = """
global
    log stdout format raw local0
    nbthread 1
defaults
    mode http
    log global
    timeout connect 2s
    timeout client 3s
    timeout server 5s
    timeout http-request 2s
    timeout http-keep-alive 2s
    http-reuse always
frontend front
    bind 127.0.0.1:@port@
    http-request capture req.hdr(X-Request-ID) len 64
    log-format "front %ST %s %[capture.req.hdr(0)]"
    default_backend back
backend back
    server gateway 127.0.0.1:@gateway@ pool-max-conn 1
"""

NGINX = """
worker_processes 1;
pid @folder@/nginx.pid;
error_log stderr error;
events {}
http {
    log_format front 'front $status $upstream_status $http_x_request_id';
    access_log /dev/stdout front;
    client_body_temp_path @folder@/nginx-body;
    proxy_temp_path @folder@/nginx-proxy;
    fastcgi_temp_path @folder@/nginx-fastcgi;
    uwsgi_temp_path @folder@/nginx-uwsgi;
    scgi_temp_path @folder@/nginx-scgi;
    client_header_timeout 2s;
    client_body_timeout 2s;
    keepalive_timeout 2s;
    client_max_body_size 8m;
    upstream gateway {
        server 127.0.0.1:@gateway@;
        keepalive 1;
    }
    server {
        listen 127.0.0.1:@port@;
        location / {
            proxy_pass http://gateway;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host $http_host;
        }
    }
}
"""


@dataclass
class Seen:
    """What became of one exchange, by request id; an id nobody gave is ''."""

    client: list[tuple[int, str]]
    """Status and id of each answer the client got."""
    front: list[tuple[str, bool, str]]
    """Status, whether it went to the gateway, and id of each request the front logged."""
    gateway: list[str]
    """The id of each request the gateway answered."""
    refused: int
    """How many requests the gateway refused before it knew an id."""


class Relay:
    """Passes bytes on to the gateway and counts the connections that do so."""

    def __init__(self, lab: Lab, port: int) -> None:
        self.port = port
        self.stub = lab.stub(self._pass)

    def _pass(self, one: socket.socket) -> None:
        with connect(("127.0.0.1", self.port)) as other:
            back = threading.Thread(target=self._copy, args=(other, one), daemon=True)
            back.start()
            self._copy(one, other)
            back.join()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while part := source.recv(65536):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)


def run(lab: Lab) -> str:
    table = json.loads(TABLE.read_text())
    gateway = lab.gateway({"eventLoops": 1})
    for listener, port in (("data", gateway.port), ("admin", gateway.admin_port)):
        for number, entry in enumerate(table):
            direct(entry, f"{listener}{number}", port)
    reports = [f"{len(table)} requests: {sum('refused' in one for one in table)} refused, "
               f"{sum('refused' not in one for one in table)} answered once, on both listeners"]
    for name, start in (("HAProxy", lambda port: lab.haproxy(HAPROXY, gateway=port)),
                        ("nginx", lambda port: lab.nginx(NGINX, gateway=port))):
        relay = Relay(lab, gateway.port)
        proxy = start(relay.stub.port)
        log = lab.folder / next(file.name for file in lab.folder.glob(f"{name.lower()}-*.log"))
        front = Front(name, gateway, proxy.port, log)
        counts: collections.Counter[str] = collections.Counter()
        for number, entry in enumerate(table):
            counts[front.judge(entry, f"{name.lower()}{number}")] += 1
        requests = sum(one[1] for one in front.all)
        assert relay.stub.connections * 2 < requests, f"{name}: {requests} requests over {relay.stub.connections} connections"
        reports.append(
            f"{name}: {counts['front']} refused by it, {counts['gateway']} by the gateway, {counts['answered']} answered; "
            f"{requests} requests over {relay.stub.connections} connections"
        )
    return "; ".join(reports)


def wire(text: str, own: str) -> bytes:
    for name in ("own", "second"):
        text = text.replace(f"@{name}@", f"{name}-{own}")
    # As long as its place, so that lengths in the table hold.
    return text.replace("@hidden@", HIDDEN).encode("latin-1")


def probe(identifier: str) -> bytes:
    return f"GET /v1/probe HTTP/1.1\r\nHost: a\r\nX-Request-ID: {identifier}\r\nConnection: close\r\n\r\n".encode()


def direct(entry: dict, own: str, port: int) -> None:
    """Sends a request and one behind it, and compares with what the table requires."""
    answers = parsed(raw(("127.0.0.1", port), wire(entry["request"], own) + probe(f"probe-{own}"), timeout=20))
    expected: list[tuple[int, str]] = [(0, f"{name}-{own}") for name in entry.get("answered", [])]
    if "refused" in entry:
        expected.append((entry["refused"], ""))
    elif not entry.get("closes"):
        expected.append((0, f"probe-{own}"))
    # A refusal has an id as well, which the gateway made.
    found = [(0, one) if one.endswith(f"-{own}") else (status, "") for status, one in answers]
    assert found == expected, f"{entry['topic']}, {entry['name']}, {own}: {answers}, not {expected}"


def parsed(data: bytes) -> list[tuple[int, str]]:
    """Status and id of every final answer in what a client received, each told by its own length."""
    answers = []
    while data:
        head, separator, rest = data.partition(b"\r\n\r\n")
        if not separator or not head.startswith(b"HTTP/1."):
            answers.append((0, ""))
            break
        status = int(head[9:12])
        identifier = re.search(rb"(?im)^x-request-id: *(\S*)", head)
        length = re.search(rb"(?im)^content-length: *(\d+)", head)
        if status >= 200:
            answers.append((status, identifier[1].decode() if identifier else ""))
        # An answer to HEAD has a length and no body: the next answer follows at once.
        data = rest if rest.startswith(b"HTTP/1.") or not length else rest[int(length[1]):]
    return answers


class Front:
    """A proxy before the gateway, and the logs of both."""

    def __init__(self, name: str, gateway: Gateway, port: int, log: Path) -> None:
        self.name, self.gateway, self.port, self.log = name, gateway, port, log
        self.all: list[tuple[str, bool, str]] = []
        self.position = log.stat().st_size
        self.gateway_log = gateway.lab.folder / gateway.log
        self.gateway_position = self.gateway_log.stat().st_size

    def judge(self, entry: dict, own: str) -> str:
        """Sends one request through the proxy; returns who answered it."""
        seen = self.exchange(wire(entry["request"], own), own)
        what = f"{self.name}: {entry['topic']}, {entry['name']}: {seen}"
        passed = [identifier for _, went, identifier in seen.front if went]
        # What the gateway served, the proxy had sent on, under the same id and as often.
        given = collections.Counter(one for one in seen.gateway if one == HIDDEN or one.endswith(f"-{own}"))
        assert given <= collections.Counter(passed), what
        assert len(seen.gateway) + seen.refused <= len(passed), what
        # The client got one answer for each request that the proxy knows of; some of its own refusals it keeps.
        assert len(passed) <= len(seen.client) <= len(seen.front), what
        # The answers are the sender's own, in the order that the requests had.
        order = [f"{name}-{own}" for name in ("own", "second", "probe", "after")]
        identifiers = [identifier for _, identifier in seen.client if identifier in order]
        assert identifiers == sorted(identifiers, key=order.index) and len(set(identifiers)) == len(identifiers), what
        # The next request over the connection that the proxy kept gets its own answer.
        assert seen.client[-1][1] == f"after-{own}", what
        if any(identifier in order[:2] for identifier in identifiers):
            return "answered"
        return "gateway" if seen.refused else "answered" if len(seen.gateway) > 1 else "front"

    def exchange(self, request: bytes, own: str) -> Seen:
        before = self.gateway.metric("fcmgw_http_rejected_total")
        address = ("127.0.0.1", self.port)
        client = parsed(raw(address, request + probe(f"probe-{own}"), timeout=20))
        client += parsed(raw(address, probe(f"after-{own}"), timeout=20))
        self.gateway.lab.wait_until(f"{self.name}'s log", lambda: f"after-{own}" in self._new(self.log, self.position))
        self.gateway.lab.wait_until(
            "the gateway's log", lambda: f"after-{own}" in self._new(self.gateway_log, self.gateway_position)
        )
        lines = [line.split(" ") for line in self._new(self.log, self.position).splitlines() if line.startswith("front ")]
        front = [(one[1], one[2] not in ("-", "<NOSRV>"), one[3].strip('"-') if one[3:] else "") for one in lines]
        answered = [
            json.loads(line) for line in self._new(self.gateway_log, self.gateway_position).splitlines()
            if '"Request answered"' in line
        ]
        self.position, self.gateway_position = self.log.stat().st_size, self.gateway_log.stat().st_size
        self.all += front
        refused = int(self.gateway.metric("fcmgw_http_rejected_total") - before)
        return Seen(client, front, [str(one["request_id"]) for one in answered], refused)

    @staticmethod
    def _new(log: Path, position: int) -> str:
        with log.open("rb") as file:
            file.seek(position)
            return file.read().decode(errors="replace")
