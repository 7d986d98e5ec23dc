"""The examples for HAProxy and nginx in front of two gateways, with nothing replaced but addresses and files."""

from __future__ import annotations

import csv
import io
import re
import socket
import subprocess
import time
import unittest
from collections.abc import Callable

from deployment import DEPLOY, LIMIT_S, PROGRAM, config_show, gateway_pair, substituted
from lab import PATIENT, Gateway, Lab, Load, Proxy, Stub, Tenant, call, free_ports, raw, read_request

HAPROXY = (DEPLOY / "haproxy/haproxy.cfg").read_text()
NGINX = (DEPLOY / "nginx/fcm-gateway.conf").read_text()
# What a distribution's nginx.conf has around a file of conf.d.
NGINX_MAIN = """
pid @folder@/nginx.pid;
worker_processes 2;
events {}
http {
    access_log @folder@/access.log;
    client_body_temp_path @folder@/body;
    proxy_temp_path @folder@/proxy;
    fastcgi_temp_path @folder@/fastcgi;
    uwsgi_temp_path @folder@/uwsgi;
    scgi_temp_path @folder@/scgi;
%s
}
"""
RATE = 60
CONNECTIONS = 4


class HAProxy:
    """The example, in front of two servers."""

    # Active checks find out within inter x fall.
    notices_s = 3.0

    def __init__(self, lab: Lab, one: Gateway | Stub, two: Gateway | Stub, tls: bool = False) -> None:
        self.lab = lab
        (self.stats_port,) = free_ports(1)
        plain = ("bind :8080", f"bind 127.0.0.1:{free_ports(1)[0] if tls else '@port@'}")
        self.text = substituted(
            HAPROXY, plain,
            # A gateway that has no processor for a moment is not to be taken for one that is down.
            ("timeout connect 2s", "timeout connect 60s\n    timeout check 60s"), ("bind 127.0.0.1:8404", f"bind 127.0.0.1:{self.stats_port}"), ("check port 8081", "check"),
            *((f" gateway-{number}:8080", f" 127.0.0.1:{server.port} port {getattr(server, 'admin_port', server.port)}")
              for number, server in enumerate((one, two), 1)),
        )
        if tls:
            made = lab.certificate("push")
            both = lab.folder / "push.pem"
            both.write_text(made.certificate.read_text() + made.key.read_text())
            self.text = substituted(
                self.text, ("# bind :8443", "bind 127.0.0.1:@port@"), ("/etc/haproxy/certs/", str(both))
            )
        self.proxy: Proxy = lab.haproxy(self.text)
        self.url = self.proxy.url.replace("http:", "https:") if tls else self.proxy.url

    def wait_until_up(self) -> None:
        self.lab.wait_until("HAProxy to see both", lambda: set(self.states().values()) == {"UP"})

    def states(self) -> dict[str, str]:
        text = call("GET", f"http://127.0.0.1:{self.stats_port}/stats;csv").body.decode().lstrip("# ")
        rows = csv.DictReader(io.StringIO(text))
        return {row["svname"]: row["status"] for row in rows if row["svname"].startswith("gateway-")}


class Nginx:
    """The example, in front of two servers."""

    # A refused connection is noticed by the request that meets it.
    notices_s = 2.0

    def __init__(self, lab: Lab, one: Gateway | Stub, two: Gateway | Stub) -> None:
        made = lab.certificate("push")
        text = substituted(
            NGINX, ("listen 443", "listen 127.0.0.1:@port@"), ("/etc/nginx/tls/push.crt", str(made.certificate)),
            ("/etc/nginx/tls/push.key", str(made.key)), ("server gateway-1:8080", f"server 127.0.0.1:{one.port}"),
            ("server gateway-2:8080", f"server 127.0.0.1:{two.port}"),
        )
        self.proxy: Proxy = lab.nginx(NGINX_MAIN % text)
        self.url = self.proxy.url.replace("http:", "https:")

    def wait_until_up(self) -> None:
        """It asks nobody; what it has left out it tries again after `fail_timeout`."""
        time.sleep(1.2)


def served(gateway: Gateway) -> bool:
    """Whether a message came to it, and is in its audit."""
    return bool(gateway.admin("GET", "audit?action=message.send")["records"])


class Proxies:
    """What holds with either of them; the classes below say which."""

    make: Callable[[Lab, Gateway | Stub, Gateway | Stub], HAProxy | Nginx]
    too_large: str
    """What a refusal of a body that is too large says of it."""

    def setUp(self) -> None:
        self.lab = self.enterContext(Lab(PROGRAM, defaults=PATIENT))

    def send(self, url: str, tenant: Tenant) -> None:
        answer = call("POST", f"{url}/v1/tenants/shop/messages", tenant.headers, tenant.message())
        self.assertEqual(answer.status, 200, str(answer))

    def loads(self, url: str, tenant: Tenant, part: str) -> list[Load]:
        """Load over kept and over fresh connections."""
        return [
            tenant.load(
                lambda number, name=name: tenant.message(f"{part}-{name}-{number}"), url=f"{url}/v1/tenants/shop/messages",
                concurrency=CONNECTIONS, rate=RATE / 2, keep_alive=name == "kept",
            ).start()
            for name in ("kept", "fresh")
        ]

    def wait_for_more(self, loads: list[Load]) -> None:
        """Returns when each load has had some answers to requests that began after the call."""
        start = time.monotonic()
        self.lab.wait_until("answers", lambda: all(
            sum(answer.at - answer.seconds > start for answer in list(load.answers)) >= RATE / 4 for load in loads
        ))

    def test_gateways_come_and_go(self) -> None:
        """A stop under load loses nothing, a sudden death only what was under way, and nothing is sent twice."""
        fcm, tenant, one, two = gateway_pair(self.lab)
        proxy = self.make(self.lab, one, two)
        proxy.wait_until_up()
        self.send(proxy.url, tenant)
        # The one that goes is the one that the key's requests come to.
        servers: list[Gateway] = []

        def has_record() -> bool:
            servers[:] = sorted((one, two), key=served, reverse=True)
            return served(servers[0])

        self.lab.wait_until("its record", has_record)
        one, two = servers

        loads = self.loads(proxy.url, tenant, "stop")
        self.assertEqual(one.stop(), 0)
        # The other one serves alone for a while.
        self.wait_for_more(loads)
        answers = [answer for load in loads for answer in load.stop().answers]
        failed = [str(answer) for answer in answers if answer.status != 200]
        self.assertEqual(failed[:1], [], f"{len(failed)} of {len(answers)} failed")

        one.start()
        proxy.wait_until_up()
        loads = self.loads(proxy.url, tenant, "kill")
        self.wait_for_more(loads)
        one.kill()
        killed = time.monotonic()
        time.sleep(proxy.notices_s)
        self.wait_for_more(loads)
        answers = [answer for load in loads for answer in load.stop().answers]
        failed = [answer for answer in answers if answer.status != 200]
        # Each connection had at most one request under way, and a few more were written to where nobody read any more.
        self.assertLessEqual(len(failed), 2 * CONNECTIONS + RATE / 4, str(failed[:1]))
        late = [answer for answer in failed if answer.at - answer.seconds > killed + proxy.notices_s]
        self.assertEqual(len(late), 0, str(late[:1]))

        tokens = [entry["body"] for entry in fcm.journal("stop-") + fcm.journal("kill-")]
        self.assertEqual(len(set(tokens)), len(tokens), "messages were sent twice")
        print(f"\n{type(proxy).__name__}: {len(answers)} requests around a kill -9, {len(failed)} without an answer of a "
              f"gateway; none of those around a stop")

    def test_a_message_whose_answer_is_lost_is_not_repeated(self) -> None:
        taken: list[str] = []

        def take_and_close(one: socket.socket) -> None:
            while True:
                first, _, _ = read_request(one)
                if first.startswith("POST"):
                    taken.append(first)
                    return
                one.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

        proxy = self.make(self.lab, self.lab.stub(take_and_close), self.lab.stub(take_and_close))
        proxy.wait_until_up()
        for number in range(1, 6):
            answer = call("POST", f"{proxy.url}/v1/tenants/shop/messages", {}, "{}")
            self.assertEqual((answer.status, len(taken)), (502, number), str(answer))

    def test_the_gateways_answers_arrive_as_they_are(self) -> None:
        fcm, tenant, one, two = gateway_pair(self.lab)
        proxy = self.make(self.lab, one, two)
        proxy.wait_until_up()
        url = f"{proxy.url}/v1/tenants/shop/messages"
        # The largest that the gateway takes arrives whole: these are blanks, so what is wrong is what they are not.
        largest = call("POST", url, tenant.headers, b" " * 2**20)
        self.assertEqual((largest.status, largest.headers["content-type"]), (400, "application/problem+json"), str(largest))
        too_large = call("POST", url, tenant.headers, b" " * (2**20 + 1))
        self.assertEqual((too_large.status, too_large.code), (413, self.too_large), str(too_large))
        stranger = call("POST", url, {"Authorization": "Bearer fgw_no_such_key"}, tenant.message())
        self.assertEqual(stranger.status, 401, str(stranger))
        one.admin("PUT", "tenants/shop/limits", {"tenant": [{"rate": 1, "per_s": 3600, "burst": 1}]})
        two.admin("PUT", "tenants/shop/limits", {"tenant": [{"rate": 1, "per_s": 3600, "burst": 1}]})
        answers = [call("POST", url, tenant.headers, tenant.message()) for _ in range(4)]
        # Each gateway has a quota of its own, and the key stays on one; a refusal is an answer and goes to nobody else.
        self.assertEqual(sorted(answer.status for answer in answers), [200, 429, 429, 429])
        for answer in answers:
            self.assertEqual("retry-after" in answer.headers, answer.status == 429, answer.headers)
        self.assertEqual(fcm.hits(), 1)

    def test_a_repeat_finds_the_gateway_that_knows_its_key(self) -> None:
        fcm, tenant, one, two = gateway_pair(self.lab)
        proxy = self.make(self.lab, one, two)
        proxy.wait_until_up()
        for number in range(8):
            headers = {**tenant.headers, "Idempotency-Key": f"order-{number}"}
            message = tenant.message(f"repeated-{number}")
            first, again = (call("POST", f"{proxy.url}/v1/tenants/shop/messages", headers, message) for _ in range(2))
            self.assertEqual((first.status, "idempotent-replayed" in first.headers), (200, False), str(first))
            self.assertEqual((again.body, again.headers.get("idempotent-replayed")), (first.body, "true"), str(again))
        self.assertEqual(fcm.hits(), 8)


class HAProxyTests(Proxies, unittest.TestCase):
    make = HAProxy
    too_large = "body_too_large"

    def test_a_drain_lasts_longer_than_it_takes_to_notice(self) -> None:
        interval, times = re.search(r"\binter (\d+)s fall (\d+)\b", HAPROXY).groups()
        self.assertLess(int(interval) * int(times) * 1000, int(config_show()["http.drainGraceMs"]))

    def test_a_gateway_that_drains_gets_no_traffic(self) -> None:
        """HAProxy leaves it out before it stops to listen."""
        _, tenant, one, two = gateway_pair(self.lab)
        one.stop()
        one.write_config({"http": {"drainGraceMs": 300_000}})
        one.start()
        proxy = self.make(self.lab, one, two)
        proxy.wait_until_up()
        load = self.loads(proxy.url, tenant, "drain")
        one.signal(15)
        self.lab.wait_until("HAProxy to see it", lambda: proxy.states().get("gateway-1", "UP") != "UP", process=one.process)
        # The grace is cut short; what is asked of it after a connection was closed is asked of the other one.
        one.signal(15)
        one.process.wait(LIMIT_S)
        self.assertEqual({answer.status for each in load for answer in each.stop().answers}, {200})

    def test_tls_ends_at_the_line_that_is_commented_out(self) -> None:
        _, tenant, one, two = gateway_pair(self.lab)
        proxy = HAProxy(self.lab, one, two, tls=True)
        proxy.wait_until_up()
        for version, option in (("1.1", "--http1.1"), ("2", "--http2")):
            done = subprocess.run(
                ["curl", "-sSk", option, "-w", "\n%{http_code} %{http_version}", "-H", f"Authorization: Bearer {tenant.key}",
                 "-H", "Content-Type: application/json", "-d", tenant.message(), f"{proxy.url}/v1/tenants/shop/messages"],
                capture_output=True, text=True, timeout=LIMIT_S,
            )
            self.assertEqual(done.stdout.splitlines()[-1:], [f"200 {version}"], done.stdout + done.stderr)

    def test_the_example_for_replicas_differs_in_the_balance_alone(self) -> None:
        def lines(text: str) -> list[str]:
            stripped = [line.split(" #")[0].rstrip() for line in text.splitlines()]
            return [line for line in stripped if line and not line.lstrip().startswith("#")]

        one, replicated = lines(HAPROXY), lines((DEPLOY / "haproxy/replicated.cfg").read_text())
        self.assertEqual(len(one), len(replicated))
        changed = [(old.strip(), new.strip()) for old, new in zip(one, replicated) if old != new]
        self.assertEqual(changed, [("balance hdr(Authorization)", "balance leastconn")])

    def test_names_that_are_not_there_yet_do_not_keep_it_from_starting(self) -> None:
        """Under compose, a gateway may come later than HAProxy."""
        with Lab(PROGRAM, defaults=PATIENT) as lab:
            file = lab.folder / "haproxy.cfg"
            file.write_text(HAPROXY)
            done = subprocess.run(["/usr/sbin/haproxy", "-c", "-f", file], capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        alerts = [line for line in done.stderr.splitlines() if "[ALERT]" in line or "[WARNING]" in line]
        self.assertTrue(all("could not resolve address 'gateway-" in line for line in alerts), alerts)


class NginxTests(Proxies, unittest.TestCase):
    make = Nginx
    # Its own page, which is no problem details.
    too_large = ""

    def test_plain_http_is_not_served(self) -> None:
        one, two = self.lab.stub(lambda _: None), self.lab.stub(lambda _: None)
        proxy = self.make(self.lab, one, two)
        answer = raw(("127.0.0.1", proxy.proxy.port), b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        self.assertRegex(answer.decode("latin-1"), re.compile(r"^HTTP/1.1 400 "))
        self.assertEqual(one.connections + two.connections, 0)


if __name__ == "__main__":
    unittest.main()
