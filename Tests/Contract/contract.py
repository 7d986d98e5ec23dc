"""A gateway that is ready to be compared with its description, and what is known of the description."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path

from gateway import LIMIT_S, ROOT, Gateway

DOCUMENTS = {"data": ROOT / "openapi/gateway.yaml", "admin": ROOT / "openapi/admin.yaml"}
BUILD = ROOT / ".build"
# No test is about these.
NO_LIMIT = [{"rate": 1_000_000, "per_s": 1, "burst": 1_000_000}]


class ReadyGateway(Gateway):
    """A gateway whose tenant `demo` sends by HTTP v1, has a sender id for device groups, and no limits to speak of."""

    def __enter__(self) -> ReadyGateway:
        super().__enter__()
        self.admin_token = (self.data_dir / "admin.token").read_text().strip()
        self.service_account = json.loads((self.data_dir / "service-account.json").read_text())
        self.service_account["token_uri"] = f"{self.emulator_url}/token"
        self.admin("PUT", "tenants/demo", {"upstream": "v1", "project_id": "demo", "sender_id": "123456789012"})
        scopes = ("tenant", "device", "device_collapsible", "topic")
        self.admin("PUT", "tenants/demo/limits", {scope: NO_LIMIT for scope in scopes})
        return self

    def admin(self, method: str, path: str, body: object) -> dict:
        """Asks the admin listener for something that it must not refuse."""
        request = urllib.request.Request(
            f"{self.admin_url}/admin/v1/{path}",
            data=json.dumps(body).encode(),
            method=method,
            headers={"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=LIMIT_S) as response:
            return json.loads(response.read() or b"{}")

    def make_admin_token(self, role: str) -> str:
        return self.admin("POST", "admin-tokens", {"name": f"contract-{role}", "role": role})["token"]

    def url_of(self, listener: str) -> str:
        return {"data": self.url, "admin": self.admin_url}[listener]

