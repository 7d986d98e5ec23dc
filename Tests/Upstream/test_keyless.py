"""Credentials that hold no key, against the emulated provider, STS, IAM and metadata server."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, PATIENT, Answer, Gateway, Lab, Tenant, v1_upstream  # noqa: E402

PROGRAM = ROOT / ".build/debug/fcm-gateway"
PROJECT = "federated"


class KeylessTests(unittest.TestCase):
    def setUp(self) -> None:
        self.lab = self.enterContext(Lab(PROGRAM, defaults=PATIENT))
        self.fcm = self.lab.emulator(tls=True)
        # FCM answers only for projects that it knows.
        self.email = self.fcm.account(PROJECT)["client_email"]
        self.folder = self.lab.folder / "tokens"
        self.folder.mkdir()
        self.host = self.fcm.url.removeprefix("https://")

    def gateway(self, **members: object) -> Gateway:
        known = {"subjectTokenDirectory": str(self.folder), "subjectTokenHosts": [self.host]}
        return self.lab.gateway({"upstream": v1_upstream(self.fcm, **{**known, **members})})

    def account(self, source: dict, impersonates: bool = False, **members: object) -> dict:
        account = {
            "type": "external_account", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "audience": "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/p/providers/x",
            "token_url": f"{self.fcm.url}/v1/token", "credential_source": source, **members,
        }
        if impersonates:
            path = f"/v1/projects/-/serviceAccounts/{self.email}:generateAccessToken"
            account["service_account_impersonation_url"] = self.fcm.url + path
        return {"external_account": account, "project_id": PROJECT, "endpoint": self.fcm.url}

    def write(self, name: str = "token", lifetime: int = 3600) -> None:
        made = self.fcm.control("POST", "subject-tokens", {"project_id": PROJECT, "lifetime_s": lifetime})
        (self.folder / name).write_text(made["subject_token"] + "\n")

    def put(self, gateway: Gateway, credential: dict) -> Answer:
        return gateway.try_admin("PUT", "tenants/shop/credentials/v1", credential)

    def tenant(self, gateway: Gateway, credential: dict) -> Tenant:
        tenant = gateway.tenant("shop", self.fcm, api="v1")
        answer = self.put(gateway, credential)
        self.assertEqual(answer.status, 200, answer)
        return tenant

    def finding(self, gateway: Gateway) -> str:
        (check,) = gateway.admin("POST", "tenants/shop/credentials/check", {})["checks"]
        return check["finding"]

    def test_a_token_from_a_file_or_a_url_is_exchanged(self) -> None:
        gateway = self.gateway()
        self.write()
        provider = f"{self.fcm.url}/subject-token?project_id={PROJECT}"
        for source in (
            {"file": str(self.folder / "token")}, {"file": "token"}, {"url": provider},
            {"url": provider + "&format=json", "headers": {"Metadata-Flavor": "x"},
             "format": {"type": "json", "subject_token_field_name": "id_token"}},
        ):
            for impersonates in (False, True):
                with self.subTest(source=source, impersonates=impersonates):
                    tenant = self.tenant(gateway, self.account(source, impersonates))
                    self.assertEqual(self.finding(gateway), "valid")
                    self.assertEqual(tenant.send().status, 200)
        # Kubernetes' files are links within their folder.
        (self.folder / "linked").symlink_to("token")
        self.tenant(gateway, self.account({"file": "linked"}))
        self.assertEqual(self.finding(gateway), "valid")

    def test_what_the_configuration_does_not_name_is_neither_read_nor_called(self) -> None:
        gateway = self.gateway()
        secret = self.lab.folder / "secret"
        secret.write_text("secret-of-another")
        (self.folder / "escape").symlink_to(secret)
        self.write()
        gateway.tenant("shop", self.fcm, api="v1")
        before = self.fcm.hits()
        for source, members in (
            ({"url": f"http://{self.host}/subject-token"}, {}), ({"url": "https://other.example/token"}, {}),
            ({"url": f"https://{self.host.split(':')[0]}/token"}, {}), ({"executable": {"command": "/bin/true"}}, {}),
            ({"environment_id": "aws1", "url": f"{self.fcm.url}/x"}, {}), ({"file": "token", "url": self.fcm.url}, {}),
            ({"url": f"{self.fcm.url}/x", "headers": {"Host": "x"}}, {}), ({}, {}),
            ({"file": "token"}, {"token_url": "https://other.example/v1/token"}),
            ({"file": "token"}, {"token_url": f"{self.fcm.url}/v1/token?x"}),
            ({"file": "token"}, {"service_account_impersonation_url": "https://other.example/x"}),
            ({"file": "token"}, {"subject_token_type": "urn:ietf:params:oauth:token-type:saml2"}),
        ):
            answer = self.put(gateway, self.account(source, **members))
            self.assertEqual(answer.status, 422, f"{source} {members}: {answer}")
            self.assertIn("/external_account", str(answer.json()["errors"]), answer)
        self.assertEqual(self.put(gateway, {"metadata_server": True, "project_id": PROJECT}).status, 422)
        # What is no regular file below the folder is noticed when a token is needed.
        outside = self.lab.folder / "outside"
        outside.mkdir()
        (outside / "token").write_text("secret-of-another")
        (self.folder / "ext").symlink_to(outside)
        self.assertEqual(self.put(gateway, self.account({"file": f"{self.folder}/missing/../ext/token"})).status, 422)
        self.assertEqual(self.put(gateway, self.account({"file": "../secret"})).status, 422)
        for name in (str(secret), "escape", ".", "missing", "ext/token"):
            self.assertEqual(self.put(gateway, self.account({"file": name})).status, 200, name)
            self.assertEqual(self.finding(gateway), "key_unusable", name)
        self.assertEqual(self.fcm.hits(), before)
        self.assertNotIn("secret-of-another", gateway.log_text())
        # Nothing is named by default.
        plain = self.gateway(subjectTokenDirectory=None, subjectTokenHosts=[])
        plain.tenant("shop", self.fcm, api="v1")
        for source in ({"file": "token"}, {"url": f"{self.fcm.url}/subject-token?project_id={PROJECT}"}):
            self.assertEqual(self.put(plain, self.account(source)).status, 422, source)

    def test_an_expired_token_is_refused_and_a_new_one_is_read(self) -> None:
        gateway = self.gateway()
        self.write(lifetime=0)
        tenant = self.tenant(gateway, self.account({"file": "token"}))
        answer = tenant.send()
        self.assertEqual((answer.status, answer.json()["code"]), (502, "upstream_credentials"), answer)
        self.assertEqual(self.finding(gateway), "key_refused")
        self.write()
        self.lab.wait_until("the new token", lambda: tenant.send().status == 200, LIMIT_S)

    def test_an_outage_of_sts_or_iam_ends_by_itself(self) -> None:
        gateway = self.gateway()
        self.write()
        for path, impersonates in (("/v1/token", False), (f"/v1/projects/-/serviceAccounts/{self.email}:generateAccessToken", True)):
            self.fcm.fault("status", status=500, times=3, path=path)
            tenant = self.tenant(gateway, self.account({"file": "token"}, impersonates, quota=str(impersonates)))
            answer = tenant.send()
            self.assertEqual((answer.status, answer.json()["code"]), (503, "upstream_unavailable"), answer)
            self.lab.wait_until("a token", lambda: tenant.send().status == 200, LIMIT_S)
            self.fcm.heal()

    def test_a_redirect_is_not_followed(self) -> None:
        gateway = self.gateway()
        self.tenant(gateway, self.account({"url": f"{self.fcm.url}/subject-token?project_id={PROJECT}"}))
        other = f"{self.fcm.url}/subject-token?project_id={PROJECT}&other=1"
        for path in ("/subject-token", "/v1/token"):
            self.fcm.fault("status", status=302, path=path, headers={"Location": other})
            (check,) = gateway.admin("POST", "tenants/shop/credentials/check", {})["checks"]
            self.assertIn("http_302", check["upstream_code"], check)
            self.assertIn(self.host, check["detail"], check)
        self.assertNotIn("other=1", str(self.fcm.control("GET", "journal?limit=100")))

    def test_the_identity_of_the_machine(self) -> None:
        machine = self.lab.emulator()
        gateway = self.gateway(metadataServer=machine.url.removeprefix("http://"))
        tenant = self.tenant(gateway, {"metadata_server": True, "project_id": PROJECT, "endpoint": machine.url})
        self.assertEqual(self.finding(gateway), "key_refused")
        machine.control("POST", "machine", {"project_id": PROJECT})
        self.assertEqual(self.finding(gateway), "valid")
        self.lab.wait_until("a message", lambda: tenant.send().status == 200, LIMIT_S)
        machine.stop()
        self.assertEqual(self.finding(gateway), "token_endpoint_unreachable")


if __name__ == "__main__":
    unittest.main()
