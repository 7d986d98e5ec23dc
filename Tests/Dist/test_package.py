"""The package in a clean Debian: installation, first tenant, upgrade, removal."""

from __future__ import annotations

import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from distribution import DIST, LIMIT_S, ROOT, made, run

sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import Lab, call, free_ports  # noqa: E402

PROGRAM = ROOT / ".build/release/fcm-gateway"
OLD = "0.0.1~"
UNIT = "usr/lib/systemd/system/fcm-gateway.service"


class CleanDebian:
    """A root file system of Debian, in which programs run as in a container without systemd."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "root"
        archive = ROOT / ".build/clean-debian.tar"
        if not archive.exists():
            part = archive.with_suffix(".part.tar")
            run("mmdebstrap", "--quiet", "--variant=apt", "--include=ca-certificates", "bookworm", part)
            part.rename(archive)
        self.root.mkdir()
        run("tar", "--extract", "--file", archive, "--directory", self.root)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        # No service is started in a container.
        policy = self.root / "usr/sbin/policy-rc.d"
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)

    def command(self, *command: str, user: str = "root", environment: dict[str, str] | None = None) -> list[str]:
        script = """
            set -e
            root=$1 user=$2; shift 2
            mount -t proc proc "$root/proc"
            mount --rbind /dev "$root/dev"
            exec chroot --userspec="$user:" "$root" "$@"
        """
        values = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", **(environment or {})}
        return [
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh", str(self.root), user,
            "env", "-i", *(f"{key}={value}" for key, value in values.items()), *command,
        ]

    def run(self, *command: str, status: int = 0, **options: object) -> str:
        done = run(*self.command(*command, **options), status=status)
        return done.stdout + done.stderr

    def apt(self, *arguments: str) -> str:
        return self.run("apt-get", "--quiet", "--yes", "--no-install-recommends", *arguments)

    def path(self, name: str) -> Path:
        return self.root / name.lstrip("/")


class Service:
    """The gateway as the unit starts it: its user, its variables and copies of its secrets."""

    def __init__(self, lab: Lab, debian: CleanDebian) -> None:
        unit = debian.path(UNIT).read_text()
        secrets = debian.path("/run/credentials/fcm-gateway.service")
        shutil.rmtree(secrets, ignore_errors=True)
        secrets.mkdir(parents=True)
        passwd = debian.path("/etc/passwd").read_text()
        uid, gid = (int(part) for part in re.search(r"(?m)^fcm-gateway:[^:]*:(\d+):(\d+):", passwd).groups())
        for name, source in re.findall(r"LoadCredential=(\S+):(\S+)", unit):
            shutil.copy(debian.path(source), secrets / name)
            os.chown(secrets / name, uid, gid)
            (secrets / name).chmod(0o400)
        os.chown(secrets, uid, gid)
        environment = dict(re.findall(r"Environment=(\w+)=(\S+)", unit.replace("%d", "/run/credentials/fcm-gateway.service")))
        (file,) = re.findall(r"EnvironmentFile=-(\S+)", unit)
        environment |= dict(re.findall(r"(?m)^(\w+)=(.*)$", debian.path(file).read_text()))
        command = re.search(r"ExecStart=(.+)", unit)[1].split()
        self.process = lab.processes.start(
            debian.command(*command, user="fcm-gateway", environment=environment), "service.log"
        )
        configuration = ("--config", "/etc/fcm-gateway/gateway.yaml")
        try:
            debian.run("fcm-gateway", "health", "--wait", "60s", *configuration, environment=environment)
        except AssertionError as failure:
            failure.add_note((lab.folder / "service.log").read_text())
            raise

    def stop(self) -> None:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        for child in children:
            subprocess.run(["kill", "-TERM", child], check=True, timeout=LIMIT_S)
        assert self.process.wait(LIMIT_S) == 0, f"the service ended with {self.process.returncode}"


class PackageTests(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="fcm-gateway-dist-")))
        self.debian = CleanDebian(self.folder)

    def package(self, path: Path) -> str:
        shutil.copy(path, self.debian.path("/root") / path.name)
        return f"/root/{path.name}"

    def old(self) -> Path:
        """The same program in a package of a version before."""
        folder = self.folder / "old"
        run(sys.executable, ROOT / "scripts/dist", "--version", OLD, "--output", folder)
        (path,) = folder.glob("*.deb")
        return path

    def test_form(self) -> None:
        fields = run("dpkg-deb", "--field", made("*.deb")).stdout
        for pattern in (r"(?m)^Depends: .*\blibc6 \(>= ", r"\blibmimalloc2\.0\b", r"\bca-certificates\b"):
            self.assertRegex(fields, pattern)
        for line in run("dpkg-deb", "--contents", made("*.deb")).stdout.splitlines():
            self.assertRegex(line, r"^[-dl]\S+ root/root ")
            self.assertNotRegex(line, r"^-....w|^-.......w", line)

    def test_installed_upgraded_and_purged(self) -> None:
        debian = self.debian
        debian.apt("update")
        self.assertIn("fcm-gateway init", debian.apt("install", self.package(self.old())))
        self.assertEqual(debian.path("/etc/fcm-gateway").stat().st_mode & 0o777, 0o755)
        self.assertIn("/etc/default/fcm-gateway", debian.run("dpkg-query", "--showformat", "${Conffiles}", "--show", "fcm-gateway"))

        with Lab(PROGRAM) as lab:
            fcm = lab.emulator(tls=True)
            port, admin_port = free_ports(2)
            shutil.copy(fcm.certificate, debian.path("/etc/ssl/fcm.pem"))
            account = fcm.account("shop", token_uri=f"{fcm.url}/token")
            debian.path("/root/service-account.json").write_text(json.dumps(account))
            debian.run(
                "fcm-gateway", "init", "--service-account", "/root/service-account.json", "--test-certificate", "localhost",
                "--fcm-url", fcm.url, "--fcm-ca-file", "/etc/ssl/fcm.pem",
            )
            # Ports that nothing else uses, in the operator's own file.
            with debian.path("/etc/default/fcm-gateway").open("a") as file:
                file.write(f"GATEWAY_HTTP_PORT={port}\nGATEWAY_ADMIN_PORT={admin_port}\n")
            # The service may not read root's files.
            service = Service(lab, debian)
            variables = {"GATEWAY_ADMIN_TOKEN_FILE": "/etc/fcm-gateway/admin.token",
                         "GATEWAY_ADMIN_URL": f"http://127.0.0.1:{admin_port}"}
            self.assertIn(" valid ", debian.run("fcm-gateway", "credential", "check", "shop", environment=variables))
            key = debian.path("/etc/fcm-gateway/keys/shop.key").read_text().strip()
            trusted = ssl.create_default_context(cafile=debian.path("/etc/fcm-gateway/tls/server.crt"))

            def send() -> None:
                answer = call(
                    "POST", f"https://localhost:{port}/v1/tenants/shop/messages",
                    {"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
                    json.dumps({"token": "phone-1", "notification": {"title": "Hello"}}), tls=trusted,
                )
                self.assertEqual(answer.status, 200, answer)

            send()
            # The package has the manual, and the listener shows it.
            self.assertEqual(call("GET", f"http://127.0.0.1:{admin_port}/docs/index.html").status, 200)
            service.stop()

            # An upgrade keeps what the operator has written and made.
            before = {path: path.read_bytes() for path in debian.path("/etc/fcm-gateway").rglob("*") if path.is_file()}
            debian.apt("install", self.package(made("*.deb")))
            self.assertIn(f"GATEWAY_HTTP_PORT={port}", debian.path("/etc/default/fcm-gateway").read_text())
            self.assertEqual({path: path.read_bytes() for path in before}, before)
            installed = debian.run("dpkg-query", "--showformat", "${Version}", "--show", "fcm-gateway")
            self.assertEqual(installed, debian.run("fcm-gateway", "--version").strip().replace("-", "~"))
            service = Service(lab, debian)
            send()
            service.stop()
            self.assertEqual(fcm.hits(), 3)

        # A removal keeps everything that a reinstallation needs; a purge keeps what can't be made again.
        debian.apt("remove", "fcm-gateway")
        self.assertFalse(debian.path("/usr/bin/fcm-gateway").exists())
        self.assertTrue(debian.path("/etc/default/fcm-gateway").exists())
        self.assertIn("rm -r /etc/fcm-gateway /var/lib/fcm-gateway", debian.apt("purge", "fcm-gateway"))
        self.assertFalse(debian.path("/etc/default/fcm-gateway").exists())
        for name in ("/etc/fcm-gateway/master.key", "/var/lib/fcm-gateway/gateway.sqlite"):
            self.assertTrue(debian.path(name).exists(), name)
        for name in ("/usr/bin/fcm-gateway", f"/{UNIT}", "/usr/lib/fcm-gateway", "/usr/share/fcm-gateway"):
            self.assertFalse(debian.path(name).exists(), name)

    def test_one_that_was_never_used_leaves_nothing(self) -> None:
        self.debian.apt("update")
        self.debian.apt("install", self.package(made("*.deb")))
        self.debian.apt("purge", "fcm-gateway")
        for name in ("/etc/fcm-gateway", "/var/lib/fcm-gateway", "/usr/lib/fcm-gateway"):
            self.assertFalse(self.debian.path(name).exists(), name)


if __name__ == "__main__":
    unittest.main()
