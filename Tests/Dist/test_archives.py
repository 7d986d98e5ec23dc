"""The archives, their sums, and the bill of materials."""

from __future__ import annotations

import hashlib
import json
import re
import tarfile
import tempfile
import unittest
from pathlib import Path

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from distribution import DIST, ROOT, made, run

# What a registry stores of the image, and what a machine does.
MOST_PACKED_MIB, MOST_MIB = 70, 125


class ArchivesTests(unittest.TestCase):
    def test_sums(self) -> None:
        lines = (DIST / "SHA256SUMS").read_text().splitlines()
        named = dict(line.split("  ")[::-1] for line in lines)
        self.assertEqual(set(named), {path.name for path in DIST.iterdir()} - {"SHA256SUMS"})
        for name, digest in named.items():
            self.assertEqual(hashlib.sha256((DIST / name).read_bytes()).hexdigest(), digest, name)

    def test_the_archive_can_be_unpacked_and_run(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(self.archive()) as archive:
                archive.extractall(folder, filter="data")
            (root,) = Path(folder).iterdir()
            version = run(root / "usr/bin/fcm-gateway", "--version", env={}).stdout.strip()
            self.assertEqual(root.name, f"fcm-gateway-{version}")
            unit = (root / "usr/lib/systemd/system/fcm-gateway-audit-verify.service").read_text()
            (script,) = re.findall(r"ExecStart=(\S+)", unit)
            self.assertTrue((root / script.lstrip("/")).stat().st_mode & 0o111, script)
            for path in root.rglob("*"):
                self.assertFalse(path.is_file() and b"/usr/local/" in path.read_bytes()[:4096], path)

    @staticmethod
    def archive() -> Path:
        found = [path for path in DIST.glob("fcm-gateway-*.tar.gz") if "rootfs" not in path.name]
        assert len(found) == 1, found
        return found[0]

    def test_the_image_is_small_and_runs_with_its_own_files(self) -> None:
        packed = made("fcm-gateway-*-rootfs-*.tar.gz")
        self.assertLessEqual(packed.stat().st_size, MOST_PACKED_MIB << 20)
        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(packed) as archive:
                archive.extractall(folder, filter="tar")
            root = Path(folder)
            total = sum(path.stat().st_size for path in root.rglob("*") if path.is_file() and not path.is_symlink())
            self.assertLessEqual(total, MOST_MIB << 20)
            # As in a container, there is a /proc: Swift reads a program's arguments there.
            (root / "proc").mkdir()
            script = 'mount -t proc proc "$1/proc"; exec env -i /usr/sbin/chroot "$1" /usr/bin/fcm-gateway --version'
            shown = run("unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh", root).stdout
            self.assertRegex(shown, r"^\d+\.\d+\.\d+")

    def test_the_bill_of_materials(self) -> None:
        text = made("fcm-gateway-*.cdx.json").read_text()
        self.assertIsNone(JsonStrictValidator(SchemaVersion.V1_6).validate_str(text))
        bill = json.loads(text)
        components = {component["name"]: component for component in bill["components"]}
        for name, version in re.findall(r"url: \"https://\S+/([^/]+?)(?:\.git)?\", exact: \"([^\"]+)\"",
                                        (ROOT / "Package.swift").read_text()):
            self.assertEqual(components[name]["version"], version, name)
            self.assertTrue(components[name]["licenses"], name)
        for name in ("swift", "libc6", "libpq5", "libmimalloc2.0"):
            self.assertTrue(components[name]["purl"].startswith("pkg:"), name)

    def test_the_symbols_belong_to_the_program(self) -> None:
        def build(path: Path) -> str:
            return re.search(r"Build ID: (\w+)", run("readelf", "--notes", path).stdout)[1]

        with tempfile.TemporaryDirectory() as folder:
            with tarfile.open(self.archive()) as archive:
                archive.extractall(folder, filter="data")
            (program,) = Path(folder).glob("*/usr/bin/fcm-gateway")
            self.assertEqual(build(program), build(made("fcm-gateway.debug")))
            self.assertNotIn(".symtab", run("readelf", "--sections", program).stdout)


if __name__ == "__main__":
    unittest.main()
