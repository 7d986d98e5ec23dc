"""What the load measurements have in common: processes on their own cores, load, and what it costs.

Everything listens on and talks to 127.0.0.1. Only processes started here, and what they start, are ended.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import shlex
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

HERE = Path(__file__).resolve().parent
CLOCK_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class BenchError(Exception):
    """Why a measurement could not be made."""


# Processes


@dataclass
class Placement:
    """Where processes run: what is measured on one core, load and upstream on another."""

    gateway_core: int = 0
    load_core: int = 1
    pinned: bool = True
    nice: int = 0

    def __post_init__(self) -> None:
        cores = os.sched_getaffinity(0)
        if self.pinned and not {self.gateway_core, self.load_core} <= cores:
            print(f"cores {self.gateway_core} and {self.load_core} are not both there: not pinned", file=sys.stderr)
            self.pinned = False

    def prefix(self, core: int) -> list[str]:
        """The command that starts another on a core."""
        command = ["taskset", "-c", str(core)] if self.pinned else []
        return command + (["nice", "-n", str(self.nice)] if self.nice else [])

    @property
    def gateway(self) -> list[str]:
        return self.prefix(self.gateway_core)

    @property
    def load(self) -> list[str]:
        return self.prefix(self.load_core)


class Processes:
    """The processes of one measurement; leaving the context ends those that were started, and no others.

    Each has a process group of its own, so that its workers end with it, however it ended itself.
    """

    def __init__(self, keep: bool = False) -> None:
        self.keep = keep
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Processes:
        self.folder = Path(tempfile.mkdtemp(prefix="loadbench-"))
        # nginx' workers are another user when it is started by root.
        self.folder.chmod(0o755)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.ExitStack() as stack:
            if self.keep:
                print(f"kept {self.folder}", file=sys.stderr)
            else:
                stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
            # The last one first, and all of them even where one does not end.
            for process in self.running:
                stack.callback(self.stop, process)

    def start(self, command: list[str], log: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        with open(self.folder / log, "ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environment or {})},
                process_group=0,
            )
        self.running.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes]) -> None:
        self.running = [other for other in self.running if other is not process]
        if process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=40)
        end_group(process)

    def log(self, name: str, lines: int = 5) -> str:
        """The end of a log."""
        with contextlib.suppress(OSError):
            return "\n".join((self.folder / name).read_text(errors="replace").splitlines()[-lines:])
        return ""

    def nginx(
        self, conf: Path, name: str, prefix: list[str], module: str = "", **values: object
    ) -> subprocess.Popen[bytes]:
        text = conf.read_text()
        for key, value in {"folder": self.folder, **values}.items():
            text = text.replace(f"@{key}@", str(value))
        target = self.folder / f"{name}.conf"
        target.write_text(text)
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin") or "nginx"
        error_log = str(self.folder / f"{name}.log")
        return self.start(
            [*prefix, program, "-p", str(self.folder), "-e", error_log, "-c", str(target),
             *(["-g", f"load_module /usr/lib/nginx/modules/{module}.so;"] if module else [])],
            f"{name}.log",
        )


def exit_on_signals() -> None:
    """Lets a signal end the program the way an error does, so that contexts are left and processes ended."""

    def leave(number: int, _: object) -> None:
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)


# Below those that the system gives to connections, which could take one before its server listens or while it restarts.
PORTS = range(10_000, 32_768)
_reservations: list[socket.socket] = []


def free_ports(count: int) -> list[int]:
    """Ports without a listener, which no other program gets from this function while this one runs."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("", port))
            _reserve(port)
            found.append(port)
        if len(found) == count:
            return found
    raise BenchError(f"there are no {count} free ports")


def _reserve(port: int) -> None:
    """Raises OSError where another program has the port; the system ends a reservation with its process."""
    # Abstract names are Linux' own (unix(7)).
    if sys.platform == "linux":
        reservation = socket.socket(socket.AF_UNIX)
        reservation.bind(f"\0fcm-gateway-port-{port}")
        _reservations.append(reservation)


def end_group(process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Kills a process that was started as the first of a group, and whatever is left of its group.

    A master that is killed leaves its workers behind; they serve on, with nobody to end them.
    """
    if process.poll() is None:
        process.kill()
        process.wait(timeout=seconds)
    end = time.monotonic() + seconds
    while left := group_members(process.pid):
        if time.monotonic() > end:
            raise BenchError(f"processes {left} do not end")
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)


def group_members(group: int) -> list[int]:
    """The processes of a group of this session that have not ended."""
    found = []
    for file in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, _, of_group, session = file.read_text().rpartition(")")[2].split()[:4]
            if (int(of_group), int(session)) == (group, os.getsid(0)) and state not in "ZX":
                found.append(int(file.parent.name))
    return found


def process_tree(pid: int) -> list[int]:
    """A process and its descendants."""
    pids = [pid]
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            for child in tasks.read_text().split():
                pids += process_tree(int(child))
    return pids


def cpu_seconds(pid: int) -> float:
    """Processor time of a process and its descendants, user and kernel mode."""
    ticks = 0
    for one in process_tree(pid):
        with contextlib.suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
    return ticks / CLOCK_TICKS_PER_SECOND


def thread_microseconds(pid: int | None) -> dict[str, float]:
    """Processor time of each thread of a process, by its name and number; finer than `cpu_seconds`, which counts ticks."""
    found = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError):
            name = (task / "comm").read_text().strip()
            found[f"{name} {task.name}"] = int((task / "schedstat").read_text().split()[0]) / 1000
    return found


def resident_mib(pid: int) -> float:
    """Memory in RAM of a process and its descendants."""
    total = 0
    for one in process_tree(pid):
        with contextlib.suppress(OSError):
            for line in Path(f"/proc/{one}/status").read_text().splitlines():
                if line.startswith("VmRSS:"):
                    total += int(line.split()[1])
    return total / 1024


# Requests and load


@dataclass
class Request:
    """A request that is sent over and over."""

    url: str
    headers: dict[str, str] = field(default_factory=dict)
    body: Path = HERE / "message.json"


@dataclass
class Target:
    """Something to measure."""

    name: str
    request: Request
    # None for the upstream itself, whose cost is not of interest.
    pid: int | None
    # What the rounds at a fixed rate send, if not the same.
    latency_request: Request | None = None
    # A wrk script that varies its requests, if not that of the options.
    lua: Path | None = None
    # The target that its ratios are taken of.
    yardstick: str = "nginx"


def call(method: str, url: str, headers: dict[str, str], body: bytes | None, timeout: float = 5) -> tuple[int, bytes]:
    """Sends one request over a connection of its own."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=timeout)
    try:
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        connection.request(method, path or "/", body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


# A question that fails so may be answered later: the server is busy, restarts or is replaced.
UNANSWERED = (BenchError, OSError, http.client.HTTPException, subprocess.SubprocessError)


def wait_until(what: str, condition: Callable[[], object], seconds: float,
               process: subprocess.Popen[bytes] | None = None, pause: float = 0.02) -> float:
    """Waits until a condition holds; returns how many seconds that took.

    A question of the condition that fails (`UNANSWERED`) means "not yet". Any other error ends the wait.
    Raises BenchError when time is up, with the last failure, or when a process has ended that the condition depends on.
    """
    start = time.monotonic()
    while True:
        failure = ""
        try:
            if condition():
                return time.monotonic() - start
        except UNANSWERED as error:
            failure = f": {type(error).__name__} {error}"
        if process is not None and process.poll() is not None:
            raise BenchError(f"waited for {what}: the process ended with status {process.returncode}{failure}")
        if time.monotonic() - start > seconds:
            raise BenchError(f"waited for {what}: nothing after {seconds:.0f} s{failure}")
        time.sleep(pause)


def check_answer(target: Target, request: Request, expected: int) -> None:
    """Waits until a target answers, and checks that it does so as expected."""
    body = request.body.read_bytes()
    answers: list[tuple[int, bytes]] = []

    def answers_at_all() -> bool:
        answers.append(call("POST", request.url, request.headers, body))
        return True

    wait_until(f"{target.name} at {request.url}", answers_at_all, 20)
    ((status, answer),) = answers
    if status != expected:
        text = answer[:300].decode(errors="replace")
        raise BenchError(f"{target.name} answered {status} instead of {expected}: {text}")


def wrk_script(path: Path, request: Request, lua: Path | None) -> Path:
    """Writes what wrk is to send: the request, perhaps varied by a script."""

    def quoted(text: str) -> str:
        # JSON's escapes for the characters below are Lua's too.
        return json.dumps(text, ensure_ascii=False)

    lines = [
        'wrk.method = "POST"',
        f'do local file = io.open({quoted(str(request.body))}, "rb"); wrk.body = file:read("*a"); file:close() end',
        *(f"wrk.headers[{quoted(name)}] = {quoted(value)}" for name, value in request.headers.items()),
        "function done(summary, latency)",
        "    local e = summary.errors",
        '    io.write(string.format("RESULT %d %d %d %d %d\\n", summary.requests, summary.duration, e.status,',
        "        e.connect + e.read + e.write + e.timeout, latency:percentile(50)))",
        "end",
    ]
    if lua:
        lines.append(lua.read_text())
    path.write_text("\n".join(lines) + "\n")
    return path


@dataclass
class Load:
    """What one round of load told of a target."""

    requests: int
    requests_per_second: float
    cpu_microseconds: float
    cores: float
    resident_mib: float


@dataclass
class Options:
    """How a comparison is made."""

    rounds: int = 5
    seconds: int = 4
    connections: int = 32
    latency_rate: int = 2000
    latency_rounds: int = 3
    latency_seconds: int = 4
    latency_connections: int = 8
    lua: Path | None = None
    expected: int = 200
    placement: Placement = field(default_factory=Placement)


@dataclass
class Result:
    """All rounds of one target."""

    loads: list[Load] = field(default_factory=list)
    # Of each latency round, in microseconds: half, 99% and 99.9% of the answers were quicker.
    latencies: list[tuple[float, float, float]] = field(default_factory=list)

    def median(self, name: str) -> float | None:
        values = [getattr(load, name) for load in self.loads]
        return statistics.median(values) if values else None

    def latency(self, index: int) -> float | None:
        return statistics.median(one[index] for one in self.latencies) if self.latencies else None


class Comparison:
    """Measures several targets in turn, so that a change of the machine's mood meets all of them."""

    def __init__(self, processes: Processes, targets: list[Target], options: Options) -> None:
        self.processes = processes
        self.targets = targets
        self.options = options
        self.results = {target.name: Result() for target in targets}
        # What went wrong under load; the figures are then worth little.
        self.complaints: list[str] = []

    def run(self) -> None:
        for target in self.targets:
            check_answer(target, target.request, self.options.expected)
            if self.options.latency_rate and target.latency_request:
                check_answer(target, target.latency_request, self.options.expected)
        # A second of load each, unmeasured: connections, caches, code read from disk.
        for target in self.targets:
            self.load(target, seconds=1)
        for target in self.in_turn(self.options.rounds):
            load = self.load(target, self.options.seconds)
            if load:
                self.results[target.name].loads.append(load)
        if self.options.latency_rate:
            for target in self.in_turn(self.options.latency_rounds):
                latency = self.latency(target)
                if latency:
                    self.results[target.name].latencies.append(latency)

    def in_turn(self, rounds: int) -> Iterator[Target]:
        """Every target once a round, each round beginning with another."""
        for number in range(rounds):
            first = number % len(self.targets)
            yield from self.targets[first:] + self.targets[:first]

    def load(self, target: Target, seconds: int) -> Load | None:
        """As many requests as the target can take."""
        script = wrk_script(self.processes.folder / "wrk.lua", target.request, target.lua or self.options.lua)
        command = ["wrk", "-t1", f"-c{self.options.connections}", f"-d{seconds}s", "-s", str(script), target.request.url]
        before = cpu_seconds(target.pid) if target.pid else 0
        output = self.command(target, [*self.options.placement.load, *command], seconds + 15)
        after = cpu_seconds(target.pid) if target.pid else 0
        line = next((line for line in output.splitlines() if line.startswith("RESULT ")), None)
        if line is None:
            return None
        requests, duration, wrong, broken, _ = map(int, line.split()[1:])
        if wrong or broken:
            self.complaints.append(f"{target.name}: {wrong} answers of another status, {broken} broken connections")
        if not requests:
            self.complaints.append(f"{target.name}: no answer")
            return None
        return Load(
            requests=requests,
            requests_per_second=requests / (duration / 1e6),
            cpu_microseconds=(after - before) / requests * 1e6,
            cores=(after - before) / (duration / 1e6),
            resident_mib=resident_mib(target.pid) if target.pid else 0,
        )

    def latency(self, target: Target) -> tuple[float, float, float] | None:
        """Time to answer at a fixed rate."""
        request = target.latency_request or target.request
        options = self.options
        log = self.processes.folder / "latency.log"
        log.unlink(missing_ok=True)
        headers = [part for name, value in request.headers.items() for part in ("-H", f"{name}: {value}")]
        command = [
            "h2load", "--h1", "-t1", f"-c{options.latency_connections}", f"-D{options.latency_seconds}",
            f"--rps={options.latency_rate / options.latency_connections:g}", "-d", str(request.body),
            f"--log-file={log}", *headers, request.url,
        ]
        self.command(target, [*options.placement.load, *command], options.latency_seconds + 20)
        rows = [line.split("\t") for line in log.read_text().splitlines()] if log.exists() else []
        wrong = sum(1 for row in rows if int(row[1]) != options.expected)
        if wrong or not rows:
            self.complaints.append(f"{target.name}: {wrong} of {len(rows)} answers at a fixed rate of another status")
        times = sorted(int(row[2]) for row in rows)
        if not times:
            return None
        half, most, nearly_all = (times[min(len(times) - 1, int(len(times) * part))] for part in (0.5, 0.99, 0.999))
        return half, most, nearly_all

    def command(self, target: Target, command: list[str], timeout: int) -> str:
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            self.complaints.append(f"{target.name}: no end of {shlex.join(command[:6])} …")
            return ""
        if done.returncode != 0:
            reason = (done.stderr or done.stdout).strip().splitlines()[-3:]
            self.complaints.append(f"{target.name}: status {done.returncode}: {' / '.join(reason)}")
        return done.stdout

    # What came out

    COLUMNS = [
        "target", "req/s", "× yardstick", "CPU µs/req", "× yardstick", "cores", "added p50 µs", "added p99 µs", "p99.9 µs",
        "RSS MiB",
    ]

    def rows(self) -> list[list[str]]:
        """The table; latencies are those beyond the upstream's own."""
        direct = self.results.get("direct", Result())

        def number(value: float | None, digits: int) -> str:
            return "–" if value is None else f"{value:.{digits}f}"

        def ratio(value: float | None, base: float | None) -> str:
            return number(value / base if value is not None and base else None, 2)

        def beyond(value: float | None, base: float | None) -> str:
            return number(value - base if value is not None and base is not None else None, 0)

        rows = []
        for target in self.targets:
            result = self.results[target.name]
            yardstick = self.results.get(target.yardstick, Result())
            rate = result.median("requests_per_second")
            cost = result.median("cpu_microseconds") if target.pid else None
            rows.append([
                target.name,
                number(rate, 0),
                ratio(rate, yardstick.median("requests_per_second")),
                number(cost, 1),
                ratio(cost, yardstick.median("cpu_microseconds")),
                number(result.median("cores") if target.pid else None, 2),
                beyond(result.latency(0), direct.latency(0)),
                beyond(result.latency(1), direct.latency(1)),
                number(result.latency(2), 0),
                number(result.loads[-1].resident_mib if target.pid and result.loads else None, 1),
            ])
        return rows

    def text(self) -> str:
        table = [self.COLUMNS, *self.rows()]
        widths = [max(len(row[index]) for row in table) for index in range(len(self.COLUMNS))]
        lines = []
        for row in table:
            cells = [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
            lines.append("  ".join([row[0].ljust(widths[0]), *cells]))
        return "\n".join(lines)

    def markdown(self) -> str:
        lines = [self.COLUMNS, ["---"] + ["---:"] * (len(self.COLUMNS) - 1), *self.rows()]
        return "\n".join("| " + " | ".join(line) + " |" for line in lines)

    def csv(self) -> str:
        header = ["target", "rps", "rps_ratio", "cpu_us", "cpu_ratio", "cores", "added_p50_us", "added_p99_us",
                  "p999_us", "rss_mib"]
        return "\n".join(",".join(row).replace("–", "") for row in [header, *self.rows()]) + "\n"


def start_stub(processes: Processes, placement: Placement, port: int, conf: Path = HERE / "stub.conf") -> str:
    """Starts the upstream; returns its URL."""
    result = {"message_id": "0:1718035200731904%8e2f4b6a8e2f4b6a"}
    answer = {"multicast_id": 6024187315890273411, "success": 1000, "failure": 0, "canonical_ids": 0,
              "results": [result] * 1000}
    (processes.folder / "multicast.json").write_text(json.dumps(answer, separators=(",", ":")))
    processes.nginx(conf, "stub", placement.load, port=port)
    return f"http://127.0.0.1:{port}"


def start_yardstick(processes: Processes, placement: Placement, port: int, stub_port: int) -> tuple[str, int]:
    """Starts nginx as a plain reverse proxy; returns its URL and process."""
    process = processes.nginx(HERE / "proxy.conf", "proxy", placement.gateway, port=port, stub=stub_port)
    return f"http://127.0.0.1:{port}", process.pid


def require_programs(*programs: str) -> None:
    path = os.environ["PATH"] + ":/usr/sbin"
    missing = [program for program in programs if not shutil.which(program, path=path)]
    if missing:
        raise BenchError(f"missing: {', '.join(missing)} (scripts/install-system-packages bench)")
