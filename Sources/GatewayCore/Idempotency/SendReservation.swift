package import FCMModel
import Metrics
import Synchronization

/// One process's attempt at a send with a key (decision 0018).
///
/// - The *key* is taken before anything leaves, by a *record* in the store.
/// - A *mark* is a durable note of the recipients whose calls are about to leave. No call leaves unmarked. A list is
///   marked `startsPerMark` recipients at a time, in their order, so a long list costs few transactions.
/// - After a crash, the outcome of a recipient that was marked and has no outcome is unknown. Recipients without a mark
///   are sent to when the request is repeated.
/// - If replicas share the store, the key is held under a ``Lease``. A mark is written, and a call started, only while
///   the lease outlasts it. A process that was paused past its lease sends nothing more, because another replica may
///   have taken the record over.
///
/// A list of 450 recipients by HTTP v1:
///
///     reserve key + mark 0–199 → calls 0–199 → mark 200–399, outcomes so far → calls … → mark 400–449 → calls → answer
///                    crash here: 0–199 are unknown, 200–449 are sent to by the next attempt
package final class SendReservation: Sendable {
    /// The times at which the calls of a batch leave.
    package struct Pace: Sendable {
        /// The most calls that leave together, so that other work of their event loop waits for few of them.
        static let startsAtOnce = 25

        /// The most calls that one mark covers. 0 if nothing more may leave.
        let startsPerMark: Int
        /// Waits until so many calls may leave. Returns false if they must not leave now.
        let wait: @Sendable (Int) async -> Bool
        /// The event loop of the calls. The rest of the send is work of milliseconds, which would delay other requests
        /// there.
        var executor: (any TaskExecutor)?
    }

    typealias Writer = GroupCommitWriter<IdempotencyChange, IdempotencyChange.Outcome>

    /// The next step of a call that is ready to leave.
    private enum Decision {
        case pass, stop, wait
        /// Marks these calls of the list.
        case mark(Range<Int>)
        /// Waits until so many marked calls may leave.
        case depart(Int)
    }

    private struct State {
        /// The record that holds the key, once it is taken.
        var recordID: Int64?
        var progress: Progress
        /// The reason why the key could not be taken, or a mark not be written.
        var refusal: Refusal?
        /// The places of the calls' recipients in the whole send.
        var places: [Int] = []
        var marked = 0
        /// The number of marked calls that may leave.
        var departing = 0
        var isAdvancing = false
        /// `nil` where no other replica can take the key.
        var lease: Lease?
        /// True once the store has reported that another replica holds the key.
        var isLost = false
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// The message's id, the same for all attempts.
    let messageID: String
    private let identity: IdempotencyRecord.Identity
    private let draft: IdempotencyRecord
    private let sealer: IdempotencySealer
    private let writer: Writer
    private let counters: [IdempotentSends.Event: Counter]
    /// The number of calls that one mark covers.
    private let startsPerMark: Int
    private let pace: Pace?
    private let leases: LeaseTerms?
    private let leaseCounters: Lease.Counters?
    private let target: Target
    /// The progress of an earlier attempt.
    private let earlier: Progress
    private let state: Mutex<State>

    init(
        _ identity: IdempotencyRecord.Identity,
        to target: Target,
        draft: IdempotencyRecord,
        recordID: Int64? = nil,
        earlier: Progress,
        sealer: IdempotencySealer,
        writer: Writer,
        counters: [IdempotentSends.Event: Counter],
        startsPerMark: Int,
        pace: Pace? = nil,
        leases: LeaseTerms? = nil,
        leaseCounters: Lease.Counters? = nil
    ) {
        (self.messageID, self.identity, self.target) = (draft.messageID, identity, target)
        (self.draft, self.earlier, self.sealer) = (draft, earlier, sealer)
        (self.writer, self.counters, self.pace) = (writer, counters, pace)
        self.startsPerMark = pace?.startsPerMark ?? startsPerMark
        (self.leases, self.leaseCounters) = (leases, leaseCounters)
        let lease = leases.map { Lease(duration: $0.duration) }
        self.state = Mutex(State(recordID: recordID, progress: earlier, lease: lease))
    }

    /// The number of the record that holds the key, `nil` while nothing can have left.
    var recordID: Int64? { self.state.withLock { $0.recordID } }

    /// The executor of the calls, if not the caller's.
    package var callExecutor: (any TaskExecutor)? { self.pace?.executor }

    /// The reason why nothing more may leave.
    var refusal: Refusal? { self.state.withLock { $0.refusal } }

    // MARK: Leaving

    /// Makes the calls to some of the send's recipients, each after its mark is durable.
    ///
    /// A list that becomes one call for each recipient asks ``pass(_:)`` for each. Any other target is marked as a
    /// whole.
    func send(_ call: UpstreamCall, by upstream: any UpstreamSender) async -> SendResult {
        self.begin(call.target)
        if call.profile.tenant.upstream.sendsEach(of: call.target) {
            let result = await upstream.send(call)
            // Without the key no call has left, so one refusal replaces one outcome for each recipient.
            return self.recordID == nil ? self.notStarted ?? result : self.qualified(result)
        }
        guard await self.pass(call.target.recipientCount - 1) else {
            return self.notStarted ?? SendResult(refused: .overloaded, upstreamCode: "not_started")
        }
        return await upstream.send(call)
    }

    /// Prepares for the calls to some of the send's recipients.
    func begin(_ target: Target) {
        let places = self.places(of: target)
        self.state.withLock { state in
            state.places = places
            (state.marked, state.departing) = (0, 0)
        }
    }

    private var notStarted: SendResult? {
        self.refusal.map { SendResult(refused: $0.code, retryAfter: $0.retryAfter, upstreamCode: "not_started") }
    }

    /// Returns the places of recipients in the whole send. Limits and retired tokens leave some out and keep the order.
    private func places(of target: Target) -> [Int] {
        let remaining = self.earlier.remaining
        guard let texts = target.listed, let all = self.target.listed else { return Array(remaining.prefix(1)) }
        // An ordered part with as many recipients is the whole.
        if texts.count == remaining.count { return remaining }
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

    /// True if a call that takes at most this long may begin now. The caller asks immediately before the call leaves.
    package func mayCall(within timeout: Duration) -> Bool {
        guard let leases = self.leases else { return true }
        let now = leases.uptime()
        return self.state.withLock { $0.lease?.covers(timeout, at: now) ?? true }
    }

    /// Waits until a call, named by its place in the list, may leave. Returns `false` if it must not.
    package func pass(_ index: Int) async -> Bool {
        while true {
            switch self.decide(on: index) {
            case .pass: return true
            case .stop: return false
            case .wait: await self.waitForAdvance()
            case .mark(let range): await self.mark(range, for: index)
            case .depart(let count):
                // A refusal comes from FCM's pause, which the call itself meets.
                _ = await self.pace?.wait(count)
                self.advance { $0.departing += count }
            }
        }
    }

    /// Returns the result of a list's calls. After the lease has ended, another replica may have sent to recipients
    /// that are not marked here, so their outcome is `idempotency_in_progress`: a repeat under another key could send
    /// twice.
    private func qualified(_ result: SendResult) -> SendResult {
        guard !self.mayCall(within: .zero) else { return result }
        let unmarked = self.state.withLock { $0.marked..<$0.places.count }
        let rejection = Rejection(code: .idempotencyInProgress, retryAfter: 1)
        var qualified = result
        switch result.answer {
        case .recipients(var outcomes):
            for index in outcomes.indices where unmarked.contains(index) { outcomes[index] = .rejected(rejection) }
            qualified.answer = .recipients(outcomes)
        case .refused where unmarked.lowerBound == 0:
            qualified.answer = .refused(Refusal(rejection))
        case .refused, .group:
            break
        }
        return qualified
    }

    /// Notes a call's outcome, which becomes durable with the next mark.
    package func finish(_ index: Int, _ outcome: RecipientOutcome) {
        self.state.withLock { $0.progress.finish($0.places[index], outcome) }
    }

    private func decide(on index: Int) -> Decision {
        self.state.withLock { state in
            if index < state.departing { return .pass }
            if state.refusal != nil || index >= state.places.count || self.startsPerMark == 0 { return .stop }
            if state.isAdvancing { return .wait }
            state.isAdvancing = true
            if state.departing < state.marked { return .depart(min(Pace.startsAtOnce, state.marked - state.departing)) }
            return .mark(state.marked..<min(max(state.marked + self.startsPerMark, index + 1), state.places.count))
        }
    }

    private func waitForAdvance() async {
        await withCheckedContinuation { continuation in
            let isOver = self.state.withLock { state in
                guard state.isAdvancing else { return true }
                state.waiters.append(continuation)
                return false
            }
            if isOver { continuation.resume() }
        }
    }

    private func mark(_ range: Range<Int>, for index: Int) async {
        // Before the mark, so that few recipients are marked and not sent to when the process ends.
        // A list that is one call asks for its last recipient.
        let least = self.pace == nil ? range.count : min(Pace.startsAtOnce, range.count)
        let first = max(least, index + 1 - range.lowerBound)
        let mayLeave = await self.pace?.wait(first) ?? true
        let (recordID, places, progress) = self.state.withLock { state in
            let places = Array(state.places[range])
            state.progress.start(places)
            return (state.recordID, places, state.progress)
        }
        let asked = self.leases?.uptime()
        let result =
            mayLeave
            ? await self.save(progress, in: recordID)
            : .failure(Refusal(.overloaded, retryAfter: 10, limitedBy: .gateway))
        self.advance { state in
            switch result {
            case .success(let id):
                (state.recordID, state.marked, state.departing) = (id, range.upperBound, range.lowerBound + first)
                if let asked { state.lease?.grant(askedAt: asked) }
            case .failure(let refusal):
                state.progress.takeBack(places)
                state.refusal = refusal
            }
        }
    }

    private func advance(_ change: (inout State) -> Void) {
        let waiters = self.state.withLock { state in
            change(&state)
            state.isAdvancing = false
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
    }

    /// Makes progress durable, the first time by taking the key. Returns the number of the record.
    private func save(_ progress: Progress, in recordID: Int64?) async -> Result<Int64, Refusal> {
        do throws(GatewayError) {
            let state = IdempotencyRecord.State.open(progress: try self.sealer.seal(progress.bytes, as: .progress))
            if let recordID {
                if case .lost = try await self.writer.commit(.update(id: recordID, state)) {
                    self.lose()
                    return .failure(Refusal(.idempotencyInProgress, retryAfter: 1))
                }
                return .success(recordID)
            }
            var record = self.draft
            record.state = state
            switch try await self.writer.commit(.reserve(self.identity, record)) {
            case .reserved(let id, let evicted):
                self.counters[.evicted]?.increment(by: evicted)
                return .success(id)
            case .full:
                return .failure(Refusal(.overloaded, "As many idempotency keys are kept as may be; repeat later"))
            case .tenantGone:
                return .failure(Refusal(.notFound, "There is no such tenant any more"))
            case .taken, .lost, .done:
                return .failure(Refusal(.idempotencyInProgress, retryAfter: 1))
            }
        } catch {
            self.counters[.failed]?.increment()
            // After the lease has ended, another replica may hold the key and be sending.
            let isOver = recordID != nil && !self.mayCall(within: .zero)
            return .failure(isOver ? Refusal(.idempotencyInProgress, retryAfter: 1) : .unkeepable)
        }
    }

    // MARK: Leases

    /// Renews the lease once a third of it has passed. If another replica has taken the key, nothing more leaves.
    func renewLease() async {
        guard let leases = self.leases else { return }
        let asked = leases.uptime()
        let due = self.state.withLock { $0.lease?.isDue(at: asked) == true ? $0.recordID : nil }
        guard let due else { return }
        // If the store does not answer, the lease runs out.
        guard let outcome = try? await self.writer.commit(.renew(id: due)) else { return }
        guard case .lost = outcome else { return self.state.withLock { $0.lease?.grant(askedAt: asked) ?? () } }
        self.lose()
    }

    /// Lets nothing more leave, because another replica holds the key.
    private func lose() {
        let isNews = self.state.withLock { state in
            state.lease?.lose()
            state.refusal = state.refusal ?? Refusal(.idempotencyInProgress, retryAfter: 1)
            defer { state.isLost = true }
            return !state.isLost
        }
        if isNews { self.leaseCounters?.losses.increment() }
    }

    /// Takes over a record that another replica left. Returns `false` if that replica or a third one works on it.
    func takeOver() async throws(GatewayError) -> Bool {
        guard let leases = self.leases, let recordID = self.recordID else { return true }
        guard case .open(let progress) = self.draft.state else { return false }
        let asked = leases.uptime()
        let change = IdempotencyChange.takeOver(id: recordID, progress: progress)
        guard case .done = try await self.writer.commit(change) else { return false }
        self.state.withLock { $0.lease?.grant(askedAt: asked) ?? () }
        self.leaseCounters?.takeovers.increment()
        return true
    }

    // MARK: Ending

    /// Stores the answer. Does nothing if the key was not taken. Returns false if another replica holds the key.
    @discardableResult
    func complete(_ answer: [UInt8]) async throws(GatewayError) -> Bool {
        guard let recordID = self.recordID else { return true }
        let state = IdempotencyRecord.State.finished(answer: try self.sealer.seal(answer, as: .answer))
        guard case .lost = try await self.writer.commit(.update(id: recordID, state)) else { return true }
        self.lose()
        return false
    }

    /// Frees the key, because nothing has left. The progress of an earlier attempt stays, and any replica may continue.
    func release() async throws(GatewayError) {
        guard let recordID = self.recordID else { return }
        guard !self.earlier.started.isEmpty else {
            _ = try await self.writer.commit(.release(id: recordID))
            return
        }
        let state = IdempotencyRecord.State.open(progress: try self.sealer.seal(self.earlier.bytes, as: .progress))
        _ = try await self.writer.commit(.update(id: recordID, state, endsLease: true))
    }
}

extension Refusal {
    /// The refusal of all sends with a key while the store fails.
    static let unkeepable = Refusal(.overloaded, "The idempotency key can't be kept, so nothing is sent")
}

extension SendReservation {
    /// The recipients of a send that may have been sent to, and their outcomes.
    struct Progress: Sendable, Equatable {
        private enum Step: Equatable {
            /// Nothing has left for the recipient. Next: `started`.
            case waiting
            /// The message may have left. Next: `finished`; `waiting` if the mark could not be stored.
            case started
            case finished(RecipientOutcome)
        }

        /// The step of each recipient.
        private var steps: [Step]

        init(count: Int) { self.steps = Array(repeating: .waiting, count: count) }

        /// The progress of a send that has ended.
        init(_ outcomes: [RecipientOutcome]) { self.steps = outcomes.map { .finished($0) } }

        /// The places of the recipients that nothing has left for.
        var remaining: [Int] { self.steps.indices.filter { self.steps[$0] == .waiting } }

        /// The places of the recipients that the message may have left for.
        var started: [Int] { self.steps.indices.filter { self.steps[$0] != .waiting } }

        mutating func start(_ places: some Sequence<Int>) { for place in places { self.steps[place] = .started } }

        mutating func takeBack(_ places: some Sequence<Int>) { for place in places { self.steps[place] = .waiting } }

        mutating func finish(_ place: Int, _ outcome: RecipientOutcome) { self.steps[place] = .finished(outcome) }

        /// Returns one outcome for each recipient: of a started one its known outcome or `outcome_unknown`, of the
        /// others the later ones in their order.
        func results(with later: [RecipientOutcome] = []) -> [RecipientOutcome] {
            var later = later.makeIterator()
            return self.steps.map { step in
                switch step {
                case .waiting: later.next() ?? .rejected(.upstreamUnavailable)
                case .started: .rejected(.outcomeUnknown)
                case .finished(let outcome): outcome
                }
            }
        }

        /// Increases with each change of the layout.
        private static let version = 1

        /// The places that were started, and the places that have finished with their outcomes.
        var bytes: [UInt8] {
            let started = self.started
            let finished = started.compactMap { place -> (Int, RecipientOutcome)? in
                if case .finished(let outcome) = self.steps[place] { (place, outcome) } else { nil }
            }
            var writer = ByteWriter()
            writer.write(number: Self.version)
            writer.write(number: started.count)
            for place in started { writer.write(number: place) }
            writer.write(number: finished.count)
            for (place, outcome) in finished {
                writer.write(number: place)
                outcome.write(to: &writer)
            }
            return writer.bytes
        }

        /// Reads the progress of a send to so many recipients and ignores places beyond them. Returns `nil` for bytes
        /// that are no progress.
        init?(_ bytes: [UInt8], count: Int) {
            self.init(count: count)
            var reader = ByteReader(bytes)
            guard reader.number() == Self.version, let startedCount = reader.number() else { return nil }
            for _ in 0..<startedCount {
                guard let place = reader.number() else { return nil }
                if place < count { self.steps[place] = .started }
            }
            guard let outcomeCount = reader.number() else { return nil }
            for _ in 0..<outcomeCount {
                guard let place = reader.number(), let outcome = RecipientOutcome(from: &reader) else { return nil }
                if place < count { self.steps[place] = .finished(outcome) }
            }
            guard reader.rest.isEmpty else { return nil }
        }
    }
}

extension RecipientOutcome {
    func write(to writer: inout ByteWriter) {
        switch self {
        case .accepted(let acceptance):
            writer.write(text: nil)
            writer.write(text: acceptance.messageID)
            writer.write(text: acceptance.replacementToken)
        case .rejected(let rejection):
            writer.write(text: rejection.code.rawValue)
            writer.write(number: rejection.retryAfter ?? ByteReader.absent)
            writer.write(text: rejection.limitedBy?.rawValue)
            writer.write(text: rejection.legacyName?.rawValue)
        }
    }

    init?(from reader: inout ByteReader) {
        guard let name = reader.optionalText() else { return nil }
        if let name {
            guard let code = OutcomeCode(rawValue: name), let retryAfter = reader.number(),
                let limitedBy = reader.optionalText(), let legacyName = reader.optionalText()
            else { return nil }
            let rejection = Rejection(
                code: code,
                retryAfter: retryAfter == ByteReader.absent ? nil : retryAfter,
                limitedBy: limitedBy.flatMap(Rejection.LimitSource.init(rawValue:)),
                legacyName: legacyName.flatMap(LegacyErrorName.init(rawValue:))
            )
            self = .rejected(rejection)
        } else {
            guard let messageID = reader.text(), let replacement = reader.optionalText() else { return nil }
            self = .accepted(Acceptance(messageID: messageID, replacementToken: replacement))
        }
    }
}
