import FCMModel
import Metrics
import Synchronization

/// One process's try at a send that carries a key: it takes the key durably before anything leaves.
final class SendAttempt: Sendable {
    private struct State {
        /// The record that holds the key, once it is taken.
        var recordID: Int64?
        var progress: SendProgress
        /// Why the key could not be taken, or the progress not be kept.
        var refusal: Refusal?
    }

    /// The message's id, the same however often the send is tried.
    let messageID: String
    private let identity: IdempotencyIdentity
    private let draft: IdempotencyRecord
    private let sealer: IdempotencySealer
    private let journal: IdempotencyJournal
    private let counters: [IdempotencyEvent: Counter]
    private let startsPerMark: Int
    /// All recipients of the send.
    private let target: Target
    /// What an earlier process had got to.
    private let earlier: SendProgress
    private let state: Mutex<State>

    /// A try at a send.
    init(
        _ identity: IdempotencyIdentity,
        to target: Target,
        draft: IdempotencyRecord,
        recordID: Int64? = nil,
        earlier: SendProgress,
        sealer: IdempotencySealer,
        journal: IdempotencyJournal,
        counters: [IdempotencyEvent: Counter],
        startsPerMark: Int
    ) {
        self.messageID = draft.messageID
        self.identity = identity
        self.target = target
        self.draft = draft
        self.sealer = sealer
        self.journal = journal
        self.counters = counters
        self.startsPerMark = startsPerMark
        self.earlier = earlier
        self.state = Mutex(State(recordID: recordID, progress: earlier))
    }

    /// The record that holds the key; `nil` while nothing can have left.
    var recordID: Int64? { self.state.withLock { $0.recordID } }

    /// Why nothing could leave.
    var refusal: Refusal? { self.state.withLock { $0.refusal } }

    // MARK: Starting

    /// Returns when it is durable that the message is about to leave to the recipients of a call.
    ///
    /// - Parameter places: the recipients' places in the whole send.
    /// - Returns: whether it may leave.
    func start(_ places: [Int]) async -> Bool {
        let (recordID, progress) = self.state.withLock { state in
            state.progress.start(places)
            return (state.recordID, state.progress)
        }
        do throws(GatewayError) {
            guard let sealed = self.sealer.seal(progress.bytes, as: .progress) else { throw Self.unsealed }
            if let recordID {
                _ = try await self.journal.commit(.update(id: recordID, .open(progress: sealed)))
                return true
            }
            var record = self.draft
            record.state = .open(progress: sealed)
            let outcome = try await self.journal.commit(.reserve(self.identity, record))
            if case .reserved(let id, let evicted) = outcome {
                self.counters[.evicted]?.increment(by: evicted)
                self.state.withLock { $0.recordID = id }
                return true
            }
            return self.refuse(places, Refusal(outcome))
        } catch {
            self.counters[.failed]?.increment()
            return self.refuse(places, .unkeepable)
        }
    }

    private func refuse(_ places: [Int], _ refusal: Refusal) -> Bool {
        self.state.withLock { state in
            state.progress.takeBack(places)
            state.refusal = refusal
        }
        return false
    }

    /// A gate for the calls that some of the send's recipients become.
    func gate(to target: Target) -> StartGate {
        StartGate(self, places: self.places(of: target), step: self.startsPerMark)
    }

    /// Where recipients stand in the whole send: limits and retired tokens leave some out, but never change their order.
    private func places(of target: Target) -> [Int] {
        let remaining = self.earlier.remaining
        guard let texts = target.listed, let all = self.target.listed else { return Array(remaining.prefix(1)) }
        var places: [Int] = []
        places.reserveCapacity(texts.count)
        var candidates = remaining.makeIterator()
        for text in texts {
            while let place = candidates.next() {
                guard all[place].utf8.elementsEqual(text.utf8) else { continue }
                places.append(place)
                break
            }
        }
        return places
    }

    /// Keeps in mind what became of a recipient, until progress is next kept.
    func finish(_ place: Int, _ outcome: RecipientOutcome) {
        self.state.withLock { $0.progress.finish(place, outcome) }
    }

    // MARK: Ending

    /// Keeps the answer; nothing is kept where the key was not taken.
    ///
    /// - Throws: `storeUnavailable`.
    func complete(_ answer: [UInt8]) async throws(GatewayError) {
        guard let recordID = self.recordID else { return }
        guard let sealed = self.sealer.seal(answer, as: .answer) else { throw Self.unsealed }
        _ = try await self.journal.commit(.update(id: recordID, .finished(answer: sealed)))
    }

    /// Frees the key, since nothing has left for anybody; what an earlier process had started stays as it was.
    ///
    /// - Throws: `storeUnavailable`.
    func release() async throws(GatewayError) {
        guard let recordID = self.recordID else { return }
        guard !self.earlier.started.isEmpty else {
            _ = try await self.journal.commit(.release(id: recordID))
            return
        }
        guard let sealed = self.sealer.seal(self.earlier.bytes, as: .progress) else { throw Self.unsealed }
        _ = try await self.journal.commit(.update(id: recordID, .open(progress: sealed)))
    }

    private static var unsealed: GatewayError { GatewayError(.storeUnavailable, "The record can't be sealed") }
}

extension Refusal {
    /// Why a key could not be taken.
    fileprivate init(_ outcome: IdempotencyChange.Outcome) {
        switch outcome {
        case .full:
            self.init(.overloaded, "As many idempotency keys are kept as may be; repeat later")
        case .tenantGone:
            self.init(.notFound, "There is no such tenant any more")
        case .taken, .reserved, .done:
            self.init(.idempotencyInProgress, retryAfter: 1)
        }
    }

    /// Why nothing is sent while the store refuses.
    static let unkeepable = Refusal(.overloaded, "The idempotency key can't be kept, so nothing is sent")
}
