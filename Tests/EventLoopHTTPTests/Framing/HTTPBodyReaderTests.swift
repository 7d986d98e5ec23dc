import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("HTTPBodyReader")
struct HTTPBodyReaderTests {
    typealias Case = (wire: String, step: HTTPBodyReader.Step, body: String, rest: String)

    private static let chunked: [Case] = [
        ("0\r\n\r\n", .complete, "", ""),
        ("5\r\nhello\r\n0\r\n\r\nGET", .complete, "hello", "GET"),
        ("2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", .complete, "hello", ""),
        ("a\r\n0123456789\r\n0\r\n\r\n", .complete, "0123456789", ""),
        ("A;x=y\r\n0123456789\r\n0\r\n\r\n", .complete, "0123456789", ""),
        ("000\r\nA: b\r\nC: d\r\n\r\nmore", .complete, "", "more"),
        ("5\r\nhello\r\n0\r\n", .incomplete, "hello", ""),
        ("5\r\nhel", .incomplete, "hel", ""),
    ]

    @Test("A chunked body is read to its end, whole or byte by byte", arguments: Self.chunked)
    func reads(_ expected: Case) {
        var whole = Self.reader()
        var bytes = ByteBuffer(string: expected.wire)
        #expect(whole.read(from: &bytes) == expected.step)
        #expect(String(buffer: whole.body) == expected.body)
        #expect(String(buffer: bytes) == expected.rest)

        var piecewise = Self.reader()
        var step = HTTPBodyReader.Step.incomplete
        for byte in expected.wire.utf8.dropLast(expected.rest.utf8.count) {
            #expect(step == .incomplete)
            var piece = ByteBuffer(bytes: [byte])
            step = piecewise.read(from: &piece)
            #expect(piece.readableBytes == 0)
        }
        #expect(step == expected.step)
        #expect(String(buffer: piecewise.body) == expected.body)
    }

    private static let refused: [(String, HTTPBodyReader.Step)] = [
        ("b\r\n", .tooLarge),
        ("5\r\nhello\r\n6", .tooLarge),
        ("FFFFFFFFFFFFFFFFF\r\n", .tooLarge),
        ("1;" + String(repeating: "x", count: 40), .tooLarge),
        ("0\r\n" + String(repeating: "A: b\r\n", count: 8), .tooLarge),
        (";x\r\n", .malformed),
        ("x\r\n", .malformed),
        ("5;\u{7F}\r\n", .malformed),
        ("1\r\na\rx", .malformed),
        ("0\r\n: y\r\n", .malformed),
        ("0\r\nX: y\rz", .malformed),
        ("0\r\nX: \u{0}\r\n", .malformed),
        ("0\r\n\rx", .malformed),
    ]

    @Test("An oversized or malformed chunked body is refused, whole or byte by byte", arguments: Self.refused)
    func refuses(wire: String, step: HTTPBodyReader.Step) {
        var whole = Self.reader()
        var bytes = ByteBuffer(string: wire)
        #expect(whole.read(from: &bytes) == step)

        var piecewise = Self.reader()
        var verdict = HTTPBodyReader.Step.incomplete
        for byte in wire.utf8 where verdict == .incomplete {
            var piece = ByteBuffer(bytes: [byte])
            verdict = piecewise.read(from: &piece)
        }
        #expect(verdict == step)
    }

    private static func reader() -> HTTPBodyReader {
        HTTPBodyReader(framing: .chunked, maxBodyBytes: 10, maxOverheadBytes: 32)
    }
}
