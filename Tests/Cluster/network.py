"""Networks that are cut, and clocks that go wrong: what happens to one replica and not to the others."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "Faults"))

from lab import LIMIT_S, LabError  # noqa: E402

_numbers = itertools.count(1)


class Namespace:
    """A network of its own, with one line to this machine's that can be cut; needs root.

        with Namespace() as network:
            lab.gateway({"http": {"host": network.inner}}, prefix=network.prefix)
            network.cut()         # nothing arrives any more, and nobody is told: no reset, no unreachable host
            network.mend()

    `outer` is this machine's address within it, `inner` that of what runs there.
    """

    def __init__(self) -> None:
        number = next(_numbers)
        # Several runs at once have names and addresses of their own.
        self.name = f"fcm{os.getpid()}x{number}"
        self._outer_device, self._inner_device = f"f{os.getpid()}o{number}", f"f{os.getpid()}i{number}"
        base = (os.getpid() * 16 + number) % 16_384 * 4
        self.outer, self.inner = (f"10.213.{base // 256}.{base % 256 + place}" for place in (1, 2))
        self.prefix = ["ip", "netns", "exec", self.name]

    @staticmethod
    def is_possible() -> bool:
        """Whether this process may make one."""
        if os.getuid() != 0:
            return False
        try:
            with Namespace():
                return True
        except (LabError, OSError):
            return False

    def __enter__(self) -> Namespace:
        _ip("netns", "add", self.name)
        try:
            _ip("link", "add", self._outer_device, "type", "veth", "peer", "name", self._inner_device)
            _ip("link", "set", self._inner_device, "netns", self.name)
            _ip("addr", "add", f"{self.outer}/30", "dev", self._outer_device)
            _ip("link", "set", self._outer_device, "up")
            self._inside("addr", "add", f"{self.inner}/30", "dev", self._inner_device)
            self._inside("link", "set", self._inner_device, "up")
            self._inside("link", "set", "lo", "up")
        except LabError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        # The line goes with its end in there.
        _ip("netns", "del", self.name)

    def cut(self) -> None:
        """Has both ends send to an address of the line that nobody has: what a host that is gone looks like."""
        nobody = ("lladdr", "02:00:00:00:00:ee", "nud", "permanent", "dev")
        _ip("neigh", "replace", self.inner, *nobody, self._outer_device)
        self._inside("neigh", "replace", self.outer, *nobody, self._inner_device)

    def mend(self) -> None:
        _ip("neigh", "del", self.inner, "dev", self._outer_device)
        self._inside("neigh", "del", self.outer, "dev", self._inner_device)

    def _inside(self, *words: str) -> None:
        _ip("-n", self.name, *words)


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=LIMIT_S)
    if done.returncode != 0:
        raise LabError(f"ip {' '.join(words)}: {done.stderr.strip()}")
