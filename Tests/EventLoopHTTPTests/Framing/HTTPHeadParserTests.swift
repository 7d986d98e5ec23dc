import HTTPTypes
import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("Response heads")
struct HTTPHeadParserTests {
    // Found by fuzzing: these were accepted in responses without a body.
    @Test(
        "A length with a coding and an invalid length are refused even without a body",
        arguments: [200, 204, 304],
        ["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: +5\r\n", "Content-Length:\r\n"]
    )
    func contradictions(status: Int, fields: String) {
        for method in [HTTPRequest.Method.head, .post] {
            #expect(Self.framing("HTTP/1.1 \(status) X\r\n\(fields)\r\n", method) == nil)
        }
    }

    private static func framing(_ head: String, _ method: HTTPRequest.Method) -> HTTPBodyFraming? {
        try? HTTPHeadParser.response(ByteBuffer(string: head), to: method, maxBodyBytes: 100)?.framing
    }

    @Test("Header lines are returned as fields, even if they are longer than any head")
    func writtenFields() {
        var lines = HTTPHeaderLines()
        let value = String(repeating: "v", count: 50_000)
        for _ in 0..<2 { lines.append(HTTPFieldKey(.location), value) }
        lines.append(HTTPFieldKey(.via), "a: b, c")
        #expect(lines.fields.map(\.value) == [value, value, "a: b, c"])
        #expect(lines.fields.map(\.name) == [.location, .location, .via])
        #expect(HTTPHeaderLines().fields.isEmpty)
    }
}

@Suite("HTTPHeadScanner")
struct HTTPHeadScannerTests {
    private static let limits = HTTPHeadScanner.Limits(
        maxHeadBytes: 100,
        maxStartLineBytes: 20,
        maxFieldBytes: 30,
        maxFields: 3
    )

    private static let heads: [(String, HTTPHeadScanner.Step)] = [
        ("GET / HTTP/1.1\r\n\r\n", HTTPHeadScanner.Step.complete(byteCount: 18)),
        ("GET / HTTP/1.1\r\nA: b\r\n\r\nrest", .complete(byteCount: 24)),
        ("\r\n\r\nGET / HTTP/1.1\r\n\r\n", .complete(byteCount: 22)),
        ("GET / HTTP/1.1\n\n", .complete(byteCount: 16)),
        ("GET / HTTP/1.1\r\nA: b\r\n", .incomplete),
        ("", .incomplete),
        ("\r\n\r\n", .incomplete),
        ("GET /1234567 HTTP/1.1\r\n", .startLineTooLong),
        ("GET /12345 HTTP/1.1\r\n", .incomplete),
        ("GET /123456789012345678901", .startLineTooLong),
        ("G / HTTP/1.1\r\nA: 345678901234567890123456789\r\n", .incomplete),
        ("G / HTTP/1.1\r\nA: 345678901234567890123456789x\r\n", .tooLarge),
        ("G / HTTP/1.1\r\nA: 345678901234567890123456789xyz", .tooLarge),
        ("G / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\n\r\n", .complete(byteCount: 28)),
        ("G / HTTP/1.1\r\nA:\r\nB:\r\nC:\r\nD:\r\n", .tooLarge),
        (String(repeating: "\r\n", count: 51), .tooLarge),
        (
            "G / HTTP/1.1\r\nA: 34567890123456789012345678\r\nA: 34567890123456789012345678\r\n"
                + "A: 34567890123456789012345678\r\n\r\n", .tooLarge
        ),
    ]

    @Test("Head limits count bytes as received, whole or byte by byte", arguments: Self.heads)
    func measures(head: String, step: HTTPHeadScanner.Step) {
        var whole = HTTPHeadScanner(limits: Self.limits)
        #expect(whole.scan(ByteBuffer(string: head).readableBytesUInt8Span) == step)

        // Byte by byte the result is the same, at the latest with the last byte.
        var piecewise = HTTPHeadScanner(limits: Self.limits)
        var verdict = HTTPHeadScanner.Step.incomplete
        var consumed = 0
        for byte in head.utf8 {
            verdict = piecewise.scan(ByteBuffer(bytes: [byte]).readableBytesUInt8Span)
            consumed += 1
            if verdict != .incomplete { break }
        }
        if case .complete(let byteCount) = step {
            #expect(verdict == .complete(byteCount: 1))
            #expect(consumed == byteCount)
        } else {
            #expect(verdict == step)
        }
    }

    @Test("A scan of eight bytes at a time finds what single bytes would", arguments: 0..<18)
    func words(place: Int) {
        for byte in UInt8.min...UInt8.max {
            for other in [UInt8(ascii: "a"), HTTPGrammar.tab, 0x80] {
                var bytes = [UInt8](repeating: other, count: 18)
                bytes[place] = byte
                let end = HTTPGrammar.endOfText(in: bytes.span, from: 0)
                let feed = HTTPGrammar.nextLineFeed(in: bytes.span, from: 0)
                #expect(end == (HTTPGrammar.isText(byte) ? bytes.count : place))
                #expect(feed == (byte == HTTPGrammar.lineFeed ? place : bytes.count))
            }
        }
    }
}
