import Foundation

/// What a connection brought until it ended.
struct RawReply: Sendable {
    enum End: Sendable {
        /// The peer finished in order.
        case closed
        /// The peer reset the connection.
        case reset
    }

    let text: String
    let end: End

    /// Status of the first answer.
    var status: Int? {
        let words = self.text.prefix { $0 != "\r\n" }.split(separator: " ")
        return words.count > 1 ? Int(words[1]) : nil
    }

    /// What follows the first head.
    var body: String {
        guard let range = self.text.firstRange(of: "\r\n\r\n") else { return "" }
        return String(self.text[range.upperBound...])
    }

    /// A header field of the first answer, its name given in lower case.
    func header(_ name: String) -> String? {
        let head = self.text.firstRange(of: "\r\n\r\n").map { self.text[..<$0.lowerBound] } ?? self.text[...]
        for line in head.split(separator: "\r\n").dropFirst() {
            let parts = line.split(separator: ":", maxSplits: 1)
            if parts.count == 2, parts[0].lowercased() == name {
                return parts[1].trimmingCharacters(in: .whitespaces)
            }
        }
        return nil
    }

    /// The body's JSON object.
    func json() throws -> [String: Any] {
        try JSONSerialization.jsonObject(with: Data(self.body.utf8)) as? [String: Any] ?? [:]
    }
}
