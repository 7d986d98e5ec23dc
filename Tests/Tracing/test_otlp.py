"""The gateway's spans, read by OpenTelemetry's own definition of OTLP, and receivers that can't take them."""

from __future__ import annotations

import base64
import http.server
import json
import re
import socket
import ssl
import sys
import threading
import time
import unittest
from pathlib import Path

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "Tests/Faults"))

from lab import LIMIT_S, PATIENT, Answer, Certificate, Gateway, Lab, Tenant, v1_upstream  # noqa: E402

PROGRAM = ROOT / ".build/debug/fcm-gateway"
CALLER = "00f067aa0ba902b7"
# The bits of a span's flags: sampled; it is known if the parent is remote; the parent is remote.
SAMPLED, KNOWN, REMOTE = 0x001, 0x100, 0x200
SENDS = 40


def setUpModule() -> None:
    if not PROGRAM.exists():
        raise RuntimeError(f"{PROGRAM} is missing; `swift build` makes it")


def parsed(body: bytes) -> ExportTraceServiceRequest:
    """A request in OTLP's JSON; differs from protobuf's own in its ids, which are hexadecimal instead of base64."""
    document = json.loads(body)
    for resource in document["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for name, digits in (("traceId", 32), ("spanId", 16), ("parentSpanId", 16)):
                    if name in span or name != "parentSpanId":
                        assert re.fullmatch(f"[0-9a-f]{{{digits}}}", span[name]), span
                        span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
                for name in ("startTimeUnixNano", "endTimeUnixNano"):
                    assert isinstance(span[name], str), span
                assert isinstance(span["kind"], int), span
    return json_format.Parse(json.dumps(document), ExportTraceServiceRequest())


def attributes(one: Span | Resource) -> dict[str, str | int]:
    values = {}
    for attribute in one.attributes:
        assert attribute.key not in values, one
        values[attribute.key] = getattr(attribute.value, attribute.value.WhichOneof("value"))
    return values


class Receiver:
    """Takes spans, or answers with another status, or not at all."""

    def __init__(self, status: int = 200, hangs: bool = False, tls: Certificate | None = None) -> None:
        self.requests: list[ExportTraceServiceRequest] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.faults: list[str] = []
        self.released = threading.Event()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                try:
                    assert self.path == "/otlp/v1/traces", self.path
                    assert self.headers["Content-Type"] == "application/json", self.headers
                    request = parsed(body)
                except Exception as error:  # Whatever it is, a test has to say it.
                    receiver.faults.append(f"{type(error).__name__} {error}")
                    raise
                receiver.bodies.append(body)
                receiver.headers.append({name.lower(): value for name, value in self.headers.items()})
                receiver.requests.append(request)
                if hangs:
                    # Until the gateway has stopped and does not listen any more.
                    receiver.released.wait(LIMIT_S)
                    return
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls.certificate, tls.key)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.endpoint = f"{'https' if tls else 'http'}://127.0.0.1:{self.server.server_port}/otlp"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> Receiver:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def spans(self, trace_id: str) -> list[Span]:
        """A trace's spans so far."""
        found = [
            span for request in list(self.requests) for resource in request.resource_spans
            for scope in resource.scope_spans for span in scope.spans
        ]
        return [span for span in found if span.trace_id.hex() == trace_id]


def trace_id(number: int) -> str:
    return f"4bf92f3577b34da6a3ce929d{number:08x}"


def traced(tenant: Tenant, number: int, flags: str = "01", token: str = "") -> Answer:
    """A send that belongs to a caller's trace."""
    headers = {
        "traceparent": f"00-{trace_id(number)}-{CALLER}-{flags}", "tracestate": "shop=1",
        "X-Request-ID": f"request-{number}",
    }
    return tenant.send(token or f"canary-{number}", headers=headers)


class Spans(unittest.TestCase):
    def test_one_send(self) -> None:
        """A send by HTTP v1 has a span of its own, of the exchange for the access token, and of the attempt."""
        with Lab(PROGRAM, defaults=PATIENT) as lab, Receiver(tls=lab.certificate("receiver")) as receiver:
            fcm = lab.emulator(tls=True)
            begun = time.time_ns()
            tracing = {"otlpEndpoint": receiver.endpoint, "caFile": str(lab.folder / "receiver.crt")}
            gateway = lab.gateway(
                {"upstream": v1_upstream(fcm), "tracing": tracing},
                environment={"GATEWAY_TRACING_OTLP_HEADERS": "Authorization=Bearer%20canary-token"},
            )
            tenant = gateway.tenant("shop", fcm, api="v1")
            self.assertEqual(traced(tenant, 1).status, 200)
            lab.wait_until("the spans", lambda: len(receiver.spans(trace_id(1))) == 3 or receiver.faults)
            self.assertEqual(receiver.faults, [])
            # The token is there now; the last spans leave with the gateway.
            self.assertLess(traced(tenant, 2, token="canary-ERROR_NotRegistered").status, 500)
            self.assertEqual(gateway.stop(), 0)
            ended = time.time_ns()
            self.assertEqual(receiver.faults, [])

            server, exchange, attempt = self.one_each(receiver.spans(trace_id(1)))
            self.assertEqual(server.name, "POST /v1/tenants/{tenant}/messages")
            self.assertEqual(attributes(server), {
                "http.request.method": "POST", "url.scheme": "http", "http.route": "/v1/tenants/{tenant}/messages",
                "http.response.status_code": 200, "client.address": "127.0.0.1", "fcmgw.request_id": "request-1",
                "fcmgw.tenant": "shop",
            })
            self.assertEqual(server.parent_span_id.hex(), CALLER)
            self.assertEqual((server.flags, server.trace_state), (SAMPLED | KNOWN | REMOTE, "shop=1"))
            address = {"url.scheme": "https", "server.address": "127.0.0.1", "server.port": fcm.port}
            self.assertEqual(exchange.name, "POST {token_uri}")
            self.assertEqual(attributes(exchange), {
                "http.request.method": "POST", "http.response.status_code": 200, **address,
            })
            self.assertEqual(attempt.name, "POST /v1/projects/{project}/messages:send")
            self.assertEqual(attributes(attempt), {
                "http.request.method": "POST", "http.response.status_code": 200, "fcmgw.tenant": "shop", **address,
            })
            for span in (exchange, attempt):
                self.assertEqual(span.parent_span_id, server.span_id)
                self.assertEqual(span.flags, SAMPLED | KNOWN)
                self.assertEqual(span.status.code, Status.STATUS_CODE_UNSET)
            times = [server.start_time_unix_nano, exchange.start_time_unix_nano, exchange.end_time_unix_nano,
                     attempt.start_time_unix_nano, attempt.end_time_unix_nano, server.end_time_unix_nano]
            self.assertEqual(times, sorted(times))
            self.assertTrue(begun <= times[0] and times[-1] <= ended, times)
            self.assertEqual(len({span.span_id for span in (server, exchange, attempt)}), 3)

            # FCM was told of the attempt's span.
            (entry,) = fcm.journal("canary-1")
            sent = {field["name"].lower(): field["value"] for field in entry["headers"]}
            self.assertEqual(sent["traceparent"], f"00-{trace_id(1)}-{attempt.span_id.hex()}-01")
            self.assertEqual(sent["tracestate"], "shop=1")

            # FCM's refusal is an error of the call, and none of the gateway's.
            server, attempt = sorted(receiver.spans(trace_id(2)), key=lambda span: span.kind)
            self.assertEqual(server.status.code, Status.STATUS_CODE_UNSET)
            self.assertEqual(attempt.status.code, Status.STATUS_CODE_ERROR)
            self.assertEqual(attributes(attempt)["error.type"], "404")

            resource = receiver.requests[0].resource_spans[0].resource
            self.assertEqual(attributes(resource)["service.name"], "fcm-gateway")
            self.assertEqual(set(attributes(resource)), {"service.name", "service.version"})
            self.assertTrue(all(one["authorization"] == "Bearer canary-token" for one in receiver.headers))
            for secret in (b"canary", tenant.key.encode(), gateway.admin_token.encode(), b"score"):
                self.assertFalse(any(secret in body for body in receiver.bodies), secret)
            self.assertFalse(any(b"livez" in body or b"readyz" in body for body in receiver.bodies))
            self.assertNotIn("canary", gateway.log_text())

    def one_each(self, spans: list[Span]) -> tuple[Span, Span, Span]:
        """The spans of a send: its own, that of the exchange, that of the attempt."""
        kinds = [span.kind for span in spans]
        self.assertEqual(sorted(kinds), [Span.SPAN_KIND_SERVER, Span.SPAN_KIND_CLIENT, Span.SPAN_KIND_CLIENT])
        (server,) = [span for span in spans if span.kind == Span.SPAN_KIND_SERVER]
        exchange, attempt = sorted(
            (span for span in spans if span.kind == Span.SPAN_KIND_CLIENT), key=lambda span: span.start_time_unix_nano
        )
        return server, exchange, attempt

    def test_sampling(self) -> None:
        """With a ratio of 0, a caller's trace is recorded if the caller samples it, and no other."""
        with Lab(PROGRAM, defaults=PATIENT) as lab, Receiver() as receiver:
            fcm = lab.emulator()
            gateway = lab.gateway({"tracing": {"otlpEndpoint": receiver.endpoint, "sampleRatio": 0}})
            tenant = gateway.tenant("shop", fcm)
            for number in range(20):
                self.assertEqual(tenant.send().status, 200)
                self.assertEqual(traced(tenant, 100 + number, "00").status, 200)
            self.assertEqual(traced(tenant, 1).status, 200)
            self.assertEqual(gateway.stop(), 0)
            self.assertEqual(receiver.faults, [])
            traces = {
                span.trace_id.hex() for request in receiver.requests for resource in request.resource_spans
                for scope in resource.scope_spans for span in scope.spans
            }
            self.assertEqual(traces, {trace_id(1)})
            self.assertEqual(len(receiver.spans(trace_id(1))), 2)


class Trouble(unittest.TestCase):
    """A receiver that can't take spans: no send notices, and a metric tells."""

    def send(self, tenant: Tenant) -> None:
        load = tenant.load(count=SENDS, concurrency=4)
        self.assertEqual(load.run().statuses, {200: SENDS})

    def counted(self, gateway: Gateway, name: str, value: str) -> float:
        return gateway.metric(f"fcmgw_trace_{name}_total{{" + ("reason" if "spans" in name else "result") + f'="{value}"')

    def test_failing(self) -> None:
        with Lab(PROGRAM, defaults=PATIENT) as lab, Receiver(status=500) as receiver:
            gateway = lab.gateway({"tracing": {"otlpEndpoint": receiver.endpoint}})
            self.send(gateway.tenant("shop", lab.emulator()))
            lab.wait_until("lost spans", lambda: self.counted(gateway, "spans_dropped", "refused") >= 2 * SENDS)
            self.assertGreaterEqual(self.counted(gateway, "exports", "refused"), 1)
            self.assertEqual(self.counted(gateway, "exports", "retried"), 0)
            self.assertEqual(gateway.stop(), 0)
            self.assertEqual(receiver.faults, [])

    def test_away(self) -> None:
        with Lab(PROGRAM, defaults=PATIENT) as lab, socket.socket() as refusing:
            # Bound and never listened on, so that the port is nobody else's.
            refusing.bind(("127.0.0.1", 0))
            endpoint = f"http://127.0.0.1:{refusing.getsockname()[1]}"
            gateway = lab.gateway({"tracing": {"otlpEndpoint": endpoint}})
            self.send(gateway.tenant("shop", lab.emulator()))
            lab.wait_until("lost spans", lambda: self.counted(gateway, "spans_dropped", "unreachable") >= 1)
            self.assertGreaterEqual(self.counted(gateway, "exports", "retried"), 3)
            self.assertGreaterEqual(self.counted(gateway, "exports", "failed"), 1)
            self.assertEqual(gateway.stop(), 0)

    def test_hanging(self) -> None:
        with Lab(PROGRAM, defaults=PATIENT) as lab, Receiver(hangs=True) as receiver:
            gateway = lab.gateway({"tracing": {"otlpEndpoint": receiver.endpoint}})
            tenant = gateway.tenant("shop", lab.emulator())
            lab.wait_until("a request that hangs", lambda: receiver.requests)
            self.send(tenant)
            self.assertEqual(gateway.stop(), 0)
            self.assertEqual(receiver.faults, [])

    def test_off(self) -> None:
        """Without a receiver the metrics are there, at 0."""
        with Lab(PROGRAM, defaults=PATIENT) as lab:
            gateway = lab.gateway()
            self.send(gateway.tenant("shop", lab.emulator()))
            series = {name: value for name, value in gateway.metrics().items() if name.startswith("fcmgw_trace_")}
            self.assertEqual(set(series.values()), {0})
            self.assertEqual(len(series), 9)


if __name__ == "__main__":
    unittest.main()
