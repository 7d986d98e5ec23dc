/// One member of an object.
package struct JSONMember: Sendable {
    /// The member's value.
    package let value: JSONValue

    /// Creates a member.
    ///
    /// - Parameter value: Its value, whose node follows the name's.
    init(value: JSONValue) {
        self.value = value
    }

    /// The name, unescaped; made anew on every call.
    package var key: String {
        self.value.tape.string(at: self.value.index - 1)
    }

    /// The name's length in bytes of UTF-8, unescaped.
    package var keyByteCount: Int {
        self.value.tape.byteCount(at: self.value.index - 1)
    }

    /// Compares the name in place, without making a string of it and without Unicode normalisation.
    ///
    /// - Parameter key: A name, unescaped.
    /// - Returns: Whether the member has that name.
    package func keyEquals(_ key: String) -> Bool {
        self.value.tape.string(at: self.value.index - 1, equals: key)
    }
}
