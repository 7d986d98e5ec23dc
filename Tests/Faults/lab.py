"""What the rows of the fault matrix work with: gateways, fake FCMs, proxies, load, on private ports of this machine.

A row is a module `rows/<name>.py`:

    FAULT = "what goes wrong, as in the matrix"
    INJECTED = "Sentences: the fault's causes."
    EXPECTED = "Sentences: what holds nevertheless."

    def run(lab: Lab) -> str:     # raises AssertionError if that does not hold
        return "a finding with its figures; another finding"

`run` (the program beside this file) hands every row a `Lab` of its own. Whatever a lab has started it ends when the row
is over, however that ends; a row need not clean up.

    fcm = lab.emulator()                          # a fake FCM; lab.emulator(tls=True) for HTTP/2
    gateway = lab.gateway({"upstream": {"timeoutMs": 2000}})   # `fcm-gateway serve`, up and answering
    tenant = gateway.tenant("shop", fcm)          # legacy; gateway.tenant("shop", fcm, api="v1") with an account
    answer = tenant.send()                        # one REST send to a token of its own
    assert answer.status == 200, answer
    load = tenant.load(concurrency=50, count=1000)             # or seconds=…, rate=…; load.start() … load.stop()
    fcm.fault("hang", times=5)                    # and fcm.journal(), fcm.deliveries(), fcm.control(…), fcm.forget()
    with gateway.memory() as memory: …            # memory.growth_mib: how far RSS went beyond where it was
    gateway.kill(); gateway.start()               # SIGKILL; the same folder, ports and secrets again
    gateway.verify()                              # exit status of `audit verify`

Further: `lab.stub(handler)` is a server of plain sockets whose connections a function handles, `lab.haproxy(text)` and
`lab.nginx(text)` run with a configuration of the row's, `raw(…)` speaks bytes to a listener, `lab.certificate(…)` makes
certificates, `lab.wait_until(…)` waits for something with an end, `lab.folder` is a temporary folder.

Every time limit here is generous and ends in an error, so nothing hangs. Only processes started here, and what they have
started, are ended.
"""

from __future__ import annotations

import asyncio
import base64
import collections
import contextlib
import http.client
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Benchmarks/load"))

from loadbench import BenchError, Processes, free_ports, resident_mib, wait_until  # noqa: E402

LabError = BenchError


class NotPlayed(Exception):
    """Why a row is left out, where what it needs is not at hand."""


# Only something that hangs comes near it.
LIMIT_S = 180
MANY = 1_000_000
# As high as limits can be set: rows that are not about limits do not meet them.
UNLIMITED = {scope: [{"rate": MANY, "per_s": 1, "burst": MANY}] for scope in ("tenant", "device", "topic")}
# For tests that are not about time: nothing is refused or given up because the machine is slow.
PATIENT = {
    "http": {"headTimeoutMs": 60_000, "bodyTimeoutMs": 600_000, "maxLagMs": 60_000},
    "admin": {"headTimeoutMs": 60_000, "bodyTimeoutMs": 600_000},
    "upstream": {"connectTimeoutMs": 60_000, "timeoutMs": 120_000, "deadlineMs": 120_000},
    "audit": {"commitTimeoutMs": 60_000, "spoolAfterMs": 60_000},
}
_numbers = itertools.count(1)


# Requests


@dataclass
class Answer:
    """What came back of one request; status 0 where nothing did."""

    status: int
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0
    """From before the request was written to the answer's last byte."""
    error: str = ""
    """Why there is no answer."""
    number: int = 0
    """Which request of a load it answers, from 0."""
    at: float = 0
    """When it came, as `time.monotonic` counts."""

    def json(self) -> dict:
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    @property
    def code(self) -> str:
        """The problem's code, if it is one."""
        return str(self.json().get("code", ""))

    def __str__(self) -> str:
        return f"{self.status or self.error} {self.body[:200].decode(errors='replace')} after {self.seconds:.3f} s"


def call(method: str, url: str, headers: dict[str, str] | None = None, body: bytes | str | None = None,
         timeout: float = LIMIT_S, tls: ssl.SSLContext | None = None) -> Answer:
    """Sends one request over a connection of its own. Without an answer the status is 0; nothing is raised.

    Certificates are not verified unless a context is given.
    """
    parts = urlsplit(url)
    if parts.scheme == "https":
        connection = http.client.HTTPSConnection(
            parts.hostname, parts.port, timeout=timeout, context=tls or ssl._create_unverified_context()
        )
    else:
        connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)
    start = time.monotonic()
    try:
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        content = response.read()
        now = time.monotonic()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, fields, content, now - start, at=now)
    except (OSError, http.client.HTTPException) as error:
        now = time.monotonic()
        return Answer(0, seconds=now - start, error=f"{type(error).__name__} {error}", at=now)
    finally:
        connection.close()


def raw(address: str | tuple[str, int], data: bytes = b"", timeout: float = LIMIT_S,
        until_closed: bool = True) -> bytes:
    """Writes bytes to a listener, a URL or an address, and returns what it says until it closes the connection.

    A reset counts as an end. `until_closed=False` returns what came first. When nothing more comes for `timeout`
    seconds and the connection stays open, a TimeoutError is raised.
    """
    with connect(address, timeout) as one:
        with contextlib.suppress(ConnectionError):
            one.sendall(data)
        received = b""
        with contextlib.suppress(ConnectionError):
            while part := one.recv(65536):
                received += part
                if not until_closed:
                    break
        return received


def connect(address: str | tuple[str, int], timeout: float = LIMIT_S) -> socket.socket:
    """A plain connection to a listener."""
    if isinstance(address, str):
        parts = urlsplit(address)
        address = (parts.hostname or "", parts.port or 80)
    return socket.create_connection(address, timeout=timeout)


# Load


class Load:
    """Many requests at once over connections that are kept open, each answer recorded.

    It runs on a thread of its own: `start()`, whatever the row does meanwhile, then `stop()` to end it early or
    `wait()` for its end; `run()` is start and wait. Over 2,000 requests a second are more than this can do beside a gateway on
    two cores; wrk and h2load are for that.

    - url, method, headers: of the requests.
    - body: bytes, or a function that makes them from the request's number.
    - concurrency: connections, each with one request at a time.
    - count: how many requests; seconds: for how long; without either, until `stop()`.
    - rate: requests a second over all connections; without it, each connection goes on as soon as it can.
    - keep_alive: False for a connection for each request.
    - timeout: of one request, seconds.
    - on_number: makes further headers from the request's number, such as an Idempotency-Key.
    """

    def __init__(self, url: str, headers: dict[str, str], body: bytes | Callable[[int], bytes], *, method: str = "POST",
                 concurrency: int = 16, count: int | None = None, seconds: float | None = None,
                 rate: float | None = None, keep_alive: bool = True, timeout: float = LIMIT_S,
                 on_number: Callable[[int], dict[str, str]] | None = None) -> None:
        self.parts = urlsplit(url)
        self.method, self.headers, self.body = method, headers, body
        self.concurrency, self.count, self.seconds, self.rate = concurrency, count, seconds, rate
        self.keep_alive, self.timeout, self.on_number = keep_alive, timeout, on_number
        self.answers: list[Answer] = []
        self.started = 0
        """Requests that were begun."""
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> Load:
        self._thread = threading.Thread(target=lambda: asyncio.run(self._all()), daemon=True)
        self._begin = time.monotonic()
        self._thread.start()
        return self

    def stop(self) -> Load:
        """Begins no further request and waits for the answers of those under way."""
        self._stopping.set()
        return self.wait()

    def wait(self) -> Load:
        assert self._thread, "the load was not started"
        limit = LIMIT_S + self.timeout + (self.seconds or 0) + (self.count or 0)
        self._thread.join(limit)
        if self._thread.is_alive():
            raise LabError(f"the load did not end within {limit:.0f} s")
        return self

    def run(self) -> Load:
        return self.start().wait()

    # What came of it

    @property
    def statuses(self) -> dict[int, int]:
        """How many answers of each status; 0 for none."""
        return dict(sorted(collections.Counter(answer.status for answer in self.answers).items()))

    @property
    def codes(self) -> dict[str, int]:
        """How many problems of each code."""
        return dict(collections.Counter(answer.code for answer in self.answers if answer.status >= 400))

    def of(self, *statuses: int) -> list[Answer]:
        return [answer for answer in self.answers if answer.status in statuses]

    def percentile(self, part: float, *statuses: int) -> float:
        """Seconds within which that part of the answers came, 0 to 1; of all, or of those with a status."""
        times = sorted(answer.seconds for answer in (self.of(*statuses) if statuses else self.answers))
        return times[min(len(times) - 1, int(len(times) * part))] if times else float("nan")

    # How it goes

    async def _all(self) -> None:
        await asyncio.gather(*(self._connection() for _ in range(self.concurrency)))

    def _next(self) -> int | None:
        now = time.monotonic() - self._begin
        if self._stopping.is_set() or (self.seconds is not None and now >= self.seconds):
            return None
        if self.count is not None and self.started >= self.count:
            return None
        self.started += 1
        return self.started - 1

    async def _connection(self) -> None:
        streams = None
        while (number := self._next()) is not None:
            if self.rate:
                while (wait := self._begin + number / self.rate - time.monotonic()) > 0:
                    if self._stopping.is_set():
                        break
                    await asyncio.sleep(min(wait, 0.1))
            start = time.monotonic()
            try:
                async with asyncio.timeout(self.timeout):
                    if streams is None:
                        tls = ssl._create_unverified_context() if self.parts.scheme == "https" else None
                        streams = await asyncio.open_connection(
                            self.parts.hostname, self.parts.port, ssl=tls, limit=16 * 1024 * 1024
                        )
                    streams[1].write(self._request(number))
                    answer = await self._answer(streams[0])
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
                answer = Answer(0, error=f"{type(error).__name__} {error}")
            answer.number, answer.at = number, time.monotonic()
            answer.seconds = answer.at - start
            self.answers.append(answer)
            if streams and (answer.status == 0 or not self.keep_alive
                            or answer.headers.get("connection", "").lower() == "close"):
                streams[1].close()
                streams = None
            if answer.error.startswith("ConnectionRefused"):
                await asyncio.sleep(0.01)
        if streams:
            streams[1].close()

    def _request(self, number: int) -> bytes:
        body = self.body(number) if callable(self.body) else self.body
        headers = {**self.headers, **(self.on_number(number) if self.on_number else {})}
        if not self.keep_alive:
            headers["Connection"] = "close"
        lines = [
            f"{self.method} {self.parts.path or '/'}{'?' + self.parts.query if self.parts.query else ''} HTTP/1.1",
            f"Host: {self.parts.netloc}", f"Content-Length: {len(body)}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    @staticmethod
    async def _answer(reader: asyncio.StreamReader) -> Answer:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {}
        for line in head[1:-2]:
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        if headers.get("transfer-encoding", "").lower() == "chunked":
            body = b""
            while size := int((await reader.readline()).split(b";")[0], 16):
                body += (await reader.readexactly(size + 2))[:-2]
            await reader.readline()
        else:
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        return Answer(int(head[0].split()[1]), headers, body)


# Gateways


@dataclass
class Tenant:
    """A tenant of a gateway and a key of it that may do everything."""

    gateway: Gateway
    name: str
    key: str

    @property
    def url(self) -> str:
        """Where its messages are sent."""
        return f"{self.gateway.url}/v1/tenants/{self.name}/messages"

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}

    def message(self, token: str | None = None, **members: object) -> bytes:
        """A message, to a device of its own unless one is named; `token=""` leaves the target to the members."""
        target = {"token": token or f"device-{next(_numbers)}"} if token != "" else {}
        return json.dumps({**target, "data": {"score": "3x1"}, **members}).encode()

    def send(self, token: str | None = None, headers: dict[str, str] | None = None, timeout: float = LIMIT_S,
             **members: object) -> Answer:
        """Sends a message."""
        return call("POST", self.url, {**self.headers, **(headers or {})}, self.message(token, **members), timeout)

    def load(self, body: bytes | Callable[[int], bytes] | None = None, headers: dict[str, str] | None = None,
             **options: object) -> Load:
        """Load by this tenant's messages, each to a device `load-<number>` unless a body is given."""
        url = str(options.pop("url", self.url))
        return Load(
            url, {**self.headers, **(headers or {})}, body or (lambda number: self.message(f"load-{number}")), **options
        )


class Memory:
    """How a process' memory grew since it was watched, at its highest, in MiB."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        # Sets the kernel's high-water mark back to what there is now.
        Path(f"/proc/{pid}/clear_refs").write_text("5")
        self.before_mib = self._read("VmHWM")

    def _read(self, name: str) -> float:
        text = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(rf"^{name}:\s+(\d+) kB", text, re.M)
        assert found, f"no {name} of process {self.pid}"
        return int(found[1]) / 1024

    @property
    def peak_mib(self) -> float:
        return self._read("VmHWM")

    @property
    def growth_mib(self) -> float:
        return self.peak_mib - self.before_mib


class Gateway:
    """A gateway with a folder, ports and secrets of its own, which it keeps when it is started again."""

    def __init__(self, lab: Lab, name: str, config: dict, environment: dict[str, str], prefix: list[str],
                 program: Path | None, scheme: str) -> None:
        self.lab, self.name, self.prefix = lab, name, prefix
        self.program = program or lab.program
        self.folder = lab.folder / name
        self.folder.mkdir()
        self.data_dir = self.folder / "data"
        self.config_file = self.folder / "gateway.yaml"
        self.log = f"{name}.log"
        port, admin_port = free_ports(2)
        self.port, self.admin_port = port, admin_port
        self.url = f"{scheme}://127.0.0.1:{port}"
        self.admin_url = f"http://127.0.0.1:{admin_port}"
        self.admin_token = secrets.token_urlsafe(32)
        self.master_key = base64.b64encode(secrets.token_bytes(32)).decode()
        (self.folder / "master.key").write_text(self.master_key)
        (self.folder / "admin.token").write_text(self.admin_token)
        for file in ("master.key", "admin.token"):
            (self.folder / file).chmod(0o600)
        self.config = _merged(
            {
                "dataDir": str(self.data_dir),
                "http": {"host": "127.0.0.1", "port": port},
                "admin": {"host": "127.0.0.1", "port": admin_port},
                "log": {"level": "info", "format": "json"},
            },
            config,
        )
        self.write_config()
        self.environment = {
            **os.environ,
            "GATEWAY_MASTER_KEY_FILE": str(self.folder / "master.key"),
            "GATEWAY_ADMIN_TOKEN_FILE": str(self.folder / "admin.token"),
            **environment,
        }
        self.process: subprocess.Popen[bytes] | None = None

    # Its life

    def write_config(self, changes: dict | None = None) -> None:
        """Writes the configuration, with changes that stay; JSON, which YAML takes."""
        self.config = _merged(self.config, changes or {})
        self.config_file.write_text(json.dumps(self.config, indent=2))

    def start(self, wait: bool = True) -> Gateway:
        """Starts it; `wait` until it answers and is ready."""
        command = [*self.prefix, str(self.program), "serve", "--config", str(self.config_file)]
        self.process = self.lab.processes.start(command, self.log, self.environment)
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self, seconds: float = LIMIT_S) -> None:
        try:
            # The admin listener comes up first.
            self.lab.wait_until(
                f"{self.name} to be ready", lambda: call("GET", self.admin_url + "/readyz", timeout=5).status == 200,
                seconds, self.process,
            )
            self.lab.wait_until(
                f"{self.name} to answer", lambda: call("GET", self.url + "/", timeout=5).status != 0, seconds,
                self.process,
            )
        except LabError as error:
            raise LabError(f"{error}\n{self.log_text()[-3000:]}") from error

    @property
    def pid(self) -> int:
        assert self.process, f"{self.name} was not started"
        return self.process.pid

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def reload(self) -> None:
        self.signal(signal.SIGHUP)

    def kill(self) -> None:
        """SIGKILL, and waits for its end."""
        self.signal(signal.SIGKILL)
        self.process.wait(LIMIT_S)
        self.lab.processes.stop(self.process)

    def stop(self, timeout: float = LIMIT_S) -> int:
        """SIGTERM, and waits for its end.

        Returns its exit status.
        """
        self.signal(signal.SIGTERM)
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} had not ended {timeout:.0f} s after SIGTERM") from None
        self.lab.processes.stop(self.process)
        return status

    def restart(self) -> None:
        self.stop()
        self.start()

    # What operators do

    def admin(self, method: str, path: str, body: dict | None = None,
              expected: tuple[int, ...] = (200, 201, 204)) -> dict:
        """A call of the admin API, such as `admin("GET", "tenants")`; returns the answer's JSON."""
        answer = self.try_admin(method, path, body)
        if answer.status not in expected:
            raise LabError(f"{method} {path}: {answer}")
        return answer.json()

    def try_admin(self, method: str, path: str, body: dict | None = None) -> Answer:
        """A call of the admin API, whatever comes of it."""
        headers = {"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"}
        return call(
            method, f"{self.admin_url}/admin/v1/{path}", headers, json.dumps(body) if body is not None else None
        )

    def tenant(self, name: str, fcm: Emulator | Stub | str, api: str = "legacy", account: dict | None = None,
               limits: dict | None = None) -> Tenant:
        """Makes a tenant that sends to a fake FCM, a stub or a URL.

        - api: `legacy` or `v1`.
        - account: the service account for v1; by default a new one of the fake FCM's. The gateway must have been
          started with `{"upstream": v1_upstream(fcm)}` as its configuration.
        - limits: as the admin API takes them; by default none that a row could meet.
        """
        endpoint = fcm if isinstance(fcm, str) else fcm.url
        path = f"tenants/{name}"
        self.admin("PUT", path, {"display_name": name, "upstream": api})
        if api == "v1":
            credential = {"service_account": account or fcm.account(f"project-{name}"), "endpoint": endpoint}
        else:
            credential = {"server_key": "AAAA" + secrets.token_urlsafe(100), "endpoint": endpoint}
        self.admin("PUT", f"{path}/credentials/{api}", credential)
        self.admin("PUT", f"{path}/limits", limits or UNLIMITED)
        scopes = ["messages:send", "device-groups:manage", "topics:manage", "audit:read", "tokens:read",
                  "batches:manage"]
        key = self.admin("POST", f"{path}/keys", {"name": "faults", "scopes": scopes})["key"]
        return Tenant(self, name, key)

    def command(self, *arguments: str, input: str = "", timeout: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        """Runs a verb of the program with this gateway's addresses and secrets."""
        environment = {**self.environment, "GATEWAY_ADMIN_URL": self.admin_url, "GATEWAY_URL": self.url}
        return subprocess.run(
            [self.program, *arguments], input=input, env=environment, capture_output=True, text=True, timeout=timeout
        )

    def verify(self) -> int:
        """Checks the audit; 0 intact, 1 tampered, 2 a writer ended uncleanly."""
        return self.verification().returncode

    def verification(self) -> subprocess.CompletedProcess[str]:
        """Checks the audit; the finished command with its output."""
        return self.command("audit", "verify", "--config", str(self.config_file))

    # What can be seen of it

    def metrics(self) -> dict[str, float]:
        """Every sample of /metrics, by its name with labels as they are written there."""
        answer = call("GET", self.admin_url + "/metrics")
        if answer.status != 200:
            raise LabError(f"{self.name}: /metrics: {answer}")
        samples = {}
        for line in answer.body.decode().splitlines():
            if line and not line.startswith("#"):
                name, _, value = line.rpartition(" ")
                samples[name] = float(value)
        return samples

    def metric(self, prefix: str) -> float:
        """The sum of the samples whose name begins so."""
        return sum(value for name, value in self.metrics().items() if name.startswith(prefix))

    def rss_mib(self) -> float:
        return resident_mib(self.pid)

    @contextlib.contextmanager
    def memory(self) -> Iterator[Memory]:
        yield Memory(self.pid)

    def descriptors(self) -> int:
        """How many files and sockets it has open."""
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def log_text(self) -> str:
        return (self.lab.folder / self.log).read_text(errors="replace")

    def log_lines(self) -> list[dict]:
        """What it logged, line by line, where it is JSON."""
        lines = []
        for line in self.log_text().splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
        return lines


def _merged(one: dict, other: dict) -> dict:
    """The second over the first, level by level; None takes a key away."""
    merged = dict(one)
    for key, value in other.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key) or {}, value) if isinstance(value, dict) else value
    return merged


# Upstreams


def development_program(program: Path) -> Path:
    """`fcm-gateway-dev` beside a gateway's program, or of this folder's builds."""
    for folder in (program.parent, ROOT / ".build/release", ROOT / ".build/debug"):
        if (folder / "fcm-gateway-dev").exists():
            return folder / "fcm-gateway-dev"
    raise LabError("fcm-gateway-dev is not built (`make build-dev`)")


class Emulator:
    """A fake FCM, `fcm-gateway-dev emulator`; docs/emulator.md says what it can."""

    def __init__(self, lab: Lab, name: str, tls: bool, host: str = "127.0.0.1") -> None:
        self.lab, self.name, self.tls = lab, name, tls
        folder = lab.folder / name
        self.certificate = folder / "certificate.pem"
        (self.port,) = free_ports(1)
        self.url = f"{'https' if tls else 'http'}://{host}:{self.port}"
        self.command = [str(development_program(lab.program)), "emulator", "--host", host, "--port", str(self.port)]
        self.command += ["--tls-dir", str(folder)] if tls else []
        if tls and host != "127.0.0.1":
            # Those that it makes for itself are for this machine's own address.
            made = lab.certificate(f"{name}-tls", host, names=f"IP:{host}")
            folder.mkdir()
            shutil.copy(made.certificate, self.certificate)
            shutil.copy(made.key, folder / "private-key.pem")
        self.start()

    def start(self) -> None:
        """Starts it, again perhaps; it knows nothing of its life before."""
        self.process = self.lab.processes.start(self.command, f"{self.name}.log")
        self.lab.wait_until(
            f"{self.name} to answer", lambda: call("GET", f"{self.url}/_emulator/settings", timeout=5).status == 200,
            LIMIT_S, self.process,
        )

    def stop(self) -> None:
        self.lab.processes.stop(self.process)

    def control(self, method: str, path: str, body: dict | None = None) -> dict:
        """A call of its control interface, such as `control("POST", "settings", {"latency_ms": 50})`."""
        answer = call(method, f"{self.url}/_emulator/{path}", {}, json.dumps(body) if body is not None else None)
        if not 200 <= answer.status < 300:
            raise LabError(f"{self.name}: {method} {path}: {answer}")
        return answer.json()

    def fault(self, type: str, times: int = 1, path: str | None = None, token: str | None = None,
              **members: object) -> None:
        """Scripts a fault for the next requests; `fault("status", status=503, times=10)`."""
        match = {name: value for name, value in {"path": path, "token": token}.items() if value is not None}
        self.control("POST", "faults", {"match": match, "times": times, "action": {"type": type, **members}})

    def heal(self) -> None:
        """Forgets all faults that are left; requests that hang are answered."""
        self.control("DELETE", "faults")

    def forget(self) -> None:
        """Forgets everything but accounts and access tokens."""
        self.control("DELETE", "state")

    def journal(self, containing: str = "") -> list[dict]:
        """The requests that reached it, in their order, at most the last 10,000; those for access tokens left out."""
        entries = self.control("GET", "journal?limit=10000")["entries"]
        kept = [entry for entry in entries if entry["path"] != "/token" and containing in entry["body"]]
        return sorted(kept, key=lambda entry: entry["id"])

    def hits(self, containing: str = "") -> int:
        return len(self.journal(containing))

    def deliveries(self) -> list[dict]:
        """What devices were delivered, in the order of delivery."""
        return self.control("GET", "deliveries")["deliveries"][::-1]

    def account(self, project: str, **members: object) -> dict:
        """A new service account, as its key file."""
        return self.control("POST", "service-accounts", {"project_id": project, **members})


def v1_upstream(*fcms: Emulator, **members: object) -> dict:
    """The section `upstream` of a gateway's configuration that lets it send by HTTP v1 to fake FCMs with TLS."""
    bundle = fcms[0].certificate
    if len(fcms) > 1:
        bundle = fcms[0].lab.folder / f"bundle-{next(_numbers)}.pem"
        bundle.write_text("".join(fcm.certificate.read_text() for fcm in fcms))
    hosts = [urlsplit(fcm.url).netloc for fcm in fcms]
    return {"caFile": str(bundle), "allowedTokenHosts": hosts, **members}


class Stub:
    """A server of plain sockets: each connection is handled by a function on a thread of its own.

    The function gets the connected socket; what it raises of OSError ends the connection. `stub.connections` counts,
    and `read_request(socket)` reads one request.
    """

    def __init__(self, handler: Callable[[socket.socket], None], tls: Certificate | None = None) -> None:
        self.handler = handler
        self.connections = 0
        self._context = None
        if tls:
            self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._context.load_cert_chain(tls.certificate, tls.key)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port = self._listener.getsockname()[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(one,), daemon=True).start()

    def _serve(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError), contextlib.ExitStack() as stack:
            stack.enter_context(one)
            if self._context:
                one = stack.enter_context(self._context.wrap_socket(one, server_side=True))
            self.handler(one)

    def close(self) -> None:
        """Accepts nothing more; the port refuses connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


def read_request(one: socket.socket) -> tuple[str, dict[str, str], bytes]:
    """Reads one request of HTTP/1.1 with a Content-Length; returns its first line, its fields, its body.

    Raises EOFError where the connection ends instead.
    """
    data = b""
    while b"\r\n\r\n" not in data:
        data += _some(one)
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", 0)):
        body += _some(one)
    return first, headers, body


def _some(one: socket.socket) -> bytes:
    part = one.recv(65536)
    if not part:
        raise EOFError
    return part


def reset(one: socket.socket) -> None:
    """Closes a connection by RST."""
    one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    one.close()


# Proxies and certificates


@dataclass
class Proxy:
    """A running HAProxy or nginx."""

    url: str
    port: int
    process: subprocess.Popen[bytes]


@dataclass
class Certificate:
    """A certificate and its key, files in PEM."""

    certificate: Path
    key: Path


class Lab:
    """What one row works with; a context manager that ends everything it started."""

    # How long a proxy may take to listen.
    ACCEPT_S = 60

    def __init__(self, program: Path, keep: bool = False, defaults: dict | None = None,
                 before: Path | None = None) -> None:
        """- defaults: what the configurations of its gateways have unless they say something else.
        - before: the program of the release before, if there is one.
        """
        self.program, self.before = program, before
        self.defaults = defaults or {}
        self.processes = Processes(keep)
        self._stubs: list[Stub] = []
        self._names = itertools.count(1)

    def __enter__(self) -> Lab:
        # Nothing of the caller's own configuration may leak in.
        for key in [key for key in os.environ if key.startswith("GATEWAY_")]:
            del os.environ[key]
        self.processes.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        for stub in self._stubs:
            stub.close()
        for process in self.processes.running:
            # What a row has stopped would not hear of its end.
            process.send_signal(signal.SIGCONT)
        # Nothing of it is needed any more, so nobody waits for a drain.
        for process in self.processes.running:
            process.kill()
        self.processes.__exit__(*error)

    @property
    def folder(self) -> Path:
        return self.processes.folder

    def gateway(self, config: dict | None = None, *, environment: dict[str, str] | None = None, name: str | None = None,
                prefix: list[str] | None = None, program: Path | None = None, scheme: str = "http",
                start: bool = True, wait: bool = True) -> Gateway:
        """A gateway, started and ready.

        - config: what its configuration has beyond ports and folders, by the file's own keys, nested.
        - environment: further variables.
        - prefix: a command that starts another, such as `["prlimit", "--nofile=64"]`; it must not stay a process of its
          own.
        - program: another program than the lab's.
        - scheme: `https` where the configuration has `http.tls`.
        - start, wait: False to only make it, or not to wait until it is ready.
        """
        gateway = Gateway(
            self, name or f"gateway-{next(self._names)}", _merged(self.defaults, config or {}), environment or {},
            prefix or [], program, scheme,
        )
        return gateway.start(wait) if start else gateway

    def emulator(self, tls: bool = False, name: str | None = None) -> Emulator:
        return Emulator(self, name or f"fcm-{next(self._names)}", tls)

    def stub(self, handler: Callable[[socket.socket], None], tls: Certificate | None = None) -> Stub:
        stub = Stub(handler, tls)
        self._stubs.append(stub)
        return stub

    def haproxy(self, text: str, **values: object) -> Proxy:
        """Runs HAProxy; `@port@`, `@folder@` and `@name@` of each value are replaced in the configuration."""
        return self._proxy("haproxy", text, values, lambda file: ["-db", "-f", file])

    def nginx(self, text: str, **values: object) -> Proxy:
        """Runs nginx; as for HAProxy, and `daemon off` is seen to."""
        return self._proxy(
            "nginx", text, values,
            lambda file: ["-p", str(self.folder), "-e", "stderr", "-g", "daemon off;", "-c", file],
        )

    def _proxy(self, program: str, text: str, values: dict, arguments: Callable[[str], list[str]]) -> Proxy:
        path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
        if not path:
            raise LabError(f"{program} is missing (scripts/install-system-packages faults)")
        (port,) = free_ports(1)
        for key, value in {"port": port, "folder": self.folder, **values}.items():
            text = text.replace(f"@{key}@", str(value))
        name = f"{program}-{next(self._names)}"
        file = self.folder / f"{name}.conf"
        file.write_text(text)
        process = self.processes.start([path, *arguments(str(file))], f"{name}.log")

        def accepts() -> bool:
            connect(("127.0.0.1", port), 1).close()
            return True

        try:
            self.wait_until(f"{name} to accept", accepts, self.ACCEPT_S, process)
        except LabError as error:
            raise LabError(f"{error}\n{self.processes.log(f'{name}.log', 20)}") from error
        return Proxy(f"http://127.0.0.1:{port}", port, process)

    def certificate(self, name: str, subject: str = "localhost", issuer: Certificate | None = None,
                    names: str = "DNS:localhost,IP:127.0.0.1", days: int = 2) -> Certificate:
        """Makes a certificate, signed by itself or by an issuer; `names` are its subjectAltNames as openssl takes them.

        One without an issuer may itself sign others.
        """
        made = Certificate(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        command = [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
            "-days", str(days), "-subj", f"/CN={subject}", "-addext", f"subjectAltName={names}",
            "-keyout", str(made.key), "-out", str(made.certificate),
        ]
        if issuer:
            command += ["-CA", str(issuer.certificate), "-CAkey", str(issuer.key)]
            command += ["-addext", "basicConstraints=critical,CA:FALSE"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        if done.returncode != 0:
            raise LabError(f"openssl: {done.stderr}")
        return made

    def wait_until(self, what: str, condition: Callable[[], object], seconds: float = LIMIT_S,
                   process: subprocess.Popen[bytes] | None = None, pause: float = 0.02) -> float:
        """Waits as `loadbench.wait_until` does, with a generous limit."""
        return wait_until(what, condition, seconds, process, pause)
