import EventLoopHTTP
import FCMModel
import GatewayCore
import NIOCore
import StrictJSON

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Reads query parameters; unknown and repeated ones are refused, and values with control characters.
struct QueryReader {
    private let values: [String: String]

    /// A value with a broken escape is taken as it is written.
    init(_ path: [UInt8], allowed: Set<String>) throws(Refusal) {
        var values: [String: String] = [:]
        let query = path.drop { $0 != UInt8(ascii: "?") }.dropFirst()
        var pairs = query.split(separator: UInt8(ascii: "&"), omittingEmptySubsequences: false)
        if pairs.last?.isEmpty == true { pairs.removeLast() }
        for pair in pairs {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            let name = String(decoding: pair[..<end], as: UTF8.self)
            guard allowed.contains(name) else {
                throw Refusal(
                    .unknownField,
                    "A query parameter is not known here; known are: \(allowed.sorted().joined(separator: ", "))"
                )
            }
            let given = pair[end...].dropFirst()
            let value = PercentEncoding.decoded(given) ?? String(decoding: given, as: UTF8.self)
            guard !ValueRules.hasControls(value) else {
                throw Refusal(.invalidField, "The query parameter \(name) must have no control characters")
            }
            guard values.updateValue(value, forKey: name) == nil else {
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

    func time(_ name: String) throws(Refusal) -> Timestamp? {
        guard let text = self.text(name) else { return nil }
        guard let time = Timestamp(rfc3339: text) else {
            throw Refusal(.invalidField, "\(name) must be a time in RFC 3339 form, such as 2026-03-01T12:00:00Z")
        }
        return time
    }

    func cursor() throws(Refusal) -> String? {
        guard let text = self.text("cursor") else { return nil }
        guard let content = Cursor.content(of: text) else { throw Cursor.refusal }
        return content
    }
}

extension Exchange {
    /// What the query of a list says: how many entries its page may hold, and what its cursor stands for.
    func pageQuery() throws(Refusal) -> (limit: Int, cursor: String?) {
        let query = try self.query(["limit", "cursor"])
        return (try query.limit(), try query.cursor())
    }
}

extension HTTPServerResponse {
    /// A page of a list: its first entries, and where there are more, a cursor made from the last one shown.
    static func page<Entries: Collection>(
        _ name: StaticString,
        _ entries: Entries,
        limit: Int,
        cursor: (Entries.Element) -> String,
        write: (inout JSONWriter, Entries.Element) -> Void
    ) -> HTTPServerResponse {
        let page = entries.prefix(limit)
        var last: Entries.Element?
        var writer = JSONWriter()
        writer.beginObject()
        writer.beginArray(name)
        for entry in page {
            write(&writer, entry)
            last = entry
        }
        writer.endArray()
        if let last, page.endIndex < entries.endIndex { writer.member("next_cursor", Cursor.text(of: cursor(last))) }
        writer.endObject()
        return HTTPServerResponse(json: writer.finish())
    }
}

/// The query of a facade's request; parameters that nobody asks for are ignored, as Google's front end does.
struct FacadeQuery {
    private var values: [String: String] = [:]

    /// Reads the query behind a path; of a repeated parameter the last value counts.
    init(_ path: [UInt8]) {
        guard let start = path.firstIndex(of: UInt8(ascii: "?")) else { return }
        for pair in path[(start + 1)...].split(separator: UInt8(ascii: "&")) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            let value = pair[end...].dropFirst().map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
            guard let name = PercentEncoding.decoded(pair[..<end]), let value = PercentEncoding.decoded(value) else {
                continue
            }
            self.values[name] = value
        }
    }

    /// A parameter by its name or its other spelling; `nil` where it is absent or empty.
    func text(_ name: String, or camelCase: String? = nil) -> String? {
        let text = self.values[name] ?? camelCase.flatMap { self.values[$0] }
        return text?.isEmpty == false ? text : nil
    }
}

/// The opaque text by which a list is continued.
enum Cursor {
    static let refusal = Refusal(.invalidField, "cursor must be a next_cursor of an earlier page")

    static func text(of content: String) -> String {
        Self.text(of: Array(content.utf8))
    }

    static func text(of bytes: [UInt8]) -> String {
        Data(bytes).base64EncodedString()
            .replacing("+", with: "-")
            .replacing("/", with: "_")
            .replacing("=", with: "")
    }

    /// What a cursor was made from; `nil` for text that is none, since no entry of a list has control characters.
    static func content(of text: String) -> String? {
        self.bytes(of: text).flatMap { String(validating: $0, as: UTF8.self) }
            .flatMap { ValueRules.hasControls($0) ? nil : $0 }
    }

    static func bytes(of text: String) -> [UInt8]? {
        let base64 = text.replacing("-", with: "+").replacing("_", with: "/")
        let padded = base64 + String(repeating: "=", count: (4 - base64.utf8.count % 4) % 4)
        guard let bytes = Data(base64Encoded: padded).map({ [UInt8]($0) }), Self.text(of: bytes) == text else {
            return nil
        }
        return bytes
    }
}
