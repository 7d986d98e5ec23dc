/// An answer as the tests read it off the wire, with a parser of their own.
struct RawResponse: Equatable, Sendable {
    var status: Int
    var fields: [String: String]
    var body: String

    /// The complete answers at the front of a text; those to `HEAD` have no body whatever their length says.
    static func parse(_ text: String, toHead: Bool = false) -> [RawResponse] {
        var responses: [RawResponse] = []
        var rest = Array(text.utf8)[...]
        let separator = Array("\r\n\r\n".utf8)
        while let headEnd = rest.firstRange(of: separator) {
            let lines = String(decoding: rest[..<headEnd.lowerBound], as: UTF8.self).split(separator: "\r\n")
            guard let start = lines.first?.split(separator: " "), start.count >= 2, let status = Int(start[1]) else {
                break
            }
            var fields: [String: String] = [:]
            for line in lines.dropFirst() {
                let parts = line.split(separator: ":", maxSplits: 1)
                fields[parts[0].lowercased()] = parts.count > 1 ? String(parts[1].drop { $0 == " " }) : ""
            }
            let length = toHead || status == 100 ? 0 : Int(fields["content-length"] ?? "0") ?? 0
            let body = rest[headEnd.upperBound...].prefix(length)
            guard body.count == length else { break }
            responses.append(RawResponse(status: status, fields: fields, body: String(decoding: body, as: UTF8.self)))
            rest = rest[headEnd.upperBound...].dropFirst(length)
        }
        return responses
    }
}
