"""The container image, as far as it needs no program as it is deployed; Tests/Deploy/container builds and runs it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from deployment import DEPLOY, LIMIT_S, PROGRAM, ROOT

DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
ASSEMBLE = DEPLOY / "container/assemble"


def command(instruction: str) -> list[str]:
    """The command of an instruction of the last stage, which has to be a list."""
    found = re.findall(rf"(?m)^{instruction}\b(?:.*\\\n.*CMD)? (\[.*\])$", DOCKERFILE)
    assert len(found) == 1, f"{instruction}: {found}"
    return json.loads(found[0])


class ImageTests(unittest.TestCase):
    def test_the_toolchain_is_the_packages(self) -> None:
        version = re.match(r"// swift-tools-version: (\d+\.\d+)\n", (ROOT / "Package.swift").read_text())[1]
        images = re.findall(r"(?m)^FROM (\S+)", DOCKERFILE)
        self.assertEqual(images, [images[0], "scratch", "scratch"])
        self.assertRegex(images[0], rf"^swift:{re.escape(version)}\.\d+-bookworm$")

    def test_it_runs_as_nobody_else_may(self) -> None:
        self.assertRegex(DOCKERFILE, r"(?m)^USER [1-9]\d*:[1-9]\d*$")
        self.assertRegex(DOCKERFILE, r"(?m)^STOPSIGNAL SIGTERM$")

    def test_the_program_knows_its_commands(self) -> None:
        """Nobody answers, so both fail, in their own words and not as wrong usage."""
        entry, health = command("ENTRYPOINT"), command("HEALTHCHECK")
        self.assertEqual(entry, health[:1])
        for arguments, words in ((command("CMD"), "GATEWAY_MASTER_KEY"), (health[1:], "no answer from")):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "gateway.yaml"
                file.write_text("admin: {port: 1}\n")
                arguments = [str(file) if part == "/etc/fcm-gateway/gateway.yaml" else part for part in arguments]
                self.assertIn(str(file), arguments)
                done = subprocess.run([PROGRAM, *arguments], env={}, capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)

    def test_what_is_copied_is_not_ignored(self) -> None:
        kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
        used = ["LICENSE", "Makefile", "Package.swift", "Sources", "deploy/container/assemble",
                "deploy/gateway.example.yaml", "scripts/install-system-packages", "scripts/manual",
                "scripts/python-environment", "docs", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
        used += re.findall(r'#embed "../../([^"]+)"', (ROOT / "Sources/CFiles/files.c").read_text())
        used += re.findall(r'path: "([^"]+)"', (ROOT / "Package.swift").read_text())
        for path in used:
            self.assertTrue((ROOT / path).exists(), path)
            self.assertTrue(any(path == each or path.startswith(f"{each}/") for each in kept), path)

    def test_a_program_runs_with_what_is_assembled_for_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            made = Path(folder) / "image"
            done = subprocess.run(
                [ASSEMBLE, shutil.which("openssl"), made], capture_output=True, text=True, timeout=LIMIT_S
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            root = made / "root"
            (loader,) = (path for path in root.glob("lib*/ld-linux*"))
            libraries = {path.parent for path in root.rglob("*.so*")} - {loader.parent}
            ran = subprocess.run(
                [loader, "--inhibit-cache", "--library-path", ":".join(map(str, libraries)), root / "usr/bin/fcm-gateway",
                 "version"], env={}, capture_output=True, text=True, timeout=LIMIT_S,
            )
            self.assertRegex(ran.stdout, r"^OpenSSL \d", ran.stderr)
            mapped = {path.name for path in root.rglob("*.so*")}
            self.assertLessEqual({"libc.so.6", "libcrypto.so.3", "libpq.so.5", "libldap-2.5.so.0"}, mapped)
            records = {path.name for path in (root / "var/lib/dpkg/status.d").iterdir()}
            self.assertLessEqual({"libc6", "libssl3", "libpq5"}, records)
            for package in records:
                self.assertTrue((root / "usr/share/doc" / package / "copyright").is_file(), package)
            example = (DEPLOY / "gateway.example.yaml").read_bytes()
            self.assertEqual((root / "etc/fcm-gateway/gateway.yaml").read_bytes(), example)
            self.assertEqual((made / "data/fcm-gateway").stat().st_mode & 0o777, 0o700)

    def test_libpq_is_missed_only_where_the_store_is_a_postgresql(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            # The loader looks here first, and goes no further.
            (Path(folder) / "libpq.so.5").touch()
            for url, status, words in (
                ("postgres://gateway@localhost/gateway", 1, "store.url: needs libpq, which can't be loaded: "),
                ("sqlite:gateway.sqlite", 0, ""),
            ):
                file = Path(folder) / "gateway.yaml"
                file.write_text(f"store: {{url: '{url}'}}\nlimits: {{perReplica: {'true' if status else 'false'}}}\n")
                done = subprocess.run(
                    [PROGRAM, "config", "check", "--config", file], env={"LD_LIBRARY_PATH": folder},
                    capture_output=True, text=True, timeout=LIMIT_S,
                )
                self.assertEqual(done.returncode, status, done)
                self.assertIn(words, done.stderr)

    def test_without_a_program_nothing_is_assembled(self) -> None:
        self.assertEqual(subprocess.run([ASSEMBLE], capture_output=True, timeout=LIMIT_S).returncode, 64)
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([ASSEMBLE, f"{folder}/none", f"{folder}/image"], capture_output=True, timeout=LIMIT_S)
        self.assertNotEqual(done.returncode, 0)


if __name__ == "__main__":
    unittest.main()
