"""The Helm chart: by Helm itself, by Kubernetes' schemas, and beside the files of deploy/kubernetes."""

from __future__ import annotations

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path

import yaml

from distribution import PROGRAMS, ROOT, documents, made, run

sys.path.insert(0, str(ROOT / "Tests/Deploy"))

from test_kubernetes import VERSIONS, objects_of  # noqa: E402

CHART = ROOT / "deploy/helm"
PROGRAM = ROOT / ".build/release/fcm-gateway"
SCHEMAS = ROOT / "Tests/Deploy/schemas"
REPLICATED = {"replicated": True}
# Every value that a user may set and the defaults leave out.
RICH = {
    "imagePullSecrets": [{"name": "registry"}], "podAnnotations": {"team": "push"}, "nodeSelector": {"disk": "fast"},
    "tolerations": [{"key": "push", "operator": "Exists"}], "serviceMonitor": {"enabled": True},
    "storage": {"size": "5Gi", "storageClassName": "fast"}, "image": {"tag": "1.2.3"},
    "extraEnv": [{"name": "GATEWAY_LOG_LEVEL", "value": "debug"}],
    "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "Exists"}]}]}}},
    "networkPolicy": {"extraEgress": [{"to": [{"ipBlock": {"cidr": "10.1.0.0/16"}}]}]},
    "configuration": {"log": {"level": "debug"}}, "adminScheme": "HTTPS", "adminToken": False,
    "serviceAccount": {"annotations": {"example.com/identity": "push"}},
    "extraVolumes": [{"name": "certificates", "secret": {"secretName": "certificates"}}],
    "extraVolumeMounts": [{"name": "certificates", "mountPath": "/etc/certificates", "readOnly": True}],
}


def rendered(values: dict, chart: Path = CHART, name: str = "fcm-gateway") -> str:
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        return run(PROGRAMS / "helm", "template", name, chart, "--namespace", "push", "--values", file.name).stdout


def plain(value: object) -> object:
    """A value without what differs on purpose: labels, annotations, the image; lists of named things by their names."""
    if isinstance(value, dict):
        left_out = {"image", "imagePullPolicy", "annotations", "scheme"}
        kept = {
            key: plain(part) for key, part in value.items()
            if key not in left_out and not key.startswith(("app.kubernetes.io/", "helm.sh/"))
        }
        return {key: part for key, part in kept.items() if part != {}}
    if isinstance(value, list):
        parts = [plain(part) for part in value]
        return sorted(parts, key=lambda part: part.get("name", "") if isinstance(part, dict) else "")
    return value


class ChartTests(unittest.TestCase):
    def test_helm_finds_no_fault(self) -> None:
        for values in ("", "storeCopy.enabled=true", "replicated=true,serviceMonitor.enabled=true"):
            run(PROGRAMS / "helm", "lint", "--strict", CHART, "--set", values)

    def test_form(self) -> None:
        for base in ({}, REPLICATED, {"storeCopy": {"enabled": True}}):
            for more, name in (({}, "fcm-gateway"), (RICH, "push"), ({"networkPolicy": {"enabled": False}}, "push")):
                objects = documents(rendered({**base, **more}, name=name))
                monitors = [each for (kind, _), each in objects.items() if kind == "ServiceMonitor"]
                others = [each for (kind, _), each in objects.items() if kind != "ServiceMonitor"]
                with self.subTest(base=base, more=more), tempfile.TemporaryDirectory() as folder:
                    file = Path(folder) / "objects.yaml"
                    file.write_text(yaml.safe_dump_all(others))
                    for version in VERSIONS:
                        done = run(PROGRAMS / "kubernetes-validate", "--strict", "-k", version, file)
                        self.assertNotIn("WARN", done.stdout + done.stderr)
                    for monitor in monitors:
                        file.write_text(yaml.safe_dump(monitor))
                        run(PROGRAMS / "check-jsonschema", "--schemafile", SCHEMAS / "servicemonitor.schema.json", file)
                    for kind, called in objects:
                        self.assertTrue(called.startswith(name), f"{kind} {called}")

    def test_it_makes_what_the_files_make(self) -> None:
        """What one of the two was given and the other was not shows here."""
        for values, folders in (
            ({"serviceMonitor": {"enabled": True}}, ("base",)),
            ({**REPLICATED, "serviceMonitor": {"enabled": True}}, ("replicated", "store-migrate")),
            (
                {"storeCopy": {"enabled": True}, "serviceMonitor": {"enabled": True}},
                ("base", "store-copy", "store-migrate"),
            ),
        ):
            objects = documents(rendered(values))
            files: dict[tuple[str, str], dict] = {}
            for folder in folders:
                files |= objects_of(folder)
            files.pop(("Namespace", "fcm-gateway"))
            self.assertEqual(set(objects), set(files))
            if "storeCopy" in values:
                # The files are applied to a gateway that was scaled down by hand.
                files["Deployment", "fcm-gateway"]["spec"]["replicas"] = 0
            for key, document in files.items():
                with self.subTest(folders=folders, key=key):
                    mine, other = plain(objects[key]), plain(document)
                    if key[0] == "ConfigMap":
                        mine, other = (yaml.safe_load(each["data"]["gateway.yaml"]) for each in (mine, other))
                    self.assertEqual(mine, other)

    def test_selectors_find_the_pods(self) -> None:
        for values in ({}, REPLICATED):
            objects = documents(rendered({**values, "serviceMonitor": {"enabled": True}}, name="push"))
            (workload,) = [each for (kind, _), each in objects.items() if kind in ("Deployment", "StatefulSet")]
            labels = workload["spec"]["template"]["metadata"]["labels"].items()
            for kind, path in (
                ("Service", ("selector",)), ("PodDisruptionBudget", ("selector", "matchLabels")),
                ("NetworkPolicy", ("podSelector", "matchLabels")),
            ):
                selector = objects[kind, "push"]["spec"]
                for name in path:
                    selector = selector[name]
                self.assertLessEqual(selector.items(), labels, kind)
            self.assertEqual(workload["spec"]["selector"]["matchLabels"].items() <= labels, True)
            monitor = objects["ServiceMonitor", "push"]["spec"]["selector"]["matchLabels"]
            self.assertLessEqual(monitor.items(), objects["Service", "push-admin"]["metadata"]["labels"].items())
            for (kind, name), document in objects.items():
                if kind == "Job":
                    job = document["spec"]["template"]["metadata"]["labels"].items()
                    self.assertFalse(objects["Service", "push"]["spec"]["selector"].items() <= job, name)
                    self.assertLessEqual(
                        objects["NetworkPolicy", "push-store"]["spec"]["podSelector"]["matchLabels"].items(), job
                    )

    def test_images_hooks_and_what_is_kept(self) -> None:
        objects = documents(rendered(REPLICATED))
        for key in (("StatefulSet", "fcm-gateway"), ("Job", "fcm-gateway-store-migrate")):
            (container,) = objects[key]["spec"]["template"]["spec"]["containers"]
            self.assertEqual(container["image"], "registry.example.com/fcm-gateway:0.1.0", key)
            self.assertEqual(container["command"], ["/usr/bin/fcm-gateway"], key)
        for key, weight in ((("NetworkPolicy", "fcm-gateway-store"), "0"), (("Job", "fcm-gateway-store-migrate"), "1")):
            annotations = objects[key]["metadata"]["annotations"]
            self.assertEqual(annotations["helm.sh/hook"], "pre-install,pre-upgrade", key)
            self.assertEqual(annotations["helm.sh/hook-weight"], weight, key)
        claim = documents(rendered({}))["PersistentVolumeClaim", "fcm-gateway"]
        self.assertEqual(claim["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")

    def test_commands_of_the_notes(self) -> None:
        notes = (CHART / "templates/NOTES.txt").read_text()
        for command in re.findall(r"(?m)^  fcm-gateway (\S+ \S+) (.*)$", notes):
            shown = run(PROGRAM, *command[0].split(), "--help").stdout
            for option in re.findall(r"--[a-z-]+", command[1]):
                self.assertIn(option, shown, command)

    def test_names_are_short_enough(self) -> None:
        for values in (REPLICATED, {"storeCopy": {"enabled": True}}):
            for kind, name in documents(rendered(values, name="x" * 53)):
                self.assertLessEqual(len(name), 63, kind)

    def test_a_value_that_is_not_known_is_refused(self) -> None:
        for values in ("storeCopy.enabled=true,replicated=true", "configuration.http.port=9000"):
            run(PROGRAMS / "helm", "template", "x", CHART, "--set", values, status=1)
        for values in ("replcated=true", "image.name=x", "replicated=yes please", "networkPolicy.backends=10.0.0.0/8", "networkPolicy.backends=null"):
            done = run(PROGRAMS / "helm", "template", "x", CHART, "--set", values, status=1)
            self.assertIn("values don't meet the specifications of the schema", done.stderr, values)

    def test_a_changed_configuration_restarts_the_pods(self) -> None:
        def checksum(values: dict) -> str:
            pod = documents(rendered(values))["Deployment", "fcm-gateway"]["spec"]["template"]
            return pod["metadata"]["annotations"]["checksum/configuration"]

        self.assertNotEqual(checksum({}), checksum({"configuration": {"log": {"level": "debug"}}}))

    def test_the_archive_is_the_chart(self) -> None:
        archive = made("fcm-gateway-*.tgz")
        version = archive.name.removeprefix("fcm-gateway-").removesuffix(".tgz")
        shown = yaml.safe_load(run(PROGRAMS / "helm", "show", "chart", archive).stdout)
        self.assertEqual((shown["version"], shown["appVersion"]), (version, version))
        for values in ({}, REPLICATED, RICH):
            mine, other = documents(rendered(values, archive)), documents(rendered(values))
            self.assertEqual(json.dumps(plain(list(mine.values()))), json.dumps(plain(list(other.values()))))


if __name__ == "__main__":
    unittest.main()
