"""Makes a scratch machine of this one and types a document's commands there.

Started by `run` as the first process of new namespaces for mounts, processes and the network. The root is a layer over
this machine's files that lives in memory: whatever the commands install, write or delete is gone afterwards, and ports
and paths are those that the document names. Prints one JSON object: what came of each block.
"""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import sys
from pathlib import Path

from blocks import Block, typed_blocks
from links import PROGRAMS

# Where readers have the project.
HOME = "/root"
PROJECT = f"{HOME}/fcm-gateway"
STATE = "/run/documents"
# One document, waiting for alerts included.
LIMIT_S = 1800
# For a program that runs on to print what shows that it is up.
READY_LIMIT_S = 300


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, timeout=60)


def overlay(lower: str, base: Path, at: Path) -> None:
    """Lays a layer that can be written over a directory."""
    for name in ("upper", "work"):
        (base / name).mkdir(parents=True)
    at.mkdir(parents=True, exist_ok=True)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={lower},upperdir={base}/upper,workdir={base}/work", str(at))


def loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        # SIOCSIFFLAGS with IFF_UP.
        fcntl.ioctl(one, 0x8914, struct.pack("16sh", b"lo", 1))


def enter(root: str, project: str, program: str, folder: str) -> None:
    """Makes the scratch machine and changes into it."""
    machine = Path(__file__).parent / "machine"
    stand_ins = {path.name: path.read_bytes() for path in machine.iterdir()}
    mount("--make-rprivate", "/")
    base = Path(folder)
    mount("-t", "tmpfs", "tmpfs", str(base))
    overlay(root, base / "system", base / "root")
    overlay(project, base / "project", base / "root" / PROJECT[1:])
    new = base / "root"
    mount("--rbind", "/dev", str(new / "dev"))
    mount("-t", "proc", "proc", str(new / "proc"))
    for name in ("tmp", "run"):
        mount("-t", "tmpfs", "tmpfs", str(new / name))
    # The programs go where both ways of building leave it.
    debug, release = (new / PROJECT[1:] / ".build" / kind for kind in ("debug", "release"))
    for place in (debug, release):
        if place.is_symlink():
            place.unlink()
        place.mkdir(parents=True, exist_ok=True)
        for name in PROGRAMS:
            (place / name).unlink(missing_ok=True)
    for name in PROGRAMS:
        shutil.copyfile(Path(program).with_name(name), debug / name)
        (debug / name).chmod(0o755)
        (release / name).symlink_to(f"../debug/{name}")
    shutil.rmtree(new / PROJECT[1:] / "var", ignore_errors=True)
    for name, content in stand_ins.items():
        place = new / "usr/local/sbin" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        place.chmod(0o755)
    # In a container this is a mount of its own, which the layer does not see.
    (new / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    loopback_up()
    os.chroot(new)
    os.chdir(PROJECT)
    os.makedirs(STATE)


def script(blocks: list[Block]) -> str:
    """A shell script that types the blocks one after the other, and leaves their output and exit codes in files."""
    lines = ["set -euo pipefail"]
    for number, block in enumerate(blocks):
        place = f"{STATE}/{number}"
        if block.checked_by:
            Path(f"{place}.file").write_text(block.text)
            Path(f"{place}.sh").write_text(block.checked_by.replace("FILE", f"{place}.file") + "\n")
        elif block.is_command and not block.not_run:
            Path(f"{place}.sh").write_text(block.text)
        else:
            continue
        redirected = f">{place}.out 2>{place}.err"
        if block.ready:
            ready = f"grep -qsF -e {shlex.quote(block.ready)} {place}.out {place}.err"
            lines += [
                f"(. {place}.sh) {redirected} &",
                f"for try in $(seq {READY_LIMIT_S * 5}); do",
                f"  ! {ready} || break; kill -0 $! 2>/dev/null || break; sleep 0.2",
                "done",
                f"{ready} && echo 0 > {place}.rc",
            ]
        elif block.exit_code or block.checked_by:
            lines += [f"set +e; (set -e; . {place}.sh) {redirected}; echo $? > {place}.rc; set -e"]
        else:
            # In the shell itself, since later blocks use what it exports. A failing command ends the script.
            lines += [f". {place}.sh {redirected}", f"echo 0 > {place}.rc"]
    return "\n".join(lines) + "\n"


def text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""


def main() -> None:
    document, root, project, program, folder = sys.argv[1:]
    blocks = typed_blocks(Path(document))
    enter(root, project, program, folder)
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": HOME, "LANG": "C.UTF-8",
        "TERM": "dumb", "USER": "root", "SHELL": "/bin/bash",
    }
    late = False
    try:
        outcome = subprocess.run(
            ["bash", "-c", script(blocks)], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=LIMIT_S,
        )
        said = outcome.stderr
    except subprocess.TimeoutExpired:
        late, said = True, f"not done after {LIMIT_S} s"
    results = []
    for number in range(len(blocks)):
        place = f"{STATE}/{number}"
        code = text(f"{place}.rc").strip()
        results.append({
            "begun": Path(f"{place}.out").exists(), "code": int(code) if code else None,
            "out": text(f"{place}.out"), "err": text(f"{place}.err"),
        })
    logs = {path.name: text(str(path))[-3000:] for path in Path("/run/systemctl").glob("*.log")}
    json.dump({"results": results, "said": said, "late": late, "logs": logs}, sys.stdout)


if __name__ == "__main__":
    main()
