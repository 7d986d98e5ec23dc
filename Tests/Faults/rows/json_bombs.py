"""JSON that is deep, wide or double, of up to a megabyte."""

from __future__ import annotations

import http.client
import json
import time

from lab import Lab, Tenant

FAULT = "Deep or wide JSON, and repeated keys"
INJECTED = (
    "Bodies of up to 1 MiB: 500,000 levels, 100,000 keys, repeated keys, long numbers and strings, bodies that are "
    "cut off or not UTF-8."
)
EXPECTED = "400 with the reason's code, in less than 5 ms at the median of 51."

KEYS = {f"k{number}": "v" for number in range(60_000)}
TOKEN = b'{"token":"t","data":'


def cases() -> list[tuple[str, bytes, str]]:
    wide = json.dumps({"token": "t", "data": KEYS}).encode()
    many = b'{"token":"t","data":{' + b",".join(b'"%x":""' % number for number in range(100_000)) + b"}}"
    assert len(wide) < 1 << 20 and len(many) < 1 << 20 + 1, (len(wide), len(many))
    return [
        ("500,000 arrays", b"[" * 500_000, "too_deep"),
        ("500,000 arrays, closed", b"[" * 500_000 + b"]" * 500_000, "too_deep"),
        ("100,000 objects", TOKEN + b'{"a":' * 100_000, "too_deep"),
        ("17 levels", TOKEN + b'{"a":' * 16 + b"1" + b"}" * 17, "too_deep"),
        ("60,000 keys", wide, "too_many_members"),
        ("100,000 short keys", many, "too_many_members"),
        ("a key twice", b'{"token":"t","token":"u"}', "duplicate_key"),
        ("an escaped key twice", b'{"token":"t","\\u0074oken":"u"}', "duplicate_key"),
        ("a key twice among 1,900", TOKEN + b"{" + b",".join(b'"%d":"v"' % (n % 1_899) for n in range(1_900)) + b"}}",
         "duplicate_key"),
        ("a number of 1,000,000 digits", TOKEN + b"1" * 1_000_000, "malformed_json"),
        ("a string without an end", TOKEN + b'"' + b"s" * 1_000_000, "malformed_json"),
        ("escapes without an end", TOKEN + b'"' + b"\\u0041" * 170_000, "too_many_members"),
        ("accents without an end", TOKEN + b'"' + "e\u0301".encode() * 300_000, "too_many_members"),
        ("half a surrogate", b'{"token":"\\ud800"}', "malformed_json"),
        ("not UTF-8", b'{"token":"\xff\xfe"}', "malformed_json"),
        ("a comma too many", b'{"token":"t",}', "malformed_json"),
        ("two values", b'{"token":"t"}{}', "malformed_json"),
        ("white space", b" " * 1_000_000, "malformed_json"),
        ("nothing", b"", "malformed_json"),
    ]


def run(lab: Lab) -> str:
    fcm = lab.emulator()
    gateway = lab.gateway()
    tenant = gateway.tenant("demo", fcm)
    session = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    slowest = ("", 0.0)
    # What a debug build takes is no figure; its codes count all the same.
    is_release = "release" in str(gateway.program)
    for name, body, code in cases():
        times = sorted(refused(session, tenant, name, body, code) for _ in range(51 if is_release else 3))
        median = times[len(times) // 2]
        slowest = max(slowest, (name, median), key=lambda one: one[1])
        assert median < 0.005 or not is_release, f"{name}: {median * 1000:.1f} ms"
    assert fcm.hits() == 0
    note = "" if is_release else " (a debug build)"
    return f"{len(cases())} kinds refused; the slowest, {slowest[0]}, in {slowest[1] * 1000:.1f} ms{note}; FCM saw none"


def refused(session: http.client.HTTPConnection, tenant: Tenant, name: str, body: bytes, code: str) -> float:
    start = time.monotonic()
    session.request("POST", f"/v1/tenants/{tenant.name}/messages", body, tenant.headers)
    response = session.getresponse()
    answer = response.read()
    seconds = time.monotonic() - start
    assert response.status == 400, f"{name}: {response.status} {answer[:300]!r}"
    assert json.loads(answer)["code"] == code, f"{name}: {answer[:300]!r}"
    return seconds
