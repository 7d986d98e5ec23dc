"""FCM says when to come back."""

from __future__ import annotations

import email.utils
import json
import threading
import time

from lab import Answer, Lab, Tenant, v1_upstream

FAULT = "FCM names the time of a retry"
INJECTED = (
    "An emulated FCM with `Retry-After` in seconds and as a date, on 503 and on the 429 of a project whose quota is "
    "used up."
)
EXPECTED = (
    "A retry waits as long as FCM demands, and at least ten seconds. A wait beyond the caller's deadline is passed on "
    "at once. A used-up quota pauses that project alone until then."
)


def date(seconds: float) -> str:
    return email.utils.formatdate(time.time() + seconds, usegmt=True)


def run(lab: Lab) -> str:
    fcm, tls = lab.emulator(), lab.emulator(tls=True)
    gateway = lab.gateway({"upstream": v1_upstream(tls)})
    tenant = gateway.tenant("legacy", fcm)
    paused = {form: gateway.tenant(f"paused-{form}", tls, api="v1") for form in ("seconds", "date")}
    other = gateway.tenant("other", tls, api="v1")
    for each in (tenant, other, *paused.values()):
        # Each tenth of them pays for a repeat.
        assert each.load(count=200, concurrency=10).run().statuses == {200: 200}

    answers: dict[str, Answer] = {}

    def later(name: str, value: str, headers: dict[str, str]) -> None:
        fcm.fault("status", status=503, token=name, headers={"Retry-After": value})
        answers[name] = tenant.send(name, headers)

    cases = [
        ("seconds", "12", {}), ("date", date(13), {}), ("sooner", "1", {}), ("past", date(-100), {}),
        ("beyond", "60", {}), ("beyond-date", date(60), {}), ("hurried", "12", {"X-Request-Timeout-Ms": "3000"}),
        ("endless", "99999999999999999999999", {}), ("nonsense", "soon", {}),
    ]
    for name, value, headers in cases:
        threading.Thread(target=later, args=(name, value, headers), daemon=True).start()
        # Between them, so that failures are not in a row.
        lab.wait_until(name, lambda: fcm.hits(f'"{name}"') > 0)
        assert tenant.send().status == 200
    quota = [pause(lab, paused["seconds"], tls, "15"), pause(lab, paused["date"], tls, None)]
    assert other.send().status == 200, "another project was paused as well"
    lab.wait_until("all answers", lambda: len(answers) == len(cases))

    for name, least, most in (("seconds", 12, 13), ("date", 11, 14), ("sooner", 10, 11), ("past", 10, 11),
                              ("nonsense", 0, 1.5)):
        answer = answers[name]
        assert answer.status == 200 and least <= answer.seconds <= most, f"{name}: {answer}"
        assert fcm.hits(f'"{name}"') == 2, f"{name}: {fcm.hits(name)} calls"
    for name, least, most in (("beyond", 60, 60), ("beyond-date", 58, 60), ("hurried", 12, 12),
                              ("endless", 3600, float("inf"))):
        answer = answers[name]
        assert answer.status == 503 and answer.seconds < 1, f"{name}: {answer}"
        assert least <= int(answer.headers["retry-after"]) <= most, f"{name}: {answer.headers}"
        assert fcm.hits(f'"{name}"') == 1, f"{name}: {fcm.hits(name)} calls"
    for each in quota:
        each()
    lasted = [f"{each.lasted:.1f}" for each in quota]
    return (
        f"Retry-After of 12 s: retried after {answers['seconds'].seconds:.1f} s; a date in 13 s: after "
        f"{answers['date'].seconds:.1f} s; 1 s: after {answers['sooner'].seconds:.1f} s; 60 s: 503 with Retry-After "
        f"{answers['beyond'].headers['retry-after']} in {answers['beyond'].seconds * 1000:.0f} ms; a project paused for "
        f"15 s by number and date: {lasted[0]} and {lasted[1]} s without a call"
    )


class pause:
    """A project whose quota is used up; calling it waits for the pause's end."""

    def __init__(self, lab: Lab, tenant: Tenant, fcm, value: str | None) -> None:
        self.lab, self.tenant, self.fcm = lab, tenant, fcm
        detail = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "RATE_LIMIT_EXCEEDED",
                  "domain": "googleapis.com"}
        body = {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED", "message": "Quota", "details": [detail]}}
        name = f"{tenant.name}-first"
        fcm.fault("status", status=429, token=name, body=json.dumps(body),
                  headers={"Retry-After": value or date(15), "Content-Type": "application/json"})
        answer = tenant.send(name)
        self.begin = time.monotonic()
        assert answer.status == 429, answer
        assert 13 <= int(answer.headers["retry-after"]) <= 15, answer.headers
        answer = tenant.send(f"{tenant.name}-next")
        assert answer.status == 429 and int(answer.headers["retry-after"]) <= 15, answer

    def __call__(self) -> None:
        name = f"{self.tenant.name}-last"
        self.lab.wait_until("the pause's end", lambda: self.tenant.send(name).status == 200, 20, pause=0.05)
        self.lasted = time.monotonic() - self.begin
        assert 13 <= self.lasted <= 16, f"paused for {self.lasted:.1f} s"
        assert self.fcm.hits(f"{self.tenant.name}-next") == 0, "a call was made during the pause"
        assert self.fcm.hits(name) == 1, "calls were made during the pause"
