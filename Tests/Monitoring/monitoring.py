"""A Prometheus of Debian's, and what the project ships for it, for the tests of this folder."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlencode

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, Gateway, Lab, LabError, call  # noqa: E402
from loadbench import free_ports  # noqa: E402

PROGRAM = ROOT / ".build/debug/fcm-gateway"
PROMETHEUS = ROOT / "deploy/prometheus"
CONFIG = PROMETHEUS / "prometheus.yml"
RULES = PROMETHEUS / "fcm-gateway.rules.yml"
RULE_TESTS = PROMETHEUS / "fcm-gateway.rules.test.yml"
TEXTFILE = PROMETHEUS / "audit-verify-textfile"
GRAFANA = ROOT / "deploy/grafana"
DASHBOARD = GRAFANA / "dashboards/fcm-gateway.json"
TABLE = ROOT / "Sources/GatewaySupport/GatewayMetric.swift"
PROCESS_DESCRIPTIONS = ROOT / "Sources/PrometheusMetrics/ProcessMetrics.swift"
PLAYBOOKS = ROOT / "docs/operations/playbooks.md"

# What the dashboard doesn't show on purpose, and why.
LEFT_OUT = {
    "process_virtual_memory_bytes": "it is what was reserved, and says nothing of what is used",
}

# What only gateways with a store in PostgreSQL show: the ones that are scraped here have files. A list, since what a
# program does is not to be read from its text; Tests/Cluster holds replicas to it.
FLEET = {
    "fcmgw_audit_chains_closed_total", "fcmgw_cache_age_seconds", "fcmgw_leader", "fcmgw_lease_losses_total", "fcmgw_lease_takeovers_total",
    "fcmgw_replicas", "fcmgw_store_commits_unknown_total", "fcmgw_store_connections", "fcmgw_store_pool_waiters",
    "fcmgw_store_retries_total",
}


# What the project says of itself


def described_metrics() -> dict[str, str]:
    """The gateway's own metrics and their types, as its source describes them."""
    table = TABLE.read_text()
    kinds = dict(re.findall(r"case \.(\w+):\s*\.(\w+)\(", table))
    own = {name: kinds[row] for row, name in re.findall(r'case (\w+) = "(fcmgw_\w+)"', table)}
    samples = re.split(r"Sample\(", PROCESS_DESCRIPTIONS.read_text())[1:]
    process = [
        (name[1], "counter" if "kind: .counter" in sample else "gauge")
        for sample in samples
        if (name := re.match(r'\s*"(process_\w+)"', sample))
    ]
    return own | dict(process)


def textfile_metrics() -> set[str]:
    """The metrics that the check of the audit leaves for node_exporter."""
    return set(re.findall(r"^# TYPE (\w+) ", TEXTFILE.read_text(), re.M))


def sample_names(metrics: dict[str, str]) -> set[str]:
    """The names that samples have, of metrics with these types."""
    names: set[str] = set()
    for name, kind in metrics.items():
        names |= {name + suffix for suffix in ("_bucket", "_sum", "_count")} if kind == "histogram" else {name}
    return names


def names_in(query: str) -> set[str]:
    """The metrics that a query names."""
    return set(re.findall(r"\b(?:fcmgw|process)_\w+", query)) | set(re.findall(r"\bup\b(?=\{|\)| )", query))


def dashboard_queries() -> list[tuple[str, str]]:
    """Every query of the dashboard, with its panel's title."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    return [(panel["title"], target["expr"]) for panel in panels for target in panel.get("targets", [])]


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as they are made of them where such pages are shown."""
    headings = re.findall(r"^#+ +(.+?) *$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.S | re.M), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def promtool(*arguments: str | Path, input: str | None = None) -> subprocess.CompletedProcess[str]:
    """Runs promtool in the folder of the rules."""
    return subprocess.run(
        ["promtool", *map(str, arguments)], cwd=PROMETHEUS, input=input, capture_output=True, text=True, timeout=10 * LIMIT_S
    )


# Prometheus


class Prometheus:
    """A Prometheus with the project's configuration, scraping every few seconds, on a port of its own."""

    # A scrape may take as long, and one that takes longer has every series end.
    INTERVAL_S = 3

    def __init__(self, lab: Lab, targets: list[str], audit_targets: list[str]) -> None:
        path = shutil.which("prometheus")
        if not path:
            raise LabError("prometheus is missing (scripts/install-system-packages test)")
        self.lab = lab
        self.target_count = len(targets) + len(audit_targets)
        self.folder = lab.folder / "prometheus"
        self.folder.mkdir()
        shutil.copy(RULES, self.folder)
        (self.folder / "prometheus.yml").write_text(self._config(targets, audit_targets))
        (self.port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{self.port}"
        self.process = lab.processes.start(
            [
                path, f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn",
            ],
            "prometheus.log",
        )
        try:
            lab.wait_until("Prometheus", lambda: call("GET", f"{self.url}/-/ready", timeout=5).status == 200, LIMIT_S,
                           self.process)
        except LabError as error:
            raise LabError(f"{error}\n{lab.processes.log('prometheus.log', 20)}") from error

    def _config(self, targets: list[str], audit_targets: list[str]) -> str:
        """The shipped configuration with other targets, a shorter interval, and its commented job for the audit."""
        text = CONFIG.read_text()
        changes = [
            (r"_interval: 15s", f"_interval: {self.INTERVAL_S}s", 2),
            (r'\["gateway-1:8081", "gateway-2:8081"\]', json.dumps(targets), 1),
            (r"(?m)^  # (- job_name: fcm-gateway-audit)\n  # (.*)\n  # (.*\[).*\]", r"  \1\n  \2\n  \3"
             + ", ".join(f'"{target}"' for target in audit_targets) + "]", 1),
        ]
        for pattern, replacement, count in changes:
            text, made = re.subn(pattern, replacement, text)
            assert made == count, f"{CONFIG} has {made} times {pattern}"
        return text

    def get(self, path: str, **parameters: str) -> object:
        """The data of an answer of its API."""
        answer = call("GET", f"{self.url}/api/v1/{path}?{urlencode(parameters)}")
        content = answer.json()
        if answer.status != 200 or content.get("status") != "success":
            raise LabError(f"{path} {parameters}: {answer}")
        return content["data"]

    def query(self, query: str) -> list[tuple[dict[str, str], float]]:
        """The series that a query gives now, each with its value."""
        data = self.get("query", query=query)
        if data["resultType"] == "scalar":
            return [({}, float(data["result"][1]))]
        return [(series["metric"], float(series["value"][1])) for series in data["result"]]

    def value(self, query: str) -> float:
        """The one value that a query gives; a scrape that took too long has every series end until the next one."""
        found: list[tuple[dict[str, str], float]] = []

        def is_one() -> bool:
            found[:] = self.query(query)
            return len(found) == 1

        self.lab.wait_until(f"one value of {query}", is_one, 10 * self.INTERVAL_S, self.process, 0.1)
        return found[0][1]

    def wait_for_scrape(self) -> None:
        """Returns when everything up to now was scraped from every target."""
        # The scrape after it, since what is written of a scrape may be seen before it is done.
        end = time.time() + self.INTERVAL_S

        def is_done() -> bool:
            times = [at for _, at in self.query("timestamp(up == 1)")]
            return len(times) == self.target_count and min(times) > end

        self.lab.wait_until("a scrape", is_done, LIMIT_S, self.process, 0.1)


def gateway_address(gateway: Gateway) -> str:
    return f"127.0.0.1:{gateway.admin_port}"
