"""kubernetes/: its form by Kubernetes' own schemas, and what its parts say of each other."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from deployment import DEPLOY, LIMIT_S, PROGRAM, config_show, documents, longest_stop_s

FOLDER = DEPLOY / "kubernetes"
# The Prometheus operator's kind is not one of Kubernetes; kustomization.yaml is never sent to a cluster.
OWN_SCHEMA = "servicemonitor.yaml"
NOT_SENT = "kustomization.yaml"
FILES = sorted(file for file in FOLDER.glob("*/*.yaml") if file.name != NOT_SENT)
# What an operator applies, in the order of docs/operations/deployment.md.
APPLIED = ("base", "store-migrate", "store-copy", "replicated")
# The oldest and the newest that these files are written for.
VERSIONS = ("1.30.0", "1.37.0")
# What PostgreSQL gives by default to those that are no superusers.
SERVER_CONNECTIONS = 97
WORKLOADS = ("Deployment", "StatefulSet", "Job")


def kustomization(folder: Path) -> dict:
    (document,) = documents(folder / NOT_SENT)
    return document


def files_of(folder: Path) -> list[Path]:
    """The files that a kustomization takes in, those of folders that it names included."""
    found: list[Path] = []
    for name in kustomization(folder)["resources"]:
        path = (folder / name).resolve()
        found += files_of(path) if path.is_dir() else [path]
    return found


def objects_of(name: str) -> dict[tuple[str, str], dict]:
    """What is sent to a cluster, by kind and name."""
    found = [document for file in files_of(FOLDER / name) for document in documents(file)]
    objects = {(document["kind"], document["metadata"]["name"]): document for document in found}
    assert len(objects) == len(found), f"{name} has something twice"
    return objects


def variables_of(container: dict) -> dict[str, str]:
    """Environment variables with a value of their own."""
    return {variable["name"]: variable["value"] for variable in container["env"] if "value" in variable}


def secrets_of(pod: dict) -> set[tuple[str, str]]:
    """The Secrets, and the keys in them, that a pod reads as files or variables."""
    files = {
        (volume["secret"]["secretName"], item["key"])
        for volume in pod["volumes"] if "secret" in volume for item in volume["secret"]["items"]
    }
    references = [
        variable["valueFrom"]["secretKeyRef"]
        for container in pod["containers"] for variable in container["env"] if "valueFrom" in variable
    ]
    return files | {(reference["name"], reference["key"]) for reference in references}


class FilesTests(unittest.TestCase):
    def validate(self, version: str, *files: Path) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).parent / "kubernetes-validate", "--strict", "-k", version, *files]
        return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)

    def test_form(self) -> None:
        files = [file for file in FILES if file.name != OWN_SCHEMA]
        self.assertGreater(len(files), 12)
        for version in VERSIONS:
            with self.subTest(version):
                done = self.validate(version, *files)
                output = done.stdout + done.stderr
                self.assertEqual(done.returncode, 0, output)
                # What it has no schema for it only warns of.
                self.assertNotIn("WARN", output)
                count = sum(len(documents(file)) for file in files)
                self.assertEqual(output.count(" passed for resource "), count, output)

    def test_a_wrong_form_is_noticed(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            wrong = Path(folder) / "deployment.yaml"
            wrong.write_text((FOLDER / "base/deployment.yaml").read_text().replace("runAsNonRoot:", "runAsNonroot:"))
            for version in VERSIONS:
                self.assertEqual(self.validate(version, wrong).returncode, 1, version)

    def test_form_of_the_service_monitor(self) -> None:
        schema = Path(__file__).parent / "schemas/servicemonitor.schema.json"
        command = [
            Path(sys.executable).parent / "check-jsonschema", "--schemafile", schema, FOLDER / "common" / OWN_SCHEMA
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_every_file_is_taken_in(self) -> None:
        self.assertEqual({file for name in APPLIED for file in files_of(FOLDER / name)}, set(FILES))

    def test_all_of_them_set_one_namespace_and_one_image(self) -> None:
        """A schema of another version than the replicas' would be refused."""
        sets = [kustomization(FOLDER / name) for name in APPLIED]
        self.assertEqual(len({str(each["images"]) for each in sets}), 1)
        (image,) = sets[0]["images"]
        for name, each in zip(APPLIED, sets):
            objects = objects_of(name)
            self.assertEqual(each["namespace"], "fcm-gateway", name)
            # Sent to the namespace that it sets, wherever the files would go by themselves.
            self.assertEqual({document["metadata"].get("namespace") for document in objects.values()}, {None}, name)
            for (kind, _), document in objects.items():
                if kind in WORKLOADS:
                    (container,) = document["spec"]["template"]["spec"]["containers"]
                    self.assertEqual(container["image"], image["name"], name)

    def test_the_image_runs_as_the_same_user(self) -> None:
        text = (DEPLOY / "Dockerfile").read_text()
        self.assertIn("\nUSER 10001:10001\n", text)

    def test_secrets_are_made_as_the_comments_say(self) -> None:
        """Each key that a pod reads is made by a line of a kustomization."""
        for name in ("base", "replicated", "store-migrate"):
            made: set[tuple[str, str]] = set()
            text = (FOLDER / name / NOT_SENT).read_text()
            for command in text.replace("\\\n#", "").splitlines():
                if " create secret generic " in command:
                    words = command.split()
                    secret = words[words.index("generic") + 1]
                    made |= {(secret, word.split("=")[1]) for word in words if word.startswith("--from-")}
            (pod,) = [
                document["spec"]["template"]["spec"]
                for (kind, _), document in objects_of(name).items() if kind in WORKLOADS
            ]
            self.assertEqual(secrets_of(pod), made, name)


class PodTests:
    """What holds for every pod that the project has made; the classes below say which."""

    objects: dict[tuple[str, str], dict]
    workload: tuple[str, str]
    volume_kinds: set[str]

    def setUp(self) -> None:
        self.spec = self.objects[self.workload]["spec"]
        self.pod = self.spec["template"]["spec"]
        self.labels = self.spec["template"]["metadata"]["labels"]
        (self.container,) = self.pod["containers"]

    def test_what_the_restricted_profile_asks_of_a_pod(self) -> None:
        pod, container = self.pod["securityContext"], self.container["securityContext"]
        self.assertTrue(pod["runAsNonRoot"])
        self.assertEqual(pod["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertEqual((pod["runAsUser"], pod["runAsGroup"], pod["fsGroup"]), (10001, 10001, 10001))
        self.assertFalse(container["allowPrivilegeEscalation"])
        self.assertEqual(container["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(container["readOnlyRootFilesystem"])
        kinds = {next(iter(set(volume) - {"name"})) for volume in self.pod["volumes"]}
        self.assertEqual(kinds, self.volume_kinds)
        self.assertFalse(self.pod.get("hostNetwork") or self.pod.get("hostPID") or self.pod.get("hostIPC"))

    def test_secrets_are_files(self) -> None:
        self.assertEqual(self.pod["enableServiceLinks"], False)
        self.assertEqual(self.pod["automountServiceAccountToken"], False)
        mounts = {mount["name"]: mount for mount in self.container["volumeMounts"]}
        volumes = {volume["name"]: volume for volume in self.pod["volumes"]}
        claims = {claim["metadata"]["name"] for claim in self.spec.get("volumeClaimTemplates", [])}
        self.assertEqual(set(mounts), set(volumes) | claims)
        files: set[str] = set()
        for name, volume in volumes.items():
            if "secret" in volume:
                self.assertEqual(volume["secret"]["defaultMode"], 0o440, name)
                self.assertTrue(mounts[name]["readOnly"], name)
                files |= {f"{mounts[name]['mountPath']}/{item['path']}" for item in volume["secret"]["items"]}
        for name, value in variables_of(self.container).items():
            self.assertRegex(name, r"^GATEWAY_[A-Z_]+_FILE$")
            self.assertIn(value, files)
        # Addresses may be variables; what opens something may not.
        for variable in self.container["env"]:
            if "valueFrom" in variable:
                self.assertRegex(variable["name"], r"_URL$")
        self.assertEqual([kind for kind, _ in self.objects if kind == "Secret"], [], "secrets are made by operators")


class GatewayTests(PodTests):
    """What holds for one gateway and for replicas."""

    def test_probes_ask_the_admin_listener(self) -> None:
        ports = {port["name"]: port["containerPort"] for port in self.container["ports"]}
        self.assertEqual(ports, {"http": 8080, "admin": 8081})
        for probe, path in (("startupProbe", "/readyz"), ("readinessProbe", "/readyz"), ("livenessProbe", "/livez")):
            self.assertEqual(self.container[probe]["httpGet"], {"path": path, "port": "admin"}, probe)

    def test_a_stop_has_the_time_it_takes(self) -> None:
        self.assertGreaterEqual(self.pod["terminationGracePeriodSeconds"], longest_stop_s())

    def test_everything_is_about_the_same_pods(self) -> None:
        self.assertEqual(self.spec["selector"]["matchLabels"], self.labels)
        namespace = self.objects["Namespace", "fcm-gateway"]["metadata"]["labels"]
        self.assertEqual(namespace["pod-security.kubernetes.io/enforce"], "restricted")
        selectors = {
            "budget": self.objects["PodDisruptionBudget", "fcm-gateway"]["spec"]["selector"]["matchLabels"],
            "NetworkPolicy": self.objects["NetworkPolicy", "fcm-gateway"]["spec"]["podSelector"]["matchLabels"],
            "Service": self.objects["Service", "fcm-gateway"]["spec"]["selector"],
            "admin Service": self.objects["Service", "fcm-gateway-admin"]["spec"]["selector"],
        }
        for name, selector in selectors.items():
            self.assertLessEqual(selector.items(), self.labels.items(), name)

    def test_the_monitor_finds_the_admin_service(self) -> None:
        monitor = self.objects["ServiceMonitor", "fcm-gateway"]["spec"]
        found = [
            name for (kind, name), document in self.objects.items() if kind == "Service"
            and monitor["selector"]["matchLabels"].items() <= document["metadata"]["labels"].items()
        ]
        self.assertEqual(found, ["fcm-gateway-admin"])
        ports = {port["name"] for port in self.objects["Service", "fcm-gateway-admin"]["spec"]["ports"]}
        self.assertLessEqual({endpoint["port"] for endpoint in monitor["endpoints"]}, ports)

    def test_the_configuration_is_good(self) -> None:
        data = self.objects["ConfigMap", "fcm-gateway"]["data"]
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        self.assertIn(self.container["args"][-1], {f"{mounts['configuration']}/{name}" for name in data})
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "gateway.yaml"
            file.write_text(data["gateway.yaml"])
            done = subprocess.run(
                [PROGRAM, "config", "check", "--config", file], env={}, capture_output=True, text=True, timeout=LIMIT_S
            )
        self.assertEqual(done.returncode, 0, done.stderr)


class BaseTests(GatewayTests, unittest.TestCase):
    objects = objects_of("base")
    workload = ("Deployment", "fcm-gateway")
    volume_kinds = {"configMap", "persistentVolumeClaim", "secret"}

    def test_one_process_has_the_store(self) -> None:
        self.assertEqual((self.spec["replicas"], self.spec["strategy"]), (1, {"type": "Recreate"}))
        claim = self.objects["PersistentVolumeClaim", "fcm-gateway"]["spec"]
        self.assertEqual(claim["accessModes"], ["ReadWriteOncePod"])

    def test_an_upgrade_of_the_store_has_half_an_hour(self) -> None:
        probe = self.container["startupProbe"]
        self.assertGreaterEqual(probe["periodSeconds"] * probe["failureThreshold"], 1800)


class ReplicatedTests(GatewayTests, unittest.TestCase):
    objects = objects_of("replicated")
    workload = ("StatefulSet", "fcm-gateway")
    volume_kinds = {"configMap", "secret"}

    def setUp(self) -> None:
        super().setUp()
        self.scaler = self.objects["HorizontalPodAutoscaler", "fcm-gateway"]["spec"]

    def test_there_are_three_and_one_at_a_time_goes(self) -> None:
        # What the autoscaler made of them would be undone by each apply.
        self.assertNotIn("replicas", self.spec)
        self.assertEqual(self.scaler["minReplicas"], 3)
        self.assertEqual(self.spec["updateStrategy"], {"type": "RollingUpdate"})
        budget = self.objects["PodDisruptionBudget", "fcm-gateway"]["spec"]
        self.assertEqual(budget["maxUnavailable"], 1)

    def test_a_spool_outlives_its_pod(self) -> None:
        """A rollout and a scale-down delete pods; what PostgreSQL has not taken is on a volume that the next one gets."""
        (claim,) = self.spec["volumeClaimTemplates"]
        mounts = {mount["name"]: mount["mountPath"] for mount in self.container["volumeMounts"]}
        values = config_show()
        self.assertTrue(Path(values["dataDir"], values["audit.spoolDir"]).is_relative_to(mounts[claim["metadata"]["name"]]))
        self.assertEqual(claim["spec"]["accessModes"], ["ReadWriteOncePod"])
        size = claim["spec"]["resources"]["requests"]["storage"]
        # Twice: one that is damaged is set aside.
        self.assertGreaterEqual(int(size.removesuffix("Gi")) << 30, 2 * int(values["audit.spoolBytes"]))
        self.assertEqual(
            self.spec["persistentVolumeClaimRetentionPolicy"], {"whenScaled": "Retain", "whenDeleted": "Retain"}
        )

    def test_pods_have_names(self) -> None:
        service = self.objects["Service", self.spec["serviceName"]]["spec"]
        self.assertEqual(service["clusterIP"], "None")
        self.assertLessEqual(service["selector"].items(), self.labels.items())

    def test_the_autoscaler_scales_the_replicas_by_cpu(self) -> None:
        target = self.scaler["scaleTargetRef"]
        self.assertEqual((target["kind"], target["name"]), self.workload)
        (metric,) = self.scaler["metrics"]
        self.assertEqual(metric["resource"]["name"], "cpu")
        # A share of what is asked for.
        self.assertIn("cpu", self.container["resources"]["requests"])

    def test_all_replicas_together_find_room_at_the_server(self) -> None:
        # Until the table of keys has it.
        pool = int(config_show().get("store.poolSize", 8))
        self.assertLessEqual(self.scaler["maxReplicas"] * (pool + 2), SERVER_CONNECTIONS)

    def test_replicas_are_spread(self) -> None:
        keys = set()
        for constraint in self.pod["topologySpreadConstraints"]:
            keys.add(constraint["topologyKey"])
            self.assertLessEqual(constraint["labelSelector"]["matchLabels"].items(), self.labels.items())
        self.assertEqual(keys, {"topology.kubernetes.io/zone", "kubernetes.io/hostname"})

    def test_stores_and_limits_are_those_of_secrets(self) -> None:
        names = {variable["name"] for variable in self.container["env"]}
        self.assertLessEqual({
            "GATEWAY_STORE_URL", "GATEWAY_STORE_PASSWORD_FILE", "GATEWAY_LIMITS_REDIS_URL",
            "GATEWAY_LIMITS_REDIS_PASSWORD_FILE",
        }, names)
        # A gateway has no need of the owner's rights.
        self.assertNotIn("fcm-gateway-store-owner", {name for name, _ in secrets_of(self.pod)})

    def test_it_may_reach_postgresql_and_redis_and_base_may_not(self) -> None:
        def ports(objects: dict[tuple[str, str], dict]) -> set[int | str]:
            rules = objects["NetworkPolicy", "fcm-gateway"]["spec"]["egress"]
            return {port["port"] for rule in rules for port in rule["ports"]}

        self.assertEqual(ports(self.objects) - ports(BaseTests.objects), {5432, 6379, 26379})
        self.assertEqual(ports(BaseTests.objects), {53, 443})

    def test_nothing_else_differs_from_one_gateway(self) -> None:
        """What one of the two files was given and the other was not shows here."""
        def same(pod: dict) -> dict:
            (container,) = pod["containers"]
            left_out = ("containers", "env", "startupProbe", "topologySpreadConstraints", "volumeMounts", "volumes")
            return {key: value for key, value in {**pod, **container}.items() if key not in left_out}

        self.assertEqual(same(self.pod), same(BaseTests.objects[BaseTests.workload]["spec"]["template"]["spec"]))


class JobTests(PodTests):
    def test_it_is_tried_once_and_gets_no_requests(self) -> None:
        self.assertEqual((self.spec["backoffLimit"], self.pod["restartPolicy"]), (0, "Never"))
        service = BaseTests.objects["Service", "fcm-gateway"]["spec"]["selector"]
        self.assertFalse(service.items() <= self.labels.items())
        policy = objects_of("store-migrate")["NetworkPolicy", "fcm-gateway-store"]["spec"]
        self.assertLessEqual(policy["podSelector"]["matchLabels"].items(), self.labels.items())
        self.assertNotIn("ingress", policy)


class MigrateTests(JobTests, unittest.TestCase):
    objects = objects_of("store-migrate")
    workload = ("Job", "fcm-gateway-store-migrate")
    volume_kinds = {"secret"}

    def test_command(self) -> None:
        self.assertEqual(self.container["args"], ["store", "migrate"])


class CopyTests(JobTests, unittest.TestCase):
    objects = objects_of("store-copy")
    workload = ("Job", "fcm-gateway-store-copy")
    volume_kinds = {"persistentVolumeClaim", "secret"}

    def test_it_copies_the_store_of_the_one_gateway(self) -> None:
        arguments = ["store", "copy", "--from", "sqlite:/var/lib/fcm-gateway/gateway.sqlite", "--to"]
        self.assertEqual(self.container["args"][:-1], arguments)
        (claim,) = [volume["persistentVolumeClaim"] for volume in self.pod["volumes"] if volume["name"] == "data"]
        self.assertIn(("PersistentVolumeClaim", claim["claimName"]), BaseTests.objects)


if __name__ == "__main__":
    unittest.main()
