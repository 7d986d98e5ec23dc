/// Why a request to manage device groups is refused before FCM sees it.
package struct GroupRefusal: Error, Sendable, Hashable {
    /// What is wrong, in words for a developer; holds nothing of the request's own texts.
    package var reason: String
    /// The same in the words of the REST contract, for logs.
    package var code: OutcomeCode

    /// A refusal.
    package init(_ reason: String, code: OutcomeCode = .invalidField) {
        self.code = code
        self.reason = reason
    }
}
