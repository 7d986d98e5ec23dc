package import FCMModel

/// A target that an upstream has no form for.
package struct UpstreamObjection: Sendable, Hashable {
    /// What the caller is told.
    package var code: OutcomeCode
    /// The REST field at fault.
    package var field: String
    /// Why, in words for a developer.
    package var detail: String

    /// An objection.
    package init(code: OutcomeCode, field: String, detail: String) {
        self.code = code
        self.field = field
        self.detail = detail
    }
}
