"""Measurements of many sends by HTTP v1 in flight over HTTP/2, against the fake FCM, which can wait, limits streams and
says GOAWAY."""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import math
import re
import ssl
import statistics
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

from gateway import UNREACHED, Gateway
from loadbench import (
    HERE, BenchError, Comparison, Options, Placement, Processes, Request, Target, call, wait_until,
)

# Limits that are checked and never reached.
LIMITS = {"tenant": UNREACHED, "device": UNREACHED}
STREAMS = 100
# Callers at once: more than calls in flight at the rate that is asked for.
CALLERS = 400
# The fake FCM remembers 10,000 requests.
JOURNALED = 9_000
PROJECT = "bench-push"


class Emulator:
    """A fake FCM that speaks TLS."""

    def __init__(self, processes: Processes, placement: Placement, program: Path, name: str) -> None:
        folder = processes.folder / name
        self.certificate = folder / "certificate.pem"
        command = [*placement.load, str(program.with_name("fcm-gateway-dev")), "emulator", "--port", "0", "--tls-dir", str(folder)]
        log = f"{name}.log"
        self.process = processes.start(command, log)
        self.port = 0

        def listens() -> bool:
            text = (processes.folder / log).read_text(errors="replace")
            if found := re.search(r"listening on 127\.0\.0\.1:(\d+)", text):
                self.port = int(found[1])
            return found is not None

        wait_until("the fake FCM", listens, 30, self.process)
        self.url = f"https://127.0.0.1:{self.port}"

    def control(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
        connection = http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=30, context=ssl._create_unverified_context()
        )
        with contextlib.closing(connection):
            connection.request(method, f"/_emulator/{path}", json.dumps(body) if body is not None else None)
            answer = connection.getresponse()
            content = answer.read()
        if not 200 <= answer.status < 300:
            raise BenchError(f"the fake FCM answers {answer.status}: {content[:200].decode(errors='replace')}")
        return json.loads(content) if content else {}


class V1Bench:
    """The rows that concern HTTP v1."""

    def __init__(
        self, processes: Processes, placement: Placement, program: Path, options: argparse.Namespace | None = None
    ) -> None:
        self.processes = processes
        self.placement = placement
        self.program = program
        self.options = options or argparse.Namespace()

    def gateway(self, name: str, port: int, certificate: Path) -> Gateway:
        settings = {
            "GATEWAY_UPSTREAM_CA_FILE": str(certificate),
            "GATEWAY_UPSTREAM_ALLOWED_TOKEN_HOSTS": f"127.0.0.1:{port}",
        }
        return Gateway(self.processes, self.program, self.placement.gateway, name, 1, settings)

    def certificate(self) -> tuple[Path, str]:
        """A certificate for nginx, and an RSA key in PEM."""
        folder = self.processes.folder
        certificate, key = folder / "stub-v1.crt", folder / "stub-v1.key"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=bench",
             "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)],
            check=True, capture_output=True, timeout=60,
        )
        return certificate, key.read_text()

    @staticmethod
    def check_multicast(request: Request) -> float:
        """Sends to a thousand devices; returns how long that took, in seconds."""
        message = json.loads(request.body.read_bytes())
        token = message.pop("token")
        message["tokens"] = [f"{token[:-7]}{number:07d}" for number in range(1000)]
        start = time.monotonic()
        status, answer = call("POST", request.url, request.headers, json.dumps(message).encode(), timeout=30)
        duration = time.monotonic() - start
        accepted = json.loads(answer).get("accepted") if status == 200 else None
        if accepted != 1000:
            text = answer[:300].decode(errors="replace")
            raise BenchError(f"status {status}, {accepted} of 1000 devices accepted: {text}")
        return duration

    # What calls in flight need

    def emulated(self, name: str, latency_ms: int) -> tuple[Emulator, Gateway, Request]:
        emulator = Emulator(self.processes, self.placement, self.program, f"fcm-of-{name}")
        emulator.control("POST", "settings", {"latency_ms": latency_ms, "max_concurrent_streams": STREAMS})
        account = emulator.control("POST", "service-accounts", {"project_id": PROJECT})
        gateway = self.gateway(name, emulator.port, emulator.certificate)
        request = gateway.tenant("bench-v1", emulator.url, LIMITS, account)
        return emulator, gateway, request

    def multicast_latency(self) -> list[str]:
        """How long a list takes while each call does."""
        emulator, gateway, request = self.emulated("gateway-v1-list", 100)
        self.check_multicast(request)
        durations = [self.check_multicast(request) for _ in range(5)]
        gateway.stop()
        self.processes.stop(emulator.process)
        return [f"{statistics.median(durations):.2f} s ({min(durations):.2f} to {max(durations):.2f})"]

    def sustained(self) -> list[str]:
        """As many sends as go through, and what they need; then as many as the journal holds, counted one by one."""
        emulator, gateway, request = self.emulated("gateway-v1-sends", 50)
        target = Target("gateway", request, gateway.pid)
        seconds = max(5, self.options.secs)
        options = Options(
            rounds=1, seconds=seconds, placement=self.placement, lua=HERE / "tokens.lua", connections=CALLERS,
            latency_rate=0,
        )
        comparison = Comparison(self.processes, [target], options)
        comparison.load(target, 1)
        load = comparison.load(target, seconds)
        if load is None or comparison.complaints:
            raise BenchError(comparison.complaints[0] if comparison.complaints else "no answer")
        report = emulator.control("GET", "connections")
        used = [c for c in report["connections"] if c["protocol"] == "h2" and c["max_streams"] > 0]
        # By the calls in flight at the highest moment.
        needed = math.ceil(report["max_streams"] / STREAMS)
        failed = self.failed_attempts(gateway)
        emulator.control("POST", "settings", {"goaway_every_ms": 1000, "latency_ms": 50})
        lost, doubled, rounds = self.count_one_by_one(emulator, request)
        gateway.stop()
        self.processes.stop(emulator.process)
        return [
            f"{load.requests_per_second:.0f}/s, {load.cpu_microseconds:.0f} µs of CPU each",
            f"{len(used)} for {needed}; at most {max(c['max_streams'] for c in used)} streams on one; {failed} failed",
            f"{lost} / {doubled} of {JOURNALED}, {rounds} connections",
        ]

    def failed_attempts(self, gateway: Gateway) -> int:
        """Calls to the upstream that got no answer, but for those whose caller went away, as wrk does at its end."""
        _, text = call("GET", gateway.admin_url + "/metrics", {}, None)
        count = re.compile(r'^fcmgw_upstream_attempt_duration_seconds_count\{api="v1",outcome="(\w+)"\} (\d+)', re.M)
        return sum(int(number) for outcome, number in count.findall(text.decode()) if outcome not in ("answered", "cancelled"))

    def count_one_by_one(self, emulator: Emulator, request: Request) -> tuple[int, int, int]:
        """Sends to devices of their own; returns how many got nothing, how many got it twice, and over how many
        connections that went."""
        message = json.loads(request.body.read_bytes())
        numbers = iter(range(JOURNALED))
        lock = threading.Lock()
        failures: list[str] = []
        url = urlsplit(request.url)

        def send() -> None:
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=30)
            with contextlib.closing(connection):
                while True:
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        return
                    body = json.dumps({**message, "token": f"one-by-one-{number}"})
                    connection.request("POST", url.path, body, request.headers)
                    answer = connection.getresponse()
                    content = answer.read()
                    if answer.status != 200:
                        with lock:
                            failures.append(content[:200].decode(errors="replace"))

        callers = [threading.Thread(target=send) for _ in range(64)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        if failures:
            raise BenchError(f"{len(failures)} of {JOURNALED} sends failed, one of them with {failures[0]}")
        times: dict[str, int] = {}
        connections = set()
        for entry in emulator.control("GET", "journal?limit=10000")["entries"]:
            if found := re.search(r'"token":"(one-by-one-\d+)"', entry["body"]):
                if entry["decision"].get("status") == 200:
                    times[found[1]] = times.get(found[1], 0) + 1
                    connections.add(entry["connection"])
        return JOURNALED - len(times), sum(1 for count in times.values() if count > 1), len(connections)
