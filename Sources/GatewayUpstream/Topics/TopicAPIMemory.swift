import Synchronization

/// Remembers which accounts v1's own API was not there for, so that not every request finds out anew.
final class TopicAPIMemory: Sendable {
    /// How long that is believed.
    private static let life = Duration.seconds(600)

    /// An account that is not there any more has no entry that matters.
    private struct Miss {
        weak var account: V1Account?
        let until: ContinuousClock.Instant
    }

    private let misses = Mutex<[ObjectIdentifier: Miss]>([:])

    /// Whether an account's requests had better go to the Instance ID API.
    func isMissing(for account: V1Account, at now: ContinuousClock.Instant) -> Bool {
        self.misses.withLock { misses in
            guard let miss = misses[ObjectIdentifier(account)] else { return false }
            if now < miss.until, miss.account === account { return true }
            misses[ObjectIdentifier(account)] = nil
            return false
        }
    }

    /// Notes that the API is not there for an account.
    func noteMiss(for account: V1Account, at now: ContinuousClock.Instant) {
        self.misses.withLock { misses in
            misses = misses.filter { now < $0.value.until && $0.value.account != nil }
            misses[ObjectIdentifier(account)] = Miss(account: account, until: now.advanced(by: Self.life))
        }
    }

    /// Forgets that, where the other API is not there either.
    func forget(_ account: V1Account) {
        self.misses.withLock { $0[ObjectIdentifier(account)] = nil }
    }
}
