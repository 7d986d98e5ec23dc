"""compose.yaml: its form by the Compose specification, and what its parts say of each other."""

from __future__ import annotations

import re
import subprocess
import sys
import unittest
from pathlib import Path

from deployment import DEPLOY, LIMIT_S, ROOT, documents, longest_stop_s

FILE = DEPLOY / "compose.yaml"
(COMPOSE,) = documents(FILE)
SERVICES = COMPOSE["services"]
GATEWAYS = ("gateway-1", "gateway-2")
REPLICAS = ("replica-1", "replica-2")
# Made by whoever runs it; .gitignore keeps them out of the repository.
OF_OPERATORS = ("./secrets", "./tenants")


class ComposeTests(unittest.TestCase):
    def test_form(self) -> None:
        command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", FILE]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_wrong_form_is_noticed(self) -> None:
        command = [Path(sys.executable).parent / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", "-"]
        text = FILE.read_text().replace("read_only: true", "readonly: true")
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)

    def test_everything_that_is_asked_for_is_there(self) -> None:
        self.assertLessEqual({*GATEWAYS, *REPLICAS, "haproxy", "prometheus", "grafana"}, set(SERVICES))
        for name, service in SERVICES.items():
            self.assertTrue(service["read_only"], name)
            self.assertEqual(service["cap_drop"], ["ALL"], name)
            self.assertEqual(service["security_opt"], ["no-new-privileges:true"], name)

    def test_files_that_are_mounted_exist(self) -> None:
        mounted = [
            volume.split(":")[0] for service in SERVICES.values() for volume in service.get("volumes", [])
            if volume.startswith(".")
        ]
        self.assertIn("./haproxy/haproxy.cfg", mounted)
        for path in mounted:
            if not path.startswith(OF_OPERATORS):
                self.assertTrue((DEPLOY / path).exists(), f"{path} is missing beside compose.yaml")
        self.assertTrue((DEPLOY / SERVICES["gateway-1"]["build"]["context"] / "deploy/Dockerfile").exists())

    def test_secrets_are_files_that_are_not_kept_in_the_repository(self) -> None:
        ignored = (ROOT / ".gitignore").read_text().splitlines()
        for folder in OF_OPERATORS:
            self.assertIn(f"deploy/{folder.removeprefix('./')}/", ignored)
        for name, secret in COMPOSE["secrets"].items():
            self.assertTrue(secret["file"].startswith("./secrets/"), name)
        for name, service in SERVICES.items():
            for variable, value in service.get("environment", {}).items():
                if re.search(r"_FILE$", variable):
                    self.assertIn(value.removeprefix("/run/secrets/"), service["secrets"], f"{name}: {variable}")
                self.assertNotRegex(variable, r"(MASTER_KEY|ADMIN_TOKEN|PASSWORD)$", name)

    def test_each_gateway_has_a_store_of_its_own_and_the_same_secrets(self) -> None:
        one, two = (SERVICES[name] for name in GATEWAYS)
        self.assertNotEqual(one["volumes"], two["volumes"])
        for key in ("image", "environment", "secrets", "networks", "stop_grace_period"):
            self.assertEqual(one[key], two[key], key)
        for name in GATEWAYS:
            volume, path = SERVICES[name]["volumes"][0].split(":")
            self.assertIn(volume, COMPOSE["volumes"])
            self.assertEqual(path, "/var/lib/fcm-gateway")

    def test_a_stop_has_the_time_it_takes(self) -> None:
        for name in (*GATEWAYS, *REPLICAS):
            self.assertGreaterEqual(float(SERVICES[name]["stop_grace_period"].removesuffix("s")), longest_stop_s(), name)

    def test_names_are_those_that_the_others_use(self) -> None:
        haproxy = (DEPLOY / "haproxy/haproxy.cfg").read_text()
        self.assertEqual(tuple(re.findall(r"^    server \S+ (\S+):8080$", haproxy, re.M)), GATEWAYS)
        targets = re.findall(r"gateway-\d", (DEPLOY / "prometheus/prometheus.yml").read_text())
        self.assertEqual(sorted(set(targets)), list(GATEWAYS))

    def test_replicas_share_everything_but_their_spool(self) -> None:
        one, two = (SERVICES[name] for name in REPLICAS)
        for key in ("image", "environment", "secrets", "stop_grace_period", "depends_on"):
            self.assertEqual(one[key], two[key], key)
        self.assertNotEqual(one["volumes"], two["volumes"])
        for name in REPLICAS:
            volume, path = SERVICES[name]["volumes"][0].split(":")
            self.assertIn(volume, COMPOSE["volumes"])
            self.assertEqual(path, "/var/lib/fcm-gateway")
        # What one gateway is given a replica is given too.
        self.assertLessEqual(SERVICES["gateway-1"]["environment"].items(), one["environment"].items())

    def test_the_profile_is_whole_and_stands_apart(self) -> None:
        """`up balancer` starts what it needs, and none of what it does not."""
        started: set[str] = set()
        waiting = ["balancer"]
        while waiting:
            name = waiting.pop()
            started.add(name)
            waiting += SERVICES[name].get("depends_on", {})
        self.assertEqual(started, {"balancer", *REPLICAS, "store-migrate", "postgres", "redis"})
        for name, service in SERVICES.items():
            self.assertEqual(service.get("profiles") == ["replicated"], name in started, name)

    def test_spans_go_to_the_profile_that_is_there_for_them(self) -> None:
        """Off unless an endpoint is named; the one that the first lines name is Jaeger's, on a network of the gateways."""
        self.assertEqual(SERVICES["jaeger"]["profiles"], ["tracing"])
        self.assertIn("http://jaeger:4318", FILE.read_text().split("\nname:")[0])
        for name in (*GATEWAYS, *REPLICAS):
            value = SERVICES[name]["environment"]["GATEWAY_TRACING_OTLP_ENDPOINT"]
            self.assertEqual(value, "${GATEWAY_TRACING_OTLP_ENDPOINT:-}")
            self.assertLess(set(SERVICES["jaeger"]["networks"]), set(SERVICES[name]["networks"]))

    def test_others_know_replicas_as_gateways(self) -> None:
        for gateway, replica in zip(GATEWAYS, REPLICAS):
            networks = SERVICES[replica]["networks"]
            for network in SERVICES[gateway]["networks"]:
                self.assertEqual(networks[network]["aliases"], [gateway])

    def test_only_replicas_reach_the_stores(self) -> None:
        there = {name for name, service in SERVICES.items() if "stores" in service.get("networks", [])}
        self.assertEqual(there, {*REPLICAS, "store-migrate", "postgres", "redis"})
        self.assertTrue(COMPOSE["networks"]["stores"]["internal"])
        for name in ("postgres", "redis"):
            self.assertEqual(SERVICES[name]["networks"], ["stores"])
            self.assertNotIn("ports", SERVICES[name])

    def test_only_the_migration_has_the_owners_password(self) -> None:
        there = {name for name, service in SERVICES.items() if "owner.password" in service.get("secrets", [])}
        self.assertEqual(there, {"store-migrate", "postgres"})

    def test_passwords_are_readable_for_both_sides(self) -> None:
        """A file has one owner and one group: the gateway's user, and that of PostgreSQL and Redis."""
        user = re.search(r"^USER (\d+):", (DEPLOY / "Dockerfile").read_text(), re.M)[1]
        (group,) = {SERVICES[name]["user"].split(":")[1] for name in ("postgres", "redis")}
        header = FILE.read_text().split("\nname:")[0]
        self.assertIn(f"#   chown {user}:{group} deploy/secrets/{{postgres,owner,store,redis}}.password\n", header)

    def test_no_port_is_open_to_others(self) -> None:
        """What is open speaks plain HTTP; a certificate, and with it a port for others, is whoever runs it to give."""
        ports = [(name, port) for name, service in SERVICES.items() for port in service.get("ports", [])]
        self.assertIn(("haproxy", "127.0.0.1:8080:8080"), ports)
        for name, port in ports:
            self.assertTrue(port.startswith("127.0.0.1:"), f"{name}: {port}")
        # The way that the comment shows is there.
        self.assertRegex(FILE.read_text(), r'(?m)^ +# ports: \[.*"8443:8443"\]$')
        self.assertIn("    # bind :8443 ssl crt /etc/haproxy/certs/", (DEPLOY / "haproxy/haproxy.cfg").read_text())

    def test_operators_are_told_who_reads_their_files(self) -> None:
        user = re.search(r"^USER (\d+):", (DEPLOY / "Dockerfile").read_text(), re.M)[1]
        header = FILE.read_text().split("\nname:")[0]
        for folder in ("deploy/secrets/master.key deploy/secrets/admin.token", "deploy/tenants"):
            self.assertRegex(header, rf"(?m)^# +chown (-R )?{user} {folder}$")

    def test_messages_and_operation_are_apart(self) -> None:
        self.assertNotIn("traffic", SERVICES["prometheus"]["networks"])


if __name__ == "__main__":
    unittest.main()
