"""Headless Chromium, and a gateway with tenants, batches and records for it to look at."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unittest
import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Clients"))

from gateway import LIMIT_S, Gateway  # noqa: E402

ROLES = ["viewer", "auditor", "operator", "admin"]
SCREENSHOTS = os.environ.get("SCREENSHOTS")
# What axe calls serious, which nothing here may have.
SERIOUS = {"serious", "critical"}
WCAG = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}}


class ConsoleGateway(Gateway):
    """A gateway with a token for each role, a batch, a few records, and the manual."""

    def __enter__(self) -> ConsoleGateway:
        super().__enter__()
        self.admin_token = (self.data_dir / "admin.token").read_text().strip()
        self.tokens = {role: self.admin("POST", "admin-tokens", {"name": role, "role": role})["token"] for role in ROLES}
        for number in range(3):
            self.send({"token": f"phone-{number}", "notification": {"title": "Hello"}})
        self.send({"token": "gone"}, status=404)
        return self

    def send(self, message: dict, status: int = 200) -> None:
        try:
            self.ask("POST", f"{self.url}/v1/tenants/demo/messages", self.key, message)
        except urllib.error.HTTPError as answer:
            assert answer.code == status, answer.read()

    def admin(self, method: str, path: str, body: object) -> dict:
        return self.ask(method, f"{self.admin_url}/admin/v1/{path}", self.admin_token, body)

    def batch(self, label: str) -> str:
        later = datetime.now(UTC) + timedelta(hours=1)
        body = {"to": {"tokens": ["phone-1", "phone-2"]}, "message": {"notification": {"title": "Sale"}},
                "label": label, "send_at": f"{later:%Y-%m-%dT%H:%M:%SZ}"}
        return self.ask("POST", f"{self.url}/v1/tenants/demo/batches", self.key, body)["id"]

    @staticmethod
    def ask(method: str, url: str, token: str, body: object) -> dict:
        request = urllib.request.Request(
            url, json.dumps(body).encode(), {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=LIMIT_S) as answer:
            return json.loads(answer.read() or b"{}")


class BrowserTestCase(unittest.TestCase):
    gateway: ConsoleGateway
    browser: Browser

    @classmethod
    def setUpClass(cls) -> None:
        chromium = shutil.which("chromium")
        assert chromium, "chromium is missing; scripts/install-system-packages test installs it"
        cls.gateway = cls.enterClassContext(ConsoleGateway())
        playwright = cls.enterClassContext(sync_playwright())
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        cls.browser = playwright.chromium.launch(executable_path=chromium, args=sandbox)
        cls.addClassCleanup(cls.browser.close)

    def context(self, **options: object) -> BrowserContext:
        """A browser without a past. No request may leave the gateway, and no page may have an error."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 900}, **options)
        context.set_default_timeout(LIMIT_S * 1000)
        self.addCleanup(context.close)
        self.problems: list[str] = []
        self.hosts: set[str] = set()
        context.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))
        context.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        context.on("weberror", lambda error: self.problems.append(str(error.error)))
        return context

    def check(self, page: Page, name: str = "") -> None:
        """Checks that a page of the console has no serious finding of axe, light and dark, and that the browser is content."""
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            findings = [
                f"{each['id']} ({each['impact']}): {[node['html'][:200] for node in each['nodes']]}"
                for each in Axe().run(page, options=WCAG).response["violations"] if each["impact"] in SERIOUS
            ]
            self.assertEqual(findings, [], f"{page.url}, {scheme}")
        self.content(page, name)

    def content(self, page: Page, name: str) -> None:
        """Checks that nothing was loaded from elsewhere, and that the browser has no error to report."""
        self.assertEqual(self.problems, [], page.url)
        self.assertEqual(self.hosts, {urlsplit(self.gateway.admin_url).netloc})
        if SCREENSHOTS and name:
            for scheme in ("dark", "light"):
                page.emulate_media(color_scheme=scheme)
                page.screenshot(path=Path(SCREENSHOTS) / f"{name}-{scheme}.png")
