import EventLoopHTTP
import GatewayTestKit
import HTTPTypes
import NIOCore
import Testing

@testable import GatewayCore
@testable import GatewayTracing

extension TraceSpan {
    static func sample(_ name: String) -> TraceSpan {
        TraceSpan(traceID: "", id: "", parentID: nil, name: name, kind: .client, start: 0, end: 0)
    }
}

struct OTLPTests {
    @Test("Spans are written in OTLP's JSON: ids in hexadecimal, 64-bit numbers as strings, enumerations as numbers")
    func encoding() {
        let server = TraceSpan(
            traceID: RequestTrace.sampleID,
            id: "00000000000000a1",
            parentID: "00f067aa0ba902b7",
            isParentRemote: true,
            state: "a=1",
            name: "POST /v1/x",
            kind: .server,
            start: 1_700_000_000_000_000_001,
            end: 1_700_000_000_000_000_009,
            isError: true,
            attributes: [("http.route", .text("/v1/\"x\"\n")), ("http.response.status_code", .number(503))]
        )
        let text = String(
            buffer: OTLPReceiver.Resource(version: "1.2", instance: "replica/1").encode([server, .sample("GET")])
        )
        #expect(
            text == #"{"resourceSpans":[{"resource":{"attributes":["#
                + #"{"key":"service.name","value":{"stringValue":"fcm-gateway"}},"#
                + #"{"key":"service.version","value":{"stringValue":"1.2"}},"#
                + #"{"key":"service.instance.id","value":{"stringValue":"replica/1"}}]},"#
                + #""scopeSpans":[{"scope":{"name":"fcm-gateway","version":"1.2"},"spans":["#
                + #"{"traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00000000000000a1","#
                + #""parentSpanId":"00f067aa0ba902b7","traceState":"a=1","flags":769,"name":"POST /v1/x","kind":2,"#
                + #""startTimeUnixNano":"1700000000000000001","endTimeUnixNano":"1700000000000000009","attributes":["#
                + #"{"key":"http.route","value":{"stringValue":"/v1/\"x\"\n"}},"#
                + #"{"key":"http.response.status_code","value":{"intValue":"503"}}],"status":{"code":2}},"#
                + #"{"traceId":"","spanId":"","flags":257,"name":"GET","kind":3,"#
                + #""startTimeUnixNano":"0","endTimeUnixNano":"0","attributes":[]}]}]}]}"#
        )
        let alone = OTLPReceiver.Resource(version: "1.2", instance: nil).encode([])
        #expect(!String(buffer: alone).contains("service.instance.id"))
    }

    @Test("Spans go to /v1/traces below the base URL")
    func addresses() throws {
        #expect(try OTLPReceiver("http://[::1]:4318/x/").path == "/x/v1/traces")
        #expect(try OTLPReceiver("https://otlp.example.com/a/otlp").path == "/a/otlp/v1/traces")
        #expect(try OTLPReceiver("http://localhost:4318").path == "/v1/traces")
        #expect(try OTLPReceiver("http://localhost:4318/").path == "/v1/traces")
    }

    @Test(
        "An invalid address is refused, and the message does not repeat it",
        arguments: [
            "localhost:4318", "grpc://localhost:4317", "http://", "/v1/traces", "https://user:canary@otlp.example.com",
            "http://localhost:4318/v1/traces", "http://localhost:4318/v1/traces/", "http://localhost:4318/?canary=1",
            "http://localhost:4318/#canary", "http://localhost:4318/canary canary", "http://localhost:4318/cañary",
        ]
    )
    func badAddresses(url: String) throws {
        #expect(!(try #require(OTLPReceiver.problem(url)).contains("canary")))
    }

    @Test("Header fields are parsed in the form of OTEL_EXPORTER_OTLP_HEADERS and sent with each request")
    func fields() throws {
        let list = "Authorization=Basic%20dTpw==, x-scope-orgid = tenant%2C1,x-scope-orgid=2"
        let receiver = try OTLPReceiver("http://localhost:4318", fields: list)
        let fields = receiver.request([], of: OTLPReceiver.Resource(version: "1.2.3", instance: nil)).headers.fields
        #expect(fields[.authorization] == "Basic dTpw==")
        #expect(fields[values: try #require(HTTPField.Name("X-Scope-OrgID"))] == ["tenant,1", "2"])
        #expect(fields[.contentType] == "application/json" && fields[.userAgent] == "fcm-gateway/1.2.3")
    }

    @Test(
        "Invalid header fields are refused, and the message does not repeat them",
        arguments: [
            "", "canary", "=canary", "x-canary=", "x y=canary", "a=b,,c=d", "a=b,canary", "x=%zzcanary", "x=canary%0A",
            "Content-Type=canary/x", "host=canary", "Transfer-Encoding=canary", "x=cañary",
        ]
    )
    func badFields(list: String) throws {
        #expect(!(try #require(OTLPReceiver.fieldsProblem(list)).contains("canary")))
    }

    @Test(
        "The response's status, Retry-After and body give the outcome of the spans",
        arguments: [
            (200, nil, "{}", OTLPReceiver.Answer.taken(rejected: 0)), (202, nil, "\u{0}protobuf", .taken(rejected: 0)),
            (200, nil, #"{"partialSuccess":{}}"#, .taken(rejected: 0)),
            (200, nil, #"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"no"}}"#, .taken(rejected: 3)),
            (200, nil, #"{"partialSuccess":{"rejectedSpans":3}}"#, .taken(rejected: 3)),
            (200, nil, #"{"partialSuccess":{"rejectedSpans":"-3"}}"#, .taken(rejected: 0)),
            (429, "7", "", .unavailable(retryAfter: 7)), (503, "soon", "", .unavailable(retryAfter: nil)),
            (502, nil, "", .unavailable(retryAfter: nil)), (504, nil, "", .unavailable(retryAfter: nil)),
            (500, "7", "", .refused), (400, nil, "", .refused), (301, nil, "", .refused), (413, nil, "", .refused),
        ]
    )
    func answers(status: Int, retryAfter: String?, body: String, answer: OTLPReceiver.Answer) {
        #expect(OTLPReceiver.Answer(status: status, retryAfter: retryAfter, body: ByteBuffer(string: body)) == answer)
    }

    // MARK: The buffer

    @Test("Complete batches are taken in order, and a tick releases an incomplete one only if it is alone")
    func buffer() {
        var buffer = SpanQueue.Buffer(capacity: 4, batchSize: 3)
        let outcomes = (1...5).map { buffer.add(.sample("\($0)")) }
        #expect(outcomes == [.added, .added, .completedBatch, .added, .lost(.queueFull)])
        buffer.tick()
        #expect(buffer.take()?.map(\.name) == ["1", "2", "3"] && buffer.take() == nil)
        #expect(buffer.add(.sample("6")) == .added)
        buffer.tick()
        #expect(buffer.take()?.map(\.name) == ["4", "6"])
    }

    @Test("Closing the buffer returns the number of remaining spans, and later spans are lost")
    func closedBuffer() {
        var buffer = SpanQueue.Buffer(capacity: 4, batchSize: 3)
        for _ in 1...4 { _ = buffer.add(.sample("")) }
        #expect(buffer.close() == 4)
        #expect(buffer.take() == nil && buffer.add(.sample("")) == .lost(.shutdown) && buffer.close() == 0)
    }
}
