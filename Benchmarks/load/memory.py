"""The memory of a gateway: idle, with idle connections, and over an hour of sends to a million devices."""

from __future__ import annotations

import http.client
import resource
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

from gateway import Gateway
from loadbench import BenchError, Request, cpu_seconds, resident_mib, wait_until

CONNECTIONS = 10_000
DEVICES = 1_000_000
HOUR_S = 3_600
SENDS_PER_SECOND = 300
# The first minutes fill what is bounded: the limits of devices, the store's cache, the log's buffers.
SETTLED_AFTER = 0.5


def private_dirty_mib(pid: int) -> float:
    """The memory that only this process uses and that is in no file."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in rollup if line.startswith("Private_Dirty:")) / 1024


def idle(gateway: Gateway) -> str:
    """Private dirty and resident memory once a second passes without work."""

    def is_idle() -> bool:
        before = cpu_seconds(gateway.pid)
        time.sleep(1)
        return cpu_seconds(gateway.pid) - before <= 0.02

    wait_until("an idle gateway", is_idle, 30, gateway.process, pause=0)
    return f"{private_dirty_mib(gateway.pid):.1f} / {resident_mib(gateway.pid):.1f} MiB"


def connections(gateway: Gateway, count: int = CONNECTIONS) -> str:
    """Memory of an idle connection: one that was only opened, and one that has had an answer."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most < 2 * count:
        raise BenchError(f"{2 * count} open files are needed, and {most} are allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    idle(gateway)
    before = private_dirty_mib(gateway.pid)
    address = urlsplit(gateway.url)
    opened = [socket.create_connection((address.hostname, address.port)) for _ in range(count)]
    idle(gateway)
    fresh = private_dirty_mib(gateway.pid)
    for one in opened:
        one.sendall(b"GET /nothing HTTP/1.1\r\nHost: bench\r\n\r\n")
    for one in opened:
        if b" 404 " not in one.recv(4096):
            raise BenchError("a connection was not answered")
    idle(gateway)
    used = private_dirty_mib(gateway.pid)
    for one in opened:
        one.close()
    return f"{(fresh - before) * 1024 / count:.1f} / {(used - before) * 1024 / count:.1f} KiB"


def endurance(gateway: Gateway, request: Request, seconds: int = HOUR_S) -> tuple[str, list[float]]:
    """Resident memory of each minute while messages go to one device after another; the growth of its second half."""
    address = urlsplit(request.url)
    before, _, after = request.body.read_text().partition('0000000","')
    connection = http.client.HTTPConnection(address.hostname, address.port)
    start = time.monotonic()
    samples = []
    sent = 0
    while (passed := time.monotonic() - start) < seconds:
        while sent < passed * SENDS_PER_SECOND:
            body = f'{before}{sent % DEVICES:07d}","{after}'
            connection.request("POST", address.path, body, request.headers)
            answer = connection.getresponse()
            answer.read()
            if answer.status != 200:
                raise BenchError(f"a send was answered with {answer.status}")
            sent += 1
        if passed >= 60 * len(samples):
            samples.append(resident_mib(gateway.pid))
        time.sleep(0.01)
    settled = samples[int(len(samples) * SETTLED_AFTER):]
    return f"{sent:,} sends, {settled[0]:.1f} to {settled[-1]:.1f} MiB in the second half", samples
