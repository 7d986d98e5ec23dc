"""A gateway to measure."""

from __future__ import annotations

import base64
import json
import os
import secrets
import time
from pathlib import Path

from loadbench import BenchError, Processes, Request, call, free_ports, wait_until

MANY = 1_000_000
# Also the most that a limit can be set to.
UNREACHED = [{"rate": MANY, "per_s": 1, "burst": MANY}]


class Gateway:
    """A running gateway with a data folder of its own."""

    def __init__(self, processes: Processes, program: Path, prefix: list[str], name: str, event_loops: int,
                 settings: dict[str, str] | None = None) -> None:
        self.processes = processes
        self.log = f"{name}.log"
        folder = processes.folder / name
        folder.mkdir()
        config = folder / "gateway.yaml"
        config.write_text("# All defaults; the rest is in the environment.\nlog:\n  level: info\n")
        port, admin_port = free_ports(2)
        self.url = f"http://127.0.0.1:{port}"
        self.admin_url = f"http://127.0.0.1:{admin_port}"
        self.admin_token = secrets.token_urlsafe(32)
        # Nothing of the caller's own configuration may leak in.
        for key in [key for key in os.environ if key.startswith("GATEWAY_")]:
            del os.environ[key]
        environment = {
            "GATEWAY_MASTER_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
            "GATEWAY_ADMIN_TOKEN": self.admin_token,
            "GATEWAY_HTTP_HOST": "127.0.0.1",
            "GATEWAY_HTTP_PORT": str(port),
            "GATEWAY_ADMIN_HOST": "127.0.0.1",
            "GATEWAY_ADMIN_PORT": str(admin_port),
            "GATEWAY_DATA_DIR": str(folder / "data"),
            "GATEWAY_EVENT_LOOPS": str(event_loops),
            **(settings or {}),
        }
        (folder / "data").mkdir()
        started = time.monotonic()
        self.process = processes.start([*prefix, str(program), "serve", "--config", str(config)], self.log, environment)
        self.pid = self.process.pid
        try:
            # Any answer counts: without a key it is a refusal.
            wait_until(
                "the gateway", lambda: call("POST", self.url + "/v1/tenants/bench/messages", {}, b"{}"), 30, self.process,
                pause=0.001,
            )
        except BenchError as error:
            raise BenchError(f"{error}\n{processes.log(self.log, 15)}") from error
        self.milliseconds_to_first_answer = (time.monotonic() - started) * 1000
        wait_until(
            "the gateway to be ready", lambda: call("GET", self.admin_url + "/readyz", {}, None)[0] == 200, 30,
            self.process, pause=0.001,
        )
        self.milliseconds_to_ready = (time.monotonic() - started) * 1000

    def admin(self, method: str, path: str, body: dict[str, object], *expected: int) -> dict[str, object]:
        headers = {"Authorization": f"Bearer {self.admin_token}", "Content-Type": "application/json"}
        status, answer = call(method, self.admin_url + path, headers, json.dumps(body).encode())
        if status not in expected:
            raise BenchError(f"{method} {path} answered {status}: {answer[:300].decode(errors='replace')}")
        return json.loads(answer) if answer else {}

    def tenant(self, name: str, upstream: str, limits: dict[str, object],
               account: dict[str, str] | None = None) -> Request:
        """Makes a tenant, with a service account for HTTP v1; returns the request that sends for it."""
        path = f"/admin/v1/tenants/{name}"
        self.admin("PUT", path, {"display_name": name, "upstream": "v1" if account else "legacy"}, 200, 201, 204)
        if account:
            credential = {"service_account": account, "endpoint": upstream}
            self.admin("PUT", f"{path}/credentials/v1", credential, 200, 201, 204)
        else:
            credential = {"server_key": "AAAA" + secrets.token_urlsafe(100), "endpoint": upstream}
            self.admin("PUT", f"{path}/credentials/legacy", credential, 200, 201, 204)
        self.admin("PUT", f"{path}/limits", limits, 200, 201, 204)
        key = self.admin("POST", f"{path}/keys", {"name": "bench", "scopes": ["messages:send"]}, 201)["key"]
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        return Request(f"{self.url}/v1/tenants/{name}/messages", headers)

    def stop(self) -> None:
        self.processes.stop(self.process)
