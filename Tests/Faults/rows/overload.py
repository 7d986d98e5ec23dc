"""Five times as many messages as the gateway can send.

The load is open: it keeps its rate whatever the gateway answers, as many independent clients would. The peak is the most
that the same clients get answered at any rate: a gateway that is busy serves 64 clients better than 1,000, so the peak of a
few would not tell what refusing costs.

The program that makes the load (openloop.c) and the server that stands for FCM would run on other machines. Here they share
the gateway's cores, so they come first (a lower niceness), and the gateway gets what they leave. Figures of different
machines, and of busy ones, can't be compared; those of one run can.
"""

import json
import shutil
import statistics
import subprocess
from pathlib import Path

FAULT = "Five times the load that can be served"
INJECTED = "An open-loop generator sends five times the highest rate that the same 1,000 clients are served at."
EXPECTED = (
    "Goodput is at least 90% of the peak. The p99 of admitted requests is at most five times the usual one. Memory "
    "stays flat. The admin listener answers."
)

# How often the usual, the rates below and five times the peak are measured, by turns; the medians count.
ROUNDS = 7
SECONDS = 3
# As many clients as keep the gateway busy, each with one message at a time: their p99 is the usual one.
FEW = 64
MANY = 1000
# Where the peak of many is looked for, in parts of what the few get.
PARTS = (0.6, 0.75, 0.9)
# How far the generator and FCM come before the gateway.
NICENESS = -10
MESSAGE = json.dumps({"token": "d" * 140 + "%07d", "notification": {"title": "Hello", "body": "A new message"},
                      "data": {"room": "abc"}, "priority": "high", "ttl": 3600})
ANSWER = '{"multicast_id":1,"success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"0:1"}]}'
FCM = """
pid @folder@/fcm.pid;
worker_priority @niceness@;
events { worker_connections 8192; multi_accept on; }
http {
    access_log off;
    default_type application/json;
    keepalive_requests 1000000000;
    keepalive_timeout 3600s;
    client_body_buffer_size 64k;
    client_body_temp_path @folder@/fcm-body;
    server {
        listen 127.0.0.1:@port@ backlog=4096;
        location / { return 200 '@answer@'; }
    }
}
"""


def generator(lab) -> Path:
    """The compiled generator."""
    program = lab.folder / "openloop"
    compiler = shutil.which("cc") or shutil.which("clang")
    assert compiler, "a C compiler is missing"
    source = Path(__file__).resolve().parents[1] / "openloop.c"
    subprocess.run([compiler, "-O2", "-o", program, source], check=True, timeout=60)
    return program


def measure(program: Path, tenant, connections: int, rate: float, seconds: float = SECONDS) -> dict:
    path = tenant.url.removeprefix(tenant.gateway.url)
    command = ["nice", "-n", NICENESS, program, tenant.gateway.port, path, tenant.key, connections, rate, 1, seconds, MESSAGE]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds + 60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(lab) -> str:
    program = generator(lab)
    fcm = lab.nginx(FCM, answer=ANSWER, niceness=NICENESS)
    gateway = lab.gateway()
    tenant = gateway.tenant("shop", fcm.url)
    measure(program, tenant, FEW, 0, 1)

    few = measure(program, tenant, FEW, 0)["ok_per_s"]
    measure(program, tenant, MANY, few * 5, 1)
    usual, loaded, peaks = [], [], []
    for _ in range(ROUNDS):
        usual.append(measure(program, tenant, FEW, 0))
        peaks.append(max(measure(program, tenant, MANY, few * part)["ok_per_s"] for part in PARTS))
        loaded.append(measure(program, tenant, MANY, peaks[-1] * 5))
        assert gateway.admin("GET", "tenants"), "the admin listener does not answer"
        if len(loaded) == 1:
            # Buffers and connections have reached their working size.
            before = gateway.rss_mib()
    after = gateway.rss_mib()

    def median(results: list[dict], name: str) -> float:
        return statistics.median(result[name] for result in results)

    goodput, peak = median(loaded, "ok_per_s"), statistics.median(peaks)
    kept = statistics.median(result["ok_per_s"] / peak for result, peak in zip(loaded, peaks))
    p99, usual_p99 = median(loaded, "ok_p99_ms"), median(usual, "ok_p99_ms")
    figures = (
        f"peak of {MANY} clients: {peak:.0f}/s; at five times that: {goodput:.0f}/s served ({kept:.0%}, median of {ROUNDS} rounds), "
        f"{median(loaded, 'refused_per_s'):.0f}/s refused, p99 {p99:.1f} ms; {FEW} clients, one message at a time: "
        f"{median(usual, 'ok_per_s'):.0f}/s, p99 {usual_p99:.1f} ms ({p99 / usual_p99:.1f} ×); RSS {before:.0f} → {after:.0f} MiB"
    )
    strange = {status for result in loaded for status in result["statuses"]} - {"200", "503"}
    assert not strange and not any(result["lost"] for result in loaded), f"{figures}; also {strange or 'lost connections'}"
    assert gateway.metric("fcmgw_shed_total") > 0, f"nothing was shed: {figures}"
    assert kept >= 0.9, figures
    assert p99 <= 5 * usual_p99, figures
    assert after <= before + 8, figures
    return figures
