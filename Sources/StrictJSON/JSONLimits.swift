/// The bounds a text must keep to be read.
///
/// They bound the work one text can cause; JSON knows none of them (RFC 8259, section 9, leaves them to the reader).
package struct JSONLimits: Sendable {
    /// The deepest nesting of objects and arrays, in levels; a root object or array is level 1.
    package var maxDepth: Int
    /// The most object members the whole document may have, all objects added up.
    package var maxMembers: Int
    /// The most array elements the whole document may have, all arrays added up.
    package var maxElements: Int
    /// The most characters that are escaped or beyond ASCII, in all strings together; each takes many times as long as a
    /// plain one, and longer still where Unicode's rules are applied to it.
    package var maxSpecialCharacters: Int
    /// The longest number, in bytes.
    package var maxNumberBytes: Int

    /// The limits of bodies that hold no message.
    package static let small = JSONLimits(maxMembers: 200, maxElements: 1_000, maxSpecialCharacters: 1_000)

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - maxDepth: The deepest nesting, in levels.
    ///   - maxMembers: The most members over the whole document.
    ///   - maxElements: The most elements over the whole document.
    ///   - maxSpecialCharacters: The most characters that are escaped or beyond ASCII over the whole document.
    ///   - maxNumberBytes: The longest number, in bytes.
    package init(
        maxDepth: Int = 16,
        maxMembers: Int = 2_000,
        maxElements: Int = 5_000,
        maxSpecialCharacters: Int = 5_000,
        maxNumberBytes: Int = 1_024
    ) {
        self.maxDepth = maxDepth
        self.maxMembers = maxMembers
        self.maxElements = maxElements
        self.maxSpecialCharacters = maxSpecialCharacters
        self.maxNumberBytes = maxNumberBytes
    }
}
