/// Why FCM did not do what it was asked to do with a device group.
package struct GroupFailure: Error, Sendable, Hashable {
    /// The kinds, a closed set that metrics may use.
    package enum Kind: String, Sendable, Hashable, CaseIterable {
        /// There is a group of the name already.
        case groupExists = "group_exists"
        /// There is no such group, or name and key do not belong together.
        case groupNotFound = "group_not_found"
        /// None of the tokens is usable.
        case noValidTokens = "no_valid_tokens"
        /// The key is damaged or foreign.
        case groupKeyInvalid = "group_key_invalid"
        /// FCM does not take the request.
        case invalidField = "invalid_field"
        /// FCM does not take the gateway's own credential, or there is none to show.
        case upstreamCredentials = "upstream_credentials"
        /// FCM failed.
        case upstreamInternal = "upstream_internal"
        /// FCM can't be reached, gave no answer or is overloaded.
        case upstreamUnavailable = "upstream_unavailable"
        /// The answer can't be understood.
        case upstreamProtocol = "upstream_protocol"
    }

    /// The kind.
    package var kind: Kind
    /// Seconds to wait before a repeat, where somebody named them.
    package var retryAfter: Int?
    /// FCM's own words, where it refused the request itself; or what the gateway lacks for asking FCM.
    package var text: String?

    /// A failure.
    package init(_ kind: Kind, retryAfter: Int? = nil, text: String? = nil) {
        self.kind = kind
        self.retryAfter = retryAfter
        self.text = text
    }

    /// Whether the same can be tried again.
    package var isRetryable: Bool { self.outcomeCode.isRetryable && self.kind != .groupExists }

    /// Whether FCM is known to have done nothing.
    package var isDefinite: Bool {
        switch self.kind {
        case .groupExists, .groupNotFound, .noValidTokens, .groupKeyInvalid, .invalidField, .upstreamCredentials: true
        case .upstreamInternal, .upstreamUnavailable, .upstreamProtocol: false
        }
    }

    /// The failure in the words of the REST contract.
    package var outcomeCode: OutcomeCode {
        switch self.kind {
        case .groupExists: .groupConflict
        case .groupNotFound: .notFound
        case .noValidTokens: .noValidTokens
        case .groupKeyInvalid, .upstreamProtocol: .upstreamProtocol
        case .invalidField: .invalidField
        case .upstreamCredentials: .upstreamCredentials
        case .upstreamInternal: .upstreamInternal
        case .upstreamUnavailable: .upstreamUnavailable
        }
    }
}
