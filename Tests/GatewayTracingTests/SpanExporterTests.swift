import EventLoopHTTP
import GatewayTestKit
import HTTPTypes
import InMemoryLogging
import Logging
import MetricsTestKit
import NIOCore
import NIOPosix
import ServiceLifecycleTestKit
import Testing

@testable import GatewayCore
@testable import GatewayTracing

@Suite("SpanExporter", .timeLimit(.minutes(10)))
struct SpanExporterTests {
    /// Answers each request by its number, starting at 1.
    private struct Receiver: HTTPServerResponder {
        let requests = Observed<[HTTPServerRequest]>([])
        let answer: @Sendable (Int) async -> HTTPServerResponse

        init(_ answer: @escaping @Sendable (Int) async -> HTTPServerResponse) { self.answer = answer }

        func respond(to request: HTTPServerRequest) async -> HTTPServerResponse {
            let number = self.requests.change { requests in
                requests.append(request)
                return requests.count
            }
            return await self.answer(number)
        }

        var names: [[String]] {
            self.requests.current.map { request in
                String(buffer: request.body).matches(of: #/"name":"([^"]*)","kind"/#).map { String($0.1) }
            }
        }
    }

    private typealias Body = @Sendable () async throws -> Void

    private let metrics = TestMetrics()
    private let logs = InMemoryLogHandler()
    private let waits = Observed<[Duration]>([])
    private let ticks = Observed(0)
    private let queue: SpanQueue

    init() {
        self.queue = SpanQueue(metrics: GatewayMetrics(factory: self.metrics))
    }

    private func export(_ names: String...) {
        for name in names { self.queue.add(.sample(name)) }
        self.queue.tick()
    }

    /// The counters above zero, by the value of their label.
    private func counts() throws -> [String: Int64] {
        let losses = SpanQueue.Loss.allCases.map { ("fcmgw_trace_spans_dropped_total", "reason", "lost ", $0.rawValue) }
        let results = ExportResult.allCases.map { ("fcmgw_trace_exports_total", "result", "", $0.rawValue) }
        var counts: [String: Int64] = [:]
        for (name, label, prefix, value) in losses + results {
            let count = try self.metrics.expectCounter(name, [(label, value)]).totalValue
            if count > 0 { counts[prefix + value] = count }
        }
        return counts
    }

    /// Runs an exporter during `body`, then shuts it down or cancels it.
    private func run(port: Int, cancels: Bool = false, _ body: Body) async throws {
        let exporter = try SpanExporter(
            self.queue,
            to: OTLPReceiver("http://127.0.0.1:\(port)/otlp", fields: "x-scope-orgid=shop"),
            as: OTLPReceiver.Resource(version: "1", instance: nil),
            logger: Logger(label: "test") { [logs] _ in logs },
            tick: { [ticks] in
                try await ticks.wait { $0 > 0 }
                ticks.change { $0 -= 1 }
            },
            pause: { [waits] wait in waits.change { $0.append(wait) } }
        )
        try await testGracefulShutdown { trigger in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask { try await exporter.run() }
                try await body()
                if cancels { group.cancelAll() } else { trigger.triggerGracefulShutdown() }
                try await group.waitForAll()
            }
        }
    }

    private func run(to receiver: Receiver, cancels: Bool = false, _ body: Body) async throws {
        var configuration = HTTPServerConfiguration(host: "127.0.0.1", port: 0)
        configuration.bodyLimit = { _ in 1 << 24 }
        let server = HTTPServer(
            configuration: configuration,
            responder: receiver,
            eventLoopGroup: MultiThreadedEventLoopGroup.singleton,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
        )
        try await server.start()
        try await self.run(port: server.port ?? 0, cancels: cancels, body)
        await server.shutdown(grace: .zero)
    }

    private static func reply(_ status: Int, _ fields: HTTPHeaderLines = [:], _ body: String = "") -> HTTPServerResponse
    {
        HTTPServerResponse(status: HTTPResponse.Status(code: status), headers: fields, body: ByteBuffer(string: body))
    }

    @Test("A complete batch is sent at once, an incomplete one at the next tick, and the rest at shutdown")
    func batches() async throws {
        let receiver = Receiver { _ in Self.reply(200) }
        try await self.run(to: receiver) {
            for number in 1...SpanQueue.batchSize { self.queue.add(.sample("\(number)")) }
            try await receiver.requests.wait { $0.count == 1 }
            self.queue.add(.sample("tick"))
            self.ticks.change { $0 += 1 }
            try await receiver.requests.wait { $0.count == 2 }
            self.queue.add(.sample("end"))
        }
        #expect(receiver.names == [(1...SpanQueue.batchSize).map { "\($0)" }, ["tick"], ["end"]])
        #expect(try self.counts() == ["taken": 3] && self.logs.entries.isEmpty)
        let head = try #require(receiver.requests.current.first?.head)
        #expect(head.method == .post && head.path == "/otlp/v1/traces")
        #expect(head.fields.fields[try #require(HTTPField.Name("x-scope-orgid"))] == "shop")
    }

    @Test("A permanent failure drops the batch, and an outage is logged at start and end", arguments: [400, 500])
    func refused(status: Int) async throws {
        let receiver = Receiver { Self.reply($0 <= 2 ? status : 200) }
        try await self.run(to: receiver) {
            for number in 1...3 {
                self.export("a")
                try await receiver.requests.wait { $0.count == number }
            }
        }
        #expect(try self.counts() == ["refused": 2, "lost refused": 2, "taken": 1])
        #expect(self.waits.current.isEmpty && self.logs.entries.map(\.level) == [.warning, .notice])
        #expect(self.logs.entries.first?.metadata["cause"] == "status \(status)")
    }

    @Test("A retryable status is retried after growing waits, and nothing is lost", arguments: [429, 502, 503, 504])
    func retried(status: Int) async throws {
        let receiver = Receiver { Self.reply($0 <= 3 ? status : 200) }
        try await self.run(to: receiver) {
            self.export("a")
            try await receiver.requests.wait { $0.count == 4 }
        }
        #expect(receiver.names == Array(repeating: ["a"], count: 4))
        #expect(try self.counts() == ["retried": 3, "taken": 1] && self.logs.entries.isEmpty)
        #expect(self.waits.current.count == 3)
        for (wait, seconds) in zip(self.waits.current, [1.0, 2.0, 4.0]) {
            #expect((.seconds(seconds) ... .seconds(1.5 * seconds)).contains(wait))
        }
    }

    @Test(
        "The wait follows Retry-After up to 30 seconds, and a shorter value does not shorten it",
        arguments: [("7", 7.0...7), ("0", 1...1.5), ("-9", 1...1.5), ("3600", 30...30)]
    )
    func retryAfter(text: String, seconds: ClosedRange<Double>) async throws {
        let receiver = Receiver { Self.reply($0 == 1 ? 503 : 200, [.retryAfter: text]) }
        try await self.run(to: receiver) {
            self.export("a")
            try await receiver.requests.wait { $0.count == 2 }
        }
        #expect(self.waits.current.map { seconds.contains($0 / .seconds(1)) } == [true])
    }

    @Test(
        "An unreadable response drops the batch without a retry, since the spans may have arrived",
        arguments: ["garbage\r\n\r\n", "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 40_000)]
    )
    func unreadable(answer: String) async throws {
        try await RawServer.run(.send(answer)) { server in
            try await self.run(port: server.port) {
                self.export("a", "b")
                while self.logs.entries.isEmpty { await Task.yield() }
            }
            #expect(server.seen.current.requests.count == 1)
        }
        #expect(try self.counts() == ["refused": 1, "lost refused": 2] && self.waits.current.isEmpty)
    }

    @Test("A batch for an unreachable receiver is dropped after four attempts")
    func away() async throws {
        try await ClosedPort.with { port in
            try await self.run(port: port) {
                self.export("a", "b")
                try await self.waits.wait { $0.count == 3 }
            }
        }
        #expect(try self.counts() == ["retried": 3, "failed": 1, "lost unreachable": 2])
        #expect(self.logs.entries.map(\.metadata) == [["cause": "connectFailed"]])
    }

    @Test("Rejected spans are counted, but no more than were sent", arguments: [1, 2, 1_000])
    func partial(rejected: Int) async throws {
        let body = #"{"partialSuccess":{"rejectedSpans":"\#(rejected)"}}"#
        try await self.run(to: Receiver { _ in Self.reply(200, [:], body) }) { self.export("a", "b") }
        #expect(try self.counts() == ["partial": 1, "lost refused": Int64(min(rejected, 2))])
    }

    @Test("Spans for a slow receiver are queued up to the bound, others are counted, and a cancellation does not wait")
    func slow() async throws {
        let never = Observed(false)
        let receiver = Receiver { _ in
            try? await never.wait { $0 }
            return Self.reply(200)
        }
        try await self.run(to: receiver, cancels: true) {
            self.export("a", "b")
            try await receiver.requests.wait { $0.count == 1 }
            for _ in 0..<(SpanQueue.capacity + 2) { self.export("c") }
        }
        #expect(receiver.names == [["a", "b"]])
        self.export("late")
        let lost = 2 + Int64(SpanQueue.capacity) + 1
        #expect(try self.counts() == ["failed": 1, "lost queue_full": 2, "lost shutdown": lost])
    }

    @Test("At a graceful shutdown a batch is tried once, and its loss is counted as shutdown")
    func gracefulEnd() async throws {
        try await self.run(to: Receiver { _ in Self.reply(503) }) { self.queue.add(.sample("a")) }
        #expect(try self.counts() == ["failed": 1, "lost shutdown": 1])
    }
}
