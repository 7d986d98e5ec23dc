import EventLoopHTTP
import HTTPTypes
import NIOCore
import Testing

/// Requests that could be read in two ways, byte for byte.
///
/// Each is answered at most once, nothing hidden in it reaches the responder, and the connection ends.
@Suite("HTTPServer, malformed and ambiguous requests", .timeLimit(.minutes(10)))
struct HTTPServerVectorTests {
    private static let hidden = "GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"

    static func post(_ fields: String, body: String = "") -> String {
        "POST /x HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n\(body)"
    }

    static func chunked(_ body: String) -> String {
        Self.post("Transfer-Encoding: chunked", body: body)
    }

    static let vectors: [(request: String, statuses: Set<Int>)] = [
        // Which length counts.
        (post("Content-Length: 5\r\nTransfer-Encoding: chunked", body: "0\r\n\r\n"), [400]),
        (post("Transfer-Encoding: chunked\r\nContent-Length: 5", body: "0\r\n\r\n"), [400]),
        (post("Content-Length: 5\r\nContent-Length: 5", body: "hello"), [400]),
        (post("Content-Length: 5\r\nContent-Length: 0", body: "hello"), [400]),
        (post("Content-Length: 5, 5", body: "hello"), [400]),
        (post("Content-Length: +5", body: "hello"), [400]),
        (post("Content-Length: -1"), [400]),
        (post("Content-Length: 5 5", body: "hello"), [400]),
        (post("Content-Length: 0x5", body: "hello"), [400]),
        (post("Content-Length: "), [400]),
        (post("Content-Length: 5;", body: "hello"), [400]),
        (post("Content-Length: 5.0", body: "hello"), [400]),
        (post("Content-Length: 99999999999999999999999", body: "hello"), [400, 413]),
        (post("Content-Length : 5", body: "hello"), [400]),
        (post("Content-Length\t: 5", body: "hello"), [400]),
        (post("Content-Length: 5\r\n Content-Length: 6", body: "hello"), [400]),
        // Which transfer coding counts.
        (post("Transfer-Encoding: gzip", body: "x"), [400, 501]),
        (post("Transfer-Encoding: gzip, chunked", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: chunked, gzip", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: chunked, chunked", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: xchunked", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: chunked;q=1", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: identity", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: \u{0B}chunked", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: \"chunked\"", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding:", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", body: "0\r\n\r\n"), [400, 501]),
        (post("Transfer-Encoding : chunked", body: "0\r\n\r\n"), [400]),
        (post("Transfer-Encoding:\r\n chunked", body: "0\r\n\r\n"), [400, 501]),
        ("POST /x HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", [400]),
        // Where a line ends.
        ("GET /x HTTP/1.1\nHost: a\n\n", [400, 505]),
        ("GET /x HTTP/1.1\r\nHost: a\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\n\n", [400]),
        ("GET /x HTTP/1.1\rHost: a\r\r\n\r\n", [400, 505]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX: a\rY: b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX: a\n b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\n Host: a\r\n\r\n", [400]),
        // What a field is.
        ("GET /x HTTP/1.1\r\nHost: a\r\nX: a\u{0}b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX\u{0}: b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX: a\u{7F}b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX Y: b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nX(Y): b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nÄ: b\r\n\r\n", [400]),
        // Which host is meant.
        ("GET /x HTTP/1.1\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", [400]),
        ("GET /x HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost:\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: u@a\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a, b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a:99999\r\n\r\n", [400]),
        ("GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", [400]),
        ("GET http://b/x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET http://a:81/x HTTP/1.1\r\nHost: a:80\r\n\r\n", [400]),
        ("GET http://u@a/x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET http://a/x HTTP/1.1\r\n\r\n", [400]),
        ("GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        // What the target is.
        ("CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", [400]),
        ("GET a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n", [400]),
        ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET /x#y HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET /x y HTTP/1.1\r\nHost: a\r\n\r\n", [400, 505]),
        ("GET /x\u{0}y HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET /ä HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("GET  HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        // Which protocol is spoken.
        ("GET /x HTTP/2.0\r\nHost: a\r\n\r\n", [400, 505]),
        ("GET /x HTTP/1.2\r\nHost: a\r\n\r\n", [400, 505]),
        ("GET /x HTTP/0.9\r\nHost: a\r\n\r\n", [400, 505]),
        ("GET /x HTTP/11\r\nHost: a\r\n\r\n", [400, 505]),
        ("GET /x http/1.1\r\nHost: a\r\n\r\n", [400, 505]),
        ("GET /x\r\n\r\n", [400, 505]),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", [400, 505]),
        ("get /x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("FROB /x HTTP/1.1\r\nHost: a\r\n\r\n", [400]),
        ("\u{16}\u{3}\u{1}\u{2}\u{0}\u{1}\u{0}\r\n\r\n", [400]),
        // Where a chunked body ends.
        (chunked("-1\r\n\r\n"), [400]),
        (chunked("0x5\r\nhello\r\n0\r\n\r\n"), [400]),
        (chunked("FFFFFFFFFFFFFFFF1\r\nhello"), [400, 413]),
        (chunked(" 5\r\nhello\r\n0\r\n\r\n"), [400]),
        (chunked("5\r\nhelloXX0\r\n\r\n"), [400]),
        (chunked("5\nhello\r\n0\r\n\r\n"), [400]),
        (chunked("5\r\nhello\n0\r\n\r\n"), [400]),
        (chunked("5\rhello\r\n0\r\n\r\n"), [400]),
        (chunked("5;a\nhello\r\n0\r\n\r\n"), [400]),
        (chunked("5;\u{0}\r\nhello\r\n0\r\n\r\n"), [400]),
        (chunked("\r\n0\r\n\r\n"), [400]),
        (chunked("0\r\nX Y: z\r\n\r\n"), [400]),
        (chunked("0\r\nX: y\n\r\n"), [400]),
        (chunked("0\r\n\n"), [400]),
        // Expectations.
        (post("Expect: 200-ok\r\nContent-Length: 5", body: "hello"), [417]),
        (post("Expect: 100-continue\r\nExpect: 100-continue\r\nContent-Length: 5", body: "hello"), [417]),
    ]

    @Test("It is refused once, and the connection ends", arguments: Self.vectors, [false, true])
    func refuses(vector: (request: String, statuses: Set<Int>), bytewise: Bool) async throws {
        let responder = EchoResponder()
        try await withConnection(responder) { connection in
            let bytes = Array((vector.request + Self.hidden).utf8)
            let pieces = bytewise ? bytes.map { [$0] } : [bytes]
            for piece in pieces { connection.offer(piece) }
            let text = await connection.textUntilClosed()
            let responses = RawResponse.parse(text)
            #expect(responses.count == 1, "\(text)")
            if let response = responses.first {
                #expect(vector.statuses.contains(response.status), "\(text)")
                #expect(response.fields["connection"] == "close")
            }
            #expect(responder.paths.isEmpty)
        }
    }
}
