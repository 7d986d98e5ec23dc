"""The manual, as a gateway shows it."""

from __future__ import annotations

import unittest

from browser import BrowserTestCase
from gateway import LIMIT_S
from playwright.sync_api import expect

expect.set_options(timeout=LIMIT_S * 1000)


class ManualTests(BrowserTestCase):
    def test_pages_and_search(self) -> None:
        page = self.context().new_page()
        page.goto(f"{self.gateway.admin_url}/docs")
        self.assertTrue(page.url.endswith("/docs/"))
        expect(page.locator("div.body h1")).to_contain_text("fcm-gateway")
        self.content(page, "manual")
        page.get_by_role("link", name="The API for services").first.click()
        expect(page.get_by_role("heading", name="Send a message", exact=True)).to_be_visible()
        page.goto(f"{self.gateway.admin_url}/docs/operations/configuration.html")
        expect(page.locator("div.body h1")).to_contain_text("Configuration")
        page.get_by_label("Search").first.fill("idempotency")
        page.get_by_role("button", name="Go").first.click()
        expect(page.locator("#search-results li").first).to_be_visible()
        self.content(page, "search")

    def test_nothing_else_is_served(self) -> None:
        page = self.context().new_page()
        for path in ("../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd", "none.html",
                     "_static", ".buildinfo"):
            answer = page.request.get(f"{self.gateway.admin_url}/docs/{path}")
            self.assertEqual(answer.status, 404, path)


if __name__ == "__main__":
    unittest.main()
