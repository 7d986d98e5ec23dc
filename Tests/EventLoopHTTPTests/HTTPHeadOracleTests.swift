import GatewayTestKit
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import EventLoopHTTP

/// Our head parser beside SwiftNIO's on heads that a seeded generator bends.
///
/// What ours accepts, the other has to accept too, and has to read in the same way: a proxy or a server in front of the
/// gateway must never see another request than the gateway does.
@Suite("HTTP heads beside another parser", .timeLimit(.minutes(10)))
struct HTTPHeadOracleTests {
    private static let rules = HTTPHeadParser.RequestRules(maxURIBytes: 4096, scheme: "http")

    private static let seeds = [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /v1/tenants/demo/messages?x=%20y HTTP/1.1\r\nHost: a.example:8080\r\nContent-Length: 5\r\n"
            + "Authorization: Bearer abc\r\nContent-Type: application/json\r\nX-Request-ID: r-1\r\n\r\n",
        "PUT /x HTTP/1.1\r\nHost: [::1]:80\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nhost: a\r\nAccept:  */*  \r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n",
        "GET http://a/x HTTP/1.1\r\nHost: a\r\nX-A: \t b\tc \r\nX-A: d\r\nConnection: keep-alive\r\n\r\n",
        "DELETE /x HTTP/1.0\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n",
    ]
    private static let pieces = [
        "\r", "\n", "\r\n", " ", "\t", ":", ";", ",", "\0", "\u{7F}", "\u{0B}", "#", "?", "/", "%", "ä", "_", "0", "9",
        "+",
        "-", "HTTP/1.1", "HTTP/1.0", "Host: a\r\n", "Content-Length: 5\r\n", "Content-Length: 05\r\n",
        "Transfer-Encoding: chunked\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n", "Connection: close\r\n", " folded",
    ]

    @Test("What is accepted here is accepted there, and means the same", arguments: 0..<6 as Range<UInt64>)
    func agrees(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var accepted = 0
        for _ in 0..<2_500 {
            let text = Self.bent(&generator)
            let head = ByteBuffer(string: text)
            var scanner = HTTPHeadScanner(
                limits: .init(maxHeadBytes: 16_384, maxStartLineBytes: 8_192, maxFieldBytes: 8_192, maxFields: 64)
            )
            guard scanner.scan(head.readableBytesUInt8Span) == .complete(byteCount: head.readableBytes),
                let ours = try? HTTPHeadParser.request(head, Self.rules)
            else { continue }
            accepted += 1
            // White space behind a value is none of it here; the other parser is stricter about tabs behind lengths.
            guard let theirs = Self.oracle(ByteBuffer(string: text.replacing(#/[ \t]+\r\n/#, with: "\r\n"))) else {
                Issue.record("refused there: \(text.debugDescription)")
                continue
            }
            #expect(ours.head.method.rawValue == theirs.method.rawValue, "\(text.debugDescription)")
            #expect(theirs.uri.hasSuffix(ours.head.path) || ours.head.path == "/" || ours.head.path == "*")
            #expect(!ours.keepsAlive || theirs.isKeepAlive || text.contains("\t"), "\(text.debugDescription)")
            let fields = ours.head.fields.fields
            #expect(fields.map { $0.name.rawName } == theirs.headers.map { $0.name }, "\(text.debugDescription)")
            #expect(
                fields.map { Self.trimmed($0.value) } == theirs.headers.map { Self.trimmed($0.value) },
                "\(text.debugDescription)"
            )
            switch ours.framing {
            case .none: #expect(theirs.headers["content-length"].allSatisfy { Int($0) == 0 })
            case .length(let length): #expect(theirs.headers["content-length"].compactMap { Int($0) } == [length])
            case .chunked: #expect(theirs.headers["transfer-encoding"].map { $0.lowercased() } == ["chunked"])
            case .untilClose: Issue.record("A request never ends with its connection.")
            }
        }
        // The generator has to produce heads worth comparing.
        #expect(accepted > 250)
    }

    /// White space around a value means nothing, and the two leave different parts of it.
    private static func trimmed(_ value: String) -> Substring {
        let start = value.drop { $0 == " " || $0 == "\t" }
        return start.lastIndex { $0 != " " && $0 != "\t" }.map { start[...$0] } ?? ""
    }

    /// A seed with up to three pieces put in, taken out or doubled.
    private static func bent(_ generator: inout SeededGenerator) -> String {
        var bytes = Array(Self.seeds[Int.random(in: 0..<Self.seeds.count, using: &generator)].utf8)
        for _ in 0..<Int.random(in: 0...3, using: &generator) {
            let at = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<4, using: &generator) {
            case 0:
                bytes.remove(at: at)
            case 1:
                bytes.insert(bytes[at], at: at)
            default:
                let piece = Self.pieces[Int.random(in: 0..<Self.pieces.count, using: &generator)]
                // Whole lines are put where a line can start.
                let lineStart = piece.hasSuffix("\r\n") ? bytes[at...].firstIndex(of: 10).map { $0 + 1 } ?? at : at
                bytes.insert(contentsOf: piece.utf8, at: min(lineStart, bytes.count))
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The head as SwiftNIO's parser reads it, `nil` where it refuses.
    private static func oracle(_ head: ByteBuffer) -> NIOHTTP1.HTTPRequestHead? {
        let channel = EmbeddedChannel()
        defer { _ = try? channel.finish(acceptAlreadyClosed: true) }
        do {
            try channel.pipeline.syncOperations.addHandler(ByteToMessageHandler(HTTPRequestDecoder()))
            try channel.writeInbound(head)
            guard case .head(let head) = try channel.readInbound(as: HTTPServerRequestPart.self) else { return nil }
            return head
        } catch {
            return nil
        }
    }
}
