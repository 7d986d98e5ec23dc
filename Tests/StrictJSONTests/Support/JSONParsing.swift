import NIOCore
import StrictJSON
import Testing

/// Shorthands the tests share.
enum JSONParsing {
    static func root(_ text: String, limits: JSONLimits = JSONLimits()) throws -> JSONValue {
        try JSONDocument(parsing: ByteBuffer(string: text), limits: limits).root
    }

    /// Parses a text and returns its error, or `nil` if it is accepted.
    static func refusal(_ bytes: some Sequence<UInt8>, limits: JSONLimits = JSONLimits()) -> JSONParseError? {
        do throws(JSONParseError) {
            _ = try JSONDocument(parsing: ByteBuffer(bytes: bytes), limits: limits)
            return nil
        } catch {
            return error
        }
    }
}

/// One row of a table of malformed texts.
struct Refusal: Sendable, CustomTestStringConvertible {
    let text: String
    let code: JSONParseError.Code
    let offset: Int
    let pointer: String

    init(_ text: String, at offset: Int, _ pointer: String = "", _ code: JSONParseError.Code = .malformed) {
        self.text = text
        self.code = code
        self.offset = offset
        self.pointer = pointer
    }

    var testDescription: String {
        self.text.debugDescription
    }
}
