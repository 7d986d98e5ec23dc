"""What a real Prometheus says of gateways that did everything once, beside what was really done."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import sqlite3
import subprocess
import threading
import time
import unittest
from pathlib import Path

import monitoring
from lab import PATIENT, UNLIMITED, Answer, Gateway, Lab, call, raw, v1_upstream
from monitoring import PROGRAM, TEXTFILE, Prometheus, gateway_address, promtool

SENDS = 7
LISTED = 20
DEAD = 60
# More than the alerts on the error budget take for chance.
AGAIN = 24
# One decision of the limiter in 16 is timed.
MORE = 32
SEND_ROUTE = "/v1/tenants/{tenant}/messages"


def setUpModule() -> None:
    if not PROGRAM.exists():
        raise RuntimeError(f"{PROGRAM} is missing; `swift build` makes it")


class Textfile:
    """The folder of a textfile collector, and a server that shows it as node_exporter would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                content = b"".join(file.read_bytes() for file in sorted(folder.glob("*.prom")))
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.address = f"127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(monitoring.LIMIT_S)

    def check(self, gateway: Gateway, data_dir: Path) -> subprocess.CompletedProcess[str]:
        """Runs what a timer would run, on a data directory."""
        environment = {**gateway.environment, "FCM_GATEWAY": str(PROGRAM)}
        return subprocess.run(
            [TEXTFILE, self.folder, "--data-dir", data_dir], env=environment, capture_output=True, text=True,
            timeout=monitoring.LIMIT_S,
        )


class Scene:
    """Two gateways that everything happened to, and a Prometheus that saw it."""

    def __init__(self, lab: Lab, stack: contextlib.ExitStack) -> None:
        self.lab = lab
        self.begun = time.time()
        self.legacy, self.v1 = lab.emulator(), lab.emulator(tls=True)
        self.sink = lab.folder / "audit.jsonl"
        audit = {"checkpointIntervalMs": 500, "sink": f"file:{self.sink}"}
        self.well = lab.gateway({"upstream": v1_upstream(self.v1), "audit": audit}, name="well")
        hanging = {"timeoutMs": 600_000, "deadlineMs": 600_000}
        self.busy = lab.gateway({"http": {"maxInFlight": 2}, "upstream": hanging}, name="busy")
        self.broken_sends = self.shed = 0
        self.textfile = Textfile(lab.folder / "textfile")
        stack.callback(self.textfile.close)
        self.prometheus = Prometheus(
            lab, [gateway_address(self.well), gateway_address(self.busy)], [self.textfile.address]
        )
        self.crowd = self.busy.tenant("shop", self.legacy)
        self.send()
        self.manage()
        self.trouble()
        self.refuse(3)
        self.prometheus.wait_for_scrape()
        # A rate begins with what a series had when it was seen first, so something has to come after that.
        self.send_again()
        self.prometheus.wait_for_scrape()

    def send(self) -> None:
        """Messages of a tenant by each protocol, with every kind of outcome that a caller can bring about."""
        self.shop = self.well.tenant("shop", self.legacy)
        self.mail = self.well.tenant("mail", self.v1, api="v1")
        for number in range(SENDS):
            expect(self.shop.send(f"canary-{number}"), 200)
            expect(self.mail.send(f"canary-{number}"), 200)
        tokens = [f"canary-listed-{number}" for number in range(LISTED)]
        tokens += ["canary-ERROR_NotRegistered", "canary-ERROR_InvalidRegistration"]
        expect(self.shop.send("", tokens=tokens), 200)
        expect(self.shop.send("", topic="canary-news"), 200)
        expect(self.shop.send("", condition="'canary-news' in topics"), 200)
        expect(self.shop.send("canary-ERROR_MismatchSenderId"), 422)
        expect(self.shop.send("canary-0", unknown_member=1), 422)
        for status in (200, 200):
            expect(self.shop.send("canary-key", headers={"Idempotency-Key": "canary-order"}), status)
        self.legacy.fault("status", status=503, token="canary-again")
        expect(self.shop.send("canary-again"), 200)
        self.later = self.well.tenant("later", self.legacy)
        batches = self.later.url.replace("/messages", "/batches")
        batch = json.dumps({"message": {"data": {"a": "1"}}, "to": {"tokens": ["canary-batch"]}})
        expect(call("POST", batches, self.later.headers, batch), 202)
        few = {**UNLIMITED, "tenant": [{"rate": 1, "per_s": 3600, "burst": 1}]}
        limited = self.well.tenant("limited", self.legacy, limits=few)
        expect(limited.send(), 200)
        expect(limited.send(), 429)

    def send_again(self) -> None:
        """A few more, so that what went on still goes on."""
        load = self.shop.load(lambda number: self.shop.message(f"canary-more-{number}"), count=MORE, concurrency=4)
        expect(self.later.send("canary-later", headers={"Prefer": "respond-async"}), 202)
        assert load.run().statuses == {200: MORE}
        self.fail(AGAIN)
        self.refuse(AGAIN)

    def fail(self, count: int) -> None:
        """Messages to a server that is not there."""
        for _ in range(count):
            expect(self.broken.send(), 503)
        self.broken_sends += count

    def refuse(self, count: int) -> None:
        """Two places, one of them for a tenant: while FCM hangs, one message waits and the others are refused."""
        tenant = self.crowd
        self.legacy.fault("hang", token="canary-hang")
        before = self.legacy.hits("canary-hang")
        held = tenant.load(lambda _: tenant.message("canary-hang"), count=1, concurrency=1).start()
        self.lab.wait_until("the message to hang", lambda: self.legacy.hits("canary-hang") == before + 1)
        for _ in range(count):
            answer = expect(tenant.send(), 503)
            assert answer.code == "overloaded", answer
        self.shed += count
        self.legacy.heal()
        assert held.wait().statuses == {200: 1}

    def manage(self) -> None:
        """Topics, device groups, the admin API."""
        headers = self.shop.headers
        base = f"{self.well.url}/v1/tenants/shop"
        body = json.dumps({"tokens": ["canary-1", "canary-2"]})
        expect(call("POST", f"{base}/topics/canary-news/subscriptions", headers, body), 200)
        self.well.admin("PUT", "tenants/shop", {"display_name": "shop", "upstream": "legacy", "sender_id": "77"})
        expect(call("PUT", f"{base}/device-groups/canary-user", headers, body), 200, 201)
        self.well.admin("GET", "audit")

    def trouble(self) -> None:
        """A wrong key, bytes that are no HTTP, dead tokens, a server that is not there, a bad reload."""
        expect(call("POST", self.shop.url, {"Authorization": "Bearer none"}, "{}"), 401)
        raw(self.well.url, b"GET / HTTP/9.9\r\n\r\n")
        dead = self.well.tenant("moved", self.legacy)
        expect(dead.send("", tokens=[f"canary-ERROR_NotRegistered-{number}" for number in range(DEAD)]), 200)
        spike = 'fcmgw_retired_token_spike_active{tenant="moved"}'
        self.lab.wait_until("the spike", lambda: self.well.metric(spike) == 1)
        (port,) = monitoring.free_ports(1)
        self.broken = self.well.tenant("broken", f"http://127.0.0.1:{port}")
        self.fail(5)
        self.busy.config_file.write_text("{")
        self.busy.reload()
        self.lab.wait_until("the reload", lambda: self.busy.metric("fcmgw_config_last_reload_successful") == 0)


def expect(answer: Answer, *statuses: int) -> Answer:
    """An answer that has one of these statuses."""
    assert answer.status in statuses, f"{statuses} expected: {answer}"
    return answer


def start_time(pid: int) -> float:
    """When a process began, in seconds of the Unix epoch (proc(5))."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    boot = int(re.search(r"^btime (\d+)$", Path("/proc/stat").read_text(), re.M)[1])
    return boot + ticks / os.sysconf("SC_CLK_TCK")


def tamper(source: Path, folder: Path) -> None:
    """Copies a store and changes one record of its audit."""
    folder.mkdir(mode=0o700)
    copy = folder / "gateway.sqlite"
    with contextlib.closing(sqlite3.connect(source)) as database:
        database.execute("VACUUM INTO ?", (str(copy),))
    copy.chmod(0o600)
    with contextlib.closing(sqlite3.connect(copy)) as database, database:
        changed = database.execute(
            "UPDATE audit_records SET time = time + 1 WHERE (writer, sequence) IN"
            " (SELECT writer, sequence FROM audit_records ORDER BY writer, sequence LIMIT 1)"
        )
        assert changed.rowcount == 1


class Scraped(unittest.TestCase):
    """One scene for all: what is looked at does not change any more, but for what a test changes at its own end."""

    @classmethod
    def setUpClass(cls) -> None:
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        lab = stack.enter_context(Lab(PROGRAM, defaults=PATIENT))
        cls.scene = Scene(lab, stack)
        cls.prometheus = cls.scene.prometheus
        cls.well = gateway_address(cls.scene.well)
        cls.busy = gateway_address(cls.scene.busy)

    def setUp(self) -> None:
        """A scrape that took too long took its series away until the next one."""
        self.scene.lab.wait_until(
            "all targets", lambda: len(self.prometheus.query("up == 1")) == self.prometheus.target_count
        )

    def value(self, query: str) -> float:
        return self.prometheus.value(query)

    def outcomes(self, tenant: str, kind: str) -> dict[str, float]:
        query = f'sum by (outcome) (fcmgw_messages_total{{instance="{self.well}",tenant="{tenant}",kind="{kind}"}})'
        return {series["outcome"]: value for series, value in self.prometheus.query(query)}

    # What was scraped

    def test_targets(self) -> None:
        """Both gateways are up, without a token, and every series of theirs arrives."""
        up = {series["instance"]: value for series, value in self.prometheus.query('up{job="fcm-gateway"}')}
        self.assertEqual(up, {self.well: 1, self.busy: 1})
        for gateway, instance in ((self.scene.well, self.well), (self.scene.busy, self.busy)):
            def is_all_there(gateway: Gateway = gateway, instance: str = instance) -> bool:
                count = len(gateway.metrics())
                self.assertLessEqual(count, 5_000)
                scraped = self.value(f'scrape_samples_scraped{{instance="{instance}"}}')
                found = self.value(f'count({{instance="{instance}",__name__=~"fcmgw_.*|process_.*"}})')
                return scraped == found == count

            # A series may come between two looks.
            self.scene.lab.wait_until(f"all series of {instance}", is_all_there, pause=0.5)

    def test_every_metric_lives(self) -> None:
        """Everything that a gateway with a file describes is there, of the type and with the text that are described."""
        described = {
            name: kind for name, kind in monitoring.described_metrics().items() if name not in monitoring.FLEET
        }
        metadata = self.prometheus.get("targets/metadata", match_target='{job="fcm-gateway"}')
        own = [entry for entry in metadata if entry["metric"].startswith(("fcmgw_", "process_"))]
        types = {entry["metric"]: entry["type"] for entry in own}
        self.assertEqual(types, described)
        self.assertEqual([entry for entry in metadata if "Not described" in entry["help"]], [])
        found = {series["__name__"] for series, _ in self.prometheus.query('{job="fcm-gateway"}')}
        self.assertEqual(monitoring.sample_names(described) - found, set())

    def test_promtool(self) -> None:
        """promtool has nothing against the metrics of either gateway, nor against those of the audit's check."""
        self.scene.textfile.check(self.scene.well, self.scene.well.data_dir)
        texts = [call("GET", f"{gateway.admin_url}/metrics").body.decode() for gateway in
                 (self.scene.well, self.scene.busy)]
        texts += [file.read_text() for file in self.scene.textfile.folder.glob("*.prom")]
        self.assertEqual(len(texts), 3)
        for text in texts:
            outcome = promtool("check", "metrics", input=text)
            self.assertEqual((outcome.returncode, outcome.stdout, outcome.stderr), (0, "", ""))

    def test_nothing_of_messages(self) -> None:
        """No token, topic or key is in any label."""
        labels = json.dumps([series for series, _ in self.prometheus.query('{job="fcm-gateway"}')])
        self.assertIn("fcmgw_messages_total", labels)
        for secret in ("canary", "ERROR_", self.scene.shop.key, self.scene.well.admin_token):
            self.assertFalse(secret in labels, f"{secret} is in a label")

    # What it counted

    def test_messages(self) -> None:
        """Recipients are counted by tenant, kind and outcome as they were sent to."""
        # One was sent with an idempotency key, whose repeat is no message; one was repeated by the gateway.
        self.assertEqual(self.outcomes("shop", "token"), {"accepted": SENDS + MORE + 2, "sender_mismatch": 1})
        self.assertEqual(
            self.outcomes("shop", "tokens"), {"accepted": LISTED, "unregistered": 1, "invalid_token": 1}
        )
        self.assertEqual(self.outcomes("shop", "topic"), {"accepted": 1})
        self.assertEqual(self.outcomes("shop", "condition"), {"accepted": 1})
        self.assertEqual(self.outcomes("mail", "token"), {"accepted": SENDS})
        self.assertEqual(self.outcomes("moved", "tokens"), {"unregistered": DEAD})
        self.assertEqual(self.outcomes("limited", "token"), {"accepted": 1, "tenant_rate_exceeded": 1})
        self.assertEqual(self.outcomes("broken", "token"), {"upstream_unavailable": self.scene.broken_sends})
        self.assertEqual(
            self.value(f'sum(fcmgw_subscription_changes_total{{instance="{self.well}",outcome="accepted"}})'), 2
        )
        self.assertEqual(
            self.value(f'sum(fcmgw_device_group_requests_total{{instance="{self.well}",action="device_group.put"}})'), 1
        )

    def test_histograms(self) -> None:
        """A histogram's buckets, count and sum belong together, and its counts are those of the requests."""
        send = f'instance="{self.well}",route="{SEND_ROUTE}"'
        by_status = {
            series["status"]: value for series, value in
            self.prometheus.query(f"fcmgw_http_request_duration_seconds_count{{{send}}}")
        }
        # Of shop: single ones, a list, a topic, a condition, a key twice and one that FCM failed at first.
        self.assertEqual(by_status, {
            "200": 2 * SENDS + MORE + 3 + 2 + 1 + 1 + 1, "202": 1, "401": 1, "422": 2, "429": 1,
            "503": self.scene.broken_sends,
        })
        for name in (name for name, kind in monitoring.described_metrics().items() if kind == "histogram"):
            with self.subTest(name):
                # In one query: between two, a scrape may come, which is a request too.
                difference = f'sum({name}_bucket{{le="+Inf",job="fcm-gateway"}}) - sum({name}_count{{job="fcm-gateway"}})'
                self.assertEqual(self.value(difference), 0)
                self.assertGreater(self.value(f'sum({name}_sum{{job="fcm-gateway"}})'), 0)

    def test_upstream(self) -> None:
        """Calls to FCM are counted as FCM counted them."""
        counted = {
            (series["api"], series["outcome"]): value for series, value in
            self.prometheus.query(f'fcmgw_upstream_attempt_duration_seconds_count{{instance="{self.well}"}}')
        }
        journal = [entry for entry in self.scene.legacy.journal("") if entry["path"] == "/fcm/send"]
        # Two of them hung, for the other gateway.
        self.assertEqual(counted["legacy", "answered"], len(journal) - 2)
        self.assertEqual(counted["v1", "answered"], SENDS)
        self.assertEqual(self.value(f'fcmgw_oauth_refresh_total{{instance="{self.well}",result="done"}}'), 1)
        self.assertEqual(self.value(f'sum(fcmgw_retries_total{{instance="{self.well}",reason="upstream_5xx"}})'), 1)
        self.assertEqual(self.value(f'sum(fcmgw_upstream_inflight{{instance="{self.well}"}})'), 0)

    def test_trouble(self) -> None:
        """What went wrong is seen where it went wrong."""
        self.assertEqual(self.value('fcmgw_breaker_state{project="broken"}'), 2)
        self.assertEqual(self.value('fcmgw_breaker_state{project="shop",api="legacy",instance="%s"}' % self.well), 0)
        self.assertEqual(self.value('fcmgw_retired_token_spike_active{tenant="moved"}'), 1)
        self.assertEqual(self.value(f'fcmgw_config_last_reload_successful{{instance="{self.busy}"}}'), 0)
        self.assertEqual(self.value(f'fcmgw_config_last_reload_successful{{instance="{self.well}"}}'), 1)
        shed = self.value(f'fcmgw_shed_total{{instance="{self.busy}",reason="tenant_share"}}')
        self.assertEqual(shed, self.scene.shed)
        self.assertEqual(self.value(f'sum(fcmgw_shed_total{{instance="{self.well}"}})'), 0)
        # The slices of a batch and of an asynchronous message have keys too.
        for result, count in (("fresh", 3), ("replay", 1)):
            self.assertEqual(self.value(f'fcmgw_idempotency_total{{instance="{self.well}",result="{result}"}}'), count)
        refused = self.value(f'fcmgw_auth_total{{instance="{self.well}",method="api_key",result!="accepted"}}')
        self.assertEqual(refused, 1)
        self.assertGreaterEqual(self.value(f'sum(fcmgw_http_rejected_total{{instance="{self.well}"}})'), 1)
        self.assertEqual(self.value('min(fcmgw_store_up)'), 1)

    def test_audit(self) -> None:
        """Everything of the audit is signed and in the second sink at once, and nothing waits or is removed."""
        def delivered() -> int:
            # What is not whole is still being written.
            lines = [line for line in self.scene.sink.read_text().splitlines(keepends=True) if line.endswith("\n")]
            return sum(1 for line in lines if json.loads(line))

        self.scene.lab.wait_until("records in the sink", lambda: delivered() > SENDS + MORE)
        written = self.value(f'fcmgw_audit_records_total{{instance="{self.well}",result="written"}}')
        self.assertGreater(written, SENDS + MORE)
        for name in ("fcmgw_audit_last_checkpoint_timestamp_seconds", "fcmgw_audit_sink_delivered_timestamp_seconds"):
            told = self.value(f'{name}{{instance="{self.well}"}}')
            self.assertGreater(told, self.scene.begun, name)
            self.assertLessEqual(told, time.time(), name)
        for name in ("audit_spool_bytes", "audit_checkpoint_failures_total", "audit_sink_failures_total",
                     "audit_records_removed_total"):
            self.assertEqual(self.value(f'fcmgw_{name}{{instance="{self.well}"}}'), 0, name)
        # The other gateway has no second sink, and so nothing to say of one.
        self.assertEqual(self.prometheus.query(f'{{__name__=~"fcmgw_audit_sink_.*",instance="{self.busy}"}}'), [])

    def test_process(self) -> None:
        """The process' own figures are those of the kernel."""
        pid = self.scene.well.pid
        started = self.value(f'process_start_time_seconds{{instance="{self.well}"}}')
        self.assertAlmostEqual(started, start_time(pid), delta=60)
        limit = re.search(r"^Max open files +(\d+)", Path(f"/proc/{pid}/limits").read_text(), re.M)[1]
        self.assertEqual(self.value(f'process_max_fds{{instance="{self.well}"}}'), int(limit))
        resident = self.scene.well.rss_mib() * 1024 * 1024
        self.assertAlmostEqual(
            self.value(f'process_resident_memory_bytes{{instance="{self.well}"}}'), resident, delta=resident / 2
        )
        self.assertGreater(self.value(f'process_cpu_seconds_total{{instance="{self.well}"}}'), 0)
        self.assertGreater(self.value(f'process_open_fds{{instance="{self.well}"}}'), 10)

    # What is made of it

    def test_dashboard(self) -> None:
        """Every query of the dashboard but those of a fleet finds something, with Grafana's values for its variables."""
        queries = monitoring.dashboard_queries()
        self.assertGreater(len(queries), 40)
        for title, query in queries:
            if monitoring.names_in(query) <= monitoring.FLEET:
                continue
            for name, value in (("$job", "fcm-gateway"), ("$instance", ".*"), ("$__rate_interval", "1h")):
                query = query.replace(name, value)
            with self.subTest(panel=title, query=query):
                self.assertNotIn("$", query)
                # A value that is no number is none.
                self.scene.lab.wait_until(
                    f"a number for {title}",
                    lambda: any(value == value for _, value in self.prometheus.query(query)), pause=0.1,
                )

    def test_dashboard_variables(self) -> None:
        """The choices of the dashboard are the gateways."""
        variables = {
            entry["name"]: entry["query"]
            for entry in json.loads(monitoring.DASHBOARD.read_text())["templating"]["list"]
        }
        self.assertEqual(variables["job"], "label_values(fcmgw_build_info, job)")
        self.assertEqual(variables["instance"], 'label_values(fcmgw_build_info{job="$job"}, instance)')
        self.assertEqual(self.prometheus.get("label/job/values", **{"match[]": "fcmgw_build_info"}), ["fcm-gateway"])
        instances = self.prometheus.get("label/instance/values", **{"match[]": 'fcmgw_build_info{job="fcm-gateway"}'})
        self.assertEqual(set(instances), {self.well, self.busy})

    def test_rules_run(self) -> None:
        """Prometheus evaluates every rule without an error, and those whose time has come are pending or fire."""
        rules = [rule for group in self.prometheus.get("rules")["groups"] for rule in group["rules"]]
        self.assertGreater(len(rules), 20)
        self.assertEqual([rule["name"] for rule in rules if rule["health"] == "err"], [])
        wanted = {
            "FcmGatewayBreakerOpen": {"project": "broken", "api": "legacy", "instance": self.well},
            "FcmGatewayRetiredTokenSpike": {"tenant": "moved", "instance": self.well},
            "FcmGatewayReloadFailed": {"instance": self.busy},
            "FcmGatewaySheds": {"instance": self.busy},
            "FcmGatewayErrorBudgetBurnsFast": {},
        }

        def raised(name: str) -> list[dict[str, str]]:
            """The alerts that were pending or fired; what brought some of them about may be minutes ago."""
            return [alert for alert, _ in self.prometheus.query(f'max_over_time(ALERTS{{alertname="{name}"}}[1h])')]

        for name, labels in wanted.items():
            with self.subTest(name):
                self.scene.lab.wait_until(name, lambda: raised(name), pause=0.1)
                for alert in raised(name):
                    self.assertEqual({label: alert[label] for label in labels}, labels)
        for name in ("FcmGatewayAuditRefused", "FcmGatewayStoreDown"):
            self.assertEqual(raised(name), [])
        # A scrape that takes too long has them pending for a moment.
        for name in ("FcmGatewayDown", "FcmGatewayMissing"):
            self.assertEqual([alert for alert in raised(name) if alert["alertstate"] == "firing"], [])

    def test_audit_check(self) -> None:
        """What the check of the audit found reaches Prometheus, and fires; a check without a result changes nothing."""
        textfile, well = self.scene.textfile, self.scene.well
        begun = int(time.time())
        self.assertEqual(textfile.check(well, well.data_dir).returncode, 0)
        ended = time.time()
        self.prometheus.wait_for_scrape()
        self.assertEqual(self.value("fcmgw_audit_verify_result"), 0)
        checked = self.value("fcmgw_audit_verify_timestamp_seconds")
        self.assertTrue(begun <= checked <= ended, checked)

        outcome = textfile.check(well, self.scene.lab.folder / "nowhere")
        self.assertNotIn(outcome.returncode, (0, 1, 2), outcome.stderr)
        self.assertEqual([file.name for file in textfile.folder.iterdir()], ["fcm_gateway_audit.prom"])
        self.prometheus.wait_for_scrape()
        self.assertEqual(self.value("fcmgw_audit_verify_result"), 0)
        self.assertEqual(self.value("fcmgw_audit_verify_timestamp_seconds"), checked)

        changed = self.scene.lab.folder / "changed"
        tamper(well.data_dir / "gateway.sqlite", changed)
        self.assertEqual(textfile.check(well, changed).returncode, 1)
        query = 'ALERTS{alertname="FcmGatewayAuditChanged",alertstate="firing"}'
        self.scene.lab.wait_until("the alert", lambda: self.prometheus.query(query), pause=0.1)
        # The other tests find it as it was.
        self.assertEqual(textfile.check(well, well.data_dir).returncode, 0)


class AuditInTrouble(unittest.TestCase):
    """A second sink that can't be written, then a store that can't: seen, told of, and over by itself."""

    def test_sink_and_store(self) -> None:
        with Lab(PROGRAM, defaults=PATIENT) as lab:
            folder, away = lab.folder / "sink", lab.folder / "away"
            folder.mkdir()
            gateway = lab.gateway(
                {"audit": {"checkpointIntervalMs": 200, "sink": f"file:{folder}/audit.jsonl", "spoolAfterMs": 100}}
            )
            tenant = gateway.tenant("shop", lab.emulator())
            prometheus = Prometheus(lab, [gateway_address(gateway)], [])

            def becomes(what: str, query: str) -> None:
                def holds() -> bool:
                    # Something new has to be there to be recorded.
                    expect(tenant.send(), 200)
                    return bool(prometheus.query(query))

                lab.wait_until(f"{what}: {query}", holds, process=gateway.process, pause=0.1)

            becomes("the sink", "fcmgw_audit_sink_delivered_timestamp_seconds > 0")
            folder.rename(away)
            gateway.reload()
            becomes("failures of the sink", "fcmgw_audit_sink_failures_total > 0")
            becomes("its alert", 'ALERTS{alertname="FcmGatewayAuditSinkLate",alertstate="pending"}')
            becomes("an empty spool", "fcmgw_audit_spool_bytes == 0")
            repaired = time.time()
            away.rename(folder)
            becomes("the sink", f"fcmgw_audit_sink_delivered_timestamp_seconds > {repaired}")

            store = gateway.data_dir / "gateway.sqlite"
            with contextlib.closing(sqlite3.connect(store, timeout=monitoring.LIMIT_S, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                becomes("the spool", "fcmgw_audit_spool_bytes > 0")
                becomes("records in it", 'fcmgw_audit_records_total{result="spooled"} > 0')
                other.execute("ROLLBACK")
                released = time.time()
            becomes("an empty spool", "fcmgw_audit_spool_bytes == 0")
            becomes("a checkpoint", f"fcmgw_audit_last_checkpoint_timestamp_seconds > {released}")
            self.assertEqual(gateway.stop(), 0)
            self.assertEqual(gateway.verify(), 0)


class GoneAndDraining(unittest.TestCase):
    def test_drain_and_end(self) -> None:
        """A gateway that drains says so, and one that is gone is not up."""
        with Lab(PROGRAM, defaults=PATIENT) as lab:
            gateway = lab.gateway({"http": {"drainGraceMs": 300_000}})
            prometheus = Prometheus(lab, [gateway_address(gateway)], [])
            prometheus.wait_for_scrape()
            self.assertEqual(prometheus.value("fcmgw_draining"), 0)
            gateway.signal(15)
            lab.wait_until("the drain to be seen", lambda: prometheus.query("fcmgw_draining == 1"), pause=0.1)
            gateway.kill()
            lab.wait_until("its end to be seen", lambda: prometheus.query("up == 0"), pause=0.1)
            lab.wait_until(
                "the alert", lambda: prometheus.query('ALERTS{alertname="FcmGatewayDown",alertstate="pending"}'), pause=0.1
            )


if __name__ == "__main__":
    unittest.main()
