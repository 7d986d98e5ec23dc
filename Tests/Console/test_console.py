"""Each page and act of the console, as each role, with and without its script."""

from __future__ import annotations

import re
import unittest

from browser import ROLES, BrowserTestCase
from gateway import LIMIT_S
from playwright.sync_api import Page, expect

# The least role of each page, by its name in the navigation.
PAGES = {"Overview": "viewer", "Tenants": "viewer", "Batches": "viewer", "Device": "auditor", "Audit": "auditor",
         "Try": "operator"}

expect.set_options(timeout=LIMIT_S * 1000)


class ConsoleTests(BrowserTestCase):
    def log_in(self, role: str, **options: object) -> Page:
        page = self.context(**options).new_page()
        page.goto(f"{self.gateway.admin_url}/console")
        page.get_by_label("Admin token").fill(self.gateway.tokens[role])
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        return page

    def open(self, page: Page, name: str) -> None:
        page.get_by_role("navigation").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name)
        # The style comes after the heading, and widths depend on it.
        page.wait_for_load_state()

    def test_log_in_and_out(self) -> None:
        page = self.context().new_page()
        page.goto(f"{self.gateway.admin_url}/console/tenants")
        self.assertTrue(page.url.endswith("/console/log-in"))
        self.check(page, "log-in")
        page.get_by_label("Admin token").fill("wrong")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_contain_text("no such token")
        # The browser reports the 401 itself.
        self.problems.clear()
        page.get_by_label("Admin token").fill(self.gateway.tokens["viewer"])
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        (cookie,) = [each for each in page.context.cookies() if each["name"] == "fcm-gateway"]
        self.assertTrue(cookie["httpOnly"])
        self.assertEqual(cookie["sameSite"], "Strict")
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Log in")
        page.goto(f"{self.gateway.admin_url}/console")
        self.assertTrue(page.url.endswith("/console/log-in"))

    def test_each_role_has_its_pages(self) -> None:
        for role in ROLES:
            with self.subTest(role):
                page = self.log_in(role)
                shown = page.get_by_role("navigation").get_by_role("link").all_text_contents()
                allowed = [name for name, least in PAGES.items() if ROLES.index(role) >= ROLES.index(least)]
                self.assertEqual(shown, allowed)
                for name in PAGES:
                    path = "/console" if name == "Overview" else f"/console/{name.lower()}"
                    answer = page.goto(f"{self.gateway.admin_url}{path}")
                    self.assertEqual(answer.status, 200 if name in allowed else 403, name)
                    self.assertLessEqual(len(answer.body()), 30_000, name)
                    if name in allowed:
                        self.check(page, f"{name.lower()}-{role}" if role == "admin" else "")
                    self.problems.clear()

    def test_the_overview_is_live(self) -> None:
        page = self.log_in("viewer")
        live = page.get_by_label("Update every 5 seconds")
        expect(live).to_be_checked()
        self.check(page)
        self.gateway.send({"token": "phone-live"})
        accepted = page.get_by_role("row", name="accepted").get_by_role("cell")
        before = int(accepted.text_content())
        self.gateway.send({"token": "phone-live-2"})
        # By itself.
        expect(accepted).not_to_have_text(str(before))
        live.uncheck()
        page.reload()
        expect(live).not_to_be_checked()

    def test_tenants(self) -> None:
        page = self.log_in("viewer")
        self.open(page, "Tenants")
        page.get_by_label("Name or part of it").fill("DEM")
        page.get_by_role("button", name="Search").click()
        page.get_by_role("link", name="demo").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Tenant demo")
        for table in ("Credentials", "Keys", "Limits", "What is left for the tenant"):
            expect(page.get_by_role("table", name=table)).to_be_visible()
        self.check(page, "tenant")

    def test_a_batch_is_paused_resumed_and_cancelled(self) -> None:
        self.gateway.batch("spring sale")
        page = self.log_in("operator")
        self.open(page, "Batches")
        self.check(page, "batches")
        page.get_by_role("link", name="spring sale").click()
        state = page.locator("dt", has_text=re.compile("^State$")).locator("xpath=following-sibling::dd")
        expect(state).to_have_text("queued")
        page.get_by_role("button", name="Pause").click()
        expect(state).to_have_text("paused (operator)")
        self.check(page, "batch")
        page.get_by_role("button", name="Resume").click()
        expect(state).to_have_text("queued")
        page.get_by_text("Cancel…").click()
        page.get_by_role("button", name="Cancel the batch").click()
        expect(state).to_contain_text("cancelled")
        page.get_by_role("link", name="Results").click()
        expect(page.get_by_role("cell", name="cancelled").first).to_be_visible()
        self.check(page, "results")

    def test_a_batch_that_another_operator_pauses(self) -> None:
        batch = self.gateway.batch("winter sale")
        page = self.log_in("operator")
        page.goto(f"{self.gateway.admin_url}/console/tenants/demo/batches/{batch}")
        page.get_by_text("Cancel…").click()
        page.get_by_role("button", name="Pause").focus()
        self.gateway.admin("POST", f"batches/{batch}/pause", {})
        # The live page shows it. What is open stays open, and what has the focus does not change its meaning.
        expect(page.get_by_role("button", name="Resume")).to_be_visible()
        expect(page.get_by_role("button", name="Resume")).not_to_be_focused()
        expect(page.get_by_role("button", name="Cancel the batch")).to_be_visible()

    def test_a_viewer_sees_a_batch_and_can_not_act(self) -> None:
        batch = self.gateway.batch("summer sale")
        page = self.log_in("viewer")
        page.goto(f"{self.gateway.admin_url}/console/tenants/demo/batches/{batch}")
        expect(page.get_by_role("heading", level=1)).to_have_text("Batch summer sale")
        expect(page.get_by_role("button", name="Pause")).to_have_count(0)
        # The server refuses, whatever the page shows.
        token = page.locator("input[name=form_token]").first.get_attribute("value")
        answer = page.request.post(f"{page.url}/pause", form={"form_token": token})
        self.assertEqual(answer.status, 403)

    def test_a_device(self) -> None:
        page = self.log_in("auditor")
        self.open(page, "Device")
        page.get_by_label("Tenant").fill("demo")
        page.get_by_label("Registration token or FID").fill("phone-1")
        page.get_by_role("button", name="Look up").click()
        expect(page.get_by_role("table", name="What is left for the device")).to_be_visible()
        records = page.get_by_role("table", name="Its records, the latest first")
        expect(records.get_by_role("cell", name="message.send").first).to_be_visible()
        self.assertNotIn("phone-1", page.url)
        self.assertNotIn("phone-1", page.content())
        self.check(page, "device")

    def test_the_audit_is_filtered(self) -> None:
        page = self.log_in("auditor")
        self.open(page, "Audit")
        page.get_by_label("Action").select_option("message.send")
        page.get_by_label("Outcome").select_option("accepted")
        page.get_by_role("button", name="Filter").click()
        cells = page.get_by_role("table").locator("tbody tr td:nth-child(4)").all_text_contents()
        self.assertEqual(set(cells), {"message.send"})
        self.check(page, "audit-filtered")
        page.get_by_label("By").fill("nobody")
        page.get_by_role("button", name="Filter").click()
        expect(page.get_by_role("main")).to_contain_text("No record is found.")

    def test_a_message_is_explained_and_tried(self) -> None:
        page = self.log_in("operator")
        self.open(page, "Try")
        page.get_by_label("Tenant", exact=True).fill("demo")
        page.get_by_label("Message, as for").fill('{"token": "phone-7", "notification": {"title": "Hello"}}')
        page.get_by_role("button", name="Explain").click()
        expect(page.locator("pre")).to_contain_text('"requests"')
        self.check(page, "explained")
        page.get_by_role("button", name="Dry run").click()
        expect(page.locator("pre")).to_contain_text('"message_id"')
        page.get_by_label("Message, as for").fill("{")
        page.get_by_role("button", name="Explain").click()
        expect(page.locator("pre")).to_contain_text("malformed_json")
        records = self.gateway.ask(
            "GET", f"{self.gateway.admin_url}/admin/v1/audit?principal=admin:operator", self.gateway.admin_token, {}
        )["records"]
        self.assertLessEqual({"message.explain", "message.validate"}, {record["action"] for record in records})

    def test_everything_works_without_the_script(self) -> None:
        self.gateway.batch("autumn sale")
        page = self.log_in("operator", java_script_enabled=False)
        self.open(page, "Batches")
        page.get_by_role("link", name="autumn sale").click()
        page.get_by_role("button", name="Pause").click()
        expect(page.get_by_role("main")).to_contain_text("paused")
        page.get_by_text("Cancel…").click()
        page.get_by_role("button", name="Cancel the batch").click()
        expect(page.get_by_role("main")).to_contain_text("cancelled")
        expect(page.get_by_label("Update every 5 seconds")).to_have_count(0)

    def test_a_page_ends_with_the_session(self) -> None:
        page, other = self.log_in("viewer"), None
        token = self.gateway.admin("POST", "admin-tokens", {"name": "guest", "role": "viewer"})["token"]
        self.gateway.tokens["guest"] = token
        other = self.log_in("guest")
        self.gateway.ask("DELETE", f"{self.gateway.admin_url}/admin/v1/admin-tokens/guest", self.gateway.admin_token, {})
        # The live page finds it out.
        expect(other.get_by_role("heading", level=1)).to_have_text("Log in")
        page.reload()
        expect(page.get_by_role("heading", level=1)).to_have_text("Overview")

    def test_a_narrow_window(self) -> None:
        page = self.log_in("admin")
        page.set_viewport_size({"width": 360, "height": 740})
        for name in PAGES:
            self.open(page, name)
            width = page.evaluate("document.documentElement.scrollWidth")
            self.assertLessEqual(width, 360, name)


if __name__ == "__main__":
    unittest.main()
