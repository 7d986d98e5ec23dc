"""Rolling restarts behind HAProxy: two gateways take turns at SIGTERM while clients send."""

from __future__ import annotations

import csv
import io
import shutil
import time

from lab import Gateway, Lab, Load, Proxy, Tenant, call

FAULT = "SIGTERM under load"
INJECTED = (
    "Rolling restarts of two gateways behind HAProxy with active checks of `/readyz`. No request is ever repeated."
)
EXPECTED = "No request fails or is sent twice, every process exits with 0 within 30 s, and `audit verify` exits with 0."

ROLLS = 10
RATE = 150

# What docs/operations/two-gateways.md recommends, except that nothing is repeated, not even a connection: whatever is refused counts.
HAPROXY = """
defaults
    mode http
    retries 0
    timeout connect 2s
    timeout client 60s
    timeout server 30s
    timeout http-keep-alive 60s
frontend entry
    bind 127.0.0.1:@port@
    stats enable
    stats uri /stats
    default_backend gateways
backend gateways
    balance roundrobin
    http-reuse @reuse@
    option httpchk GET /readyz
    http-check expect status 200
    default-server check inter @inter@ fall 2 rise 2
    server a 127.0.0.1:@a@ port @a_admin@
    server b 127.0.0.1:@b@ port @b_admin@
"""


def run(lab: Lab) -> str:
    short = Roll(lab, "short", {"drainGraceMs": 1500, "shutdownTimeoutMs": 5000}, inter="300ms", reuse="always")
    figures = [short.play(ROLLS)]
    short.end()
    defaults = Roll(lab, "defaults", {}, inter="1s", reuse="safe")
    figures.append(defaults.play(1))
    defaults.end()
    return "; ".join(figures)


class Roll:
    """Two gateways with the same tenants behind one HAProxy."""

    def __init__(self, lab: Lab, name: str, http: dict, inter: str, reuse: str) -> None:
        self.lab, self.name = lab, name
        self.fcm = lab.emulator(name=f"fcm-{name}")
        a = lab.gateway({"http": http}, name=f"{name}-a")
        self.tenant: Tenant = a.tenant("shop", self.fcm)
        assert a.stop() == 0
        # The other one gets a copy of the store, with the master key that it was made with: the same keys open it.
        b = lab.gateway({"http": http}, name=f"{name}-b", start=False)
        shutil.copytree(a.data_dir, b.data_dir)
        shutil.copy(a.folder / "master.key", b.folder / "master.key")
        self.gateways = {"a": a.start(), "b": b.start()}
        self.proxy: Proxy = lab.haproxy(
            HAPROXY, inter=inter, reuse=reuse, a=a.port, a_admin=a.admin_port, b=b.port, b_admin=b.admin_port
        )
        self.wait_until_up()

    def play(self, rolls: int) -> str:
        url = f"{self.proxy.url}/v1/tenants/shop/messages"
        loads = [
            self.load(url, "kept", keep_alive=True).start(), self.load(url, "fresh", keep_alive=False).start(),
        ]
        begin = time.monotonic()
        exits = []
        for _ in range(rolls):
            for gateway in self.gateways.values():
                start = time.monotonic()
                status = gateway.stop()
                exits.append(time.monotonic() - start)
                assert status == 0, f"{gateway.name} exited {status}"
                assert exits[-1] <= 30, f"{gateway.name} took {exits[-1]:.1f} s"
                gateway.start()
                self.wait_until_up()
        for load in loads:
            load.stop()
        seconds = time.monotonic() - begin
        answers = [answer for load in loads for answer in load.answers]
        failed = [answer for answer in answers if answer.status != 200]
        statuses = {status: sum(answer.status == status for answer in answers) for status in {a.status for a in answers}}
        assert not failed, f"{self.name}: {len(failed)} of {len(answers)} failed, {statuses}: {failed[0]}"
        deliveries = self.fcm.control("GET", "journal?limit=10000")["entries"]
        tokens = [entry["body"] for entry in deliveries]
        assert len(set(tokens)) == len(tokens), f"{len(tokens) - len(set(tokens))} messages were sent twice"
        slowest = max(answer.seconds for answer in answers)
        return (
            f"{self.name} graces: {rolls} rolling restarts ({len(exits)} SIGTERMs, exit 0 after {min(exits):.1f} to "
            f"{max(exits):.1f} s) in {seconds:.0f} s, {len(answers)} requests, all 200, failed {len(failed)}, slowest "
            f"{slowest * 1000:.0f} ms"
        )

    def load(self, url: str, name: str, keep_alive: bool) -> Load:
        return self.tenant.load(
            lambda number: self.tenant.message(f"{self.name}-{name}-{number}"), url=url, concurrency=8, rate=RATE / 2,
            keep_alive=keep_alive,
        )

    def wait_until_up(self) -> None:
        """Until HAProxy sends requests to both."""
        self.lab.wait_until(f"HAProxy ({self.name}) to see both", lambda: self.states() == {"a": "UP", "b": "UP"})

    def states(self) -> dict[str, str]:
        text = call("GET", f"{self.proxy.url}/stats;csv").body.decode().lstrip("# ")
        rows = csv.DictReader(io.StringIO(text))
        return {row["svname"]: row["status"] for row in rows if row["svname"] in self.gateways}

    def end(self) -> None:
        for gateway in self.gateways.values():
            assert gateway.stop() == 0
            assert gateway.verify() == 0, gateway.verification().stdout
