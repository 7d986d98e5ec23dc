import HTTPTypes
import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("Heads of answers")
struct HTTPHeadParserTests {
    // Found by fuzzing: they were accepted where no body follows.
    @Test(
        "A length and a coding, or a length that is none, are refused even where no body can follow",
        arguments: [200, 204, 304],
        ["Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "Content-Length: +5\r\n", "Content-Length:\r\n"]
    )
    func contradictions(status: Int, fields: String) {
        for method in [HTTPRequest.Method.head, .post] {
            #expect(Self.framing("HTTP/1.1 \(status) X\r\n\(fields)\r\n", method) == nil)
        }
    }

    @Test("An answer to HEAD may state any length, and has no body", arguments: [0, 5, 99_999])
    func headLength(length: Int) {
        #expect(Self.framing("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n", .head) == HTTPBodyFraming.none)
    }

    @Test("One length, one coding or neither say how the body ends")
    func framings() {
        #expect(Self.framing("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", .post) == .length(5))
        #expect(Self.framing("HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", .post) == .chunked)
        #expect(Self.framing("HTTP/1.1 200 OK\r\n\r\n", .post) == .untilClose)
        #expect(Self.framing("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", .post) == nil)
    }

    private static func framing(_ head: String, _ method: HTTPRequest.Method) -> HTTPBodyFraming? {
        try? HTTPHeadParser.response(ByteBuffer(string: head), to: method, maxBodyBytes: 100)?.framing
    }

    @Test("The lines of an answer are its fields, also where they are longer than a head can be")
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
