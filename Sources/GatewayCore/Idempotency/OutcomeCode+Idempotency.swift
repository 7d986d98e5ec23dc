import FCMModel

extension SendOutcome.Answer {
    /// Whether nothing reached FCM, or FCM itself said that it took nothing, for causes that pass: a repeat under the same
    /// key then sends.
    var freesKey: Bool {
        switch self {
        case .refused(let refusal): refusal.code.freesKey
        case .single(let outcome): outcome.freesKey
        case .multiple(let outcomes): outcomes.allSatisfy(\.freesKey)
        case .group: false
        }
    }

    /// Whether nobody knows of some recipient what became of it.
    var hasUnknown: Bool {
        switch self {
        case .refused(let refusal): refusal.code == .outcomeUnknown
        case .single(let outcome): outcome.isUnknown
        case .multiple(let outcomes): outcomes.contains(where: \.isUnknown)
        case .group: false
        }
    }
}

extension RecipientOutcome {
    fileprivate var freesKey: Bool {
        switch self {
        case .accepted: false
        case .rejected(let rejection): rejection.code.freesKey
        }
    }

    fileprivate var isUnknown: Bool {
        switch self {
        case .accepted: false
        case .rejected(let rejection): rejection.code == .outcomeUnknown
        }
    }
}

extension OutcomeCode {
    /// Whether the code says that nothing was taken, for a cause that waiting or an operator ends.
    fileprivate var freesKey: Bool {
        self.isRetryable || self == .upstreamCredentials || self == .forbidden || self == .notFound
    }
}
