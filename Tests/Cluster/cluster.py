"""Several gateways that behave as one: three replicas, the PostgreSQL and the Redis that they share, HAProxy, a fake FCM.

    with Lab(PROGRAM) as lab, Cluster(lab) as cluster:
        shop = cluster.tenant("shop")                  # known to every replica when this returns
        shop.at(1).send("device")                      # by the second replica; shop.anywhere.send() through HAProxy
        cluster.proxies[1].cut()                       # its way to the store; cluster.fcm is still there
        with cluster.paused(1): …
        cluster.wait_verified()

Leases are short, so that tests need not wait for half a minute, and calls of FCM have less than half of that: what takes
over waits for both. A replica's connections to the store carry its name, and pass a proxy of its own.
"""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from network import Namespace
from proxy import PostgreSQLProxy
from servers import ROOT, PostgreSQL, Redis

sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, Answer, Emulator, Gateway, Lab, LabError, Proxy, Tenant, call, v1_upstream  # noqa: E402
from loadbench import free_ports  # noqa: E402

HAPROXY = (ROOT / "deploy/haproxy/haproxy.cfg").read_text()
SIZE = 3
LEASE_S = 2.0
# A lease has to be more than twice as long.
ATTEMPT_S = 0.9
# What the design promises, and what a busy machine may add to it: more where other suites share it.
SEEN_S = 5.0
NOISE_S = float(os.environ.get("NOISE_S", "3"))
# After so long another replica settles what a dead one had begun.
TAKEOVER_S = LEASE_S + ATTEMPT_S
# For what the leader does about replicas that are gone, a minute after their last word.
CLOSING_S = 60 + 15
NAMES = tuple(f"replica-{number}" for number in range(1, SIZE + 1))
CONFIG = {
    "http": {"drainGraceMs": 1500, "shutdownTimeoutMs": 5000, "maxLagMs": 60_000},
    "upstream": {"connectTimeoutMs": int(ATTEMPT_S * 1000), "timeoutMs": int(ATTEMPT_S * 1000), "deadlineMs": 8000},
    "store": {"leaseMs": int(LEASE_S * 1000), "poolSize": 6},
    # Who leads is asked with each checkpoint.
    "audit": {"checkpointIntervalMs": 1000, "commitTimeoutMs": 20_000},
}


class Cluster:
    """All of it; a context manager that starts it and stops what the lab does not.

    - config: what each replica's configuration has beyond `CONFIG`.
    - apart: the network of the last replica, when it is to be one of its own.
    - sentinel: whether a Redis that follows and a Sentinel are there, which is where the limits then begin.
    - disk: the size of a file system of the store's own; needs root.
    - standby: whether a synchronous standby is there; the proxies are sent to it by `fail_over`.
    - programs: of each replica, where they are not all the lab's.
    """

    def __init__(self, lab: Lab, config: dict | None = None, *, apart: Namespace | None = None, sentinel: bool = False,
                 standby: bool = False, disk: str = "", programs: tuple[Path | None, ...] = (None,) * SIZE) -> None:
        self.lab, self.config, self.apart, self.programs = lab, config or {}, apart, programs
        self.has_sentinel, self.has_standby, self.disk = sentinel, standby, disk
        self.proxies: list[PostgreSQLProxy] = []
        self.gateways: list[Gateway] = []
        # Whether calls to FCM may have met their timeout, as on a busy machine: then more is unknown, or was not sent.
        self.met_timeouts = False
        self._tenants = 0

    def __enter__(self) -> Cluster:
        with contextlib.ExitStack() as stack:
            stack.callback(self._end)
            hosts = ("127.0.0.1", *([self.apart.outer] if self.apart else []))
            self.postgresql = PostgreSQL(self.lab, "postgresql", hosts, disk=self.disk)
            self.postgresql.make().start().prepare()
            self.standby = self.postgresql.standby("standby") if self.has_standby else None
            self.redis = Redis(self.lab, "redis", hosts=hosts)
            limits = self.redis.url
            if self.has_sentinel:
                self.redis_replica = Redis(self.lab, "redis-replica", hosts=hosts, replica_of=self.redis)
                self.sentinel = Redis(self.lab, "sentinel", hosts=hosts, watches=self.redis)
                limits = self.sentinel.sentinel_url
            # With TLS, without which FCM may be on this machine alone.
            self.fcm = Emulator(self.lab, "fcm", tls=True, host=self.apart.outer if self.apart else "127.0.0.1")
            for number, name in enumerate(NAMES):
                self.gateways.append(self._replica(number, name, limits))
            self.migrate()
            for gateway in self.gateways:
                gateway.start(wait=False)
            for gateway in self.gateways:
                gateway.wait_ready()
            self.entry = self._haproxy()
            self.wait_until_up()
            stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        for gateway in self.gateways:
            # What was paused would not hear of its end.
            if gateway.process and gateway.process.poll() is None:
                gateway.signal(signal.SIGCONT)
                gateway.kill()
        for proxy in self.proxies:
            proxy.close()
        for server in ("postgresql", "standby"):
            if found := getattr(self, server, None):
                if found.process and found.process.poll() is None:
                    found.resume()
                    found.stop(signal.SIGQUIT)
                found.unmount()

    def _replica(self, number: int, name: str, limits: str) -> Gateway:
        is_apart = self.apart is not None and number == SIZE - 1
        host = self.apart.outer if is_apart else "127.0.0.1"
        # A replica with a network of its own reaches the store by it and by nothing else.
        proxy = PostgreSQLProxy(self.postgresql.port)
        self.proxies.append(proxy)
        port = self.postgresql.port if is_apart else proxy.port
        store = self.postgresql.url(port=port, host=host) + f"&application_name={name}"
        config = {
            **{section: {**values, **self.config.get(section, {})} for section, values in CONFIG.items()},
            **{section: values for section, values in self.config.items() if section not in CONFIG},
        }
        config["store"] = {**config["store"], "url": store}
        config["limits"] = {**config.get("limits", {}), "redisUrl": limits.replace("127.0.0.1", host)}
        config["upstream"] = {**config["upstream"], **v1_upstream(self.fcm)}
        prefix: list[str] = []
        if is_apart:
            prefix = self.apart.prefix
            config["http"] = {**config["http"], "host": self.apart.inner}
            config["admin"] = {"host": self.apart.inner}
        gateway = self.lab.gateway(
            config, name=name, environment={"GATEWAY_STORE_PASSWORD": PostgreSQL.PASSWORD}, prefix=prefix,
            program=self.programs[number], start=False,
        )
        if is_apart:
            gateway.url = f"http://{self.apart.inner}:{gateway.port}"
            gateway.admin_url = f"http://{self.apart.inner}:{gateway.admin_port}"
        if self.gateways:
            # One fleet has one master key and one operators' token.
            first = self.gateways[0]
            for file in ("master.key", "admin.token"):
                (gateway.folder / file).write_text((first.folder / file).read_text())
            gateway.master_key, gateway.admin_token = first.master_key, first.admin_token
        return gateway

    def migrate(self, program: Path | None = None) -> None:
        """`store migrate` as the tables' owner, then the gateway's user gets what it may.

        - program: another release's than the first replica's.
        """
        first = self.gateways[0]
        url, own = first.config["store"]["url"], first.program
        owner = self.postgresql.url(PostgreSQL.OWNER)
        first.write_config({"store": {"url": owner}})
        first.program = program or own
        try:
            done = first.command("store", "migrate", "--config", str(first.config_file))
        finally:
            first.program = own
            first.write_config({"store": {"url": url}})
        if done.returncode != 0:
            raise LabError(f"store migrate: {done.stdout}{done.stderr}")
        self.postgresql.admit()

    # HAProxy, as deploy/ has it but for addresses

    def _haproxy(self) -> Proxy:
        (self._stats_port,) = free_ports(1)
        servers = "".join(
            f"    server {gateway.name} {self._host(gateway)}:{gateway.port} port {gateway.admin_port}\n"
            for gateway in self.gateways
        )
        text = HAPROXY
        for pattern, replacement, count in (
            (r"^ *server gateway-\d .*\n", "", None),
            (r"bind :8080\b", "bind 127.0.0.1:@port@", 1),
            (r"bind 127\.0\.0\.1:8404", f"bind 127.0.0.1:{self._stats_port}", 1),
            # Replicas share what a key needs, so that any of them will do.
            (r"balance \S.*", "balance roundrobin", 1),
            (r"check port 8081", "check", 1),
            # Short, as the graces are.
            (r"inter 1s", "inter 300ms", 1),
            # A replica that has no processor for a moment is not to be taken for one that is down.
            (r"timeout connect 2s", "timeout connect 5s\n    timeout check 5s", 1),
            (r"\n# Which gateways are up", f"\n{servers}\n# Which gateways are up", 1),
        ):
            text, made = re.subn(pattern, lambda _, text=replacement: text, text, flags=re.MULTILINE)
            if count is not None and made != count:
                raise LabError(f"deploy/haproxy/haproxy.cfg has {pattern!r} {made} times")
        return self.lab.haproxy(text)

    @staticmethod
    def _host(gateway: Gateway) -> str:
        return gateway.url.removeprefix("http://").partition(":")[0]

    def states(self) -> dict[str, str]:
        """What HAProxy thinks of each replica."""
        text = call("GET", f"http://127.0.0.1:{self._stats_port}/stats;csv").body.decode().lstrip("# ")
        return {row["svname"]: row["status"] for row in csv.DictReader(io.StringIO(text)) if row["svname"] in NAMES}

    def wait_until_up(self) -> None:
        self.lab.wait_until("HAProxy to see all replicas", lambda: self.states() == dict.fromkeys(NAMES, "UP"))

    # Tenants

    def tenant(self, name: str = "", api: str = "legacy", limits: dict | None = None, sender_id: str = "") -> Shared:
        """A tenant that every replica knows, with a name of its own unless one is given.

        - sender_id: what device groups need.
        """
        self._tenants += 1
        name = name or f"tenant-{self._tenants}"
        tenant = self.gateways[0].tenant(name, self.fcm, api=api, limits=limits)
        if sender_id:
            members = {"display_name": name, "upstream": api, "sender_id": sender_id}
            self.gateways[0].admin("PUT", f"tenants/{name}", members)
        shared = Shared(self, tenant)
        for place, gateway in enumerate(self.gateways):
            if gateway.process and gateway.process.poll() is None:
                self.lab.wait_until(
                    f"{gateway.name} to know {name}", lambda place=place: shared.at(place).knows(), SEEN_S + NOISE_S
                )
        return shared

    # What befalls replicas

    @contextlib.contextmanager
    def paused(self, place: int) -> Iterator[Gateway]:
        """SIGSTOP for the block: its connections stay, its clock goes on."""
        gateway = self.gateways[place]
        gateway.signal(signal.SIGSTOP)
        try:
            yield gateway
        finally:
            gateway.signal(signal.SIGCONT)

    def kill(self, place: int) -> None:
        self.gateways[place].kill()

    def start(self, place: int) -> None:
        self.gateways[place].start()

    def fail_over(self) -> float:
        """The primary dies, the standby takes over, and the proxies lead there; seconds that this took."""
        assert self.standby, "there is no standby"
        start = time.monotonic()
        self.postgresql.kill()
        self.standby.promote()
        for proxy in self.proxies:
            proxy.target = ("127.0.0.1", self.standby.port)
            proxy.close_all()
        self.postgresql, self.standby = self.standby, None
        return time.monotonic() - start

    # What can be seen of it

    def leader(self) -> int | None:
        """The replica that holds the leader's lock; None while none does, or another lock of that kind is held as well."""
        rows = self.postgresql.query(
            "SELECT DISTINCT application_name FROM pg_locks JOIN pg_stat_activity USING (pid) "
            "WHERE locktype = 'advisory' AND granted AND application_name LIKE 'replica-%'"
        )
        return NAMES.index(rows[0][0]) if len(rows) == 1 else None

    def verification(self) -> tuple[int, str]:
        """The status of `audit verify`, 0 to 2, and what it says; it runs again where it could not read the store."""
        status, said = -1, ""

        def has_read() -> bool:
            nonlocal status, said
            done = self.gateways[0].verification()
            status, said = done.returncode, (done.stdout + done.stderr).strip()
            if status not in (0, 1, 2):
                raise LabError(f"{status}: {said}")
            return True

        self.lab.wait_until("audit verify to read the store", has_read, LIMIT_S, pause=0.5)
        return status, said

    def wait_verified(self, seconds: float = CLOSING_S) -> float:
        """Waits until the audit is whole and no chain is open that nobody writes; how long that took.

        Status 1, tampered, is never right.
        """
        def is_whole() -> bool:
            status, said = self.verification()
            assert status != 1, f"audit verify 1: {said}"
            if status == 2:
                raise LabError(f"audit verify 2: {said}")
            return True

        return within("audit verify 0", seconds, is_whole, self.lab, pause=0.5)

    def records(self, tenant: str, action: str = "message.send") -> tuple[int, int]:
        """How many records of an action a tenant has in the store, and how many different ones."""
        ((count, distinct),) = self.postgresql.query(
            "SELECT count(*), count(DISTINCT body) FROM audit_records "
            f"WHERE tenant = '{tenant}' AND position('{action}'::bytea IN body) > 0"
        )
        return int(count), int(distinct)

    def wait_recorded(self, tenant: str, count: int) -> None:
        """Waits until so many sends of a tenant are recorded: each once, by itself or in a summary of refused ones."""
        self.lab.wait_until(f"{count} records of {tenant}", lambda: self.recorded_sends(tenant)[0] >= count, pause=0.2)
        sends, records = self.recorded_sends(tenant)
        assert sends == count, f"records of {sends} sends, of {count} messages"
        assert self.records(tenant) == (records, records), f"{self.records(tenant)} records"

    def recorded_sends(self, tenant: str) -> tuple[int, int]:
        """How many sends a tenant's records tell of, and how many records those are."""
        summarised = "substring(encode(body, 'escape') FROM '([0-9]+) refused until')::bigint"
        ((sends, records),) = self.postgresql.query(
            f"SELECT coalesce(sum(coalesce({summarised}, 1)), 0), count(*) FROM audit_records "
            f"WHERE tenant = '{tenant}' AND position('message.send'::bytea IN body) > 0"
        )
        return int(sends), int(records)

    def arrivals(self, tokens: list[str]) -> dict[str, int]:
        """How often each token came to FCM, whatever became of it there."""
        wanted = dict.fromkeys(tokens, 0)
        for entry in self.fcm.journal():
            for token in re.findall(r'"([^"\\]+)"', entry["body"]):
                if token in wanted:
                    wanted[token] += 1
        return wanted


class Entry:
    """Where a tenant's requests go: a replica, or HAProxy before them all."""

    def __init__(self, url: str) -> None:
        self.url = url


@dataclass
class At(Tenant):
    """A tenant at one place, with what tests ask there."""

    def knows(self) -> bool:
        return self.get("retired-tokens?limit=1").status == 200

    def get(self, path: str) -> Answer:
        return call("GET", f"{self.gateway.url}/v1/tenants/{self.name}/{path}", self.headers)

    def read(self, path: str) -> dict:
        """What is there; reading that is refused under load is asked again."""
        answer = Answer(0)

        def is_read() -> bool:
            nonlocal answer
            answer = self.get(path)
            return answer.status not in (0, 503)

        self.gateway.lab.wait_until(path, is_read, pause=0.1)
        assert answer.status == 200, answer
        return answer.json()

    def request(self, method: str, path: str, body: bytes, timeout: float = 60) -> Answer:
        return call(method, f"{self.gateway.url}/v1/tenants/{self.name}/{path}", self.headers, body, timeout)

    def idempotent(self, key: str, body: bytes, timeout: float = 60) -> Answer:
        return call("POST", self.url, {**self.headers, "Idempotency-Key": key}, body, timeout)


class Shared:
    """A tenant at each replica and behind HAProxy."""

    def __init__(self, cluster: Cluster, tenant: Tenant) -> None:
        self.cluster, self.name, self.key = cluster, tenant.name, tenant.key

    def at(self, place: int) -> At:
        return At(self.cluster.gateways[place], self.name, self.key)

    @property
    def anywhere(self) -> At:
        """Through HAProxy."""
        return At(Entry(self.cluster.entry.url), self.name, self.key)


def within(what: str, seconds: float, condition: Callable[[], object], lab: Lab, pause: float = 0.02) -> float:
    """Asserts that something comes true in time; a LabError says that the lab failed, this that the gateway did."""
    try:
        return lab.wait_until(what, condition, seconds + NOISE_S, pause=pause)
    except LabError as error:
        raise AssertionError(str(error)) from error
