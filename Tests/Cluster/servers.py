"""PostgreSQL and Redis of Debian's packages, on private ports of this machine, in a lab's folder.

A server belongs to the lab that it is given: what is left of it when the lab ends, ends then. PostgreSQL refuses to be
root, so that it runs as the user `postgres` where root runs this; its superuser is reached through a socket in its folder.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, Lab, LabError  # noqa: E402
from loadbench import free_ports, process_tree  # noqa: E402

INSTALL = "scripts/install-system-packages test"
# Tests kill processes, never the machine.
SETTINGS = {
    "fsync": "off", "max_connections": "120", "shared_buffers": "32MB", "wal_level": "replica", "hot_standby": "on",
    "max_prepared_transactions": "0", "log_line_prefix": "%m [%p] %q%u ", "log_min_duration_statement": "2s",
}


class PostgreSQL:
    """A PostgreSQL with a database for gateways, its owner and a user who may only do what gateways do.

        postgresql = PostgreSQL(lab, "primary").make().start()
        postgresql.query("SELECT count(*) FROM audit_records")
        standby = postgresql.standby("standby")       # synchronous from here on; standby.promote() takes over
    """

    DATABASE, OWNER, USER = "fcm_gateway", "fcm_owner", "fcm_gateway"
    PASSWORD = "not-a-secret"

    def __init__(self, lab: Lab, name: str, hosts: tuple[str, ...] = ("127.0.0.1",), *, disk: str = "") -> None:
        """- hosts: the addresses to listen on; the first one stands in its URL.
        - disk: the size of a file system of its own, such as `128m`; needs root, and `unmount()` in the end.
        """
        self.lab, self.name, self.hosts, self.disk = lab, name, hosts, disk
        self.folder = lab.folder / name
        self.folder.mkdir()
        self.data = self.folder / "data"
        (self.port,) = free_ports(1)
        self.settings = dict(SETTINGS)
        self.process: subprocess.Popen[bytes] | None = None
        self._user: list[str] = []
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
            # It runs the program in its place: what is started here is PostgreSQL itself.
            self._user = ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--init-groups"]
        if disk:
            if os.getuid() != 0:
                raise LabError("mounting a small file system needs root")
            self.data.mkdir()
            options = f"size={disk},mode=700,uid={user.pw_uid},gid={user.pw_gid}"
            subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", self.data], check=True, timeout=LIMIT_S)

    def url(self, user: str = USER, *, port: int | None = None, host: str | None = None) -> str:
        """Its address as the gateway takes it; `port` and `host` are those of a proxy before it, or several."""
        return (
            f"postgres://{user}@{host or self.hosts[0]}:{port or self.port}/{self.DATABASE}"
            "?sslmode=disable&gssencmode=disable"
        )

    # Its life

    def make(self) -> PostgreSQL:
        """Makes a cluster of databases whose TCP connections need a password."""
        self._run("initdb", "-D", self.data, "--username=postgres", "--auth-local=trust",
                  "--auth-host=scram-sha-256", "--encoding=UTF8", "--locale=C", "--no-sync", "--no-instructions")
        with (self.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.0.0.0/8 scram-sha-256\n")
        return self

    def start(self) -> PostgreSQL:
        settings = {
            **self.settings, "port": self.port, "listen_addresses": ",".join(self.hosts),
            "unix_socket_directories": self.folder,
        }
        command = [*self._user, program("postgres"), "-D", str(self.data)]
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        self.process = self.lab.processes.start(command, f"{self.name}.log", {"LC_ALL": "C"})
        try:
            self.lab.wait_until(
                f"PostgreSQL {self.name}", lambda: self.query("SELECT 1", database="postgres"), process=self.process
            )
        except LabError as error:
            raise LabError(f"{error}\n{self.lab.processes.log(f'{self.name}.log', 20)}") from error
        return self

    def prepare(self) -> PostgreSQL:
        """Makes the database, its owner and the gateway's user; the schema is up to `store migrate`."""
        self.query(
            f"CREATE ROLE {self.OWNER} LOGIN CREATEROLE PASSWORD '{self.PASSWORD}'; "
            f"CREATE ROLE {self.USER} LOGIN PASSWORD '{self.PASSWORD}'", database="postgres"
        )
        self.query(
            f"CREATE DATABASE {self.DATABASE} OWNER {self.OWNER} ENCODING 'UTF8' TEMPLATE template0",
            database="postgres",
        )
        return self

    def admit(self) -> None:
        """Makes the gateway's user a member of the roles that the schema brought along."""
        self.query(f"GRANT fcmgw_tenant, fcmgw_gateway TO {self.USER}")

    def stop(self, number: int = signal.SIGINT) -> None:
        """SIGINT ends connections and writes a checkpoint, SIGQUIT does without, SIGKILL is a crash."""
        if self.process is None or self.process.poll() is not None:
            return
        # Each connection's process has a group of its own, and ends by itself once it finds its parent gone.
        family = process_tree(self.process.pid)
        self.process.send_signal(number)
        self.process.wait(LIMIT_S)
        self.lab.wait_until(f"the end of {self.name}", lambda: not any(map(lives, family)))
        self.lab.processes.stop(self.process)

    def kill(self) -> None:
        self.stop(signal.SIGKILL)

    def restart(self) -> None:
        self.stop()
        self.start()

    def hang(self) -> None:
        """Stops all its processes; connections stay, and nothing is answered."""
        self._signal_all(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal_all(signal.SIGCONT)

    def fill(self) -> None:
        """Leaves no byte of its disk."""
        with (self.data / "ballast").open("wb", buffering=0) as file:
            for size in (65536, 4096, 512, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"\0" * size):
                        pass

    def make_room(self) -> None:
        """Takes away what filled its disk; where it could not write its log, it ended, and starts again."""
        (self.data / "ballast").unlink()
        if self.process and self.process.poll() is not None:
            self.start()

    def unmount(self) -> None:
        if self.disk:
            subprocess.run(["umount", self.data], check=True, timeout=LIMIT_S)
            self.disk = ""

    def _signal_all(self, number: int) -> None:
        assert self.process, f"{self.name} was not started"
        for pid in process_tree(self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    # What can be asked of it

    def query(self, sql: str, database: str | None = None, user: str = "postgres") -> list[list[str]]:
        """Runs SQL as the superuser; the rows of what it answers, NULL as an empty text."""
        command = [
            *self._user, program("psql"), "-h", str(self.folder), "-p", str(self.port), "-U", user, "-d",
            database or self.DATABASE, "-XAqt", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-c", sql,
        ]
        # Whatever the server's default is, this may write.
        environment = {"PATH": os.environ["PATH"], "PGOPTIONS": "-c default_transaction_read_only=off"}
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env=environment)
        if done.returncode != 0:
            raise LabError(f"psql: {done.stderr.strip()}")
        return [line.split("\x1f") for line in done.stdout.splitlines() if line]

    def value(self, sql: str) -> str:
        """The only value of an answer."""
        ((found,),) = self.query(sql)
        return found

    def set_read_only(self, is_read_only: bool) -> None:
        """Has transactions that begin from here on only read, those of connections that are open too."""
        since = self.value("SELECT clock_timestamp()")
        self.query(f"ALTER SYSTEM SET default_transaction_read_only = {'on' if is_read_only else 'off'}")
        self.query("SELECT pg_reload_conf()")
        self.lab.wait_until("the reload", lambda: self.value(f"SELECT pg_conf_load_time() > '{since}'") == "t")

    def dump(self) -> str:
        """Schema and contents as SQL."""
        return self._run("pg_dump", "-h", self.folder, "-p", str(self.port), "-U", "postgres", self.DATABASE)

    # Standby

    def standby(self, name: str) -> PostgreSQL:
        """Makes and starts a standby that this one waits for with each commit."""
        other = PostgreSQL(self.lab, name, self.hosts)
        self._run("pg_basebackup", "-h", self.folder, "-p", str(self.port), "-U", "postgres", "-D", other.data,
                  "--checkpoint=fast", "--no-sync", "--write-recovery-conf")
        # The last line counts: the name by which the primary knows it.
        with (other.data / "postgresql.auto.conf").open("a") as file:
            file.write(
                f"primary_conninfo = 'host={self.folder} port={self.port} user=postgres application_name={name}'\n"
            )
        other.start()
        self.query(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'", database="postgres")
        self.query("SELECT pg_reload_conf()", database="postgres")
        self.lab.wait_until(
            "the standby to be synchronous",
            lambda: self.query("SELECT sync_state FROM pg_stat_replication", database="postgres") == [["sync"]],
        )
        return other

    def promote(self) -> None:
        """Takes over: from here on it takes writes."""
        self.query("SELECT pg_promote(true, 60)", database="postgres")
        self.lab.wait_until("the promotion", lambda: self.value("SELECT pg_is_in_recovery()") == "f")

    def _run(self, name: str, *arguments: object) -> str:
        done = subprocess.run(
            [*self._user, program(name), *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT_S,
            cwd=self.folder, env={"PATH": os.environ["PATH"], "LC_ALL": "C"},
        )
        if done.returncode != 0:
            raise LabError(f"{name}: {done.stderr.strip()}")
        return done.stdout


class Redis:
    """A Redis without a memory beyond its process.

    - replica_of: the server that it follows.
    - watches: the server that it watches, as a Sentinel under the name `limits`.
    - down_after_ms: how long that is silent before the replica takes its place.
    """

    SERVICE = "limits"

    def __init__(self, lab: Lab, name: str, *, hosts: tuple[str, ...] = ("127.0.0.1",), replica_of: Redis | None = None,
                 watches: Redis | None = None, down_after_ms: int = 500) -> None:
        self.lab, self.name, self.hosts = lab, name, hosts
        self.folder = lab.folder / name
        self.folder.mkdir()
        (self.port,) = free_ports(1)
        lines = [
            f"port {self.port}", f"bind {' '.join(hosts)}", f"dir {self.folder}", "protected-mode no", "daemonize no",
        ]
        if watches:
            lines += [
                f"sentinel monitor {self.SERVICE} {watches.hosts[0]} {watches.port} 1",
                f"sentinel down-after-milliseconds {self.SERVICE} {down_after_ms}",
                f"sentinel failover-timeout {self.SERVICE} 3000",
            ]
        else:
            lines += ['save ""', "appendonly no", "repl-diskless-sync-delay 0"]
        if replica_of:
            lines.append(f"replicaof {replica_of.hosts[0]} {replica_of.port}")
        self.arguments = ["--sentinel"] if watches else []
        self.file = self.folder / "redis.conf"
        self.file.write_text("\n".join(lines) + "\n")
        self.start()

    @property
    def url(self) -> str:
        return f"redis://{self.hosts[0]}:{self.port}"

    @property
    def sentinel_url(self) -> str:
        """The address by which a Sentinel tells where the server is."""
        return f"redis+sentinel://{self.hosts[0]}:{self.port}/{self.SERVICE}"

    def start(self) -> None:
        """Starts it, again perhaps; it knows nothing of its life before."""
        command = [program("redis-server"), str(self.file), *self.arguments]
        self.process = self.lab.processes.start(command, f"{self.name}.log")
        try:
            self.lab.wait_until(f"Redis {self.name}", lambda: self.command("PING") == "PONG", process=self.process)
        except LabError as error:
            raise LabError(f"{error}\n{self.lab.processes.log(f'{self.name}.log', 20)}") from error

    def kill(self) -> None:
        self.process.kill()
        self.lab.processes.stop(self.process)

    def hang(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def command(self, *words: object) -> str:
        """Runs one command; the answer as `redis-cli` prints it, and an error as LabError."""
        done = subprocess.run(
            [program("redis-cli"), "-e", "-h", self.hosts[0], "-p", str(self.port), *map(str, words)],
            capture_output=True, text=True, timeout=LIMIT_S,
        )
        if done.returncode != 0:
            raise LabError(f"redis-cli {words[0]}: {(done.stdout + done.stderr).strip()}")
        return done.stdout.strip()

    def info(self, field: str) -> str:
        """A line of INFO."""
        lines = (line.partition(":") for line in self.command("INFO").splitlines())
        return next((value.strip() for name, _, value in lines if name == field), "")


def program(name: str) -> str:
    """A program's path; of PostgreSQL's servers Debian puts none on anybody's path."""
    newest = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda each: float(each.parent.name), reverse=True)
    path = shutil.which(name, path=":".join([*map(str, newest), os.environ["PATH"], "/usr/sbin"]))
    if path is None:
        raise LabError(f"{name} is missing ({INSTALL})")
    return path


def lives(pid: int) -> bool:
    """Whether a process has not ended; one whose parent has not taken note of its end has."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False
