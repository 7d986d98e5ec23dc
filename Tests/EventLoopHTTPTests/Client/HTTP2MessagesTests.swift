import HTTPTypes
import NIOCore
import Testing

@testable import EventLoopHTTP

@Suite("HTTP2RequestHeadWriter")
struct HTTP2RequestHeadWriterTests {
    private static func lines(_ head: HTTP2RequestHeadWriter.Head) -> [String] {
        let starts = [0] + head.ends.map(Int.init)
        let texts = zip(starts, starts.dropFirst()).map { String(decoding: head.bytes[$0..<$1], as: UTF8.self) }
        return stride(from: 0, to: texts.count, by: 2).map { "\(texts[$0]): \(texts[$0 + 1])" }
    }

    @Test("Pseudo-headers come first, names are lowercase, and connection fields are omitted")
    func block() throws {
        var writer = HTTP2RequestHeadWriter(scheme: "https", authority: "a:1")
        let proxy = try #require(HTTPField.Name("Proxy-Connection"))
        let host = try #require(HTTPField.Name("Host"))
        let mixed = try #require(HTTPField.Name("X-Mixed"))
        let request = HTTPClientRequest(
            method: .post,
            path: "x y",
            headers: [mixed: "A: b", proxy: "close", host: "b", .te: "x", mixed: ""]
        )
        let head = writer.head(of: request)
        #expect(
            Self.lines(head) == [
                ":method: POST", ":scheme: https", ":authority: a:1", ":path: /x%20y", "x-mixed: A: b", "x-mixed: ",
            ]
        )
    }

    @Test("A writer used before gives the same head as a new one")
    func repeats() {
        var writer = HTTP2RequestHeadWriter(scheme: "https", authority: "a")
        let requests = [
            HTTPClientRequest(method: .get, path: "/"),
            HTTPClientRequest(method: .get, path: "/"),
            HTTPClientRequest(method: .get, path: "/b"),
            HTTPClientRequest(method: .delete, path: "/b"),
            HTTPClientRequest(method: .delete, path: "/b", headers: [.accept: "c"]),
            HTTPClientRequest(method: .delete, path: "/b", headers: [.accept: "c"], body: ByteBuffer(string: "d")),
            HTTPClientRequest(method: .delete, path: "/b", headers: [.accept: "c"], body: ByteBuffer(string: "ef")),
        ]
        for request in requests {
            let head = writer.head(of: request)
            var fresh = HTTP2RequestHeadWriter(scheme: "https", authority: "a")
            let expected = fresh.head(of: request)
            #expect(Self.lines(head) == Self.lines(expected))
        }
    }
}

@Suite("HTTP2ResponseReader")
struct HTTP2ResponseReaderTests {
    private static let limits = HTTP2ResponseReader.Limits(maxHeadBytes: 200, maxFields: 3, maxBodyBytes: 4)

    private static func reader(_ method: HTTPRequest.Method = .get) -> HTTP2ResponseReader {
        HTTP2ResponseReader(limits: Self.limits, method: method)
    }

    private static func name(_ step: HTTP2ResponseReader.Step) -> String {
        switch step {
        case .incomplete: "incomplete"
        case .complete(let response): "complete \(response.status.code) \(String(buffer: response.body))"
        case .tooLarge: "tooLarge"
        case .malformed: "malformed"
        }
    }

    private static let heads: [([(String, String)], Bool, String)] = [
        ([(":status", "200")], true, "complete 200 "),
        ([(":status", "599"), ("a", "b")], true, "complete 599 "),
        ([(":status", "200")], false, "incomplete"),
        ([(":status", "103")], false, "incomplete"),
        ([(":status", "103")], true, "malformed"),
        ([(":status", "101")], false, "malformed"),
        ([(":status", "099")], true, "malformed"),
        ([(":status", "600")], true, "malformed"),
        ([(":status", "20")], true, "malformed"),
        ([(":status", "2x0")], true, "malformed"),
        ([("a", "b")], true, "malformed"),
        ([(":status", "200"), ("a", "b\r\nc: d")], true, "malformed"),
        ([(":status", "200"), ("a b", "c")], true, "malformed"),
        ([(":status", "200"), ("A", "b")], true, "malformed"),
        ([(":status", "200"), ("", "b")], true, "malformed"),
        ([(":status", "200"), (":status", "200")], true, "malformed"),
        ([(":status", "200"), (":path", "/")], true, "malformed"),
        ([("a", "b"), (":status", "200")], true, "malformed"),
        ([(":status", "200"), ("connection", "close")], true, "malformed"),
        ([(":status", "200"), ("keep-alive", "1")], true, "malformed"),
        ([(":status", "200"), ("proxy-connection", "close")], true, "malformed"),
        ([(":status", "200"), ("transfer-encoding", "chunked")], true, "malformed"),
        ([(":status", "200"), ("upgrade", "x")], true, "malformed"),
        ([(":status", "200"), ("content-length", "4")], false, "incomplete"),
        ([(":status", "200"), ("content-length", "5")], false, "tooLarge"),
        ([(":status", "200"), ("content-length", "0")], true, "complete 200 "),
        ([(":status", "200"), ("content-length", "5")], true, "malformed"),
        ([(":status", "304"), ("content-length", "5")], true, "complete 304 "),
        ([(":status", "200"), ("content-length", "99999999999999999999")], false, "tooLarge"),
        ([(":status", "200"), ("content-length", "-1")], false, "malformed"),
        ([(":status", "200"), ("a", ""), ("b", ""), ("c", "")], true, "complete 200 "),
        ([(":status", "200"), ("a", ""), ("b", ""), ("c", ""), ("d", "")], true, "tooLarge"),
        ([(":status", "200"), ("a", String(repeating: "a", count: 124))], true, "complete 200 "),
        ([(":status", "200"), ("a", String(repeating: "a", count: 126))], true, "tooLarge"),
    ]

    @Test("A response head is complete, incomplete, malformed or too large", arguments: Self.heads)
    func head(fields: [(String, String)], endsStream: Bool, expected: String) {
        var reader = Self.reader()
        let step = reader.read(fields, endsStream: endsStream)
        #expect(Self.name(step) == expected)
    }

    @Test("The answer to HEAD states the length of a body that does not follow")
    func headMethod() {
        var reader = Self.reader(.head)
        let step = reader.read([(":status", "200"), ("content-length", "4")], endsStream: true)
        #expect(Self.name(step) == "complete 200 ")
    }

    @Test("A body of another length than the head states is malformed", arguments: ["abc", ""])
    func statedLength(body: String) {
        var reader = Self.reader()
        _ = reader.read([(":status", "200"), ("content-length", "4")], endsStream: false)
        _ = reader.read(body.utf8.span)
        let step = reader.end()
        #expect(Self.name(step) == "malformed")
    }

    @Test("Interim heads, a body in pieces and trailers form one response")
    func whole() {
        var reader = Self.reader()
        #expect(!reader.hasBegun)
        _ = reader.read([(":status", "100")], endsStream: false)
        #expect(reader.hasBegun)
        _ = reader.read([(":status", "200")], endsStream: false)
        for piece in ["ab", "", "cd"] {
            let step = reader.read(piece.utf8.span)
            #expect(Self.name(step) == "incomplete")
        }
        let step = reader.read([("x", "y")], endsStream: true)
        #expect(Self.name(step) == "complete 200 abcd")
    }

    @Test("A body before its head, a body beyond its limit and trailers that don't end the stream are refused")
    func body() {
        var reader = Self.reader()
        let early = reader.read("a".utf8.span)
        #expect(Self.name(early) == "malformed")
        _ = reader.read([(":status", "200")], endsStream: false)
        _ = reader.read("abc".utf8.span)
        let large = reader.read("de".utf8.span)
        #expect(Self.name(large) == "tooLarge")
        let trailers = reader.read([("x", "y")], endsStream: false)
        #expect(Self.name(trailers) == "malformed")
    }

    @Test(
        "Invalid trailer fields are refused",
        arguments: [(":status", "200"), ("A", "b"), ("", "b"), ("a b", "c"), ("a", "b\r\nc: d"), ("upgrade", "x")]
    )
    func trailers(field: (String, String)) {
        var reader = Self.reader()
        _ = reader.read([(":status", "200")], endsStream: false)
        let step = reader.read([field], endsStream: true)
        #expect(Self.name(step) == "malformed")
    }

    @Test("The number of interim heads is limited")
    func informational() {
        var reader = Self.reader()
        for _ in 0..<HTTPClientCore.maxInformationalHeads {
            let step = reader.read([(":status", "102")], endsStream: false)
            #expect(Self.name(step) == "incomplete")
        }
        let step = reader.read([(":status", "102")], endsStream: false)
        #expect(Self.name(step) == "malformed")
    }
}

extension HTTP2ResponseReader {
    fileprivate mutating func read(_ fields: [(String, String)], endsStream: Bool) -> Step {
        self.beginBlock()
        for (name, value) in fields { self.readField(name: name.utf8.span, value: value.utf8.span) }
        return self.endBlock(endsStream: endsStream)
    }
}
