/// A change of one device group (T10).
package struct GroupChange: Sendable, Hashable {
    /// The most members that a group has, and that one change names.
    package static let maxTokens = 20
    /// How many tokens a caller may list, repeated ones included.
    package static let maxListedTokens = 100

    /// What is done.
    package var operation: GroupOperation
    /// The group's name; needed to create one, a guard otherwise (G-NAMEOPT).
    package var name: String?
    /// The key that FCM gave out; needed for everything but creation.
    package var key: String?
    /// The tokens to add or remove: 1 to 20, each once.
    package var tokens: [String]

    /// A change.
    package init(_ operation: GroupOperation, name: String?, key: String? = nil, tokens: [String]) {
        self.operation = operation
        self.name = name
        self.key = key
        self.tokens = tokens
    }
}
