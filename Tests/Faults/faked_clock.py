"""A clock for one process that is wrong, or is set while it runs: libfaketime, and what Swift's runtime needs beside it.

The time of day is faked; what only ever grows goes on, as when a machine's clock is set.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from lab import Lab, LabError

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


class FakedClock:
    """A clock that processes get by `environment`; a context manager, since libfaketime shares memory with a process.

        with FakedClock(lab) as clock:
            gateway = lab.gateway(environment=clock.environment)
            clock.set(-3600)
    """

    def __init__(self, lab: Lab, name: str = "clock", offset: int = 0) -> None:
        """- offset: seconds that it is ahead."""
        self.lab = lab
        self.library = next(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"), None)
        if self.library is None:
            raise LabError("libfaketime is missing (scripts/install-system-packages faults)")
        self.file = lab.folder / name
        self.set(offset)

    def set(self, offset: int) -> None:
        self.file.write_text(f"{offset:+d}")

    def __enter__(self) -> FakedClock:
        self._sleeper, names = self._shared()
        self.environment = {
            "LD_PRELOAD": f"{timers(self.lab)}:{self.library}", "FAKETIME_TIMESTAMP_FILE": str(self.file),
            "FAKETIME_NO_CACHE": "1", "FAKETIME_SHARED": names,
            "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
        }
        return self

    def __exit__(self, *_: object) -> None:
        # The library's own program ends with it, and takes what was shared away.
        os.kill(self._sleeper, signal.SIGTERM)

    def _shared(self) -> tuple[int, str]:
        """A process of libfaketime's own, and the names of the memory that its processes share.

        Without them the library makes its own and adds their names to the variables, which moves these; Swift's runtime
        looks for a program's arguments beside them and would find none.
        """
        starter = self.lab.processes.start(["faketime", "-f", "+0", "sleep", "7200"], "faketime.log")
        found: list[tuple[int, str]] = []

        def look() -> bool:
            for process in Path("/proc").glob("[0-9]*"):
                try:
                    if (process / "comm").read_text() != "sleep\n":
                        continue
                    variables = (process / "environ").read_bytes().split(b"\0")
                    parent = int((process / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except OSError:
                    continue
                mine = [one for one in variables if one.startswith(b"FAKETIME_SHARED=")]
                if mine and parent == starter.pid:
                    found.append((int(process.name), mine[0].decode().partition("=")[2]))
            return bool(found)

        self.lab.wait_until("faketime", look, process=starter)
        return found[0]


def timers(lab: Lab) -> Path:
    """Builds the library of `TIMERS`, once for a lab."""
    source, library = lab.folder / "timers.c", lab.folder / "timers.so"
    if library.exists():
        return library
    compiler = shutil.which("clang") or shutil.which("cc")
    if compiler is None:
        raise LabError("neither clang, which Swift brings along, nor cc is there")
    source.write_text(TIMERS)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True, timeout=120)
    return library
