"""Calls to FCM through squid, with a user and a password."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, PATIENT, Gateway, Lab, Tenant, free_ports, v1_upstream  # noqa: E402

PROGRAM = ROOT / ".build/debug/fcm-gateway"

USER, PASSWORD = "gateway", "pass:word"


class Squid:
    """squid, which opens tunnels to any port of this machine for one user."""

    def __init__(self, lab: Lab, denies: bool = False) -> None:
        self.lab = lab
        (self.port,) = free_ports(1)
        self.folder = lab.folder / f"squid-{self.port}"
        self.folder.mkdir()
        digest = subprocess.run(
            ["openssl", "passwd", "-apr1", "-stdin"], input=PASSWORD, capture_output=True, text=True, check=True,
            timeout=LIMIT_S,
        ).stdout
        (self.folder / "users").write_text(f"{USER}:{digest}")
        self.configuration = self.folder / "squid.conf"
        self.configuration.write_text(f"""
            http_port 127.0.0.1:{self.port}
            pid_filename {self.folder}/squid.pid
            access_log stdio:{self.folder}/access.log
            cache_log {self.folder}/cache.log
            coredump_dir {self.folder}
            cache deny all
            shutdown_lifetime 0 seconds
            logfile_rotate 0
            auth_param basic program /usr/lib/squid/basic_ncsa_auth {self.folder}/users
            auth_param basic children 1 startup=1
            acl known proxy_auth REQUIRED
            acl tunnel method CONNECT
            {"http_access deny tunnel" if denies else ""}
            http_access allow known
            http_access deny all
        """)
        if os.geteuid() == 0:
            # It gives up root's rights.
            for path in (lab.folder, self.folder):
                path.chmod(0o755)
            shutil.chown(self.folder, "proxy", "proxy")
        self.start()

    def start(self) -> None:
        program = shutil.which("squid", path=f"{os.environ['PATH']}:/usr/sbin")
        self.process = self.lab.processes.start([program, "-N", "-f", str(self.configuration)], "squid.log")
        self.lab.wait_until("squid", lambda: "Accepting HTTP" in self.log("cache.log"), LIMIT_S, self.process)

    def stop(self) -> None:
        self.lab.processes.stop(self.process)
        (self.folder / "cache.log").unlink()

    def log(self, name: str = "access.log") -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""


class OutboundProxyTests(unittest.TestCase):
    def setUp(self) -> None:
        self.lab = self.enterContext(Lab(PROGRAM, defaults=PATIENT))
        self.fcm = self.lab.emulator(tls=True)

    def gateway(self, squid: Squid, password: str = PASSWORD, **members: object) -> Gateway:
        upstream = v1_upstream(
            self.fcm, proxyUrl=f"http://{USER}@127.0.0.1:{squid.port}", **{"noProxy": [], **members}
        )
        return self.lab.gateway({"upstream": upstream}, environment={"GATEWAY_UPSTREAM_PROXY_PASSWORD": password})

    def refused(self, gateway: Gateway, tenant: Tenant, code: str) -> None:
        answer = tenant.send()
        self.assertEqual((answer.status, answer.json()["code"]), (503, "upstream_unavailable"), answer)
        # The reason is for operators, in the audit.
        path = f"audit?tenant={tenant.name}&message={answer.json()['id']}"
        self.lab.wait_until("the record", lambda: gateway.admin("GET", path)["records"], LIMIT_S)
        (record,) = gateway.admin("GET", path)["records"]
        self.assertEqual(record.get("upstream_code"), code, record)

    def test_messages_and_token_calls_pass_by_the_proxy(self) -> None:
        squid = Squid(self.lab)
        tenant = self.gateway(squid).tenant("shop", self.fcm, api="v1")
        for _ in range(6):
            self.assertEqual(tenant.send().status, 200)
        self.assertIn("'h2'", str(self.fcm.control("GET", "connections")))
        squid.stop()
        tunnels = [line for line in squid.log().splitlines() if f"CONNECT 127.0.0.1:{self.fcm.port}" in line]
        # One for the token, and one for the messages of each event loop.
        self.assertIn(len(tunnels), (2, 3), squid.log())
        self.assertTrue(all(f"TCP_TUNNEL/200" in line and f" {USER} " in line for line in tunnels), squid.log())

    def test_a_proxy_that_is_down_and_comes_back(self) -> None:
        squid = Squid(self.lab)
        gateway = self.gateway(squid)
        tenant = gateway.tenant("shop", self.fcm, api="v1")
        self.assertEqual(tenant.send().status, 200)
        squid.stop()
        self.lab.wait_until("a refusal", lambda: tenant.send().status == 503, LIMIT_S)
        self.refused(gateway, tenant, "proxyFailed")
        squid.start()
        self.lab.wait_until("the next message", lambda: tenant.send().status == 200, LIMIT_S)

    def test_refusals_of_the_proxy_are_named(self) -> None:
        for squid, password, code in (
            (Squid(self.lab), "wrong", "proxyUnauthorized"), (Squid(self.lab, denies=True), PASSWORD, "proxyFailed"),
        ):
            gateway = self.gateway(squid, password)
            tenant = gateway.tenant(f"shop-{squid.port}", self.fcm, api="v1")
            self.refused(gateway, tenant, code)
            checked = gateway.admin("POST", f"tenants/{tenant.name}/credentials/check", {})
            self.assertIn(code, str(checked))
            self.assertNotIn(password, gateway.log_text())
        self.assertEqual(self.fcm.hits(), 0)

    def test_named_servers_are_called_directly(self) -> None:
        squid = Squid(self.lab)
        tenant = self.gateway(squid, noProxy=["127.0.0.1"]).tenant("shop", self.fcm, api="v1")
        self.assertEqual(tenant.send().status, 200)
        self.assertNotIn("CONNECT", squid.log())


if __name__ == "__main__":
    unittest.main()
