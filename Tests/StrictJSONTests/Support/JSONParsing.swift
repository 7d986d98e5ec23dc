import NIOCore
import StrictJSON

/// Shorthands the tests share.
enum JSONParsing {
    /// Reads a text that must be accepted.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - limits: The bounds.
    /// - Returns: The root.
    /// - Throws: Whatever the reader throws.
    static func root(_ text: String, limits: JSONLimits = JSONLimits()) throws -> JSONValue {
        try JSONDocument(parsing: ByteBuffer(string: text), limits: limits).root
    }

    /// Reads a text that should be refused.
    ///
    /// - Parameters:
    ///   - bytes: The text.
    ///   - limits: The bounds.
    /// - Returns: The error; nil when the text was accepted.
    static func refusal(_ bytes: some Sequence<UInt8>, limits: JSONLimits = JSONLimits()) -> JSONParseError? {
        do throws(JSONParseError) {
            _ = try JSONDocument(parsing: ByteBuffer(bytes: bytes), limits: limits)
            return nil
        } catch {
            return error
        }
    }
}
