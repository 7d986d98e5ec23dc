package import FCMModel

/// Why a device group is not as a caller wants it.
package struct GroupObstacle: Error, Sendable, Hashable {
    /// What the caller is told.
    package var code: OutcomeCode
    /// Seconds to wait before a repeat, where somebody named them.
    package var retryAfter: Int?
    /// Why, where the code alone does not say it.
    package var detail: String?

    /// An obstacle.
    package init(_ code: OutcomeCode, retryAfter: Int? = nil, detail: String? = nil) {
        self.code = code
        self.retryAfter = retryAfter
        self.detail = detail
    }

    /// What FCM refused, or did not answer, or could not be asked.
    init(_ failure: GroupFailure) {
        let detail: String? =
            switch failure.kind {
            case .invalidField: "FCM does not take this group or these tokens"
            case .upstreamCredentials: failure.text
            case .groupExists, .groupNotFound, .noValidTokens, .groupKeyInvalid, .upstreamInternal,
                .upstreamUnavailable, .upstreamProtocol:
                nil
            }
        self.init(failure.outcomeCode, retryAfter: failure.isRetryable ? failure.retryAfter : nil, detail: detail)
    }

    /// Trouble inside the gateway.
    init(_ error: GatewayError) {
        switch error.code {
        case .storeUnavailable, .overloaded, .cancelled: self.init(.overloaded, detail: error.message)
        case .notFound: self.init(.notFound, detail: error.message)
        case .conflict: self.init(.groupConflict)
        case .auditUnavailable: self.init(.auditUnavailable, detail: error.message)
        case .invalid: self.init(.invalidField, detail: error.message)
        }
    }

    /// There is no such group.
    static let notFound = GroupObstacle(.notFound, detail: "The tenant has no device group of this name")
    /// Somebody else changes the group at the same time.
    static let conflict = GroupObstacle(.groupConflict)
}
