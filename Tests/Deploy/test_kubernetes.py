"""kubernetes/: its form by Kubernetes' own schemas, and what its parts say of each other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from deployment import DEPLOY, LIMIT_S, PROGRAM, documents, longest_stop_s

FOLDER = DEPLOY / "kubernetes"
FILES = sorted(FOLDER.glob("*.yaml"))
# The Prometheus operator's kind is not one of Kubernetes; kustomization.yaml is never sent to a cluster.
OWN_SCHEMA = "servicemonitor.yaml"
NOT_SENT = "kustomization.yaml"
# The oldest and the newest that these files are written for.
VERSIONS = ("1.30.0", "1.37.0")
OBJECTS = {
    (document["kind"], document["metadata"]["name"]): document
    for file in FILES if file.name != NOT_SENT for document in documents(file)
}
DEPLOYMENT = OBJECTS["Deployment", "fcm-gateway"]["spec"]
POD = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
LABELS = DEPLOYMENT["template"]["metadata"]["labels"]


class KubernetesTests(unittest.TestCase):
    def validate(self, version: str, *files: Path) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "kubernetes-validate", "--strict", "-k", version, *files]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)

    def test_form(self) -> None:
        files = [file for file in FILES if file.name not in (OWN_SCHEMA, NOT_SENT)]
        self.assertGreater(len(files), 6)
        for version in VERSIONS:
            with self.subTest(version):
                done = self.validate(version, *files)
                output = done.stdout + done.stderr
                self.assertEqual(done.returncode, 0, output)
                # What it has no schema for it only warns of.
                self.assertNotIn("WARN", output)
                self.assertEqual(output.count(" passed for resource "), sum(len(documents(file)) for file in files), output)

    def test_a_wrong_form_is_noticed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder) / "deployment.yaml"
            wrong.write_text((FOLDER / "deployment.yaml").read_text().replace("runAsNonRoot:", "runAsNonroot:"))
            for version in VERSIONS:
                self.assertEqual(self.validate(version, wrong).returncode, 1, version)

    def test_form_of_the_service_monitor(self) -> None:
        schema = Path(__file__).parent / "schemas/servicemonitor.schema.json"
        command = [Path(sys.executable).parent / "check-jsonschema", "--schemafile", schema, FOLDER / OWN_SCHEMA]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_kustomization_names_every_file_and_the_image(self) -> None:
        (kustomization,) = documents(FOLDER / NOT_SENT)
        self.assertEqual(sorted(kustomization["resources"]), sorted(file.name for file in FILES if file.name != NOT_SENT))
        self.assertEqual([image["name"] for image in kustomization["images"]], [CONTAINER["image"]])
        self.assertEqual(kustomization["namespace"], OBJECTS["Namespace", "fcm-gateway"]["metadata"]["name"])
        # Sent to the namespace that it sets, wherever the files would go by themselves.
        self.assertEqual({document["metadata"].get("namespace") for document in OBJECTS.values()}, {None})

    def test_one_process_has_the_store(self) -> None:
        self.assertEqual((DEPLOYMENT["replicas"], DEPLOYMENT["strategy"]), (1, {"type": "Recreate"}))
        claim = OBJECTS["PersistentVolumeClaim", "fcm-gateway"]["spec"]
        self.assertEqual(claim["accessModes"], ["ReadWriteOncePod"])

    def test_what_the_restricted_profile_asks_of_a_pod(self) -> None:
        pod, container = POD["securityContext"], CONTAINER["securityContext"]
        self.assertTrue(pod["runAsNonRoot"])
        self.assertEqual(pod["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertEqual((pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]), (10001, 10001, 10001))
        self.assertFalse(container["allowPrivilegeEscalation"])
        self.assertEqual(container["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(container["readOnlyRootFilesystem"])
        kinds = {next(iter(set(volume) - {"name"})) for volume in POD["volumes"]}
        self.assertLessEqual(kinds, {"configMap", "persistentVolumeClaim", "secret"})
        self.assertFalse(POD.get("hostNetwork") or POD.get("hostPID") or POD.get("hostIPC"))
        namespace = OBJECTS["Namespace", "fcm-gateway"]["metadata"]["labels"]
        self.assertEqual(namespace["pod-security.kubernetes.io/enforce"], "restricted")

    def test_the_image_runs_as_the_same_user(self) -> None:
        text = (DEPLOY / "Dockerfile").read_text()
        self.assertIn("\nUSER 10001:10001\n", text)

    def test_secrets_are_files(self) -> None:
        self.assertEqual(POD["enableServiceLinks"], False)
        self.assertEqual(POD["automountServiceAccountToken"], False)
        mounts = {mount["name"]: mount for mount in CONTAINER["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in POD["volumes"]}
        self.assertEqual(set(mounts), set(volumes))
        secret = volumes["secrets"]["secret"]
        self.assertEqual(secret["defaultMode"], 0o440)
        files = {f"{mounts['secrets']['mountPath']}/{item['path']}" for item in secret["items"]}
        variables = {variable["name"]: variable["value"] for variable in CONTAINER["env"]}
        self.assertEqual(set(variables), {"GATEWAY_MASTER_KEY_FILE", "GATEWAY_ADMIN_TOKEN_FILE"})
        self.assertEqual(set(variables.values()), files)
        self.assertEqual([kind for kind, _ in OBJECTS if kind == "Secret"], [], "secrets are made by operators")

    def test_probes_ask_the_admin_listener(self) -> None:
        ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
        self.assertEqual(ports, {"http": 8080, "admin": 8081})
        for probe, path in (("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
            self.assertEqual(CONTAINER[probe]["httpGet"], {"path": path, "port": "admin"}, probe)

    def test_an_upgrade_of_the_store_has_half_an_hour(self) -> None:
        probe = CONTAINER["startupProbe"]
        self.assertGreaterEqual(probe["periodSeconds"] * probe["failureThreshold"], 1800)

    def test_a_stop_has_the_time_it_takes(self) -> None:
        self.assertGreaterEqual(POD["terminationGracePeriodSeconds"], longest_stop_s())

    def test_everything_is_about_the_same_pods(self) -> None:
        self.assertEqual(DEPLOYMENT["selector"]["matchLabels"], LABELS)
        selectors = {
            "PodDisruptionBudget": OBJECTS["PodDisruptionBudget", "fcm-gateway"]["spec"]["selector"]["matchLabels"],
            "NetworkPolicy": OBJECTS["NetworkPolicy", "fcm-gateway"]["spec"]["podSelector"]["matchLabels"],
            "Service": OBJECTS["Service", "fcm-gateway"]["spec"]["selector"],
            "admin Service": OBJECTS["Service", "fcm-gateway-admin"]["spec"]["selector"],
        }
        for name, selector in selectors.items():
            self.assertLessEqual(selector.items(), LABELS.items(), name)

    def test_the_monitor_finds_the_admin_service(self) -> None:
        monitor = OBJECTS["ServiceMonitor", "fcm-gateway"]["spec"]
        found = [
            name for (kind, name), document in OBJECTS.items()
            if kind == "Service" and monitor["selector"]["matchLabels"].items() <= document["metadata"]["labels"].items()
        ]
        self.assertEqual(found, ["fcm-gateway-admin"])
        ports = {port["name"] for port in OBJECTS["Service", "fcm-gateway-admin"]["spec"]["ports"]}
        self.assertLessEqual({endpoint["port"] for endpoint in monitor["endpoints"]}, ports)

    def test_the_configuration_is_good(self) -> None:
        data = OBJECTS["ConfigMap", "fcm-gateway"]["data"]
        mounts = {mount["name"]: mount["mountPath"] for mount in CONTAINER["volumeMounts"]}
        self.assertIn(CONTAINER["args"][-1], {f"{mounts['configuration']}/{name}" for name in data})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gateway.yaml"
            file.write_text(data["gateway.yaml"])
            done = subprocess.run(
                [PROGRAM, "config", "check", "--config", file], env={}, capture_output=True, text=True, timeout=LIMIT_S
            )
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
