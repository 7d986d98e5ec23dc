"""The store of a batch is restored, its disk runs full, and the clock is set."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import subprocess
import time
from pathlib import Path

from batch import UNKNOWN_PER_SLICE, Arrivals, Batch, names
from disk_full import fill
from faked_clock import FakedClock
from lab import LIMIT_S, UNLIMITED, Gateway, Lab, v1_upstream

FAULT = "A batch's store is restored, its disk is full, its clock jumps"
INJECTED = (
    "A backup made during a batch is restored into a new file, and into the same file with `store renew-epoch`. A file system "
    "of 6 MiB runs full during a batch and an upload. libfaketime sets the clock forward by two hours for 20 s, beyond the "
    "batch's expiry."
)
EXPECTED = (
    "A restored batch is paused with `restored`, sends nothing before a resume, and then reaches all. On a full disk nothing "
    "leaves unmarked, parts get 503, and the batch continues with room. The jump expires nothing. Without a restore no device "
    "gets a message twice."
)

COUNT = 4_000
# Slow enough for what happens meanwhile.
LIMITS = {**UNLIMITED, "tenant": [{"rate": 500, "per_s": 1, "burst": 500}]}
SIZE = "6m"
HOUR = 3_600


def run(lab: Lab) -> str:
    figures = [restored(lab, in_place=False), restored(lab, in_place=True), full(lab)]
    with FakedClock(lab) as clock:
        figures.append(stepped(lab, clock))
    return "; ".join(figures)


class Case:
    """A gateway with a batch that is being sent."""

    def __init__(self, lab: Lab, gateway: Gateway | None = None, environment: dict | None = None, **options: object) -> None:
        self.lab = lab
        self.fcm = lab.emulator(tls=True)
        if gateway:
            gateway.write_config({"upstream": v1_upstream(self.fcm)})
            gateway.start()
        self.gateway = gateway or lab.gateway({"upstream": v1_upstream(self.fcm)}, environment=environment)
        self.tenant = self.gateway.tenant("shop", self.fcm, api="v1", limits=LIMITS)
        self.arrivals = Arrivals(self.fcm)
        self.batch = Batch(self.tenant, names("stored", COUNT), **options).start()

    def wait_accepted(self, count: int) -> None:
        def are_accepted() -> bool:
            self.arrivals.read()
            return self.batch.show().get("accepted", 0) >= count

        self.lab.wait_until(f"{count} accepted", are_accepted, LIMIT_S, self.gateway.process, pause=0.1)


def restored(lab: Lab, in_place: bool) -> str:
    case = Case(lab)
    gateway = case.gateway
    case.wait_accepted(500)
    copy = lab.folder / f"backup-{in_place}.sqlite"
    store = gateway.data_dir / "gateway.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as source, \
            contextlib.closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    case.wait_accepted(1_500)
    gateway.stop()
    case.arrivals.read()
    if in_place:
        for rest in gateway.data_dir.glob("gateway.sqlite-*"):
            rest.unlink()
        # Writes into the file that is there.
        with copy.open("rb") as source, store.open("r+b") as target:
            shutil.copyfileobj(source, target)
            target.truncate()
        done = gateway.command("store", "renew-epoch", "--config", str(gateway.config_file))
        assert done.returncode == 0, done.stderr
    else:
        shutil.move(gateway.data_dir, lab.folder / "data-before")
        gateway.data_dir.mkdir(mode=0o700)
        shutil.copy(copy, store)
        store.chmod(0o600)
    hits = case.fcm.hits()
    gateway.start()
    shown = case.batch.show()
    assert (shown["state"], shown["reason"]) == ("paused", "restored"), shown
    time.sleep(3)
    assert case.fcm.hits() == hits, "something was sent before the resume"
    case.batch.change("resume")
    shown = case.batch.wait_finished(lab, case.arrivals)
    missed = [token for token in case.batch.tokens if not case.arrivals.counts[token]]
    twice = sum(case.arrivals.counts[token] > 1 for token in case.batch.tokens)
    assert not missed and shown["accepted"] + shown["unknown"] == COUNT, (len(missed), shown)
    assert gateway.stop() == 0
    place = "the same file, after `store renew-epoch`" if in_place else "a new file"
    return f"restored into {place}: paused, all of {COUNT} reached after a resume, {twice} of them a second time"


def full(lab: Lab) -> str:
    gateway = lab.gateway(start=False)
    gateway.data_dir.mkdir()
    options = f"size={SIZE},mode=700"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", gateway.data_dir], check=True, timeout=LIMIT_S)
    try:
        case = Case(lab, gateway)
        second = Batch(case.tenant, [])
        case.wait_accepted(300)
        ballast: Path = gateway.data_dir / "ballast"
        fill(ballast)

        def is_refused() -> bool:
            return second.call("PUT", f"/{second.id}/parts/1", {"tokens": names("late", 2_000)}).status == 503

        lab.wait_until("a part's refusal", is_refused, LIMIT_S, gateway.process)
        lab.wait_until("the last call", lambda: is_still(case), LIMIT_S, gateway.process)
        ballast.unlink()
        case.batch.wait_finished(lab, case.arrivals)
        shown = case.batch.judge(case.arrivals, 4 * UNKNOWN_PER_SLICE)
        assert gateway.stop() == 0
        return f"full disk: parts 503, then {shown['accepted']} of {COUNT} accepted, {shown['unknown']} unknown, none twice"
    finally:
        if gateway.process and gateway.process.poll() is None:
            gateway.kill()
        subprocess.run(["umount", gateway.data_dir], check=True, timeout=LIMIT_S)


def is_still(case: Case) -> bool:
    before = case.fcm.hits()
    time.sleep(2)
    return case.fcm.hits() == before


def stepped(lab: Lab, clock: FakedClock) -> str:
    case = Case(lab, environment=clock.environment, expires_in_s=HOUR)
    case.wait_accepted(300)
    clock.set(2 * HOUR)
    case.wait_accepted(1_500)
    clock.set(0)
    case.batch.wait_finished(lab, case.arrivals)
    shown = case.batch.judge(case.arrivals, 0)
    assert shown["accepted"] == COUNT, shown
    assert case.gateway.stop() == 0
    return f"two hours forward and back: {shown['accepted']} of {COUNT} accepted, none expired, none sent to twice"
