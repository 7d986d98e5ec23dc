"""The clock of the machine is set by an hour, forward and back, while the gateway serves."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from lab import Answer, Gateway, Lab, LabError, Tenant

FAULT = "The clock jumps by an hour, forward and back"
INJECTED = "libfaketime: the time of day jumps, what only ever grows goes on, as when a clock is set"
EXPECTED = "deadlines do not move; each jump gives a device one burst at most and takes no more than one away"

HOUR = 3600
BURST = 10
DEADLINE_S = 2.0
# libfaketime moves timers of timerfd that end at a moment, even those of clocks that are never set: an hour's jump
# backwards would keep them for an hour. These two calls therefore go to the kernel as they are.
TIMERS = """
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
int timerfd_settime(int descriptor, int flags, const struct itimerspec *value, struct itimerspec *old) {
    return syscall(SYS_timerfd_settime, descriptor, flags, value, old);
}
int timerfd_gettime(int descriptor, struct itimerspec *value) {
    return syscall(SYS_timerfd_gettime, descriptor, value);
}
"""
LIMITS = {
    "tenant": [{"rate": 100_000, "per_s": 1, "burst": 100_000}],
    "device": [{"rate": 1, "per_s": 1, "burst": BURST}],
}


def run(lab: Lab) -> str:
    library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
    if library is None:
        raise LabError("libfaketime is missing (scripts/install-system-packages faults)")
    clock = lab.folder / "clock"
    clock.write_text("+0")
    sleeper, names = shared(lab)
    try:
        return play(lab, library, clock, names)
    finally:
        # The library's own program ends with it, and takes what was shared away.
        os.kill(sleeper, signal.SIGTERM)


def play(lab: Lab, library: Path, clock: Path, names: str) -> str:
    gateway = lab.gateway(
        environment={
            "LD_PRELOAD": f"{timers(lab)}:{library}", "FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_NO_CACHE": "1",
            "FAKETIME_SHARED": names,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        }
    )
    fcm = lab.emulator()
    tenant = gateway.tenant("shop", fcm, limits=LIMITS)
    figures = []
    for name, offset in [("forward", HOUR), ("back", 0), ("further back", -HOUR), ("forward again", 0)]:
        figures.append(f"{name}: {deadline(fcm, tenant, clock, offset)}, {limits(gateway, tenant, clock, offset)}")
    assert gateway.verify() == 0, gateway.verification().stdout
    assert gateway.stop() == 0
    assert gateway.verify() == 0, gateway.verification().stdout
    return "; ".join(figures)


def timers(lab: Lab) -> Path:
    """Builds the library of `TIMERS`."""
    compiler = shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        raise LabError("neither clang, which Swift brings along, nor cc is there")
    source, library = lab.folder / "timers.c", lab.folder / "timers.so"
    source.write_text(TIMERS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=120)
    return library


def shared(lab: Lab) -> tuple[int, str]:
    """A process of libfaketime's own, and the names of the memory that its processes share.

    Without them the library makes its own and adds their names to the variables, which moves these; Swift's runtime looks
    for a program's arguments beside them and would find none.
    """
    lab.processes.start(["faketime", "-f", "+0", "sleep", "600"], "faketime.log")
    found: list[tuple[int, str]] = []

    def look() -> bool:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if (process / "comm").read_text() != "sleep\n":
                    continue
                variables = (process / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            mine = [one for one in variables if one.startswith(b"FAKETIME_SHARED=")]
            parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
            if mine and parent in (one.pid for one in lab.processes.running):
                found.append((int(process.name), mine[0].decode().partition("=")[2]))
        return bool(found)

    lab.wait_until("faketime", look, 10)
    return found[0]


def deadline(fcm, tenant: Tenant, clock: Path, offset: int) -> str:
    """The jump comes while a call waits for FCM, which never answers; then the clock goes back to where it was."""
    before = clock.read_text()
    fcm.fault("hang", times=1)
    answers: list[Answer] = []
    headers = {"X-Request-Timeout-Ms": str(int(DEADLINE_S * 1000))}
    sender = threading.Thread(target=lambda: answers.append(tenant.send(headers=headers)))
    sender.start()
    time.sleep(DEADLINE_S / 4)
    clock.write_text(f"{offset:+d}")
    sender.join()
    fcm.heal()
    clock.write_text(before)
    (answer,) = answers
    assert answer.status == 504 and answer.code == "outcome_unknown", answer
    assert DEADLINE_S - 0.1 <= answer.seconds <= DEADLINE_S + 1, answer
    return f"504 after {answer.seconds:.2f} s"


def limits(gateway: Gateway, tenant: Tenant, clock: Path, offset: int) -> str:
    """A device's quota is used up, the clock jumps, and it is asked for all that it gives."""
    # A device of its own for each jump, so that one does not pay for another.
    token = f"limited-{offset}-{clock.read_text()}"
    start = time.monotonic()
    before = admitted(tenant, token)
    clock.write_text(f"{offset:+d}")
    answer = tenant.send(token)
    after = admitted(tenant, token) + (answer.status == 200)
    seconds = time.monotonic() - start
    assert before >= BURST, before
    assert before + after <= 2 * BURST + seconds + 1, (before, after, seconds)
    # What the jump has taken comes back at the policy's own pace, not after an hour.
    start = time.monotonic()
    while (answer := tenant.send(token)).status != 200:
        assert answer.status == 429, answer
        wait = int(answer.headers.get("retry-after", "0"))
        assert 1 <= wait <= BURST + 2, answer.headers
        assert time.monotonic() - start < BURST + 5, answer
        time.sleep(0.1)
    # By the request, since lists go by time: before a jump back there are records with later ones.
    query = f"audit?limit=1&request_id={answer.headers['x-request-id']}"
    end = time.monotonic() + 5
    while not (records := gateway.admin("GET", query)["records"]):
        assert time.monotonic() < end, "the send has no record"
        time.sleep(0.05)
    record = records[0]
    shown = time.time() + offset
    stamp = time.strftime("%Y-%m-%dT%H", time.gmtime(shown))
    near = time.strftime("%Y-%m-%dT%H", time.gmtime(shown - 60))
    assert record["time"][:13] in (stamp, near), (record["time"], stamp)
    return f"{before} + {after} of a burst of {BURST} within {seconds:.1f} s"


def admitted(tenant: Tenant, token: str) -> int:
    """How many messages to a device go out until one is refused, and twenty more are tried."""
    count = refused = 0
    while refused < 20:
        status = tenant.send(token).status
        assert status in (200, 429), status
        count += status == 200
        refused += status == 429
    return count
