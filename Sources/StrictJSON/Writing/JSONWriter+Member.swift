extension JSONWriter {
    /// Writes a member whose value is a string.
    ///
    /// - Parameters:
    ///   - key: The name, known to need no escape.
    ///   - value: The string, unescaped.
    package mutating func member(_ key: StaticString, _ value: String) {
        self.key(key)
        self.string(value)
    }

    /// Writes a member whose value is an integer.
    ///
    /// - Parameters:
    ///   - key: The name, known to need no escape.
    ///   - value: The integer.
    package mutating func member(_ key: StaticString, _ value: Int) {
        self.key(key)
        self.integer(value)
    }

    /// Writes a member whose value is `true` or `false`.
    ///
    /// - Parameters:
    ///   - key: The name, known to need no escape.
    ///   - value: The truth value.
    package mutating func member(_ key: StaticString, _ value: Bool) {
        self.key(key)
        self.bool(value)
    }
}
