"""Alerts, their tests, the dashboard: what can be said of them without a gateway."""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

import monitoring
from monitoring import CONFIG, DASHBOARD, GRAFANA, PLAYBOOKS, ROOT, RULES, RULE_TESTS, promtool


def alerts() -> dict[str, str]:
    """Every alert with the text of its rule."""
    parts = re.split(r"(?m)^      - (?=alert:|record:)", RULES.read_text())
    return {part.split()[1]: part for part in parts if part.startswith("alert:")}


class Promtool(unittest.TestCase):
    def test_configuration(self) -> None:
        """promtool has nothing against the configuration, and finds the rules that it names."""
        outcome = promtool("check", "config", CONFIG.name)
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)
        self.assertIn("1 rule files found", outcome.stdout)

    def test_rules(self) -> None:
        """promtool has nothing against the rules."""
        outcome = promtool("check", "rules", RULES.name)
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)
        count = len(re.findall(r"(?m)^      - (?:alert|record):", RULES.read_text()))
        self.assertIn(f"SUCCESS: {count} rules found", outcome.stdout)

    def test_rule_tests(self) -> None:
        """Every alert fires and stays silent as its tests say."""
        outcome = promtool("test", "rules", RULE_TESTS.name)
        self.assertEqual(outcome.returncode, 0, outcome.stdout + outcome.stderr)

    def test_rule_tests_can_fail(self) -> None:
        """With alerts that never fire every case of firing fails, and with alerts that always do every silent one."""
        cases = re.findall(r"(?m)^  - name: '(\w+) (fires|stays silent): .*'$", RULE_TESTS.read_text())
        for expression, kind in (("vector(0) > 1", "fires"), ("vector(1)", "stays silent")):
            with self.subTest(expression), tempfile.TemporaryDirectory() as folder:
                rule = r"(- (?:alert|record): \S+\n        expr:)(?: \|\n(?:          .*\n)+| .*\n)"
                text = re.sub(rule, rf"\1 {expression}\n", re.sub(r"(?m)^ +for: .*\n", "", RULES.read_text()))
                (Path(folder) / RULES.name).write_text(text)
                (Path(folder) / RULE_TESTS.name).write_text(RULE_TESTS.read_text())
                outcome = promtool("test", "rules", Path(folder) / RULE_TESTS.name)
                failed = re.findall(r"alertname: (\w+)", outcome.stdout + outcome.stderr)
                for name in alerts():
                    wanted = sum(case == (name, kind) for case in cases)
                    self.assertGreaterEqual(failed.count(name), wanted, name)
                    self.assertGreater(wanted, 0, name)


class Coverage(unittest.TestCase):
    def test_cases(self) -> None:
        """Every alert has a case in which it fires and one in which it does not, and no case is for another."""
        cases = re.findall(r"alertname: (\w+)\n        exp_alerts:( \[\])?", RULE_TESTS.read_text())
        self.assertEqual({name for name, silent in cases if not silent}, set(alerts()))
        self.assertEqual({name for name, silent in cases if silent}, set(alerts()))

    def test_metrics_exist(self) -> None:
        """Rules and dashboard name metrics that there are."""
        described = monitoring.described_metrics()
        self.assertGreater(len(described), 30)
        known = monitoring.sample_names(described) | monitoring.textfile_metrics() | {"up"}
        named = monitoring.names_in(re.sub(r"(?m)#.*$", "", RULES.read_text()))
        for _, query in monitoring.dashboard_queries():
            named |= monitoring.names_in(query)
        self.assertEqual(named - known, set())

    def test_fleet(self) -> None:
        """What only replicas show is described, and the page says from where to where in its table."""
        self.assertEqual(monitoring.FLEET - monitoring.described_metrics().keys(), set())
        told = (ROOT / "docs/operations/monitoring.md").read_text()
        ends = re.search(r"`(fcmgw_\w+)`\s+to `(fcmgw_\w+)` are there only where the store is PostgreSQL", told)
        first, last = ends.groups()
        listed = re.findall(r"(?m)^\| `(fcmgw_\w+)` ", told)
        self.assertEqual(set(listed[listed.index(first):listed.index(last) + 1]), monitoring.FLEET)

    def test_recordings_exist(self) -> None:
        """What alerts and dashboard read of rules is recorded by rules."""
        text = RULES.read_text()
        recorded = set(re.findall(r"record: (\S+)", text))
        read = set(re.findall(r"\bfcmgw:\w+:\w+", text + DASHBOARD.read_text()))
        self.assertEqual(read, recorded)

    def test_outcomes_exist(self) -> None:
        """The outcomes that rules tell apart are outcomes that messages have."""
        codes = (ROOT / "Sources/FCMModel/Outcomes/OutcomeCode.swift").read_text().split("extension")[0]
        known = {raw or name for name, raw in re.findall(r'case (\w+)(?: = "(\w+)")?', codes)}
        # Batches count their recipients by outcomes of their own.
        of_batches = r'fcmgw_batch_recipients_total\{outcome="(\w+)"\}'
        runner = (ROOT / "Sources/GatewayCore/Batches/BatchRunner.swift").read_text()
        counted = re.search(r"enum Outcome: String, CaseIterable \{\s+case ([\w, ]+)", runner)[1].split(", ")
        self.assertEqual(set(re.findall(of_batches, RULES.read_text())) - set(counted), set())
        rest = re.sub(of_batches, "", RULES.read_text())
        named = {code for codes in re.findall(r'outcome=~?"([^"]+)"', rest) for code in codes.split("|")}
        self.assertGreater(len(named), 5)
        self.assertEqual(named - known, set())

    def test_annotations(self) -> None:
        """Every alert says how urgent it is, what is wrong, and where its playbook stands, which is there."""
        there = monitoring.anchors(PLAYBOOKS)
        for name, rule in alerts().items():
            with self.subTest(alert=name):
                self.assertRegex(rule, r"(?m)^          severity: (page|ticket)$")
                self.assertRegex(rule, r'(?m)^          summary: "[^"]+"$')
                self.assertRegex(rule, r'(?m)^          description: "[^"]+"$')
                page, _, anchor = re.search(r"(?m)^          runbook_url: (\S+)$", rule)[1].partition("#")
                self.assertEqual(page, str(PLAYBOOKS.relative_to(ROOT)))
                self.assertTrue(anchor in there, f"{page} has no heading for #{anchor}")


class Dashboard(unittest.TestCase):
    def test_is_made(self) -> None:
        """The dashboard is what its program writes."""
        outcome = subprocess.run([GRAFANA / "make-dashboard", "--check"], capture_output=True, text=True, timeout=60)
        self.assertEqual(outcome.returncode, 0, outcome.stderr)

    def test_layout(self) -> None:
        """No panel lies over another or beyond the edge, and none has another's number."""
        panels = json.loads(DASHBOARD.read_text())["panels"]
        self.assertEqual(len({panel["id"] for panel in panels}), len(panels))
        taken: set[tuple[int, int]] = set()
        for panel in panels:
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"]) for y in range(place["y"], place["y"] + place["h"])
            }
            self.assertEqual(cells & taken, set(), panel["title"])
            taken |= cells

    def test_shows_every_metric(self) -> None:
        """Every metric of the gateway is on the dashboard, but for what says nothing at a glance."""
        shown = set().union(*(monitoring.names_in(query) for _, query in monitoring.dashboard_queries()))
        missing = {
            name for name, kind in monitoring.described_metrics().items()
            if not monitoring.sample_names({name: kind}) & shown
        }
        self.assertEqual(missing, set(monitoring.LEFT_OUT))


if __name__ == "__main__":
    unittest.main()
