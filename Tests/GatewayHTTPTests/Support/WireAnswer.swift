import Testing

/// An answer read off the wire without the gateway's own parser.
struct WireAnswer: Sendable {
    var status: Int
    /// The fields by their names in lower case.
    var fields: [String: String]
    var body: String

    init(parsing text: String) throws {
        let bytes = Array(text.utf8)
        let headEnd = try #require(bytes.firstRange(of: Array("\r\n\r\n".utf8)))
        let lines = String(decoding: bytes[..<headEnd.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let words = try #require(lines.first).split(separator: " ")
        self.status = try #require(words.count > 1 ? Int(words[1]) : nil)
        self.fields = [:]
        for line in lines.dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            self.fields[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
        }
        self.body = String(decoding: bytes[headEnd.upperBound...], as: UTF8.self)
    }
}
