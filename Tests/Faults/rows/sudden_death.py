"""The gateway is killed amid sends that carry idempotency keys, and each is repeated."""

from __future__ import annotations

import collections
import concurrent.futures
import functools
import itertools
import json
import re
import socket
import sqlite3
import threading

from lab import LIMIT_S, Answer, Emulator, Gateway, Lab, Tenant, call, v1_upstream

FAULT = "kill -9 in the middle of a request"
INJECTED = (
    "200 × SIGKILL: after a request's head, after its body, when its key is in the store, when its call is at FCM, "
    "when FCM has answered, and when the caller has its answer. Requests address one device or a list, by both "
    "protocols. Each is then repeated with its key."
)
EXPECTED = (
    "No device gets a message twice, and no recipient is reported accepted without a send. A repeat gets the earlier "
    "answer word for word. The audit verifies with 0 or 2 after each kill."
)

KILLS = 200
AT_ONCE = 4
# More than are marked as started at once, so that a kill amid the list leaves some that were not.
LIST = 260
MARK = 200
POINTS = ("head written", "body written", "key stored", "call at FCM", "FCM answered", "answer read")
KINDS = tuple(itertools.product(("one device", "a list"), ("legacy", "v1")))
CASES = tuple(itertools.product(POINTS, KINDS))


def run(lab: Lab) -> str:
    seen: collections.Counter[str] = collections.Counter()
    numbers = iter(range(KILLS))
    lock = threading.Lock()
    # Setting up shares the machine with nothing, so that no time limit is met.
    lives = [Lives(lab, worker) for worker in range(AT_ONCE)]

    def work(life: Lives) -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            point, (kind, api) = CASES[number % len(CASES)]
            result = life.play(number, point, kind, api)
            with lock:
                seen.update(result)

    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(work, life) for life in lives]:
            done.result()
    assert seen["kills"] == KILLS, seen
    assert seen["unknown"] and seen["sent by the repeat"] and seen["replayed"], f"nothing was hit: {dict(seen)}"
    return (
        f"{KILLS} kills, {seen['recipients']} recipients: {seen['twice']} sent to twice, {seen['phantom']} accepted "
        f"without a send; {seen['unknown']} unknown, {seen['sent by the repeat']} sent to by the repeat; "
        f"{seen['replayed']} answers given before the kill were given again word for word; `audit verify` "
        f"exited {seen['verify 0']} times with 0 and {seen['verify 2']} times with 2"
    )


class Lives:
    """A gateway that is killed again and again, and its fake FCM, which is not."""

    def __init__(self, lab: Lab, worker: int) -> None:
        self.worker = worker
        self.fcm: Emulator = lab.emulator(tls=True, name=f"fcm-{worker}")
        self.gateway: Gateway = lab.gateway({"upstream": v1_upstream(self.fcm)}, name=f"killed-{worker}")
        self.tenants: dict[str, Tenant] = {
            api: self.gateway.tenant(f"tenant-{api}", self.fcm, api=api) for api in ("legacy", "v1")
        }

    def play(self, number: int, point: str, kind: str, api: str) -> dict[str, int]:
        case = f"kill {number}, {point}, {kind} by {api}"
        tenant = self.tenants[api]
        tokens = [f"kill-{number}-{place}-end" for place in range(1 if kind == "one device" else LIST)]
        body = tenant.message(tokens[0]) if kind == "one device" else tenant.message("", tokens=tokens)
        self.fcm.forget()
        if point in ("key stored", "call at FCM"):
            self.fcm.control("POST", "settings", {"latency_ms": 60 if kind == "a list" and api == "v1" else 250})
        first = self.interrupted(tenant, number, body, point, len(tokens) if api == "v1" else 1)
        verified = self.gateway.verify()
        assert verified in (0, 2), f"{case}: audit verify said {verified}"
        self.fcm.control("POST", "settings", {"latency_ms": 0})
        before = self.arrivals(tokens)
        self.gateway.start()
        second, third = (self.send(tenant, number, body) for _ in range(2))
        assert self.gateway.verify() == 0, f"{case}: the audit does not verify after the next start"
        arrivals = self.arrivals(tokens)
        results = outcomes(second, len(tokens))
        twice = [token for token in tokens if arrivals[token] > 1]
        assert not twice, f"{case}: sent to {len(twice)} twice, such as {twice[0]}"
        phantom = [token for token, result in zip(tokens, results) if result == "accepted" and not arrivals[token]]
        assert not phantom, f"{case}: {len(phantom)} accepted and never sent to, such as {phantom[0]}"
        assert set(results) <= {"accepted", "outcome_unknown"}, f"{case}: {set(results)}: {second}"
        assert third.headers.get("idempotent-replayed") == "true" and third.body == second.body, f"{case}: {third}"
        unknown = results.count("outcome_unknown")
        if point == "head written":
            assert not unknown, f"{case}: {unknown} unknown of a request that had not come"
        if kind == "a list" and api == "v1":
            assert unknown <= MARK, f"{case}: {unknown} unknown"
        if point == "answer read":
            assert first, f"{case}: not answered"
        if first:
            assert first.status == 200, f"{case}: {first}"
            assert second.body == first.body, f"{case}: {first}, then {second}"
        return {
            "kills": 1, "recipients": len(tokens), "unknown": unknown, "replayed": 1 if first else 0,
            "sent by the repeat": sum(arrivals[token] > before[token] for token in tokens),
            "twice": len(twice), "phantom": len(phantom), f"verify {verified}": 1,
        }

    # A request and its end

    def interrupted(self, tenant: Tenant, number: int, body: bytes, point: str, calls: int) -> Answer | None:
        """Sends a request until the point, kills the gateway, and returns the answer if there was one."""
        head = "".join(
            f"{line}\r\n" for line in (
                f"POST /v1/tenants/{tenant.name}/messages HTTP/1.1", "Host: gateway", f"Content-Length: {len(body)}",
                *(f"{name}: {value}" for name, value in self.headers(tenant, number).items()), "Connection: close", "",
            )
        )
        received = bytearray()
        # Without a pause: moments matter here.
        wait = functools.partial(self.gateway.lab.wait_until, pause=0)
        with socket.create_connection(("127.0.0.1", self.gateway.port), LIMIT_S) as one:
            reader = threading.Thread(target=read_all, args=(one, received), daemon=True)
            one.sendall(head.encode())
            if point != "head written":
                one.sendall(body)
                reader.start()
            match point:
                case "key stored":
                    wait("the key", self.has_open_key)
                case "call at FCM":
                    # Amid a list: some of its calls are there, others are not.
                    wait("the calls", lambda: self.fcm.hits() >= min(calls, 30))
                case "FCM answered":
                    wait(
                        "FCM's answers",
                        lambda: sum("decision" in entry for entry in self.fcm.journal()) >= calls or received,
                    )
                case "answer read":
                    reader.join(LIMIT_S)
            self.gateway.kill()
            if point != "head written":
                reader.join(LIMIT_S)
        return parsed(bytes(received))

    def has_open_key(self) -> bool:
        uri = f"file:{self.gateway.data_dir}/gateway.sqlite?mode=ro"
        connection = sqlite3.connect(uri, uri=True, timeout=LIMIT_S)
        try:
            row = connection.execute("SELECT 1 FROM idempotency_records WHERE NOT is_finished LIMIT 1").fetchone()
            return row is not None
        finally:
            connection.close()

    def headers(self, tenant: Tenant, number: int) -> dict[str, str]:
        return {**tenant.headers, "Idempotency-Key": f"kill-{number}"}

    def send(self, tenant: Tenant, number: int, body: bytes) -> Answer:
        return call("POST", tenant.url, self.headers(tenant, number), body)

    def arrivals(self, tokens: list[str]) -> collections.Counter[str]:
        """How often each token stands in what came to FCM, whatever became of it there."""
        wanted = set(tokens)
        found: collections.Counter[str] = collections.Counter()
        for entry in self.fcm.journal():
            found.update(token for token in re.findall(r'"(kill-\d+-\d+-end)"', entry["body"]) if token in wanted)
        return found


def read_all(one: socket.socket, received: bytearray) -> None:
    try:
        while part := one.recv(65536):
            received += part
    except OSError:
        pass


def parsed(data: bytes) -> Answer | None:
    """An answer that came whole; `None` for anything less."""
    head, separator, body = data.partition(b"\r\n\r\n")
    if not separator:
        return None
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if len(body) != int(fields.get("content-length", -1)):
        return None
    return Answer(int(first.split()[1]), fields, body)


def outcomes(answer: Answer, count: int) -> list[str]:
    """What is said of each recipient."""
    if answer.status != 200:
        return [answer.code or str(answer)] * count
    content = json.loads(answer.body)
    results = content.get("results", [content])
    return [result["code"] if result["status"] == "rejected" else result["status"] for result in results]
