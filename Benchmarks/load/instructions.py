"""The instructions of one send in user space, counted by callgrind, in all and by stage.

They do not depend on other work on the machine and repeat to about one per cent, so changes are steered by them.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from loadbench import BenchError, Placement, Processes, check_answer
from sends import Sends

# A send's instructions are the difference between so many sends and so many.
FEW, MANY = 3_000, 9_000

# Stages by what their functions are called, as callgrind prints them; the first that matches counts. Modules of Swift
# show in a mangled name as their length and name.
STAGES: tuple[tuple[str, str], ...] = (
    ("reference counting", r"swift_(retain|release|bridgeObject|unknownObject|weak|unowned|isUniquely|isEscaping|nonatomic)"
                           r"|_swift_release|RefCount|swift_retain_|swift_release_"),
    ("memory", r"^(mi_|_mi_|malloc|free|calloc|realloc|posix_memalign|aligned_alloc|operator (new|delete))|swift_(alloc|slowAlloc"
               r"|dealloc|slowDealloc|initStack|task_alloc|task_dealloc)|_swift_(alloc|dealloc)|StackAllocator"),
    ("copying and comparing bytes", r"mem(cpy|move|set|cmp|chr)|strlen|bcmp"),
    ("SHA-256", r"(?i)sha256|sha_?2|hmac"),
    ("TLS", r"(?i)boringssl|aes|gcm|gf_?mul|ghash|bio_|ssl_|6NIOSSL|poly1305|chacha"),
    ("HTTP/2", r"nghttp2|NIOHTTP2|NIOHPACK|\d+HTTP2[A-Z]"),
    ("HTTP/1.1", r"13EventLoopHTTP"),
    ("JSON", r"10StrictJSON"),
    ("messages of FCM", r"8FCMModel"),
    ("calls to FCM", r"15GatewayUpstream"),
    ("pipeline and REST", r"11GatewayHTTP"),
    ("rules: keys, limits, retired tokens", r"11GatewayCore|11RedisLimits|11RedisClient"),
    ("audit", r"12GatewayAudit|14GatewayStorage|sqlite3|4GRDB"),
    ("metrics and log", r"17PrometheusMetrics|14GatewayService|7Logging|11CoreMetrics|14GatewaySupport"),
    ("event loop and sockets", r"7NIOCore|8NIOPosix|NIOConcurrencyHelpers|epoll|CNIO|__(libc_)?(read|write|recv|send)|syscall"
                               r"|clock_gettime|pthread|__vdso"),
    ("Swift's runtime: casts, tasks, metadata", r"swift_|swift::|_swift|Metadata|Conformance"),
    ("Swift's library", r"\$ss|\$sS|\$s10Foundation|\$s15Synchronization"),
)


@dataclass
class Count:
    """Instructions of one send in user space."""

    loop: float
    process: float
    beside: float
    stages: dict[str, float]


def count(program: Path, what: str, keep: Path | None = None, **settings: str) -> Count:
    """Counts the instructions of a send, or of a yardstick's, by callgrind.

    SHA-256 and its like are counted without the processor's own instructions for them. A folder to keep gets the files of the threads, for
    `callgrind_annotate`.
    """
    few, many = (_profile(program, what, sends, settings, keep) for sends in (FEW, MANY))
    sends = MANY - FEW

    def of_one(threads: Callable[[_Profile], Counter[str]]) -> dict[str, float]:
        return {stage: (threads(many)[stage] - threads(few)[stage]) / sends for stage in threads(many)}

    loop, process, beside = (of_one(lambda p, kind=kind: getattr(p, kind)) for kind in ("loop", "process", "beside"))
    stages = {stage: loop[stage] for stage, _ in STAGES if loop.get(stage)} | {"other": loop.get("other", 0)}
    return Count(sum(loop.values()), sum(process.values()), sum(beside.values()), stages)


@dataclass
class _Profile:
    """Instructions of a run by stage."""

    loop: Counter[str]
    process: Counter[str]
    beside: Counter[str]


def _profile(program: Path, what: str, sends: int, settings: dict[str, str], keep: Path | None) -> _Profile:
    with Processes() as processes:
        bare = processes.folder / "program"
        # Debian's valgrind can't read newer debugging information.
        subprocess.run(["objcopy", "--strip-debug", str(program), str(bare)], check=True, timeout=120)
        output = processes.folder / "callgrind.out"
        wrapper = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", "--separate-threads=yes"]
        targets = Sends(processes, Placement(pinned=False), bare)
        target = targets.target(what, wrapper, **settings)
        check_answer(target, target.request, 200)
        headers = [part for name, value in target.request.headers.items() for part in ("-H", f"{name}: {value}")]
        done = subprocess.run(
            ["h2load", "--h1", f"-n{sends}", "-c8", "-d", str(target.request.body), *headers, target.request.url],
            capture_output=True, text=True, timeout=900,
        )
        targets.stops[what]()
        # h2load does not understand HAProxy's status lines, which have no reason.
        wanted = f"{sends} done" if what == "haproxy" else f"{sends} 2xx"
        if wanted not in done.stdout:
            raise BenchError(f"not all of {sends} sends under valgrind were answered: {done.stdout[-300:]}")
        # The files of threads that end with the process come last.
        time.sleep(0.5)
        files = sorted(processes.folder.glob("callgrind.out*"))
        if keep and sends == MANY:
            keep.mkdir(parents=True, exist_ok=True)
            for file in files:
                shutil.copy(file, keep / f"{what}-{file.name}")
        return _threads(files)


def _threads(files: list[Path]) -> _Profile:
    process: Counter[str] = Counter()
    threads: list[Counter[str]] = []
    for file in files:
        stages = _stages(file)
        process.update(stages)
        threads.append(stages)
    # The loop has the most to do of all threads.
    loop = max(threads, key=Counter.total)
    return _Profile(loop, process, process - loop)


def _stages(file: Path) -> Counter[str]:
    """A thread's instructions by stage, of the functions themselves without those that they call."""
    names: dict[str, str] = {}
    kinds: dict[str, str] = {}
    costs: Counter[str] = Counter()
    stage = "other"
    library = ""
    skip = False
    for line in file.open(errors="replace"):
        if line.startswith(("fn=", "ob=")):
            found = re.match(r"(fn|ob)=\((\d+)\)(?: (.*))?", line)
            if not found:
                continue
            key = found[1] + found[2]
            if found[3] is not None:
                names[key] = found[3].strip()
            if found[1] == "ob":
                library = names[key]
                continue
            kind = kinds.get(library + key)
            if kind is None:
                text = names[key] + (" nghttp2" if "nghttp2" in library else "")
                kind = next((stage for stage, pattern in STAGES if re.search(pattern, text)), "other")
                kinds[library + key] = kind
            stage = kind
        elif line.startswith("calls="):
            skip = True
        elif line.startswith("cfn=(") or line.startswith("cob=("):
            found = re.match(r"c(fn|ob)=\((\d+)\) (.*)", line)
            if found:
                names[found[1] + found[2]] = found[3].strip()
        elif line[:1].isdigit() or line[:1] in "+-*":
            if skip:
                # The cost of a call, which the called function counts.
                skip = False
                continue
            parts = line.split()
            if len(parts) == 2:
                costs[stage] += int(parts[1])
    return costs
