import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("HTTPChunkScanner")
struct HTTPChunkScannerTests {
    private static let bodies: [(String, HTTPChunkScanner.Step)] = [
        ("0\r\n\r\n", HTTPChunkScanner.Step.complete(byteCount: 5)),
        ("5\r\nhello\r\n0\r\n\r\nGET", .complete(byteCount: 15)),
        ("a\r\n0123456789\r\n0\r\n\r\n", .complete(byteCount: 20)),
        ("A;x=y\r\n0123456789\r\n0\r\n\r\n", .complete(byteCount: 24)),
        ("000\r\nA: b\r\nC: d\r\n\r\nmore", .complete(byteCount: 19)),
        ("5\r\nhello\r\n0\r\n", .incomplete),
        ("5\r\nhel", .incomplete),
        ("b\r\n", .tooLarge),
        ("5\r\nhello\r\n6", .tooLarge),
        ("FFFFFFFFFFFFFFFFF\r\n", .tooLarge),
        ("1;" + String(repeating: "x", count: 40), .tooLarge),
        ("0\r\n" + String(repeating: "A: b\r\n", count: 8), .tooLarge),
        ("\r\n", .malformed),
        ("-1\r\n", .malformed),
        (" 5\r\n", .malformed),
        ("x\r\n", .malformed),
    ]

    @Test("A chunked body's end is found and its bytes are bounded", arguments: Self.bodies)
    func scans(body: String, step: HTTPChunkScanner.Step) {
        var whole = HTTPChunkScanner(maxBodyBytes: 10, maxOverheadBytes: 32)
        #expect(whole.scan(ByteBuffer(string: body).readableBytesUInt8Span) == step)

        var piecewise = HTTPChunkScanner(maxBodyBytes: 10, maxOverheadBytes: 32)
        var verdict = HTTPChunkScanner.Step.incomplete
        var consumed = 0
        for byte in body.utf8 {
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
}
