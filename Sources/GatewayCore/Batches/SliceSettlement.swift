import FCMModel

/// The meaning of a slice's outcomes for its recipients: which have their last one, and which are sent to again. Pure.
///
/// Example: of 4 recipients one is accepted, one unregistered, and FCM's quota refuses two for 30 s. One counts as
/// accepted and one as rejected. Two stay pending for a minute, because a quota of FCM's is a minute's at least.
package struct SliceSettlement {
    /// No recipient waits longer for its next round: FCM demands an hour at most, and a fifth is added at random.
    package static let longestRetry = Duration.seconds(4_320)
    /// The first wait after a refusal by FCM's quota, and after any other temporary failure, in seconds.
    private static let (quotaWait, failureWait, longestWait) = (60, 10, 600)

    /// The slice's recipients that are sent to again.
    private(set) var pending: [Batch.Recipient] = []
    private(set) var results: [Batch.Result] = []
    private(set) var added = Batch.Counts()
    /// The seconds before the next round; `nil` if no recipient is sent to again.
    private(set) var wait: Int?
    /// The seconds for which FCM's quota of the project is used up.
    private(set) var quotaPause: Int?
    /// True if some are sent to again because of a failure, and not of a limit.
    private(set) var hasFailed = false
    /// True if FCM refuses the tenant's credential.
    private(set) var lacksCredential = false

    init(_ slice: [Batch.Recipient], _ outcomes: [RecipientOutcome], _ options: Batch.Options, retries: Int) {
        for (recipient, outcome) in zip(slice, outcomes) {
            switch outcome {
            case .accepted:
                self.added.accepted += 1
                if options.keepsAccepted { self.results.append(Batch.Result(recipient, outcome)) }
            case .rejected(let rejection):
                self.settle(recipient, rejection, options, retries)
            }
        }
    }

    private mutating func settle(
        _ recipient: Batch.Recipient,
        _ rejection: Rejection,
        _ options: Batch.Options,
        _ retries: Int
    ) {
        switch rejection.code {
        case .outcomeUnknown where options.resendsUnknown && !recipient.isResent:
            self.pending.append(Batch.Recipient(place: recipient.place, recipient.text, isResent: true))
            self.wait = max(self.wait ?? 0, Self.failureWait)
        case .upstreamCredentials:
            self.lacksCredential = true
            self.pending.append(recipient)
            self.wait = max(self.wait ?? 0, 0)
        case let code where code.isRetryable:
            if code == .tenantRateExceeded, rejection.limitedBy == .fcm {
                self.quotaPause = max(self.quotaPause ?? Self.quotaWait, rejection.retryAfter ?? 0)
            }
            // A call that did not leave is no attempt.
            if rejection.limitedBy == nil, code != .overloaded { self.hasFailed = true }
            self.pending.append(recipient)
            self.wait = max(self.wait ?? 0, Self.wait(after: rejection, retries))
        case let code:
            if code == .outcomeUnknown { self.added.unknown += 1 } else { self.added.rejected += 1 }
            self.results.append(Batch.Result(recipient, .rejected(rejection)))
        }
    }

    private static func wait(after rejection: Rejection, _ retries: Int) -> Int {
        let demanded = rejection.retryAfter ?? 0
        // The gateway's own limits say when there is room again.
        if rejection.limitedBy == .gateway { return min(demanded, Self.longestWait) }
        let first = max(demanded, rejection.limitedBy == .fcm ? Self.quotaWait : Self.failureWait)
        return max(demanded, min(first << min(retries, 6), Self.longestWait))
    }
}

/// The order in which tenants with something due take turns: the one with the least sent to so far is next. Pure.
///
/// A tenant that was idle begins with the least of the others, so that it takes no turns for time that has passed.
/// Example: of a tenant with a million recipients and one with a hundred, the second is next as soon as it is due.
struct TenantTurns {
    private var sent: [TenantID: Int] = [:]
    /// The recipients that the tenant of the last turn had been sent to before it.
    private var floor = 0

    /// Returns the next of some tenants.
    mutating func next(of tenants: some Collection<TenantID>) -> TenantID? {
        let next = tenants.min { (self.count(of: $0), $0.text) < (self.count(of: $1), $1.text) }
        if let next { self.floor = max(self.floor, self.count(of: next)) }
        return next
    }

    mutating func add(_ count: Int, of tenant: TenantID) {
        self.sent[tenant] = self.count(of: tenant) + count
        if self.sent.count > 1_000 { self.sent = self.sent.filter { $0.value > self.floor } }
    }

    private func count(of tenant: TenantID) -> Int { max(self.sent[tenant] ?? 0, self.floor) }
}
