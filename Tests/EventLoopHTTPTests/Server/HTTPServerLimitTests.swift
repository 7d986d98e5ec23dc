import EventLoopHTTP
import Testing

@Suite("HTTPServer, limits", .timeLimit(.minutes(10)))
struct HTTPServerLimitTests {
    private static func padded(_ request: String, to count: Int) -> String {
        let name = "P: "
        let missing = count - request.utf8.count - name.utf8.count - 4
        return request + name + String(repeating: "p", count: missing) + "\r\n\r\n"
    }

    private static func post(_ fields: String, body: String = "") -> String {
        "POST /x HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n\(body)"
    }

    private static func chunked(_ body: String) -> String {
        Self.post("Transfer-Encoding: chunked", body: body)
    }

    private static let start = "GET / HTTP/1.1\r\nHost: a\r\n"
    private static let field = "F: " + String(repeating: "f", count: 8 * 1024 - 3) + "\r\n"

    private static let bounds: [(String, Int)] = [
        ("GET /" + String(repeating: "u", count: 4095) + " HTTP/1.1\r\nHost: a\r\n\r\n", 200),
        ("GET /" + String(repeating: "u", count: 4096) + " HTTP/1.1\r\nHost: a\r\n\r\n", 414),
        ("GET /" + String(repeating: "u", count: 20_000), 414),
        (start + "F: " + String(repeating: "f", count: 8 * 1024 - 3) + "\r\n\r\n", 200),
        (start + "F: " + String(repeating: "f", count: 8 * 1024 - 2) + "\r\n\r\n", 431),
        (start + "F:" + String(repeating: " ", count: 8 * 1024) + "f\r\n\r\n", 431),
        (start + "F: " + String(repeating: "f", count: 10_000), 431),
        (start + (1...63).map { "F\($0): f\r\n" }.joined() + "\r\n", 200),
        (start + (1...64).map { "F\($0): f\r\n" }.joined() + "\r\n", 431),
        (start + (1...5000).map { "F\($0): f\r\n" }.joined() + "\r\n", 431),
        (padded(start + field, to: 16 * 1024), 200),
        (padded(start + field, to: 16 * 1024 + 1), 431),
        (String(repeating: "\r\n", count: 10_000) + start + "\r\n", 431),
        (post("Content-Length: 1000", body: String(repeating: "b", count: 1000)), 200),
        (post("Content-Length: 1001"), 413),
        (post("Content-Length: 99999999999999999"), 413),
        (chunked("3E8\r\n" + String(repeating: "b", count: 1000) + "\r\n0\r\n\r\n"), 200),
        (chunked("3E9\r\n"), 413),
        (
            chunked(
                String(repeating: "64\r\n" + String(repeating: "b", count: 100) + "\r\n", count: 10) + "1\r\n"
            ), 413
        ),
        (chunked("1;" + String(repeating: "x", count: 1_000_000)), 413),
    ]

    @Test("A request at a limit is accepted, and one beyond it is refused", arguments: Self.bounds)
    func holdsBounds(request: String, status: Int) async throws {
        try await withConnection(EchoResponder(), configure: { $0.bodyLimit = { _ in 1000 } }) { connection in
            connection.offer(request)
            let responses = await connection.responses(1)
            #expect(responses.map(\.status) == [status])
            if status != 200 {
                #expect(RawResponse.parse(await connection.textUntilClosed()).count == 1)
            }
            await connection.close()
        }
    }

    @Test("Too many trailers get 413 or 431")
    func trailers() async throws {
        try await withConnection(EchoResponder()) { connection in
            connection.offer(Self.chunked("0\r\n" + String(repeating: "T: t\r\n", count: 10_000)))
            // The limit that is exceeded first depends on how the bytes arrive.
            let responses = RawResponse.parse(await connection.textUntilClosed())
            #expect(responses.count == 1)
            #expect(responses.first.map { [413, 431].contains($0.status) } == true)
        }
    }

    @Test("The body limit can depend on the path")
    func bodyLimitByPath() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.bodyLimit = { $0.path == "/large" ? 100 : 1 }
        }
        try await withConnection(EchoResponder(), configure: configure) { connection in
            try await connection.send("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok")
            try await connection.send("POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nno")
            #expect(await connection.responses(2).map(\.status) == [200, 413])
        }
    }

    @Test("A body within the least limit is read without a look at its head, and a chunked one with it")
    func leastBodyLimit() async throws {
        let configure: (inout HTTPServerConfiguration) -> Void = {
            $0.bodyLimit = { $0.path == "/large" ? 100 : 1 }
            $0.leastBodyLimit = 2
        }
        try await withConnection(EchoResponder(), configure: configure) { connection in
            for length in 2...3 {
                let body = String(repeating: "x", count: length)
                for path in ["large", "small"] {
                    try await connection.send(
                        "POST /\(path) HTTP/1.1\r\nHost: a\r\nContent-Length: \(length)\r\n\r\n\(body)"
                    )
                }
            }
            #expect(await connection.responses(4).map(\.status) == [200, 200, 200, 413])
        }
    }

    @Test("A client that sends a large refused body gets its 413")
    func lingers() async throws {
        try await withConnection(EchoResponder()) { connection in
            connection.offer("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 500000\r\n\r\n")
            connection.offer([UInt8](repeating: 0, count: 500_000))
            #expect(RawResponse.parse(await connection.textUntilClosed()).map(\.status) == [413])
        }
    }

    @Test("A connection beyond the limit gets 503, and the open connection continues")
    func tooManyConnections() async throws {
        try await withServer(EchoResponder(), configure: { $0.maxConnections = 1 }) { _, port in
            let first = try await RawConnection.open(port: port)
            try await first.send("GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\n")
            #expect(await first.responses(1).map(\.status) == [200])
            // The first connection is not idle: it has sent half of a request.
            let second = try await RawConnection.open(port: port)
            #expect(RawResponse.parse(await second.textUntilClosed()).map(\.status) == [503])
            try await first.send("Host: a\r\nConnection: close\r\n\r\n")
            #expect(RawResponse.parse(await first.textUntilClosed()).map(\.status) == [200, 200])
        }
    }
}
