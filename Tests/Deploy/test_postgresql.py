"""postgresql/create.sql, run by a PostgreSQL of Debian's on a socket of its own."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from deployment import DEPLOY, LIMIT_S

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
# Quotes, blanks and line ends must not matter.
OWNER_PASSWORD, STORE_PASSWORD = "it's the owner's; --", "store"


@unittest.skipUnless(PROGRAMS and os.geteuid() == 0, "needs PostgreSQL, and root to become its user")
class CreateTests(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.folder = Path(cls.enterClassContext(tempfile.TemporaryDirectory(prefix="fcm-gateway-postgresql-")))
        user = pwd.getpwnam("postgres")
        os.chown(cls.folder, user.pw_uid, user.pw_gid)
        (cls.folder / "owner").write_text(OWNER_PASSWORD + "\n")
        (cls.folder / "store").write_text(STORE_PASSWORD + "\n")
        # Its own user is let in by the socket, everybody else by a password.
        cls.as_postgres(PROGRAMS[-1] / "initdb", "-D", cls.folder / "data", "--auth-host=scram-sha-256", "--auth-local=peer")
        hba = cls.folder / "data/pg_hba.conf"
        hba.write_text("local all postgres peer\nlocal all all scram-sha-256\n")
        options = f"-k {cls.folder} -c listen_addresses= -c fsync=off"
        log = cls.folder / "log"
        cls.as_postgres(PROGRAMS[-1] / "pg_ctl", "-D", cls.folder / "data", "-o", options, "-l", log, "-w", "-t", str(LIMIT_S), "start")
        cls.addClassCleanup(
            cls.as_postgres, PROGRAMS[-1] / "pg_ctl", "-D", cls.folder / "data", "-m", "immediate", "-w", "stop"
        )
        script = shutil.copy(DEPLOY / "postgresql/create.sql", cls.folder)
        done = cls.as_postgres(
            "env", f"OWNER_PASSWORD_FILE={cls.folder}/owner", f"STORE_PASSWORD_FILE={cls.folder}/store",
            "psql", f"--host={cls.folder}", "--dbname=postgres", f"--file={script}",
        )
        cls.said = done.stdout + done.stderr

    @classmethod
    def as_postgres(cls, *command: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["runuser", "-u", "postgres", "--", *map(str, command)], cwd="/", capture_output=True, text=True,
            timeout=LIMIT_S, check=True, stdin=subprocess.DEVNULL,
        )

    def query(self, user: str, password: str, statement: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["psql", f"--host={self.folder}", f"--username={user}", "--dbname=fcm_gateway", "--no-password", "-Atqc", statement],
            env={**os.environ, "PGPASSWORD": password}, capture_output=True, text=True, timeout=LIMIT_S,
        )

    def test_passwords_are_not_shown(self) -> None:
        self.assertNotIn(OWNER_PASSWORD, self.said)

    def test_the_owner_makes_tables_and_is_no_superuser(self) -> None:
        done = self.query("fcm_owner", OWNER_PASSWORD, "CREATE TABLE one (id int); SELECT rolsuper FROM pg_roles "
                          "WHERE rolname = current_user")
        self.assertEqual((done.returncode, done.stdout), (0, "f\n"), done.stderr)

    def test_gateways_take_both_roles_and_make_nothing(self) -> None:
        for role in ("fcmgw_tenant", "fcmgw_gateway"):
            done = self.query("fcm_gateway", STORE_PASSWORD, f"SET ROLE {role}; SELECT current_user")
            self.assertEqual((done.returncode, done.stdout), (0, f"{role}\n"), done.stderr)
        for statement in ("CREATE TABLE two (id int)", "CREATE TEMPORARY TABLE two (id int)", "CREATE ROLE three"):
            self.assertIn("permission denied", self.query("fcm_gateway", STORE_PASSWORD, statement).stderr)

    def test_a_wrong_password_is_refused(self) -> None:
        self.assertIn("password authentication failed", self.query("fcm_gateway", OWNER_PASSWORD, "SELECT 1").stderr)

    def test_a_dead_machine_is_missed_within_a_minute(self) -> None:
        settings = "SELECT setconfig FROM pg_db_role_setting JOIN pg_roles r ON r.oid = setrole WHERE rolname = 'fcm_gateway'"
        done = self.query("fcm_owner", OWNER_PASSWORD, settings)
        for part in ("tcp_keepalives_idle=30", "tcp_keepalives_interval=10", "tcp_keepalives_count=3", "synchronous_commit=on"):
            self.assertIn(part, done.stdout)


if __name__ == "__main__":
    unittest.main()
