/// A refusal on its way out of the reader, before its pointer is made; trivial to copy, so throwing costs nothing.
struct JSONFault: Error {
    /// The kind of refusal.
    let code: JSONParseError.Code
    /// The offset of the first offending byte.
    let offset: Int
    /// What is wrong.
    let reason: StaticString

    /// A text that is not JSON.
    ///
    /// - Parameters:
    ///   - offset: The offset of the first offending byte.
    ///   - reason: What is wrong.
    /// - Returns: The fault.
    static func malformed(at offset: Int, _ reason: StaticString) -> JSONFault {
        JSONFault(code: .malformed, offset: offset, reason: reason)
    }
}
