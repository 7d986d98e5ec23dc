"""systemd/: the unit by systemd's own tools, and its commands as it would run them."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from signal import SIGSYS

import unit
from deployment import DEPLOY, LIMIT_S, PROGRAM, longest_stop_s, substituted
from lab import PATIENT, Gateway, Lab

FOLDER = DEPLOY / "systemd"
SERVICE = FOLDER / "fcm-gateway.service"
UNIT = unit.settings(SERVICE.read_text())
CHECK = FOLDER / "fcm-gateway-audit-verify.service"
CHECK_UNIT = unit.settings(CHECK.read_text())
TIMER = FOLDER / "fcm-gateway-audit-verify.timer"
SCRIPT = DEPLOY / "prometheus/audit-verify-textfile"
COLLECTOR = "/var/lib/prometheus/node-exporter"
# What systemd calls OK ends at 5; a service that does no more than this one has no reason to come near.
MOST_EXPOSURE = 2.0
CONFIGURATION = "/etc/fcm-gateway/gateway.yaml"


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)


class SystemdTests(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def installed(self, unit_file: Path = SERVICE, text: str | None = None) -> Path:
        """A unit in a folder of its own, with the programs where they are on this machine."""
        file = self.folder / unit_file.name
        text = unit_file.read_text() if text is None else text
        text = text.replace("/usr/bin/fcm-gateway", str(PROGRAM))
        file.write_text(text.replace("/usr/local/lib/fcm-gateway/audit-verify-textfile", str(SCRIPT)))
        return file

    def test_systemd_takes_the_unit(self) -> None:
        done = run("systemd-analyze", "verify", "--man=no", self.installed())
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        # It says so when there is something to say.
        wrong = self.installed(text=substituted(SERVICE.read_text(), ("NoNewPrivileges", "NoNewPrivilege")))
        done = run("systemd-analyze", "verify", "--man=no", wrong)
        self.assertRegex(done.stderr, r"Unknown key( name)? 'NoNewPrivilege'")

    def test_systemd_takes_the_check_and_its_timer(self) -> None:
        self.installed(CHECK)
        timer = self.installed(TIMER)
        done = run("systemd-analyze", "verify", "--man=no", timer)
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))
        self.assertEqual(TIMER.stem, CHECK.stem, "a timer starts the service of its name")
        wrong = self.installed(TIMER, substituted(TIMER.read_text(), ("OnCalendar", "OnCalender")))
        done = run("systemd-analyze", "verify", "--man=no", wrong)
        self.assertRegex(done.stderr, r"Unknown key( name)? 'OnCalender'")
        settings = unit.settings(TIMER.read_text())
        done = run("systemd-analyze", "calendar", "--iterations=2", settings["OnCalendar"][0])
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_exposure(self) -> None:
        for file in (SERVICE, CHECK):
            done = run(
                "systemd-analyze", "security", "--offline=true", f"--threshold={MOST_EXPOSURE * 10:.0f}",
                self.installed(file),
            )
            found = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertLessEqual(float(found[1]), MOST_EXPOSURE)
            print(f"\nsystemd-analyze security: exposure of {file.name} {found[1]}, at most {MOST_EXPOSURE}")

    def test_user_and_folders(self) -> None:
        (self.folder / "etc").mkdir()
        done = run("systemd-sysusers", f"--root={self.folder}", FOLDER / "sysusers.conf")
        self.assertEqual(done.returncode, 0, done.stderr)
        users = (self.folder / "etc/passwd").read_text()
        self.assertRegex(users, rf"(?m)^{UNIT['User'][0]}:.*:/var/lib/fcm-gateway:/usr/sbin/nologin$")
        etc = self.folder / "etc/fcm-gateway"
        etc.mkdir()
        for name in ("master.key", "admin.token"):
            (etc / name).write_text("secret")
            (etc / name).chmod(0o644)
        done = run("systemd-tmpfiles", "--create", f"--root={self.folder}", FOLDER / "tmpfiles.conf")
        self.assertEqual(done.returncode, 0, done.stderr)
        modes = {path.name: path.stat().st_mode & 0o777 for path in (etc, *etc.iterdir())}
        self.assertEqual(modes, {"fcm-gateway": 0o755, "master.key": 0o400, "admin.token": 0o400})

    def test_secrets_come_as_credentials(self) -> None:
        names = {line.split(":")[0]: line.split(":")[1] for line in UNIT["LoadCredential"]}
        variables = dict(line.split("=", 1) for line in UNIT["Environment"])
        # Worker threads ask for a priority that the unit's user may not have; each refusal would be a line in the journal.
        self.assertEqual(variables.pop("LIBDISPATCH_LOG", None), "NO")
        self.assertEqual(
            variables,
            {"GATEWAY_MASTER_KEY_FILE": "%d/master.key", "GATEWAY_ADMIN_TOKEN_FILE": "%d/admin.token"},
        )
        self.assertEqual({f"%d/{name}" for name in names}, set(variables.values()))

    def test_the_check_reads_what_the_gateway_writes(self) -> None:
        """As the gateway's user, in its folder, with the key that tmpfiles.conf leaves to root alone."""
        for name in ("User", "Group", "StateDirectory", "StateDirectoryMode", "WorkingDirectory"):
            self.assertEqual(CHECK_UNIT[name], UNIT[name], name)
        self.assertEqual(CHECK_UNIT["LoadCredential"], ["master.key:/etc/fcm-gateway/master.key"])
        self.assertIn(CHECK_UNIT["LoadCredential"][0], UNIT["LoadCredential"])
        self.assertEqual(CHECK_UNIT["Environment"], ["GATEWAY_MASTER_KEY_FILE=%d/master.key"])
        folder = shlex.split(CHECK_UNIT["ExecStart"][0])[1]
        self.assertEqual((folder, CHECK_UNIT["ReadWritePaths"]), (COLLECTOR, [COLLECTOR]))

    def test_the_check_works_under_the_units_bounds(self) -> None:
        """Beside a gateway that runs and after it has ended, it leaves its result for node_exporter."""
        with Lab(PROGRAM) as lab:
            gateway = lab.gateway({"http": {"drainGraceMs": 0}}, name="checked")
            credentials = self.folder / "credentials"
            credentials.mkdir(mode=0o700)
            shutil.copy(gateway.folder / "master.key", credentials)
            environment = {"FCM_GATEWAY": str(PROGRAM), "PATH": "/usr/bin:/bin"}
            for line in CHECK_UNIT["Environment"]:
                name, value = line.replace("%d", str(credentials)).split("=", 1)
                environment[name] = value
            line = CHECK_UNIT["ExecStart"][0].replace("/usr/local/lib/fcm-gateway/audit-verify-textfile", str(SCRIPT))
            line = line.replace(COLLECTOR, str(self.folder)).replace(CONFIGURATION, str(gateway.config_file))

            def check() -> None:
                result = self.folder / "fcm_gateway_audit.prom"
                result.unlink(missing_ok=True)
                done = subprocess.run(
                    [sys.executable, unit.__file__, CHECK, "/bin/sh", *shlex.split(line)],
                    env=environment, capture_output=True, text=True, timeout=LIMIT_S,
                )
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("No master key", done.stderr)
                self.assertIn("fcmgw_audit_verify_result 0\n", result.read_text())

            check()
            self.assertEqual(gateway.stop(), 0, gateway.log_text())
            check()

    def test_a_stop_has_the_time_it_takes(self) -> None:
        self.assertGreaterEqual(float(UNIT["TimeoutStopSec"][0]), longest_stop_s())

    def test_the_commands_work_under_the_units_bounds(self) -> None:
        """Start, wait, reload, send and stop with every system call filtered; one that is not allowed is deadly."""
        with Lab(PROGRAM) as lab:
            fcm = lab.emulator()
            gateway = ConfinedGateway(lab)
            after = self.command("ExecStartPost", gateway)
            self.assertEqual(after[0][:1], "-")
            # By the unit: as soon as the process runs, and it comes back when requests are taken.
            gateway.start(wait=False)
            done = subprocess.run(
                [after[0][1:], *(word.replace("30s", "10m") for word in after[1:])], env=gateway.environment, capture_output=True, text=True, timeout=LIMIT_S
            )
            self.assertEqual((done.returncode, done.stdout), (0, "ready\n"), done.stderr + gateway.log_text())
            tenant = gateway.tenant("shop", fcm)
            self.assertEqual(tenant.send().status, 200)
            metrics = gateway.metrics()
            for name in ("process_open_fds", "process_start_time_seconds", "process_resident_memory_bytes"):
                self.assertGreater(metrics.get(name, 0), 0, name)

            gateway.write_config({"log": {"level": "debug"}})
            command = [part.replace("$MAINPID", str(gateway.pid)) for part in shlex.split(UNIT["ExecReload"][0])]
            self.assertEqual(run(*command).returncode, 0)
            lab.wait_until(
                "the reload", lambda: any("The configuration was reloaded." in line.values()
                                          for line in gateway.log_lines()), process=gateway.process,
            )
            self.assertEqual(gateway.stop(), 0, gateway.log_text())
            self.assertEqual(gateway.verify(), 0)

    def test_the_bounds_are_there(self) -> None:
        """What the unit does not allow ends a program in the test above; each of these would be let through without it."""
        for what, status in (
            ("import os; os.chroot('/nowhere')", -SIGSYS),
            ("import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)", -SIGSYS),
            ("import mmap; mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)", 0),
            ("import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)", 1),
            ("import socket; socket.socket(socket.AF_INET6)", 0),
        ):
            with self.subTest(what):
                done = run(sys.executable, unit.__file__, SERVICE, sys.executable, "-c", what)
                self.assertEqual(done.returncode, status, done.stderr)
                self.assertEqual("Address family not supported" in done.stderr, status == 1, done.stderr)

    @staticmethod
    def command(name: str, gateway: Gateway) -> list[str]:
        """A command of the unit for a gateway of the lab."""
        line = UNIT[name][0].replace("/usr/bin/fcm-gateway", str(PROGRAM)).replace(CONFIGURATION, str(gateway.config_file))
        return shlex.split(line)


class ConfinedGateway(Gateway):
    """A gateway of the lab that is started by the unit's own command, under its bounds."""

    def __init__(self, lab: Lab) -> None:
        config = PATIENT | {"http": PATIENT["http"] | {"drainGraceMs": 500}}
        super().__init__(lab, "confined", config, {}, [], None, "http")
        credentials = self.folder / "credentials"
        credentials.mkdir(mode=0o700)
        for line in UNIT["LoadCredential"]:
            shutil.copy(self.folder / line.split(":")[0], credentials)
        for line in UNIT["Environment"]:
            name, value = line.replace("%d", str(credentials)).split("=", 1)
            self.environment[name] = value

    def start(self, wait: bool = True) -> Gateway:
        command = SystemdTests.command("ExecStart", self)
        self.process = self.lab.processes.start(
            [sys.executable, unit.__file__, str(SERVICE), *command], self.log, self.environment
        )
        if wait:
            self.wait_ready()
        return self


if __name__ == "__main__":
    unittest.main()
