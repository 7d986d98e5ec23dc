"""schemathesis tries every operation of both listeners, with all that it may be asked with and with what it may not."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unittest
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import yaml
from contract import BUILD, DOCUMENTS, ReadyGateway

HERE = Path(__file__).resolve().parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
MIN_EXAMPLES = 200
# Whoever may read these may do so without a credential.
OPEN = re.compile("GET /(metrics|livez|readyz|problems/{code})?|(GET|HEAD) /openapi.yaml")
BY = "examples by "
# Only a run that hangs comes near it.
LIMIT_S = 1_200
# The least first.
ROLES = ["viewer", "auditor", "operator", "admin"]
SCOPES = ["messages:send", "device-groups:manage", "topics:manage", "audit:read", "tokens:read", "tokens:manage",
          "batches:manage"]
# What runs at once: a listener, and which of its paths. Together they have all of them; the longest alone takes as long as
# the whole does.
RUNS = {
    "messages": ("data", "^/(v1/tenants/[^/]*/messages|openapi|problems|$)"),
    "rest": ("data", "^/v1/tenants/[^/]*/(?!messages)"),
    "facades": ("data", "^/(fcm|iid|v1/projects)/"),
    "tenants": ("admin", "^/admin/v1/tenants"),
    "operation": ("admin", "^/(?!admin/v1/tenants)"),
}


@dataclass
class Outcome:
    """What a run of schemathesis found."""

    status: int
    log: str
    counts: dict[str, dict[str, int]]


def run(name: str) -> Outcome:
    """Tries operations of a listener, on a gateway of their own."""
    listener, paths = RUNS[name]
    folder = BUILD / "contract"
    counts, log = folder / f"{name}.json", folder / f"{name}.log"
    counts.unlink(missing_ok=True)
    with ReadyGateway() as gateway:
        keys = {"full": gateway.key, "messages:send": gateway.make_key("messages:send")}
        for scope in SCOPES:
            keys[f"all but {scope}"] = gateway.make_key(*(each for each in SCOPES if each != scope))
        environment = os.environ | {
            "CONTRACT_ADMIN_URL": gateway.admin_url,
            "CONTRACT_ADMIN_TOKEN": gateway.admin_token,
            "CONTRACT_DATA_URL": gateway.url,
            "CONTRACT_ADMIN_TOKENS": json.dumps({role: gateway.make_admin_token(role) for role in ROLES}),
            "CONTRACT_KEYS": json.dumps(keys),
            "CONTRACT_SERVICE_ACCOUNT": json.dumps(gateway.service_account),
            "CONTRACT_COUNTS": str(counts),
        }
        credential = gateway.admin_token if listener == "admin" else gateway.key
        command = [
            SCHEMATHESIS, "--config-file", "schemathesis.toml", "run", DOCUMENTS[listener], "--no-color",
            "--url", gateway.url_of(listener), "--include-path-regex", paths,
            "--header", f"Authorization: Bearer {credential}",
        ]
        with log.open("w") as output:
            status = subprocess.run(
                command, env=environment, cwd=HERE, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                timeout=LIMIT_S,
            ).returncode
    return Outcome(status, log.read_text(), json.loads(counts.read_text()) if counts.exists() else {})


_runs: dict[str, Future[Outcome]] = {}


def setUpModule() -> None:
    (BUILD / "contract").mkdir(parents=True, exist_ok=True)
    # At once: a good part of the time each waits for an answer.
    pool = ThreadPoolExecutor(len(RUNS))
    unittest.addModuleCleanup(pool.shutdown, cancel_futures=True)
    for name in RUNS:
        _runs[name] = pool.submit(run, name)


class Schemathesis(unittest.TestCase):
    maxDiff = None

    def check(self, name: str) -> None:
        outcome = _runs[name].result()
        print(table(name, outcome.counts), flush=True)
        found = outcome.log.partition(" ERRORS ")[2] or outcome.log.partition(" FAILURES ")[2] or outcome.log
        self.assertEqual(outcome.status, 0, f"schemathesis found something:\n{found}")
        self.assertEqual(sorted(outcome.counts), operations(name))
        for label, counts in outcome.counts.items():
            with self.subTest(label):
                self.assertGreaterEqual(counts["fuzzing"], MIN_EXAMPLES)
                by = {what.removeprefix(BY): count for what, count in counts.items() if what.startswith(BY)}
                self.assertEqual(set(by), accesses(name, label))
                for access, count in by.items():
                    self.assertGreaterEqual(count, MIN_EXAMPLES, access)

    def test_messages(self) -> None:
        self.check("messages")

    def test_rest(self) -> None:
        self.check("rest")

    def test_facades(self) -> None:
        self.check("facades")

    def test_tenants(self) -> None:
        self.check("tenants")

    def test_operation(self) -> None:
        self.check("operation")

    def test_every_path_is_tried_once(self) -> None:
        for listener, document in DOCUMENTS.items():
            paths = re.findall(r"(?m)^  (/\S*):$", document.read_text())
            self.assertGreater(len(paths), 10)
            for path in paths:
                runs = [name for name, (which, some) in RUNS.items() if which == listener and re.search(some, path)]
                self.assertEqual(len(runs), 1, path)


def operations(name: str) -> list[str]:
    """The labels of the operations of a run, found without a parser."""
    listener, paths = RUNS[name]
    labels, path = [], ""
    for line in DOCUMENTS[listener].read_text().splitlines():
        if match := re.fullmatch(r"  (/\S*):", line):
            path = match[1]
        elif (match := re.fullmatch(r"    (get|head|put|post|patch|delete):", line)) and re.search(paths, path):
            labels.append(f"{match[1].upper()} {path}")
    return sorted(labels)


def accesses(name: str, label: str) -> set[str]:
    """Who sends each example again, beside somebody who may do everything; see hooks.py."""
    if OPEN.fullmatch(label):
        return {"nothing"}
    if RUNS[name][0] == "admin":
        method, path = label.split()
        document = yaml.safe_load(DOCUMENTS["admin"].read_text())
        (role,) = document["paths"][path][method.lower()]["security"][0]["adminToken"]
        return {*ROLES[: ROLES.index(role)], "tenant's key", "nothing"}
    return {"messages:send alone", "all other scopes", "admin token", "nothing"}


def table(name: str, counts: dict[str, dict[str, int]]) -> str:
    """What was tried, and with what result."""
    lines = [f"{name}:", f"  {'examples':>8} {'valid':>6} {'cases':>6}  operation"]
    totals: Counter[str] = Counter()
    for label, row in sorted(counts.items(), key=lambda item: item[0].split()[::-1]):
        cases = sum(row.get(phase, 0) for phase in ("examples", "coverage", "fuzzing"))
        lines.append(f"  {row.get('fuzzing', 0):>8} {row.get('positive', 0):>6} {cases:>6}  {label}")
        by = [f"{what.removeprefix(BY)}: {count}" for what, count in row.items() if what.startswith(BY)]
        lines.append(f"{'':25}the same examples by {', '.join(by)}")
        statuses: dict[str, list[str]] = {}
        for what, count in sorted(row.items()):
            access, _, status = f"everything {what}".rpartition(" ")
            if status.isdigit():
                statuses.setdefault(access.removeprefix("everything ") , []).append(f"{status}: {count}")
            elif what.startswith("exempt: "):
                totals[what] += count
        lines += [f"{'':25}{access}: {', '.join(each)}" for access, each in statuses.items()]
        totals.update({"cases": cases, "examples": row.get("fuzzing", 0), "operations": 1})
    return "\n".join([*lines, *(f"  {count} {what}" for what, count in totals.items())])


if __name__ == "__main__":
    unittest.main()
