/// The bounds a text must keep to be read.
///
/// Both bound the work one text can cause; neither is known to JSON (RFC 8259, section 9, leaves them to the reader).
package struct JSONLimits: Sendable {
    /// The deepest nesting of objects and arrays, in levels; a root object or array is level 1.
    package var maxDepth: Int
    /// The most object members the whole document may have, all objects added up.
    package var maxMembers: Int

    /// Creates limits.
    ///
    /// - Parameters:
    ///   - maxDepth: The deepest nesting, in levels.
    ///   - maxMembers: The most members over the whole document.
    package init(maxDepth: Int = 16, maxMembers: Int = 2_000) {
        self.maxDepth = maxDepth
        self.maxMembers = maxMembers
    }
}
