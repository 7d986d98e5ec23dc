"""Ten thousand connections on which nothing happens, beside one service that sends.

Rounds with and without the idle connections alternate, each with a gateway's own warm-up behind it, so that what else the
machine does falls on both alike.
"""

import resource
import subprocess
import sys

from overload import ANSWER, FCM, NICENESS, generator, measure

FAULT = "10,000 idle connections"
INJECTED = "A process opens them, has one request served on each, and holds them open."
EXPECTED = (
    "A sender's p99 stays within 10% of its p99 without them. All connections stay open. The memory for each is "
    "bounded."
)

COUNT = 10_000
ROUNDS = 7
RATE = 1000
HOLDER = """
import resource, socket, sys, time
socket.setdefaulttimeout(60)
port, count = int(sys.argv[1]), int(sys.argv[2])
held = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
# A connection that never says anything is closed after a while; one that has been served may rest.
for one in held:
    one.sendall(b"GET / HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n")
for one in held:
    while b"\\r\\n\\r\\n" not in one.recv(4096):
        pass
print("held", flush=True)
sys.stdin.read()
closed = 0
for one in held:
    one.setblocking(False)
    try:
        while one.recv(4096):
            pass
        closed += 1
    except BlockingIOError:
        pass
print(closed, flush=True)
"""


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def run(lab) -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    # Three quarters of them are for callers.
    assert hard >= COUNT * 4 // 3 + 600, f"the machine allows {hard} open files, which is too few"
    program = generator(lab)
    fcm = lab.nginx(FCM, answer=ANSWER, niceness=NICENESS)
    gateway = lab.gateway({"http": {"keepAliveTimeoutMs": 600_000}})
    tenant = gateway.tenant("shop", fcm.url)
    measure(program, tenant, 16, RATE, 2)
    alone, beside = [], []
    before = gateway.rss_mib()
    grown = 0.0
    for number in range(ROUNDS):
        # The order alternates as well.
        for is_beside in ((False, True) if number % 2 else (True, False)):
            if not is_beside:
                alone.append(measure(program, tenant, 16, RATE, 3)["ok_p99_ms"])
                continue
            holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(gateway.port), str(COUNT)],
                                      stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            try:
                assert holder.stdout.readline() == "held\n", "the idle connections could not be opened"
                grown = max(grown, gateway.rss_mib() - before)
                result = measure(program, tenant, 16, RATE, 3)
                beside.append(result["ok_p99_ms"])
                assert set(result["statuses"]) == {"200"}, result
                closed, _ = holder.communicate("", timeout=60)
                assert closed.strip() == "0", f"{closed.strip()} idle connections were closed"
            finally:
                holder.kill()
                holder.wait(timeout=60)
            lab.wait_until("the idle connections to be gone", lambda: gateway.descriptors() < 2000, 30)
    ratio = median(beside) / median(alone)
    figures = (
        f"p99 of {RATE} sends/s: {median(alone):.2f} ms alone, {median(beside):.2f} ms beside {COUNT} idle connections "
        f"({ratio:.2f} ×, medians of {ROUNDS}); {grown * 1024 / COUNT:.1f} KiB for each connection"
    )
    assert ratio <= 1.1, figures
    return figures
