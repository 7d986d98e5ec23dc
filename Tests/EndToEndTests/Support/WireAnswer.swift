/// An answer as a test finds it among the bytes of a connection.
struct WireAnswer: Equatable, Sendable {
    /// The status; 0 for bytes that are no answer of HTTP/1.
    let status: Int
    /// The request's own id, where the gateway read one; empty for an id that the gateway gave it.
    let identifier: String

    /// All final answers among bytes, each as long as it says.
    static func all(in bytes: [UInt8]) -> [WireAnswer] {
        var answers: [WireAnswer] = []
        var rest = bytes[...]
        let start = Array("HTTP/1.".utf8)
        while !rest.isEmpty {
            guard rest.starts(with: start), let end = rest.firstRange(of: Array("\r\n\r\n".utf8)) else {
                return answers + [WireAnswer(status: 0, identifier: "")]
            }
            var fields: [Substring: Substring] = [:]
            let head = String(decoding: rest[..<end.lowerBound], as: UTF8.self)
            for line in head.lowercased().split(separator: "\r\n").dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                fields[line[..<colon]] = line[line.index(after: colon)...].drop { $0 == " " }
            }
            let status = Int(head.dropFirst(9).prefix(3)) ?? 0
            if status >= 200 {
                let identifier = fields["x-request-id"] ?? ""
                // The tests' own ids look otherwise.
                let isGiven = identifier.wholeMatch(of: #/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/#) != nil
                answers.append(WireAnswer(status: status, identifier: isGiven ? "" : String(identifier)))
            }
            rest = rest[end.upperBound...]
            // An answer to HEAD has a length and no body: the next answer follows at once.
            if !rest.starts(with: start) {
                rest = rest.dropFirst(fields["content-length"].flatMap { Int($0) } ?? 0)
            }
        }
        return answers
    }
}
