import FCMModel
import GatewayCore
import Hummingbird

/// Reads query parameters; unknown and repeated ones are refused.
struct QueryReader {
    private let values: [String: String]

    /// - Throws: `invalid_field` that names the parameter.
    init(_ request: Request, allowed: Set<String>) throws(Refusal) {
        var values: [String: String] = [:]
        for (name, value) in request.uri.queryParameters {
            let name = String(name)
            guard allowed.contains(name) else {
                throw Refusal(
                    .unknownField,
                    "A query parameter is not known here; known are: \(allowed.sorted().joined(separator: ", "))"
                )
            }
            guard values.updateValue(String(value), forKey: name) == nil else {
                throw Refusal(.invalidField, "The query parameter \(name) is given twice")
            }
        }
        self.values = values
    }

    /// A parameter's text; `nil` where it is absent or empty.
    func text(_ name: String) -> String? {
        self.values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// How many entries a page may hold: 50 unless said otherwise, at most 500.
    func limit() throws(Refusal) -> Int {
        guard let text = self.text("limit") else { return 50 }
        guard let limit = Int(digits: text), (1...500).contains(limit) else {
            throw Refusal(.invalidField, "limit must be a whole number from 1 to 500")
        }
        return limit
    }

    /// One of the words of a closed list.
    func word<Word: RawRepresentable & CaseIterable>(
        _ name: String,
        of words: Word.Type
    ) throws(Refusal) -> Word? where Word.RawValue == String {
        guard let text = self.text(name) else { return nil }
        guard let word = Word(rawValue: text) else {
            let list = words.allCases.map(\.rawValue).joined(separator: ", ")
            throw Refusal(.invalidField, "\(name) must be one of: \(list)")
        }
        return word
    }

    /// A moment in RFC 3339 form.
    func time(_ name: String) throws(Refusal) -> Timestamp? {
        guard let text = self.text(name) else { return nil }
        guard let time = Timestamp(rfc3339: text) else {
            throw Refusal(.invalidField, "\(name) must be a time in RFC 3339 form, such as 2026-03-01T12:00:00Z")
        }
        return time
    }

    /// What an opaque cursor stands for.
    func cursor() throws(Refusal) -> String? {
        guard let text = self.text("cursor") else { return nil }
        guard let content = Cursor.content(of: text) else { throw Cursor.refusal }
        return content
    }
}
