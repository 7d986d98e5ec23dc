import EventLoopHTTP
import Foundation
import Testing

/// Each request gets one response, no request hidden in it reaches the responder, and the connection closes.
@Suite("HTTPServer, malformed and ambiguous requests", .timeLimit(.minutes(10)))
struct HTTPServerVectorTests {
    /// A request of `Tests/Hostile/smuggling.json` that is refused.
    struct Vector: Decodable, Sendable, CustomStringConvertible {
        let topic: String
        let name: String
        /// The request's bytes, one per character.
        let request: String
        /// The contained requests that are answered before the refusal.
        let answered: [String]?
        let refused: Int?

        var description: String { "\(self.topic): \(self.name)" }

        private static let own = [
            ("two Hosts in HTTP/1.0", "GET /x HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n"),
            ("the address has no host", "GET http:///x HTTP/1.1\r\nHost: a\r\n\r\n"),
        ]
        .map { Vector(topic: "which host", name: $0.0, request: $0.1, answered: nil, refused: 400) }

        static func all() throws -> [Vector] {
            let folder = URL(filePath: #filePath)
                .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            let table = try Data(contentsOf: folder.appending(path: "Hostile/smuggling.json"))
            return try JSONDecoder().decode([Vector].self, from: table)
                // Selects refusals of the server itself; the rest is tested with the whole program.
                .filter { $0.refused != nil && $0.answered == nil && $0.topic != "one request after another" }
                + Self.own
        }
    }

    private static let hidden = Array("GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n".utf8)

    @Test("The request is refused once, and the connection closes", arguments: try Vector.all(), [false, true])
    func refuses(vector: Vector, bytewise: Bool) async throws {
        let responder = EchoResponder()
        try await withConnection(responder) { connection in
            let bytes = vector.request.unicodeScalars.map { UInt8($0.value) } + Self.hidden
            for piece in bytewise ? bytes.map({ [$0] }) : [bytes] { connection.offer(piece) }
            let text = await connection.textUntilClosed()
            let responses = RawResponse.parse(text)
            #expect(responses.count == 1, "\(text)")
            if let response = responses.first {
                // The fault that is noticed first may depend on the bytes that have arrived.
                let isExpected = bytewise ? (400..<600).contains(response.status) : response.status == vector.refused
                #expect(isExpected, "\(text)")
                #expect(response.fields["connection"] == "close")
            }
            #expect(responder.paths.isEmpty)
        }
    }

    @Test("The table has more than 130 refused requests")
    func completeness() throws {
        #expect(try Vector.all().count > 130)
    }
}
