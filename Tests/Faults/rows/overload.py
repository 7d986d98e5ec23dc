"""Five times as many messages as the gateway can send.

The load is open: it keeps its rate whatever the gateway answers, as many independent clients would. The program that
makes it (openloop.c), the server that stands for FCM and the gateway share the machine's cores, so figures of different
machines, and of busy ones, can't be compared; those of one run can.
"""

import json
import shutil
import statistics
import subprocess
from pathlib import Path

FAULT = "Five times the load that can be served"
INJECTED = "open-loop generator at five times the measured peak"
EXPECTED = "goodput ≥ 90% of the peak; p99 of what is admitted ≤ 5 × the usual; memory flat; the admin listener answers"

# How often the usual and five times that are measured, by turns; the medians count.
ROUNDS = 7
SECONDS = 3
CONNECTIONS = 1000
MESSAGE = json.dumps({"token": "d" * 140 + "%07d", "notification": {"title": "Hello", "body": "A new message"},
                      "data": {"room": "abc"}, "priority": "high", "ttl": 3600})
ANSWER = '{"multicast_id":1,"success":1,"failure":0,"canonical_ids":0,"results":[{"message_id":"0:1"}]}'
FCM = """
pid @folder@/fcm.pid;
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
    command = [program, tenant.gateway.port, path, tenant.key, connections, rate, 1, seconds, MESSAGE]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=seconds + 60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def run(lab) -> str:
    program = generator(lab)
    fcm = lab.nginx(FCM, answer=ANSWER)
    gateway = lab.gateway()
    tenant = gateway.tenant("shop", fcm.url)
    measure(program, tenant, 64, 0, 1)

    # What can be kept up: as much as 64 clients get that repeat as soon as they are answered.
    peak = measure(program, tenant, 64, 0)["ok_per_s"]
    measure(program, tenant, CONNECTIONS, peak * 5, 1)
    before = gateway.rss_mib()
    usual, loaded = [], []
    for _ in range(ROUNDS):
        usual.append(measure(program, tenant, 64, 0))
        loaded.append(measure(program, tenant, CONNECTIONS, usual[-1]["ok_per_s"] * 5))
        assert gateway.admin("GET", "tenants"), "the admin listener does not answer"
    after = gateway.rss_mib()

    def median(results: list[dict], name: str) -> float:
        return statistics.median(result[name] for result in results)

    goodput, peak = median(loaded, "ok_per_s"), median(usual, "ok_per_s")
    p99, usual_p99 = median(loaded, "ok_p99_ms"), median(usual, "ok_p99_ms")
    refused = median(loaded, "refused_per_s")
    figures = (
        f"peak {peak:.0f}/s; at 5 × {goodput:.0f}/s ({goodput / peak:.0%}), {refused:.0f}/s refused; p99 {usual_p99:.1f} ms "
        f"at the peak and {p99:.1f} ms at 5 × ({p99 / usual_p99:.1f} ×); RSS {before:.0f} → {after:.0f} MiB"
    )
    strange = {status for result in loaded for status in result["statuses"]} - {"200", "503"}
    assert not strange and not any(result["lost"] for result in loaded), f"{figures}; also {strange or 'lost connections'}"
    assert gateway.metric("fcmgw_shed_total") > 0, f"nothing was shed: {figures}"
    assert goodput >= 0.9 * peak, figures
    assert p99 <= 5 * usual_p99, figures
    assert after <= before + 8, figures
    return figures
