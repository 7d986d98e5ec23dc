/// What a refusal by v1 means: the table TB-ERRORS, whose first matching row decides.
struct V1Judgement {
    /// What the legacy protocol calls it.
    let name: LegacyErrorName
    /// What REST calls it, where that says more than the name.
    let code: OutcomeCode
    let signal: V1Reading.Signal
    /// Whether the answer's delay is taken over.
    private(set) var takesDelay = false
    /// Seconds to wait where the answer names none.
    private(set) var defaultDelay: Int?

    /// Judges an answer outside 2xx.
    ///
    /// - Parameters:
    ///   - status: the HTTP status.
    ///   - body: what the body says.
    ///   - kind: what the request addressed.
    ///   - isIdempotent: whether the message must not be sent twice; then a 5xx that is not FCM's own leaves open whether
    ///     it arrived (R-LOST).
    init(status: Int, body: V1ErrorBody, kind: TargetKind, isIdempotent: Bool = false) {
        if body.isProjectQuota {
            // Neither a device nor a topic is at fault, and the sends that follow are told the same.
            self.init(
                .unavailable,
                code: .tenantRateExceeded,
                delay: RetryAfter.afterTooManyRequests,
                signal: .projectQuota
            )
        } else if case .known(let code) = body.code {
            self.init(code, body, kind)
        } else if status == 400, body.status == V1Status.invalidArgument.rawValue, case .absent = body.code {
            self.init(V1InvalidArgument.name(body, kind: kind))
        } else if status == 429 || body.status == V1Status.resourceExhausted.rawValue {
            self.init(.unavailable, delay: RetryAfter.afterTooManyRequests, signal: .none)
        } else if isIdempotent, (500...599).contains(status), !body.isFailureOfFCM {
            self.init(.internalServerError, code: .outcomeUnknown, signal: .trouble)
        } else {
            self.init(status: status, hasCode: body.hasCode)
        }
    }

    private init(_ code: V1ErrorCode, _ body: V1ErrorBody, _ kind: TargetKind) {
        switch code {
        case .unregistered: self.init(.notRegistered)
        case .senderIDMismatch: self.init(.mismatchSenderID)
        case .thirdPartyAuthError: self.init(.invalidAPNSCredential)
        case .quotaExceeded:
            // FCM does not say which quota; legacy knows exactly these two (TB-QUOTA).
            switch kind {
            case .topic, .condition:
                self.init(.topicsMessageRateExceeded, delay: RetryAfter.afterTooManyRequests, signal: .targetQuota)
            case .token, .tokens, .installation, .installations, .group:
                self.init(.deviceMessageRateExceeded, delay: RetryAfter.afterTooManyRequests, signal: .targetQuota)
            }
        case .unavailable: self.init(.unavailable, delay: nil, signal: .trouble)
        case .internal, .unspecifiedError: self.init(.internalServerError, delay: nil, signal: .trouble)
        case .invalidArgument: self.init(V1InvalidArgument.name(body, kind: kind))
        }
    }

    /// Judges by the HTTP status alone.
    private init(status: Int, hasCode: Bool) {
        switch status {
        case 400:
            self.init(.invalidParameters)
        case 401, 403, 404:
            // Ours to mend: the caller must neither delete its token nor change its key (TB-OWNAUTH).
            self.init(
                .internalServerError,
                code: .upstreamCredentials,
                // With a code that we don't know it may be about the one recipient.
                signal: hasCode ? .none : status == 401 ? .tokenRefused : .credentialRefused
            )
        case 500:
            self.init(.internalServerError, delay: nil, signal: .trouble)
        case 501...599:
            self.init(.unavailable, delay: nil, signal: .trouble)
        default:
            self.init(.internalServerError, code: .upstreamProtocol, signal: .none)
        }
    }

    /// A refusal that waiting does not mend.
    private init(_ name: LegacyErrorName, code: OutcomeCode? = nil, signal: V1Reading.Signal = .none) {
        self.name = name
        self.code = code ?? name.outcomeCode
        self.signal = signal
    }

    /// A refusal whose delay is taken over.
    private init(_ name: LegacyErrorName, code: OutcomeCode? = nil, delay: Int?, signal: V1Reading.Signal) {
        self.init(name, code: code, signal: signal)
        self.takesDelay = true
        self.defaultDelay = delay
    }
}
