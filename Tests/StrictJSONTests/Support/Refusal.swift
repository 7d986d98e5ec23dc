import StrictJSON
import Testing

/// One row of a table of malformed texts.
struct Refusal: Sendable, CustomTestStringConvertible {
    /// The text.
    let text: String
    /// Why it must be refused.
    let code: JSONParseError.Code
    /// Where.
    let offset: Int
    /// At which value or member.
    let pointer: String

    /// Creates a row.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - offset: Where it must be refused.
    ///   - pointer: At which value or member.
    ///   - code: Why.
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
