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

/// Reads query parameters; refuses unknown and repeated ones, and values with control characters.
struct QueryReader {
    private let values: [String: String]

    /// A value with a broken escape is used as written.
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
                    "Unknown query parameter; known are: \(allowed.sorted().joined(separator: ", "))"
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

    /// The fields of a form as a browser sends them, without blanks around them.
    init(_ form: FacadeQuery) {
        let blanks: Set<Unicode.Scalar> = [" ", "\t", "\n", "\r"]
        self.values = form.values.mapValues { value in
            let rest = value.unicodeScalars.drop { blanks.contains($0) }
            let end = rest.lastIndex { !blanks.contains($0) }
            return end.map { String(rest[...$0]) } ?? ""
        }
    }

    /// A parameter's text; `nil` if it is absent or empty.
    func text(_ name: String) -> String? {
        self.values[name].flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Returns the maximum number of entries on a page: 50 by default, at most 500.
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
    /// Reads the query of a list: the page's maximum number of entries, and the cursor's content.
    func pageQuery() throws(Refusal) -> (limit: Int, cursor: String?) {
        let query = try self.query(["limit", "cursor"])
        return (try query.limit(), try query.cursor())
    }
}

extension HTTPServerResponse {
    /// A page of a list: its first entries and, if there are more, a cursor made from the last one shown.
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

/// The query of a facade's request. Unknown parameters are ignored, as by Google's front end.
struct FacadeQuery {
    fileprivate var values: [String: String] = [:]

    /// Reads the query of a path. The last value of a repeated parameter counts.
    init(_ path: [UInt8]) {
        guard let start = path.firstIndex(of: UInt8(ascii: "?")) else { return }
        self.read(path[(start + 1)...])
    }

    /// Reads a form (`application/x-www-form-urlencoded`).
    init(form: ByteBuffer) { self.read(Array(form.readableBytesView)[...]) }

    private mutating func read(_ pairs: ArraySlice<UInt8>) {
        for pair in pairs.split(separator: UInt8(ascii: "&")) {
            let end = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
            let value = pair[end...].dropFirst().map { $0 == UInt8(ascii: "+") ? UInt8(ascii: " ") : $0 }
            guard let name = PercentEncoding.decoded(pair[..<end]), let value = PercentEncoding.decoded(value) else {
                continue
            }
            self.values[name] = value
        }
    }

    /// A parameter by its name or its other spelling; `nil` if it is absent or empty.
    func text(_ name: String, or camelCase: String? = nil) -> String? {
        let text = self.values[name] ?? camelCase.flatMap { self.values[$0] }
        return text?.isEmpty == false ? text : nil
    }
}

/// The opaque text that continues a list.
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

    /// Returns the content of a cursor, or `nil` for other text. Text with control characters is no cursor: no list has an
    /// entry with them.
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
