/// One entry of `google.rpc.BadRequest`: which field is wrong, and why.
package struct V1FieldViolation: Sendable, Hashable {
    /// The path to the field, such as `message.android.ttl`; empty for the body as a whole.
    package var field: String
    /// What is wrong with it, for a developer.
    package var description: String

    /// A violation.
    package init(field: String, description: String) {
        self.field = field
        self.description = description
    }
}
