"""Reads a unit of systemd, and runs programs under those of its bounds that need no systemd.

    unit.py UNIT PROGRAM [ARGUMENT…]

runs a program in this process with the unit's system calls and address families. A system call that the unit does not
allow ends the program by SIGSYS, where systemd would have it fail: so that none goes unnoticed. Of the unit's memory
rules, mappings that are writable and executable at once are refused in the same way.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import sys
from pathlib import Path

# seccomp.h
KILL_PROCESS = 0x80000000
ALLOW = 0x7FFF0000
ERRNO = 0x00050000
EQUAL, MASKED_EQUAL = 4, 7
# prctl.h, mman.h
NO_NEW_PRIVILEGES = 38
PROT_WRITE, PROT_EXEC = 2, 4
# Of the argument that says what a mapping may do.
MAPPINGS = {"mmap": 2, "mprotect": 2, "pkey_mprotect": 2}


class Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`: what an argument of a system call has to be."""

    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


def settings(text: str) -> dict[str, list[str]]:
    """Each setting of a unit with its values, in their order; an empty value is one too."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if "=" in line and not line.lstrip().startswith(("#", ";")):
            name, _, value = line.partition("=")
            found.setdefault(name.strip(), []).append(value.strip())
    return found


def system_calls(group: str) -> set[str]:
    """The system calls of a group of systemd's, those of groups within it included."""
    output = subprocess.run(
        ["systemd-analyze", "syscall-filter", "--no-pager", group], capture_output=True, text=True, check=True,
        timeout=60,
    ).stdout
    names = [line.strip() for line in output.splitlines()[1:] if line.strip() and not line.strip().startswith("#")]
    return {each for name in names for each in (system_calls(name) if name.startswith("@") else {name})}


def allowed_calls(lines: list[str]) -> set[str]:
    """What SystemCallFilter lines leave."""
    allowed: set[str] = set()
    for line in lines:
        names = line.removeprefix("~").split()
        members = {each for name in names for each in (system_calls(name) if name.startswith("@") else {name})}
        allowed = allowed - members if line.startswith("~") else allowed | members
    return allowed


def confine(unit: dict[str, list[str]]) -> None:
    """Puts this process, and what it becomes, under the unit's filters."""
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(KILL_PROCESS)))

    def rule(action: int, name: str, *comparisons: Comparison) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        # Negative for those of other architectures.
        if number >= 0:
            array = (Comparison * len(comparisons))(*comparisons)
            status = library.seccomp_rule_add_array(
                context, ctypes.c_uint32(action), number, ctypes.c_uint(len(comparisons)), array
            )
            assert status == 0, f"{name}: {os.strerror(-status)}"

    calls = allowed_calls(unit["SystemCallFilter"])
    if os.getuid() == 0:
        # SQLite gives its files to their directory's owner where it may, which the service may not.
        calls |= {"fchown"}
    for name in calls - {"socket", *MAPPINGS}:
        rule(ALLOW, name)
    families = {int(getattr(socket, name)) for name in unit["RestrictAddressFamilies"][0].split()}
    for family in range(socket.AF_UNIX, 46):
        # As systemd has it: what is asked for in vain is told so, since glibc asks for more than it needs.
        rule(ALLOW if family in families else ERRNO | 97, "socket", Comparison(0, EQUAL, family, 0))
    for name, argument in MAPPINGS.items():
        rule(ALLOW, name, Comparison(argument, MASKED_EQUAL, PROT_EXEC, 0))
    # The loader maps code that is not writable, and never makes memory executable afterwards.
    rule(ALLOW, "mmap", Comparison(2, MASKED_EQUAL, PROT_EXEC | PROT_WRITE, PROT_EXEC))

    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0) == 0, os.strerror(ctypes.get_errno())
    status = library.seccomp_load(context)
    assert status == 0, os.strerror(-status)


if __name__ == "__main__":
    confine(settings(Path(sys.argv[1]).read_text()))
    os.execv(sys.argv[2], sys.argv[2:])
