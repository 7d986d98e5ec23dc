"""Inputs to begin with: the project's vectors, its example of a configuration, and cases written by hand."""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "Tests" / "Vectors"

sys.path.insert(0, str(VECTORS))
from check_vectors import expand  # noqa: E402

Seed = tuple[str, bytes]

REQUESTS = [
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\r\n\r\nGET /x?y=%20 HTTP/1.1\r\nhost: a.example:8080\r\n\r\n",
    "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: b\r\n\r\n",
    "PUT /x HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\n\r\n"
    "5;a=b\r\nhello\r\n0\r\nX-A: b\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\nAccept:  */*  \r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    "GET http://a/x HTTP/1.1\r\nHost: a\r\nX-A: \t b\tc \r\nX-A: d\r\nConnection: keep-alive\r\n\r\n",
    "GET https://a?q HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS http://a HTTP/1.1\r\nHost: a\r\n\r\n",
    "DELETE /x HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n folded: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\nHost: a\n\n",
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET /" + 260 * "a" + " HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n" + 20 * "X: y\r\n" + "\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: " + 300 * "y" + "\r\n\r\n",
]
REPLIES = [
    "+OK\r\n-ERR x y\r\n:-42\r\n$5\r\nhello\r\n$-1\r\n*-1\r\n",
    "*2\r\n:1\r\n*1\r\n$1\r\na\r\n",
    "_\r\n#t\r\n#f\r\n,1.5e3\r\n,-inf\r\n,nan\r\n(123456789012345678901\r\n",
    "!10\r\nSYNTAX bad\r\n=8\r\ntxt:Some\r\n",
    "%1\r\n+a\r\n:1\r\n~2\r\n:1\r\n:2\r\n>2\r\n+invalidate\r\n_\r\n",
    "|1\r\n+ttl\r\n:3\r\n:5\r\n",
    "*2\r\n|1\r\n+a\r\n*0\r\n:1\r\n:2\r\n",
    "$2\r\n\r\n\r\n$0\r\n\r\n",
    "*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n",
    "$9\r\n123456789\r\n",
    "+0123456789abcdefg\r\n",
    "*7\r\n",
    "%4\r\n",
    "$?\r\n",
    ":9223372036854775808\r\n",
    "*1\r\n>1\r\n+a\r\n",
    "|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n|0\r\n:1\r\n",
    "+OK\n",
    "+O\rK\r\n",
    "$1\r\nab\r\n",
    "*3\r\n$16\r\n1790000000000000\r\n$1\r\n0\r\n$5\r\n0 0 1\r\n",
    "%1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n",
]
RESPONSES = [
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Type: application/json\r\n\r\nhello",
    "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
    "HTTP/1.0 503 Unavailable\r\nRetry-After: 120\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 4097\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
    "HTTP/1.1 200 " + 300 * "a" + "\r\n\r\n",
    "HTTP/1.1 200 " + 300 * "a",
    "HTTP/1.1 200 OK\r\n" + 20 * "X: y\r\n" + "\r\n",
    "HTTP/1.1 200 OK\r\n" + 12 * ("X: " + 90 * "y" + "\r\n") + "\r\n",
    "HTTP/1.1 200 OK\r\nX: " + 300 * "y",
    "HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nConnection: x, Close\r\nContent-Length: 1\r\n\r\n",
    "HTTP/1.1 600 Far\r\n\r\n",
    "HTTP/2 200\r\n\r\n",
]
# The first byte chooses framing and limits, the second an amount.
BODIES = [
    (3, 0, "0\r\n\r\n"), (3, 0, "5\r\nhello\r\n0\r\n\r\nrest"), (3, 0, "A;a=b\r\n0123456789\r\n00\r\nX-A: b\r\n\r\n"),
    (3, 0, "5\nhello\n0\n\n"), (3, 0, "7fffffffffffffff\r\n"), (3, 0, "5\r\nhelloX\r\n0\r\n\r\n"), (3, 0, "-1\r\n\r\n"),
    (131, 4, "5\r\nhello\r\n0\r\n\r\n"), (131, 9, "0\r\n" + 12 * "X-A: b\r\n" + "\r\n"), (1, 5, "hello, more"),
    (1, 5, "hel"), (2, 3, "until the end"), (130, 3, "until the end"), (0, 0, "nothing"),
]
CONDITIONS = [
    "'a' in topics", "(('a' in topics))", "!('a' in topics && \"b\" in topics) || 'c' IN Topics",
    32 * "(" + "'a' in topics" + 32 * ")", 33 * "(" + "'a' in topics" + 33 * ")",
    " && ".join(6 * ["'a' in topics"]), "'" + 900 * "a" + "' in topics", "'a' in topics &&", "!'a' in topics",
]
CONFIGURATIONS = [
    "http:\n  port: 8080\n  host: \"::\"\n", "http: {port: 1, tls: {certificateFile: a}}", "- a", "http.port: 1",
    "limits:\n  defaults:\n    topic: &t\n      - 1/1s:1\n    tenant: *t\n",
    "upstream:\n  allowedTokenHosts: [a.b, c.d]\n  timeoutMs: 100\n", "masterKey: x", "a: b: c", "http: [", "? [a]\n: b",
    "log:\n  level: off\n", "http:\n  port: 1\n  port: 2\n", "---\na: 1\n---\nb: 2\n", "%YAML 1.2\n---\n", "a: *a", "\tx: 1",
    "limits: {defaults: {topic: [], device: [1], tenant: [{rate: a}], deviceCollapsible: [0/1s:1]}}",
    "limits: {defaults: {topic: [{rte: 1, [a]: 2, perS: 1}]}}", "upstream: {allowedTokenHosts: [1], caFile: {a: b}}",
    "audit: !!map {mode: !!str strict}\n", "dataDir: |\n  a\n  b\n", "eventLoops: 99999999999999999999", "a\x00b",
]
LEGACY_REQUESTS = [
    {"to": "t", "notification": {"badge": True}}, {"to": "t", "notification": {"body_loc_args": {"a": 1}}},
    {"to": "t", "notification": {"title_loc_args": ["a", 1.5, True], "body_loc_args": "[\"b\"]", "badge": "7"}},
    {"to": "t", "notification": {"color": "#12345", "title": 1}}, {"to": "t", "notification": {"badge": 1.5}},
    {"to": "t", "data": {"a": {"c": [1, {"b": None}], "b": 1e3}, "n": None}, "time_to_live": 6e1},
    {"registration_ids": ["", "/topics/a", "b", "b"], "dry_run": True}, {"registration_ids": []},
    {"to": "t", "data": {"k": 4_097 * "v"}}, {"notification_key": "k", "priority": "high"},
    {"condition": "'a' in topics && 'b' in topics || 'c' in topics", "content_available": True},
]
TRACES = [
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\nvendor=1,other@system=t61rcWkgMzE",
    "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02-more\n a=1 , ,b=2\t,",
    "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00\na=1,a=2", f"00-{32 * '0'}-{16 * '0'}-00\n=,a=,=b",
    "00-0AF7651916CD43DD8448EB211C80319C-B7AD6B7169203331-01\n" + ",".join(f"k{number}=v" for number in range(33)),
]
ANSWERS = [
    (0, 1, {"results": [{"message_id": "1"}, {"error": "NotRegistered"}, {"message_id": "3", "registration_id": "d"}]}),
    (0, 1, {"results": [{"error": "Unavailable"}, {"error": "Something"}, {}]}), (0, 1, {"results": [{"message_id": 1}]}),
    (0, 2, {"success": 1, "failure": 2, "failed_registration_ids": ["a", "b"]}), (0, 4, {"message_id": 12345678901234567890}),
    (0, 5, {"error": "TopicsMessageRateExceeded"}), (4, 0, {"error": "InvalidParameters: x"}), (0, 2, ""),
]
FCM_ERROR = {"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": "UNREGISTERED"}
RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "9223372036854775807.9s"}
# Of each target: an index into the statuses of AnswerInput.swift, the target's own choice, the body.
MORE_ANSWERS = {
    "legacy-text": [
        (0, 0, "id=0:1\nregistration_id=b\n"), (0, 0, "id=1\r\nregistration_id=a"), (0, 0, "Error=NotRegistered"),
        (0, 4, "id=6928422829871654"), (4, 0, "Error=Unavailable: later"), (0, 0, "id=" + 513 * "x"),
        (0, 0, "id=1\nregistration_id=" + 1_500 * "x"), (0, 0, "id=1\nregistration_id=/topics/a"), (0, 2, "id=\u00e9"),
        (4, 0, "JSON_PARSING_ERROR: x\n"), (4, 0, '"data" key "from" is a reserved keyword'), (4, 0, "to"),
    ],
    "legacy-response": [
        (0, 0, {"success": 2**63 - 1, "failure": 1}), (0, 2, {"success": 1000, "failure": 1000}),
        (0, 2, {"success": 1001, "failure": 0}), (8, 0, ""), (0, 0, {"message_id": 513 * "x"}),
        (0, 2, {"success": 0, "failure": 1, "failed_registration_ids": ["/topics/a"]}),
        (0, 2, {"results": [{"message_id": "1", "registration_id": "b"}]}), (9, 128, ""), (11, 128, "<html>"),
    ],
    "v1-response": [
        (0, 0, {"name": "projects/p/messages/" + 513 * "x"}), (0, 64, {}), (0, 2, {}), (0, 0, {}), (14, 64, ""),
        (0, 0, {"name": "projects/p/messages/a b"}), (10, 0, {"error": {"status": "UNAVAILABLE", "details": [RETRY_INFO]}}),
        (7, 0, {"error": {"status": "NOT_FOUND", "details": [FCM_ERROR]}}), (11, 128, "<html>"), (9, 128, ""),
    ],
    "group-response": [
        (0, 0, {"notification_key": "k"}), (0, 0, {"notification_key": "/topics/a"}), (0, 0, {"notification_key": 900 * "k"}),
        (4, 0, {"error": "notification_key already exists"}), (4, 0, "Error decrypting GroupToken"), (8, 0, ""),
        (4, 0, "x" + 400 * "\u0301"), (9, 0, "<html>"),
    ],
    "topic-response": [
        (0, 0, {"topicSubscriptions": [{"topicName": "t", "createTime": "2026-01-15T01:30:15Z"},
                                       {"name": "projects/p/registrations/a/topicSubscriptions/u"}], "nextPageToken": "n"}),
        (0, 0, {"topic_subscriptions": [{"topic_name": 900 * "t"}, {"topic_name": "a b"}]}), (0, 1, {}), (14, 2, ""),
        (15, 1, {"error": {"status": "ALREADY_EXISTS"}}), (15, 1, {"error": {"status": "ABORTED"}}),
        (7, 1, {"error": {"status": "NOT_FOUND", "details": [FCM_ERROR]}}), (7, 1, "<html>"), (8, 1, ""),
        (4, 1, {"error": {"status": "INVALID_ARGUMENT", "message": "too many topics"}}),
    ],
    "iid-response": [
        (0, 0, {"results": [{}, {"error": "NOT_FOUND"}, {"error": "TOO_MANY_TOPICS"}]}), (0, 0, {"results": [{}]}),
        (0, 1, {"application": "a", "applicationVersion": "1", "authorizedEntity": "1", "platform": "ANDROID",
                "rel": {"topics": {"t": {"addDate": "2025-03-14"}, "u": {}}}}),
        (0, 1, {"platform": 600 * "x"}), (0, 1, {"rel": {"topics": {"a b": {}}}}), (7, 1, {"error": "No information"}),
        (8, 0, ""), (4, 0, {"error": "InvalidToken"}), (5, 0, ""), (10, 1, "<html>"),
    ],
    "token-response": [
        (0, 0, {"access_token": "ya29.x", "expires_in": 3599}), (0, 0, {"access_token": "a", "expires_in": 2**63 - 1}),
        (0, 0, {"access_token": "a b"}), (4, 0, {"error": "invalid_grant", "error_description": "x" + 300 * "\u0301"}),
        (8, 0, ""), (9, 0, "<html>"),
    ],
}
V1_MESSAGES = [
    {"message": {"token": "t", "notification": {"title": "a", "body": "b", "image": "https://c"}}, "validate_only": True},
    {"message": {"fid": "f", "data": {"k": "v"}}},
    {"message": {"topic": "t", "android": {"collapse_key": "c", "priority": "high", "ttl": "3.5s", "data": {"a": "b"},
                                           "notification": {"title": "t", "color": "#aabbcc", "sound": "s",
                                                            "titleLocKey": "k", "titleLocArgs": ["a"],
                                                            "notification_count": "3", "sticky": True,
                                                            "vibrate_timings": ["1s", "0.5s"],
                                                            "light_settings": {"color": {"red": 1.0}},
                                                            "visibility": "PUBLIC"}}}},
    {"message": {"condition": "!('a' in topics)", "apns": {"headers": {"apns-priority": "5", "apns-collapse-id": "c",
                                                                       "apns-expiration": "1700000060"},
                                                           "payload": {"aps": {"alert": {"title": "t", "loc-args": ["a"]},
                                                                               "badge": 3, "sound": "s",
                                                                               "content-available": 1}}}}},
    {"message": {"token": "t", "webpush": {"headers": {"TTL": "60", "Urgency": "high"}, "data": {"a": "b"},
                                           "notification": {"title": "t", "actions": []},
                                           "fcm_options": {"link": "https://a", "analytics_label": "l"}}}},
    {"message": {"token": "t", "topic": "u"}}, {"message": {}}, {"message": {"token": "t", "data": {"from": "x"}}},
    {"message": {"token": "t", "data": {"k": 4_200 * "v"}}}, {"message": {"topic": "t", "data": {"k": 2_100 * "v"}}},
    {"validate_only": True, "validateOnly": True, "message": {"token": "t"}},
    {"message": {"token": "t", "android": {"ttl": "60s"}, "apns": {"headers": {"apns-expiration": "1700000060"}}}},
    {"message": {"token": "t", "apns": {"headers": {"apns-expiration": "1700000060"}}}},
    {"message": {"token": "t", "apns": {"headers": {"apns-expiration": "0"}}}},
    {"message": {"token": "t", "apns": {"headers": {"apns-expiration": "9999999999"}}}},
    {"message": {"token": "t", "webpush": {"headers": {"TTL": "0"}}, "android": {"priority": "normal"}}},
    {"message": {"token": "t", "notification": {"title": "a"}, "android": {"notification": {"title": "b"}}}},
    {"message": {"token": "t", "fcm_options": {"analytics_label": "a"}, "android": {"direct_boot_ok": True}}},
    {"validateOnly": False, "message": {"name": "n", "token": "t", "apns": {"live_activity_token": "x"}}},
]


def vectors(name: str) -> list[dict]:
    return [expand(vector) for vector in json.loads((VECTORS / f"{name}.json").read_text())["vectors"]]


def body(vector: dict) -> bytes | None:
    """What a vector sends, as it stands on the wire."""
    if "body_b64" in vector:
        return base64.b64decode(vector["body_b64"])
    if "body" in vector:
        return vector["body"].encode()
    return dump(vector["request"]) if "request" in vector else None


def dump(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def from_vectors() -> Iterator[Seed]:
    for vector in vectors("validate") + vectors("translate"):
        if (text := body(vector)) is not None:
            yield "legacy-json", text
            yield "strict-json", text
    for vector in vectors("plaintext"):
        yield "legacy-form", body(vector) or b""
    for vector in vectors("conditions"):
        yield "condition", vector["condition"].encode()
    for vector in vectors("translate"):
        for call in vector["expect"].get("calls", []):
            yield "v1-request", dump(call)
    for vector in vectors("device-groups"):
        if vector["kind"] == "response":
            yield from an_answer("group-response", vector["upstream"], 0)
    for vector in vectors("responses"):
        for answer in vector.get("upstream", []):
            yield from an_answer("v1-response", answer, {"topic": 4, "condition": 4, "group": 2}.get(vector["target"]["kind"], 0))
    kinds = {"token": 0, "tokens": 1, "multicast": 1, "group": 2, "topic": 4, "condition": 5}
    for vector in vectors("responses"):
        answer = vector.get("response")
        if answer is None:
            continue
        yield from an_answer("legacy-response", answer, kinds.get(vector["target"], 0))


def an_answer(target: str, answer: dict, choice: int) -> Iterator[Seed]:
    """An answer of the vectors as the input of a target; none where no answer came."""
    if "status" not in answer:
        return
    statuses = [200, 200, 200, 200, 400, 401, 403, 404, 429, 500, 503, 599, 302, 0, 204, 409]
    status = statuses.index(answer["status"]) if answer["status"] in statuses else 12
    fields = {name.lower(): value for name, value in answer.get("headers", {}).items()}
    later = fields.get("retry-after", "").encode()
    text = answer.get("body", "")
    yield target, bytes([status, choice, len(later)]) + later + (text.encode() if isinstance(text, str) else dump(text))


def frame(kind: int, flags: int, stream: int, content: bytes = b"") -> bytes:
    """A frame of HTTP/2 (RFC 9113, section 4.1)."""
    return len(content).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + content


def fields(*lines: tuple[str, str]) -> bytes:
    """A field block without compression (RFC 7541, section 6.2.2)."""
    return b"".join(
        b"\x00" + b"".join(bytes([len(text)]) + text.encode() for text in line) for line in lines
    )


def of_http2() -> Iterator[bytes]:
    """The frames of servers; the first byte asks for two requests with bodies."""
    settings, ack = frame(4, 0, 0), frame(4, 1, 0)
    limits = frame(4, 0, 0, bytes([0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0]))
    head = fields((":status", "200"), ("content-type", "application/json"), ("content-length", "2"))
    ended = frame(0, 1, 1, b"{}")
    answers = [
        frame(1, 4, 1, head) + ended,
        frame(1, 5, 1, fields((":status", "204"))),
        frame(1, 4, 1, b"\x88\x5f\x10application/json\x0f\x0d\x012") + ended,
        frame(1, 4, 1, fields((":status", "103"), ("link", "x"))) + frame(1, 4, 1, head) + ended,
        frame(1, 4, 1, fields((":status", "200"))) + frame(0, 0, 1, b"ok") + frame(1, 5, 1, fields(("x", "y"))),
        frame(1, 0, 1, head[:12]) + frame(9, 4, 1, head[12:]) + ended,
        frame(1, 4, 1, head) + frame(0, 0, 1, b"{") + frame(1, 4, 3, head) + frame(0, 1, 3, b"[]") + frame(0, 1, 1, b"}"),
        frame(3, 0, 1, bytes([0, 0, 0, 7])),
        frame(3, 0, 1, bytes([0, 0, 0, 8])) + frame(1, 4, 3, head) + frame(0, 1, 3, b"[]"),
        frame(7, 0, 0, bytes([0, 0, 0, 1, 0, 0, 0, 0])) + frame(1, 4, 1, head) + ended,
        frame(7, 0, 0, bytes([0, 0, 0, 0, 0, 0, 0, 11]) + b"enhance_your_calm"),
        frame(6, 0, 0, b"12345678") + frame(8, 0, 0, bytes([0, 0, 255, 255])) + frame(1, 4, 1, head) + ended,
        frame(1, 4, 1, fields((":status", "200"), ("connection", "close"))),
        frame(0, 1, 1, b"early"),
        frame(1, 4, 9, head),
        frame(5, 4, 1, bytes([0, 0, 0, 2]) + head),
        frame(0, 0, 1) * 12,
    ]
    for answer in answers:
        yield b"\x01" + settings + ack + answer
        yield b"\x05" + limits + answer


def by_hand() -> Iterator[Seed]:
    for frames in of_http2():
        yield "http2-answer", frames
    for text in REQUESTS:
        yield "http-request", text.encode("latin-1")
    for text in RESPONSES:
        yield "http-response", b"\x01" + text.encode("latin-1")
        yield "http-response", b"\x00" + text.encode("latin-1")
    for framing, amount, text in BODIES:
        yield "http-body", bytes([framing, amount]) + text.encode("latin-1")
    for text in REPLIES:
        yield "resp", b"\x00" + text.encode()
        yield "resp", b"\x01" + text.encode()
    for text in CONDITIONS:
        yield "condition", text.encode()
    for text in TRACES:
        yield "trace-context", text.encode()
    for text in CONFIGURATIONS:
        yield "configuration", text.encode()
    yield "configuration", (ROOT / "deploy" / "gateway.example.yaml").read_bytes()
    for request in LEGACY_REQUESTS:
        yield "legacy-json", dump(request)
    for status, target, answer in ANSWERS:
        yield "legacy-response", bytes([status, target, 0]) + (dump(answer) if answer else b"")
    for target, answers in MORE_ANSWERS.items():
        for status, choice, answer in answers:
            text = answer.encode() if isinstance(answer, str) else dump(answer)
            yield target, bytes([status, choice, 0]) + text
            yield target, bytes([status, choice, 2]) + b"99" + text
            yield target, bytes([status, choice, 29]) + b"Fri, 31 Dec 9999 23:59:59 GMT" + text
    for message in V1_MESSAGES:
        yield "v1-request", dump(message)
    for retry_after in [b"Sun, 06 Nov 1994 08:49:37 GMT", b"Sunday, 06-Nov-94 08:49:37 GMT", b"Sun Nov  6 08:49:37 2094"]:
        yield "legacy-response", bytes([10, 0, len(retry_after)]) + retry_after
    for text in [b"id=0:1\nregistration_id=b\n", b"Error=NotRegistered", b"Error=Unavailable:x"]:
        yield "legacy-response", bytes([0, 0, 0]) + text


def all_seeds() -> Iterator[Seed]:
    yield from from_vectors()
    yield from by_hand()
