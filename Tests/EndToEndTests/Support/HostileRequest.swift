import Foundation

/// One request of `Tests/Hostile/smuggling.json`: bytes that two readers could take in two ways.
struct HostileRequest: Decodable, Sendable {
    /// The id of requests that are hidden inside others; as long as its place, so that the table's lengths hold.
    static let hidden = "smuggled"

    /// What it is about.
    let topic: String
    /// What is odd about it.
    let name: String
    /// The bytes, one for each character up to U+00FF.
    let request: String
    /// The requests in it that are answered, in their order.
    let answered: [String]?
    /// The status that what comes then is refused with.
    let refused: Int?
    /// Whether the connection ends with the last answer.
    let closes: Bool?

    /// The whole table.
    static func all() throws -> [HostileRequest] {
        var root = URL(filePath: #filePath)
        while root.path != "/" {
            root.deleteLastPathComponent()
            let file = root.appending(path: "Tests/Hostile/smuggling.json")
            if let data = try? Data(contentsOf: file) { return try JSONDecoder().decode([Self].self, from: data) }
        }
        throw CocoaError(.fileNoSuchFile)
    }

    /// The bytes, with ids that end in a suffix.
    func bytes(_ suffix: String) -> [UInt8] {
        self.request
            .replacing("@own@", with: "own-\(suffix)")
            .replacing("@second@", with: "second-\(suffix)")
            .replacing("@hidden@", with: Self.hidden)
            .unicodeScalars
            .map { UInt8($0.value) }
    }

    /// A request that nobody can misunderstand, and that ends its connection.
    static func probe(_ identifier: String) -> [UInt8] {
        Array("GET /v1/probe HTTP/1.1\r\nHost: a\r\nX-Request-ID: \(identifier)\r\nConnection: close\r\n\r\n".utf8)
    }
}
