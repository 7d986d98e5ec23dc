/// Says why a text was refused, and where.
package struct JSONParseError: Error, Hashable, Sendable {
    /// The kinds of refusal.
    package enum Code: Sendable {
        /// The text is not JSON as RFC 8259 has it, or a number is longer than ``JSONLimits/maxNumberBytes``.
        case malformed
        /// A member name occurs twice in one object.
        case duplicateKey
        /// Objects and arrays nest deeper than ``JSONLimits/maxDepth``.
        case tooDeep
        /// The document has more members, elements or special characters than ``JSONLimits`` allow.
        case tooManyMembers
    }

    /// The kind of refusal.
    package let code: Code
    /// The offset of the first offending byte from the start of the text; its length in bytes when the text ends early.
    package let offset: Int
    /// The value or member that was being read.
    package let pointer: JSONPointer
    /// What is wrong, in constant words that never repeat the text.
    package let reason: String

    /// Creates an error.
    ///
    /// - Parameters:
    ///   - code: The kind of refusal.
    ///   - offset: The offset of the first offending byte.
    ///   - pointer: The value or member that was being read.
    ///   - reason: What is wrong, in constant words.
    package init(code: Code, offset: Int, pointer: JSONPointer, reason: String) {
        self.code = code
        self.offset = offset
        self.pointer = pointer
        self.reason = reason
    }
}
