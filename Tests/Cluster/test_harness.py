"""What the proofs rely on: servers that start, die and take over, a proxy that loses what it is told to, cut networks.

No gateway takes part, so that a failure here is one of the harness.
"""

from __future__ import annotations

import http.client
import os
import re
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from unittest.mock import Mock, patch

from cluster import HAPROXY, NAMES, Cluster
from lab import LIMIT_S, Lab, LabError, connect
from loadbench import HERE as LOADBENCH
from loadbench import free_ports, process_tree, wait_until
from network import Namespace
from proxy import CommitFault, PostgreSQLProxy, losing
from servers import PostgreSQL, Redis, lives, program

# Nothing here asks for the gateway.
NOBODY = Path("/nonexistent")


class WaitTests(unittest.TestCase):
    def test_a_question_that_fails_is_asked_again(self) -> None:
        failures = [
            LabError("redis-cli INFO: Connection reset by peer"), ConnectionRefusedError(), TimeoutError(),
            http.client.RemoteDisconnected(), subprocess.TimeoutExpired("psql", 1),
        ]
        for failure in failures:
            with self.subTest(type(failure).__name__):
                question = Mock(side_effect=[failure, failure, False, True])
                wait_until("an answer", question, LIMIT_S, pause=0)
                self.assertEqual(question.call_count, 4)

    def test_the_last_failure_is_named_when_time_is_up(self) -> None:
        question = Mock(side_effect=LabError("connection reset"))
        with self.assertRaisesRegex(LabError, "an answer: nothing after 0 s: BenchError connection reset"):
            wait_until("an answer", question, 0, pause=0)

    def test_what_must_not_hold_ends_the_wait_at_once(self) -> None:
        question = Mock(side_effect=AssertionError("sent twice"))
        with self.assertRaisesRegex(AssertionError, "sent twice"):
            wait_until("an answer", question, LIMIT_S)
        self.assertEqual(question.call_count, 1)

    def test_a_process_that_has_ended_ends_the_wait(self) -> None:
        process = subprocess.Popen(["false"])
        process.wait(LIMIT_S)
        with self.assertRaisesRegex(LabError, "an answer: the process ended with status 1: ConnectionRefusedError"):
            wait_until("an answer", Mock(side_effect=ConnectionRefusedError()), LIMIT_S, process)


class PortTests(unittest.TestCase):
    @unittest.skipUnless(sys.platform == "linux", "only Linux has names that end with their process")
    def test_a_port_is_one_programs_until_that_ends(self) -> None:
        (port,) = free_ports(1)
        with patch("loadbench.PORTS", [port]):
            self.assertRaisesRegex(LabError, "no 1 free port", free_ports, 1)
        other = f"import sys; sys.path.insert(0, {str(LOADBENCH)!r}); import loadbench; "
        done = subprocess.run(
            [sys.executable, "-c", f"{other} loadbench.PORTS = [{port}]; loadbench.free_ports(1)"], capture_output=True,
            text=True, timeout=LIMIT_S,
        )
        self.assertIn("no 1 free port", done.stderr)
        done = subprocess.run(
            [sys.executable, "-c", f"{other} print(*loadbench.free_ports(1))"], capture_output=True, text=True,
            timeout=LIMIT_S,
        )
        with patch("loadbench.PORTS", [int(done.stdout)]):
            self.assertEqual(free_ports(1), [int(done.stdout)])


class PostgreSQLTests(unittest.TestCase):
    def setUp(self) -> None:
        self.lab = self.enterContext(Lab(NOBODY))
        self.server = PostgreSQL(self.lab, "postgresql").make().start().prepare()
        self.addCleanup(lambda: self.server.stop())

    def client(self, sql: str, port: int | None = None, timeout: float = LIMIT_S) -> subprocess.CompletedProcess[str]:
        """Runs SQL as the gateway's user, over TCP and with a password."""
        return subprocess.run(
            [program("psql"), self.server.url(port=port), "-XAqt", "-v", "ON_ERROR_STOP=1", "-c", sql],
            capture_output=True, text=True, timeout=timeout,
            env={"PATH": os.environ["PATH"], "PGPASSWORD": PostgreSQL.PASSWORD},
        )

    def table(self) -> None:
        self.server.query(f"CREATE TABLE rows (number int PRIMARY KEY); GRANT ALL ON rows TO {PostgreSQL.USER}")

    def count(self) -> int:
        return int(self.server.value("SELECT count(*) FROM rows"))

    def test_it_wants_a_password_and_lives_again_after_each_end(self) -> None:
        self.table()
        done = self.client("INSERT INTO rows VALUES (1); SELECT current_user")
        self.assertEqual((done.returncode, done.stdout.strip()), (0, PostgreSQL.USER), done.stderr)
        self.server.restart()
        self.server.kill()
        self.assertEqual(self.client("SELECT 1").returncode, 2)
        self.server.start()
        self.assertEqual(self.count(), 1)

    def test_it_hangs_and_goes_on(self) -> None:
        self.server.hang()
        with self.assertRaises(subprocess.TimeoutExpired):
            self.client("SELECT 1", timeout=1)
        self.server.resume()
        self.assertEqual(self.client("SELECT 1").stdout, "1\n")

    def test_it_only_reads_for_a_while(self) -> None:
        self.table()
        self.server.set_read_only(True)
        self.lab.wait_until("read-only", lambda: self.client("INSERT INTO rows VALUES (1)").returncode != 0)
        self.assertIn("read-only", self.client("INSERT INTO rows VALUES (2)").stderr)
        self.server.set_read_only(False)
        self.lab.wait_until("writes", lambda: self.client("INSERT INTO rows VALUES (3)").returncode == 0)

    def test_a_synchronous_standby_has_what_was_committed(self) -> None:
        self.table()
        standby = self.server.standby("standby")
        self.addCleanup(lambda: standby.stop())
        for number in range(20):
            self.server.query(f"INSERT INTO rows VALUES ({number})")
        self.server.kill()
        standby.promote()
        self.assertEqual(standby.value("SELECT count(*) FROM rows"), "20")
        standby.query("INSERT INTO rows VALUES (100)")
        self.server = standby

    def test_nothing_is_left_of_it(self) -> None:
        pids = process_tree(self.server.process.pid)
        self.assertGreater(len(pids), 3)
        self.server.stop()
        self.assertEqual([pid for pid in pids if lives(pid)], [])

    # The proxy

    def proxied(self) -> PostgreSQLProxy:
        self.table()
        proxy = PostgreSQLProxy(self.server.port)
        self.addCleanup(proxy.close)
        return proxy

    def test_an_answer_is_lost_and_the_transaction_is_not(self) -> None:
        proxy = self.proxied()
        with losing(proxy, CommitFault("answer", "drop", "insert into rows")) as fault:
            # One statement each, as a gateway sends them: psql puts several of -c into one message.
            done = self.transaction(proxy.port, "INSERT INTO rows VALUES (1)")
            self.assertEqual((fault.hit, self.count()), (1, 1))
            self.assertIn("server closed the connection", done.stderr)
            self.assertEqual(self.transaction(proxy.port, "INSERT INTO rows VALUES (2)").returncode, 0)

    def test_a_request_is_lost_and_so_is_the_transaction(self) -> None:
        proxy = self.proxied()
        with losing(proxy, CommitFault("request", "drop")) as fault:
            self.assertNotEqual(self.transaction(proxy.port, "INSERT INTO rows VALUES (1)").returncode, 0)
            self.assertEqual((fault.hit, self.count()), (1, 0))

    def test_only_transactions_that_ran_the_statement_are_met(self) -> None:
        proxy = self.proxied()
        with losing(proxy, CommitFault("answer", "drop", "delete")) as fault:
            self.assertEqual(self.transaction(proxy.port, "INSERT INTO rows VALUES (1)").returncode, 0)
            self.assertEqual(self.transaction(proxy.port, "PREPARE p AS DELETE FROM rows").returncode, 2)
            self.assertEqual(fault.hit, 1)

    def test_a_commit_is_held_until_it_is_released(self) -> None:
        proxy = self.proxied()
        fault = proxy.lose(CommitFault("request", "hold"))
        thread = threading.Thread(target=self.transaction, args=(proxy.port, "INSERT INTO rows VALUES (1)"))
        thread.start()
        self.lab.wait_until("the commit", lambda: fault.hit == 1)
        self.assertEqual(self.count(), 0)
        fault.release()
        thread.join(LIMIT_S)
        self.assertEqual(self.count(), 1)

    def test_a_cut_line_says_nothing(self) -> None:
        proxy = self.proxied()
        proxy.cut()
        with self.assertRaises(subprocess.TimeoutExpired):
            self.client("SELECT 1", proxy.port, timeout=1)
        proxy.mend()
        self.assertEqual(self.client("SELECT 1", proxy.port).returncode, 0)

    def transaction(self, port: int, sql: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program("psql"), self.server.url(port=port), "-XAqt", "-v", "ON_ERROR_STOP=1"], capture_output=True,
            input=f"BEGIN;\n{sql};\nCOMMIT;\n", text=True, timeout=LIMIT_S,
            env={"PATH": os.environ["PATH"], "PGPASSWORD": PostgreSQL.PASSWORD},
        )


class RedisTests(unittest.TestCase):
    def setUp(self) -> None:
        self.lab = self.enterContext(Lab(NOBODY))

    def test_it_dies_hangs_and_comes_back_empty(self) -> None:
        redis = Redis(self.lab, "redis")
        redis.command("SET", "key", "value")
        redis.hang()
        with connect(("127.0.0.1", redis.port)) as one:
            one.sendall(b"PING\r\n")
            one.settimeout(0.5)
            self.assertRaises(TimeoutError, one.recv, 1)
            redis.resume()
            one.settimeout(LIMIT_S)
            self.assertEqual(one.recv(7), b"+PONG\r\n")
        redis.kill()
        self.assertRaises(LabError, redis.command, "PING")
        redis.start()
        self.assertEqual(redis.command("GET", "key"), "")

    def test_a_sentinel_makes_the_replica_the_server(self) -> None:
        redis = Redis(self.lab, "redis")
        replica = Redis(self.lab, "replica", replica_of=redis)
        sentinel = Redis(self.lab, "sentinel", watches=redis, down_after_ms=5000)
        self.lab.wait_until("the replica", lambda: replica.info("master_link_status") == "up")
        # A Sentinel asks for replicas now and then.
        self.lab.wait_until(
            "the Sentinel to know it", lambda: str(replica.port) in sentinel.command("SENTINEL", "REPLICAS", "limits")
        )
        with self.assertRaisesRegex(LabError, "READONLY"):
            replica.command("SET", "key", "value")
        redis.kill()
        self.lab.wait_until("the fail-over", lambda: replica.info("role") == "master")
        self.lab.wait_until(
            "the Sentinel to say so",
            lambda: str(replica.port) in sentinel.command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "limits"),
        )


@unittest.skipUnless(Namespace.is_possible(), "networks of their own need root and namespaces")
class NamespaceTests(unittest.TestCase):
    def test_a_cut_network_swallows_what_is_sent(self) -> None:
        with Lab(NOBODY) as lab, Namespace() as network:
            redis = Redis(lab, "redis", hosts=("127.0.0.1", network.outer))
            arguments = [*network.prefix, program("redis-cli"), "-h", network.outer, "-p", str(redis.port), "PING"]

            def ping(timeout: float) -> str:
                return subprocess.run(arguments, capture_output=True, text=True, timeout=timeout).stdout

            self.assertEqual(ping(LIMIT_S), "PONG\n")
            network.cut()
            self.assertRaises(subprocess.TimeoutExpired, ping, 1)
            network.mend()
            self.assertEqual(ping(LIMIT_S), "PONG\n")


class EntryTests(unittest.TestCase):
    def test_the_example_of_deploy_takes_three_replicas(self) -> None:
        """The configuration that the cluster makes of it is one that HAProxy takes."""
        with Lab(NOBODY) as lab:
            made: list[str] = []
            fake = Cluster(lab)
            fake.gateways = [_Address(name, 9000 + number) for number, name in enumerate(NAMES)]
            lab.haproxy = lambda text: made.append(text)
            fake._haproxy()
            (text,) = made
            self.assertEqual(len(re.findall(r"^ *server replica-\d 127\.0\.0\.1:\d+ port \d+$", text, re.MULTILINE)), 3)
            self.assertNotIn("gateway-1", text)
            self.assertIn("balance roundrobin", text)
            self.assertIn("server gateway-1", HAPROXY)
            file = lab.folder / "haproxy.cfg"
            file.write_text(text.replace("@port@", "9100"))
            done = subprocess.run([program("haproxy"), "-c", "-f", file], capture_output=True, text=True, timeout=LIMIT_S)
            self.assertEqual(done.returncode, 0, done.stderr)


class _Address:
    def __init__(self, name: str, port: int) -> None:
        self.name, self.port, self.admin_port, self.url = name, port, port + 100, f"http://127.0.0.1:{port}"


if __name__ == "__main__":
    unittest.main()
